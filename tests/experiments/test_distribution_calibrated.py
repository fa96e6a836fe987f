"""The first paper's claims: right and wrong methods, how rows are graded, and why the margins are so."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from judgebayes import MajorityVote
from judgebayes.experiments.claims import evidence_of_units
from judgebayes.experiments.core import Run, expected, rows
from judgebayes.experiments.distribution_calibrated import common, twins
from judgebayes.experiments.distribution_calibrated.common import (
    MARGIN,
    PAPER,
    Comparison,
    against,
    graded,
    printed,
)
from judgebayes.experiments.distribution_calibrated.predicting import twin_note, twin_rows
from judgebayes.inference.fit import Method

TASK, JUDGE = "RB2-Factuality", "gemini-2.5-flash"
REAL_METHODS = common.methods


def run_with(monkeypatch: pytest.MonkeyPatch, wrong: Method | None) -> Run:
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
    wrong: Method | None, real: str, on_twins: str, monkeypatch: pytest.MonkeyPatch
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
