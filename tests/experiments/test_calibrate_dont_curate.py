"""Panels in both orientations, the theory's exact sums, the twin, and the audits' functions."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.aggregators import Aggregator, BaseRate
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.one_split import Evaluation
from judgebayes.evaluate.splits import Splits
from judgebayes.experiments.calibrate_dont_curate import answers as answers_module
from judgebayes.experiments.calibrate_dont_curate import (
    audit_auto,
    audit_published,
    h6,
    table2,
    table12,
    theory,
)
from judgebayes.experiments.calibrate_dont_curate.answers import (
    advantage,
    answers,
    answers_of,
    class_ece,
    evidence_on,
    split_p_values,
)
from judgebayes.experiments.calibrate_dont_curate.appendix_d import bradley_terry
from judgebayes.experiments.calibrate_dont_curate.h8_difficulty import hard_items
from judgebayes.experiments.calibrate_dont_curate.h11 import agreement_strata, shuffled_votes
from judgebayes.experiments.calibrate_dont_curate.methods import aggregator
from judgebayes.experiments.calibrate_dont_curate.parts import by_subset, halves
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    degenerate,
    graded,
)
from judgebayes.experiments.calibrate_dont_curate.selective import auac
from judgebayes.experiments.calibrate_dont_curate.twins import JUDGEBENCH, twin_panel
from judgebayes.experiments.core import Run, expected
from judgebayes.experiments.panels import Panel
from judgebayes.experiments.significance import permutation_test
from judgebayes.votes import Votes

PAPER = "calibrate-dont-curate"


@pytest.fixture(scope="module")
def run() -> Run:
    return Run(smoke=True)


@pytest.fixture(scope="module")
def panel() -> Panel:
    return twin_panel(smoke=True)


def test_correctness_makes_the_label_constant_and_keeps_who_is_right(panel: Panel) -> None:
    index = np.asarray(panel.votes.index).copy()
    index[3, 2] = -1
    holed = replace(panel, votes=Votes(jnp.asarray(index), None, None, None, 2))
    constant = holed.oriented("correctness")
    assert (constant.labels == 1).all()
    assert (constant.correct == holed.correct).all()
    assert constant.correct[3, 2] == -1
    assert degenerate(constant)
    assert not degenerate(holed)
    assert holed.oriented("true") is holed
    with pytest.raises(JudgeBayesError, match="no response positions"):
        constant.oriented("true")


def test_panels_of_some_judges_and_items(panel: Panel) -> None:
    part = panel.of([1, 4], "two")
    assert part.judges == (panel.judges[1], panel.judges[4])
    assert part.families == (panel.families[1], panel.families[4])
    assert part.key != panel.key
    assert (part.correct == panel.correct[:, [1, 4]]).all()
    assert panel.without("judge-1").judges == tuple(j for j in panel.judges if "judge-1" not in j)
    some = panel.among(np.array([5, 2]), "two items")
    assert (some.correct == panel.correct[[5, 2]]).all()


def test_the_twin_meets_what_it_was_fitted_to() -> None:
    """Table 1's JudgeBench rows: majority voting's accuracy and mean probability, over seeds."""
    printed = {
        (r.method, r.metric): r.value
        for r in expected(PAPER, "table1").itertuples()
        if r.task == "JudgeBench"
    }
    right, share = [], []
    for seed in range(8):
        correct = twin_panel(seed).correct
        assert correct.shape == (JUDGEBENCH.items, JUDGEBENCH.judges)
        part = correct.mean(1)
        right.append(np.mean((part > 0.5) + 0.5 * (part == 0.5)))
        share.append(part.mean())
    assert np.mean(right) == pytest.approx(printed["majority", "accuracy"], abs=0.03)
    assert np.mean(share) == pytest.approx(1 - printed["majority", "ece"], abs=0.03)


def test_answers_are_made_once_and_scored_item_by_item(run: Run, panel: Panel) -> None:
    both = answers(run, panel, "one-coin", ("none", "beta"))
    assert answers(run, panel, "one-coin", ("none",))["none"] is both["none"]
    beta = both["beta"]
    losses = [
        -np.log(beta.p[s, i] if panel.labels[item] else 1 - beta.p[s, i])
        for s, row in enumerate(beta.items)
        for i, item in enumerate(row)
    ]
    assert beta.by_split("nll").mean() == pytest.approx(np.mean(losses))
    assert beta.by_item().shape == (len(panel.labels),)
    assert advantage(beta, beta).interval() == (0.0, 0.0, 0.0)


def test_batches_of_splits_change_nothing(
    run: Run, panel: Panel, monkeypatch: pytest.MonkeyPatch
) -> None:
    from judgebayes.aggregators import OneCoin
    from judgebayes.calibrators import Identity
    from judgebayes.experiments.calibrate_dont_curate import parts as division

    parts = halves(run, panel)
    whole = answers_of(run, panel, OneCoin(), {"none": Identity()}, parts)["none"]
    monkeypatch.setattr(division, "VOTES_AT_ONCE", 1)
    single = answers_of(run, panel, OneCoin(), {"none": Identity()}, parts)["none"]
    assert np.allclose(whole.log_probs, single.log_probs)


def test_budgets_are_nested_and_subsets_are_not_divided(run: Run, panel: Panel) -> None:
    whole, few = halves(run, panel), halves(run, panel, labels=20)
    assert few.name != whole.name
    assert (few.splits.calibration[:, :20] == whole.splits.calibration[:, :20]).all()
    assert (few.splits.calibration[:, 20:] == -1).all()
    assert (few.splits.evaluation == whole.splits.evaluation).all()
    for cal, ev in zip(*vars(by_subset(run, panel).splits).values(), strict=True):
        assert not set(panel.subset[cal[cal >= 0]]) & set(panel.subset[ev[ev >= 0]])


def test_calibration_error_of_a_class_sees_a_constant_label() -> None:
    p = np.array([0.55, 0.58, 0.81, 0.84])
    assert class_ece(p, np.ones(4)) == pytest.approx(1 - p.mean())
    assert class_ece(np.array([0.5] * 4), np.array([0, 1, 0, 1])) == pytest.approx(0)


def test_permutations_of_many_splits_are_those_of_one() -> None:
    rng = np.random.default_rng(3)
    difference = rng.normal([[0.0], [0.3]], 1.0, (2, 60))
    together = split_p_values(difference, flips=4000)
    one_by_one = [permutation_test(d, resamples=4000) for d in difference]
    assert together == pytest.approx(one_by_one, abs=0.03)
    assert together[1] < together[0]


def test_shuffled_votes_say_nothing_and_yet_score_perfectly_on_a_constant_label(
    run: Run, panel: Panel
) -> None:
    for orientation, nll, right in (("true", np.log(2), 0.5), ("correctness", 0.0, 1.0)):
        own = panel.oriented(orientation)
        beta = answers(run, shuffled_votes(own, 0), "one-coin")["beta"]
        assert beta.by_split("nll").mean() == pytest.approx(nll, abs=0.06)
        assert beta.by_split("accuracy").mean() == pytest.approx(right, abs=0.1)


def test_strata_of_agreement_are_ordered(panel: Panel) -> None:
    strata = agreement_strata(panel)
    counts = np.asarray(panel.votes.pooled_counts())
    share = counts.max(1) / counts.sum(1)
    assert share[strata == 0].max() <= share[strata == 2].min()


def test_hard_and_easy_items_are_both_there_unless_all_agree_alike() -> None:
    for share in ([0.6, 0.7, 0.8, 0.9], [0.6, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.8]):
        hard = hard_items(np.array(share))
        assert 0 < hard.sum() < 4
        assert np.array(share)[hard].max() < np.array(share)[~hard].min()


def test_divisions_hold_out_a_fifth_of_each_splits_labels() -> None:
    outer = Splits(np.array([[4, 1, 7, 0, 9], [5, 6, 8, 2, 3]]), np.zeros((2, 1), int))
    inner = audit_auto.divisions(outer, 3, 0)
    assert inner.calibration.shape == (6, 4)
    assert inner.evaluation.shape == (6, 1)
    for row, fitted, held_out in zip(
        np.repeat(outer.calibration, 3, axis=0), *vars(inner).values(), strict=True
    ):
        assert sorted([*fitted, *held_out]) == sorted(row)


def test_auto_takes_what_is_clearly_better_on_a_splits_own_labels(panel: Panel) -> None:
    """Of three splits: stacking clearly better, only the rule's decisions better, nothing better."""
    cell = audit_auto._cell(panel, "twin")
    names = list(audit_auto.methods_of(cell))
    assert names[0] == "pool"
    items = np.stack([np.arange(30), np.arange(30, 60)] * 3)
    labels = cell.labels[items]
    noise = np.random.default_rng(0).normal(size=labels.shape) * 0.1

    def answers_that_are(right: float, decide: np.ndarray) -> Evaluation:
        logit = np.where(labels == 1, 1, -1) * right + noise
        p = np.stack([-np.logaddexp(0, logit), -np.logaddexp(0, -logit)], axis=-1)
        return Evaluation(items, labels, p, decide, np.zeros(len(labels), np.int32))

    wrong = np.where(np.arange(30) % 2 == 0, labels, 1 - labels)
    own = {name: answers_that_are(1.0, wrong) for name in names}
    better = answers_that_are(2.0, wrong)
    split = np.repeat(np.arange(3), 2)[:, None]
    own["stacking"] = replace(
        own["stacking"],
        log_probs=np.where(split[..., None] == 0, better.log_probs, own["pool"].log_probs),
    )
    own["sc"] = replace(own["sc"], decisions=np.where(split == 1, labels, wrong))
    inner = Splits(items, items)
    taken = [audit_auto.taken(cell, own, inner, slice(2 * s, 2 * s + 2), names) for s in range(3)]
    assert taken == [("stacking", "stacking"), ("pool", "sc"), ("pool", "pool")]


