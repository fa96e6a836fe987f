"""Panels in both orientations, the theory's exact sums, the twin, and the audits' functions."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes import BaseRate
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.calibrate_dont_curate import answers as answers_module
from judgebayes.experiments.calibrate_dont_curate import table2, theory
from judgebayes.experiments.calibrate_dont_curate.answers import answers
from judgebayes.experiments.calibrate_dont_curate.h11 import shuffled_votes
from judgebayes.experiments.calibrate_dont_curate.methods import aggregator
from judgebayes.experiments.calibrate_dont_curate.rows import degenerate
from judgebayes.experiments.calibrate_dont_curate.twins import JUDGEBENCH, twin_panel
from judgebayes.experiments.core import Run, expected
from judgebayes.experiments.panels import Panel
from judgebayes.inference.fit import Method
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


def test_shuffled_votes_say_nothing_and_yet_score_perfectly_on_a_constant_label(
    run: Run, panel: Panel
) -> None:
    for orientation, nll, right in (("true", np.log(2), 0.5), ("correctness", 0.0, 1.0)):
        own = panel.oriented(orientation)
        beta = answers(run, shuffled_votes(own, 0), "one-coin")["beta"]
        assert beta.by_split("nll").mean() == pytest.approx(nll, abs=0.06)
        assert beta.by_split("accuracy").mean() == pytest.approx(right, abs=0.1)


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

    def wrong(name: str, panel: Panel) -> Method:
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
