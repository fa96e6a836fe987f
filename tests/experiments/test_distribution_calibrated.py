"""The first paper's claims: right and wrong methods, how rows are graded, and why the margins are so."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from judgebayes.aggregators import Aggregator, MajorityVote
from judgebayes.experiments.claims import evidence_of_units
from judgebayes.experiments.core import Run, expected, rows
from judgebayes.experiments.data import Cell
from judgebayes.experiments.distribution_calibrated import (
    audit_published,
    common,
    fig3,
    figs12to15,
    table1,
    twins,
)
from judgebayes.experiments.distribution_calibrated.common import (
    MARGIN,
    PAPER,
    Answers,
    Comparison,
    against,
    graded,
    printed,
)
from judgebayes.experiments.distribution_calibrated.predicting import (
    predicted,
    twin_error,
    twin_note,
    twin_rows,
    twin_weights,
)
from judgebayes.votes import from_counts

TASK, JUDGE = "RB2-Factuality", "gemini-2.5-flash"
CALIBRATED = ["davidson", "margin-threshold"]
REAL_METHODS = common.methods


def run_with(monkeypatch: pytest.MonkeyPatch, wrong: Aggregator | None) -> Run:
    """Return a small run in which a wrong method may stand in the place of the paper's."""
    if wrong is not None:
        monkeypatch.setattr(common, "methods", lambda: {**REAL_METHODS(), "davidson": wrong})
    return Run(smoke=True)