def test_every_statement_holds(run: Run) -> None:
    rng = np.random.default_rng(5)
    one = theory.monotonicity(rng)
    assert one["least fall of the risk by one more judge"] > -1e-12
    assert one["risk change by a judge of accuracy 0.5"] < 1e-10
    assert one["fall of NLL minus conditional mutual information"] < 1e-10
    assert theory.bayes_rule(rng) < 1e-10
    assert theory.jury(rng)["bound minus error, least"] > 0


def test_jury_error_of_three_equal_judges_is_the_binomial_one() -> None:
    r = 0.7
    assert theory.jury_error(np.full(3, r)) == pytest.approx((1 - r) ** 3 + 3 * r * (1 - r) ** 2)
    assert theory.jury_bound(np.full(3, r)) == pytest.approx(0.5 * (4 * r * (1 - r)) ** 1.5)


def test_copied_judges_break_the_pipeline_not_the_proposition() -> None:
    losses = theory.copies()
    assert losses["all votes, best predictor"] < losses["strong judge alone"]
    assert losses["all votes, one-coin score, best monotone map"] > losses["strong judge alone"]


def test_a_monotone_map_of_a_good_score_is_the_oracle() -> None:
    accuracy = np.array([0.8, 0.7, 0.6])
    world = theory.one_coin_world(accuracy)
    score = (2 * world.votes - 1) @ theory.log_odds(accuracy)
    assert theory.monotone_risk(world.joint, score) == pytest.approx(
        theory.oracle_risk(world.joint)[0]
    )


