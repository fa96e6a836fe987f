"""Pluralities of ternary votes of real judges, against enumeration of every panel."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from judgebayes.experiments.core import Run
from judgebayes.majority import MeanLoss, SplitCurve, Splits

CLASSES = (-1, 0, 1)


@pytest.fixture(scope="module")
def votes(real: Run) -> pd.DataFrame:
    """Eight votes of one model on the pairs of one subset, a row per pair."""
    assert real.data is not None
    rows = pd.read_parquet(real.data / "rb2_k8_scores" / "ternary_votes.parquet")
    own = rows[(rows["prompt"] == "base") & (rows["temperature"] == 1.0)]
    own = own[(own["model"] == "claude-haiku-4.5") & own["pair"].str.startswith("Factuality")]
    return own.pivot_table(index="pair", columns="sample", values="vote", observed=True).dropna()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_the_plurality_is_wrong_as_often_as_in_all_panels(
    real: Run, votes: pd.DataFrame, size: int
) -> None:
    assert real.data is not None
    pairs = pd.read_parquet(real.data / "rb2_k8_scores" / "pairs.parquet").set_index("pair")
    label = pairs.loc[votes.index, "gold"].to_numpy()
    table = votes.to_numpy(int)
    given = np.stack([(table == c).sum(1) for c in CLASSES], axis=1)
    splits = Splits(given, np.searchsorted(CLASSES, label), (0, 1, 2))
    fit = SplitCurve().fit(splits)
    ours = fit.curve(splits, (size,), MeanLoss("these", "wrong")).error[0]
    wrong = np.zeros(len(table))
    panels = list(combinations(range(table.shape[1]), size))
    for panel in panels:
        counts = np.stack([(table[:, panel] == c).sum(1) for c in CLASSES], axis=1)
        first = counts == counts.max(1, keepdims=True)
        wrong += 1 - first[np.arange(len(table)), np.searchsorted(CLASSES, label)] / first.sum(1)
    assert ours == pytest.approx((wrong / len(panels)).mean(), abs=1e-12)
