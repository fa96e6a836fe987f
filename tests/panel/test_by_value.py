"""Judges' rates by the values of a column."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from judgebayes.panel.by_value import _drawn, rates_by
from judgebayes.votes import encode
from judgebayes.votes.columns import Evidence, certain

N = 200


def panel() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    valid, hard = (rng.random(N) < 0.7).astype(int), rng.integers(0, 2, N)
    rows = []
    for judge in ("ann", "ben"):
        right = rng.random(N) < np.where(hard, 0.6, 0.9)
        rows += [(i, judge, valid[i] if right[i] else 1 - valid[i]) for i in range(N)]
    return pd.DataFrame(rows, columns=["item", "judge", "vote"]), valid, hard


def test_rates_are_counts_of_the_items_of_a_value() -> None:
    table, valid, hard = panel()
    votes, coding = encode(table)
    labels = np.where(np.arange(N) < 150, valid, -1)
    rates = rates_by(votes, labels, hard, ["easy", "hard"], coding)
    assert list(rates["judge"]) == ["ann", "ann", "ben", "ben"]
    for place, (judge, value) in enumerate([("ann", 0), ("ann", 1), ("ben", 0), ("ben", 1)]):
        vote = table[table["judge"] == judge]["vote"].to_numpy()
        for rate, label, noun in (("tpr", 1, "valid"), ("tnr", 0, "invalid")):
            own = (labels == label) & (hard == value)
            hits, n = int((vote[own] == label).sum()), int(own.sum())
            row = rates.iloc[place]
            assert row[noun] == n
            assert row[rate] == pytest.approx(hits / n)
            ends = beta(1 + hits, 1 + n - hits).ppf([0.05, 0.95])
            assert [row[f"{rate}_low"], row[f"{rate}_high"]] == pytest.approx(ends)


def test_a_type_of_error_has_no_tpr() -> None:
    table, valid, hard = panel()
    votes, coding = encode(table)
    rates = rates_by(votes, valid, np.where(valid == 0, hard, -1), ["a", "b"], coding)
    assert rates["tpr"].isna().all()
    assert rates["tnr"].notna().all()
    assert (rates["valid"] == 0).all()


def test_certain_evidence_gives_the_rates_of_labels() -> None:
    table, valid, hard = panel()
    votes, coding = encode(table)
    exact = rates_by(votes, valid, hard, ["easy", "hard"], coding)
    drawn = rates_by(votes, valid, hard, ["easy", "hard"], coding, evidence=certain(valid))
    for name in exact.columns.drop(["judge", "value"]):
        np.testing.assert_allclose(drawn[name], exact[name], atol=0.012, err_msg=name)


def test_the_number_of_valid_items_by_a_grid() -> None:
    node = np.repeat([2.0, -2.0, np.inf], [12, 8, 3])
    rho = np.linspace(0.0005, 0.9995, 1000)
    likelihood = (rho * np.exp(2) + 1 - rho) ** 12 * (rho * np.exp(-2) + 1 - rho) ** 8 * rho**3
    weight = likelihood * beta(0.5, 0.5).pdf(rho)
    weight /= weight.sum()
    up, down = (rho * np.exp(v) / (rho * np.exp(v) + 1 - rho) for v in (2.0, -2.0))
    mean = 12 * up + 8 * down + 3
    variance = (
        weight @ (12 * up * (1 - up) + 8 * down * (1 - down) + mean**2) - (weight @ mean) ** 2
    )
    _, valid, total = _drawn(np.ones(23), Evidence(node[None], (1.0,)), np.random.default_rng(0))
    assert total.tolist() == [23]
    assert valid.mean() == pytest.approx(weight @ mean, abs=0.35)
    assert valid.var() == pytest.approx(variance, rel=0.2)