def test_weighting_beats_pruning_where_judges_are_alike() -> None:
    replicates = [h6.replicate(20, 0.65, 0.01, np.random.default_rng(s)) for s in range(20)]
    lead = [
        d["log-odds"] - max(d["top half, majority"], d["top third, majority"]) for d in replicates
    ]
    assert np.mean(lead) > 0.05


def test_the_bound_on_calibrated_nll_is_met_by_coins_and_certainties() -> None:
    p = np.array([0.5] * 20 + [1.0] * 80)  # accuracy 0.9 on average
    entropy = np.where(p == 0.5, np.log(2), 0.0)
    assert audit_published.least_nll(p.mean()) == pytest.approx(entropy.mean())
    rng = np.random.default_rng(0)
    q = rng.uniform(0.5, 1, 1000)
    own = -(q * np.log(q) + (1 - q) * np.log1p(-q))
    assert audit_published.least_nll(q.mean()) < own.mean()
    assert audit_published.least_accuracy(audit_published.least_nll(0.8)) == pytest.approx(0.8)


def test_bradley_terry_of_two_is_the_log_odds() -> None:
    x = np.array([[1.0, -1.0]] * 30 + [[-1.0, 1.0]] * 10)
    strength = bradley_terry(x, np.ones(40) * 1000)
    assert strength[0] - strength[1] == pytest.approx(np.log(3), abs=1e-3)


def test_a_method_that_sees_fewer_splits_is_compared_on_those(run: Run, panel: Panel) -> None:
    both = answers(run, panel, "one-coin", ("none", "beta"))
    few = replace(both["beta"], log_probs=both["beta"].log_probs[:2], items=both["beta"].items[:2])
    lead = advantage(few, both["none"])
    differences = (both["none"].each("nll") - both["beta"].each("nll"))[:2]
    assert lead.estimate == pytest.approx(np.nanmean(differences))
    assert lead.estimate != advantage(both["beta"], both["none"]).estimate


def planted(*, labels_of_one: float = 0.5) -> Panel:
    """Return independent judges of similar accuracy, on whom the paper's main claim is true."""
    rng = np.random.default_rng(7)
    labels = (np.arange(400) < 400 * labels_of_one).astype(int)
    right = rng.random((400, 24)) < rng.uniform(0.62, 0.7, 24)
    index = np.where(right, labels[:, None], 1 - labels[:, None])
    votes = Votes(jnp.asarray(index[:, :, None], jnp.int8), None, None, None, 2)
    judges = tuple(f"judge-{j}" for j in range(24))
    return Panel("planted", votes, labels, np.arange(400) % 4, tuple("abcd"), judges, judges)