@pytest.mark.parametrize(
    ("wrong", "real", "on_twins"),
    [
        (None, "replicated", "consistent"),
        (MajorityVote(), "contradicted", "inconsistent"),  # no calibration at all
    ],
    ids=["right", "wrong"],
)
def test_the_main_claims_hold_with_the_papers_method_and_are_lost_without_it(
    wrong: Aggregator | None, real: str, on_twins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_with(monkeypatch, wrong)
    planted = replace(twins.twin_cells(run, TASK, JUDGE)[0], dataset="planted")
    for metric in ("mae", "accuracy"):
        comparisons = against(run, planted, 12, ["sc"], metric=metric)
        table = rows(PAPER, "t", graded(comparisons, MARGIN[metric]))
        assert list(table["grade"]) == [real]
        assert list(table["claim"]) == ["paper"]
    names = ("davidson", "sc")
    table = rows(PAPER, "t", twin_rows(run, [(TASK, JUDGE)], names, "mae", printed("table3")))
    at_12 = table[table["n"] == 12].set_index(["method", "metric"])
    assert at_12.loc[("davidson", "mae"), "grade"] == on_twins
    assert at_12.loc[("davidson", "mae"), "margin"] == pytest.approx(0.647 - 0.451)
    gain = at_12.loc[("sc minus davidson", "mae difference")]
    assert gain["paper_value"] == pytest.approx(0.647 - 0.451)
    assert (gain["grade"] == "consistent") == (wrong is None)
    # SC's score is what the twins were fitted to.
    fitted = at_12.loc[("sc", "mae")]
    assert (fitted["claim"], fitted["grade"]) == ("fitted", "")
    assert fitted["low"] < fitted["paper_value"] < fitted["high"]
    assert f"{on_twins} " in twin_note(table)


def test_a_prediction_is_a_mixture_over_twins() -> None:
    rng = np.random.default_rng(0)
    near, far = (evidence_of_units(rng.normal(size=400)).plus(x) for x in (0.0, 5.0))
    alone = predicted([near, far], np.array([1.0, 0.0]))
    estimate, low, high = near.interval()
    assert alone.mean == estimate
    assert (alone.low, alone.high) == pytest.approx((low, high), abs=0.01)
    # A twin of little weight widens the interval only if the other end is unlikely as well.
    both = predicted([near, far], np.array([0.9, 0.1]))
    assert both.mean == estimate
    assert both.high > 4.5
    assert both.low == pytest.approx(low, abs=0.02)
    again = predicted([near, near], np.array([0.5, 0.5]), new_votes=True)
    assert again.high - again.low == pytest.approx(np.sqrt(2) * (high - low), rel=0.02)


def test_twins_have_sc_s_printed_shares_of_ties() -> None:
    """And all three rules for tied votes can have them: the paper's numbers do not tell its rule."""
    for (task, judge), share in twins.tie_shares().items():
        known = twins.twins(task, judge)
        assert {twin.tie for twin in known} == {"middle", "outer", "first"}
        assert max(twin.tie_misfit for twin in known) < 0.02
        weights = twin_weights(Run(), task, judge)
        assert weights.sum() == pytest.approx(1)
        cell = twins.twin_cells(Run(), task, judge)[int(weights.argmax())]
        ties = MajorityVote(known[int(weights.argmax())].tie).fit(cell.votes, cell.labels)
        decided = np.asarray(ties(cell.votes.first(12))).argmax(-1) == 1
        assert decided.mean() == pytest.approx(share, abs=0.04)
    table, _, notes = figs12to15._tie_rules()
    at_printed = [r["value"] for r in table if r["metric"].startswith("misfit")]
    assert max(at_printed) < 0.001
    assert len(notes) == 2


def planted_cell(items: int = 60) -> Cell:
    labels = np.arange(items) % 3
    return Cell("planted", "t", "j", from_counts(np.eye(3, dtype=int)[labels]), labels, labels * 0)


def planted_answers(cell: Cell, decisions: np.ndarray) -> Answers:
    """Return the same decisions in three splits, the last of which is shorter."""
    items = np.tile(np.arange(len(cell.labels)), (3, 1))
    items[2, -5:] = -1
    return Answers(cell, items, np.tile(decisions, (3, 1)), {})


def test_a_method_that_answers_like_the_labels_is_closer_to_their_distribution() -> None:
    cell = planted_cell()
    cell = replace(cell, groups=np.arange(60))
    right, ties = (planted_answers(cell, d) for d in (cell.labels, np.ones(60, int)))
    closer = figs12to15._closer(right, ties)
    assert closer.estimate == pytest.approx(2 / 3, abs=0.01)
    assert closer.interval().low > 0
    assert figs12to15._closer(ties, right).estimate == pytest.approx(-closer.estimate)
    assert figs12to15._tie_share(ties).estimate == 1.0


def test_a_bad_source_is_worse_than_the_others_on_their_tasks_only() -> None:
    labels = np.arange(60) % 3
    task = np.repeat(np.arange(3), 20)
    votes = replace(from_counts(np.eye(3, dtype=int)[labels]), task=task)
    names = tuple(f"{name}#{i}" for i, name in enumerate(np.repeat(["Factuality", "A", "B"], 20)))
    cell = Cell("planted", "all", "j", votes, labels, np.arange(60), names)
    wrong = (labels + 1) % 3  # off by 1, 1 and 2
    by_source = {
        "Factuality": planted_answers(cell, np.where(task == 0, labels, wrong)),
        "A": planted_answers(cell, labels),
        "B": planted_answers(cell, labels),
    }
    made = fig3._factuality(cell, by_source)
    used = by_source["A"].items >= 20
    assert made.evidence.estimate == pytest.approx(
        np.abs(wrong - labels)[by_source["A"].items[used]].mean()
    )
    assert made.evidence.interval().low > 0
    swapped = {"Factuality": by_source["A"], "A": by_source["Factuality"], "B": by_source["B"]}
    assert fig3._factuality(cell, swapped).evidence.estimate < 0


def comparison(mean: float, kind: common.Kind = "paper", seed: int = 0) -> Comparison:
    values = mean + 0.05 * np.random.default_rng(seed).standard_normal(400)
    of = evidence_of_units(values - values.mean() + mean, seed=seed)
    return Comparison({"dataset": "planted", "method": kind, "metric": "mae"}, of, kind)


def test_the_cells_of_a_kind_are_graded_together_and_keep_their_numbers() -> None:
    one = graded([comparison(0.02)], 0.01)[0]
    many = graded([comparison(0.02, seed=s) for s in range(20)], 0.01)
    assert many[0]["claim"].interval.mean == one["claim"].interval.mean == pytest.approx(0.02)
    assert many[0]["claim"].interval.low < one["claim"].interval.low
    apart = graded([comparison(0.02), comparison(0.02, "audit")], 0.01)
    assert [row["claim"].kind for row in apart] == ["paper", "audit"]
    assert apart[0]["claim"].interval == one["claim"].interval
    assert graded([], 0.01) == []


@pytest.mark.parametrize(
    ("mean", "better", "not_worse", "same"),
    [
        (0.05, "replicated", "replicated", "contradicted"),
        (0.0, "contradicted", "replicated", "replicated"),
        (-0.05, "contradicted", "contradicted", "contradicted"),
        (-0.012, "contradicted", "contradicted", "uninformative"),
        (0.008, "replicated", "replicated", "uninformative"),
    ],
)
def test_better_not_worse_and_the_same_are_three_claims(
    mean: float, better: str, not_worse: str, same: str
) -> None:
    outcomes = [
        graded([comparison(mean)], 0.01)[0],
        graded([comparison(mean)], 0.01, tolerance=0.01)[0],
        graded([comparison(mean)], 0.01, within=True)[0],
    ]
    assert [row["claim"].outcome for row in outcomes] == [better, not_worse, same]
    assert list(rows(PAPER, "t", outcomes)["value"]) == pytest.approx([mean] * 3)
    assert comparison(mean).evidence.plus(1.0).estimate == pytest.approx(1 + mean)


def test_the_error_of_a_twin_is_that_of_votes_not_of_labels() -> None:
    cell = replace(planted_cell(300), variant="plausible softmax, ties middle")
    by_label = planted_answers(cell, np.zeros(300, int))  # the error is the label
    of = twin_error(by_label, "mae")
    assert of.estimate == pytest.approx(float(np.nanmean(by_label.errors)))
    assert of.error < 1e-9
    assert twin_error(by_label, "accuracy").estimate == pytest.approx(
        float(np.mean(cell.labels[by_label.items[by_label.items >= 0]] == 0))
    )
    noisy = planted_answers(cell, np.random.default_rng(0).integers(0, 3, 300))
    assert 0.02 < twin_error(noisy, "mae").error < 0.06


def test_margins_are_below_what_the_paper_prints() -> None:
    def gains(*tables: str) -> pd.Series:
        table = pd.concat([expected(PAPER, name).assign(of=name) for name in tables])
        keys = ["of", "task", "judge", "n"]
        values = table.pivot_table(index=keys, columns="method", values="value")
        return (values["sc"] - values["davidson"]).abs()

    assert MARGIN["mae"] <= gains("table3", "table6").min() / 3 + 1e-9
    assert MARGIN["accuracy"] <= gains("table4", "table7").min() / 3
    orders = expected(PAPER, "table10").pivot_table(index="task", columns="method", values="value")
    single = orders[["first-order", "second-order"]]
    assert MARGIN["orders"] <= single.sub(orders["balanced"], axis=0).min().min()
    by_heat = expected(PAPER, "table11").query("not task.str.contains('Ties')")
    by_heat = by_heat.pivot_table(index=["task", "n"], columns="method", values="value")
    loss = (by_heat["davidson T=0.1"] - by_heat["davidson T=0.5"]).mean()
    assert MARGIN["temperature"] <= loss / 2
    rates = expected(PAPER, "table2").query("method != 'average'").groupby("judge")["value"]
    assert MARGIN["tie rate"] <= (rates.max() - rates.min()).min() * 0.55
    ties = expected(PAPER, "figs12to15").set_index(["task", "method"])["value"]
    change = ties["WMT ZH-EN", "sc"] - ties["WMT ZH-EN", "davidson"]
    assert MARGIN["tie decisions"] == pytest.approx(change)
    assert MARGIN["label distribution"] <= change / 3


def test_the_papers_own_numbers_are_graded_without_a_choice() -> None:
    table = table1.main.run(Run()).table
    assert table["grade"].value_counts().to_dict() == {"reproduced": 3, "contradicted": 1}
    assert set(table["claim"]) == {"paper"}
    table = audit_published.main.run(Run()).table
    assert set(table.loc[table["grade"] != "", "claim"]) == {"audit"}
    apart = table[table["metric"] == "difference between tables"]["grade"]
    assert apart.value_counts().to_dict() == {"reproduced": 23, "contradicted": 5}
    constant = table[table["metric"] == "mae minus best constant"]
    assert (constant[constant["method"] == "davidson"]["grade"] != "").all()
    lost = constant[constant["grade"] == "contradicted"]
    assert (lost["value"] >= 0).all()
    assert set(lost["task"]) == {TASK}