def main_claims(panel: Panel, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the grades of Table 2's paper claims on a panel."""
    monkeypatch.setattr(table2, "both_orientations", lambda run: [panel])
    table = table2.main.run(Run(smoke=True)).table
    return set(table.loc[table["method"].str.endswith("minus one-coin"), "grade"])


def test_the_main_claim_holds_where_it_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    assert main_claims(planted(), monkeypatch) == {"replicated"}


def test_a_wrong_method_loses_the_main_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer without any vote in the place of the one-coin model of all judges."""

    def wrong(name: str, panel: Panel) -> Aggregator:
        return BaseRate() if name == "one-coin" else aggregator(name, panel)

    monkeypatch.setattr(answers_module, "aggregator", wrong)
    assert main_claims(planted(), monkeypatch) == {"contradicted"}


def test_labels_that_are_nearly_all_the_same_test_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert main_claims(planted(labels_of_one=0.995), monkeypatch) == {""}


def test_wrong_weights_lose_proposition_2(monkeypatch: pytest.MonkeyPatch) -> None:
    right = theory.main.run(Run(smoke=True)).table
    monkeypatch.setattr(theory, "log_odds", lambda accuracy: 4 * (accuracy - 0.5))
    wrong = theory.main.run(Run(smoke=True)).table
    for table, grade in ((right, "reproduced"), (wrong, "contradicted")):
        rows = table[table["task"].str.startswith("Proposition 2")]
        assert set(rows["grade"]) == {grade}
    assert set(right["grade"]) == {"reproduced", ""}


def test_cells_of_a_statement_are_graded_together(run: Run, panel: Panel) -> None:
    both = answers(run, panel, "one-coin", ("none", "beta"))
    gains = [
        evidence_on(panel, both["none"].each(m) - both["beta"].each(m), both["beta"].items)
        for m in ("nll", "brier")
    ]
    of = Statement("a gain", "audit", 0.01)
    cells = [claim_row(panel, "beta", "nll", gain, 4, of) for gain in gains]
    one, two = graded(cells[:1])[0], graded(cells)[0]
    assert two["value"] == one["value"] == gains[0].estimate
    assert two["low"] <= one["low"] < one["high"] <= two["high"]
    other_data = [cells[0], {**cells[1], "dataset": "llmbar_evaluators"}]
    assert graded(other_data)[0]["low"] == one["low"]
    assert one["claim"].outcome in ("consistent", "inconsistent", "uninformative")


def test_items_of_a_group_are_resampled_together(run: Run, panel: Panel) -> None:
    copies = np.arange(len(panel.labels)) // 8
    beta, raw = (answers(run, panel, "one-coin", ("beta", "none"))[k] for k in ("beta", "none"))
    own = advantage(beta, raw)
    grouped = advantage(*(replace(one, panel=replace(panel, group=copies)) for one in (beta, raw)))
    assert grouped.estimate == pytest.approx(own.estimate)
    assert own.units == len(np.unique(beta.items))
    assert grouped.units == len(np.unique(copies[beta.items]))
    assert panel.among(np.array([5, 2]), "two").group is None
    assert replace(panel, group=copies).among(np.array([9, 2]), "two").group.tolist() == [1, 0]


def test_areas_of_weighted_items_are_those_of_the_library(run: Run, panel: Panel) -> None:
    weight = np.random.default_rng(0).poisson(1.0, len(panel.labels)).astype(float)
    both = answers(run, panel, "one-coin", ("none", "beta"))
    z = 8 * np.subtract(*np.moveaxis(both["none"].log_probs, -1, 0))  # nearly tied at 1
    saturated = np.stack([-np.logaddexp(0, -z), -np.logaddexp(0, z)], -1)
    for one in (*both.values(), replace(both["none"], log_probs=saturated)):
        expected_areas = [
            float(auac(p, y, weight[i]))
            for p, y, i in zip(one.log_probs, one.labels, one.items, strict=True)
        ]
        assert table12.weighted_areas(one)(weight) == pytest.approx(expected_areas)
        # Padding counts for nothing.
        padded = replace(
            one,
            log_probs=np.pad(one.log_probs, ((0, 0), (0, 3), (0, 0))),
            items=np.pad(one.items, ((0, 0), (0, 3)), constant_values=-1),
        )
        assert table12.weighted_areas(padded)(weight) == pytest.approx(expected_areas)
