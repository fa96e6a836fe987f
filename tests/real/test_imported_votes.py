"""Readers on public votes: their counts agree with the sources' own summaries."""

from pathlib import Path

import numpy as np
import pandas as pd
from rows import opened, rows_of

P4 = "beyond_consensus_feedback"


def test_tidy_votes_give_the_confusion_counts_of_p4(data: Path, tmp_path: Path) -> None:
    votes = pd.read_parquet(data / P4 / "votes.parquet")
    counts = pd.read_csv(data / P4 / "confusion.csv").query("repair == 'fcnhp'")
    some = counts["validator"].unique()[::4]
    counts = counts[counts["validator"].isin(some)]
    chosen = (votes["repair"] == "fcnhp") & votes["validator"].isin(some)
    repaired = votes[chosen].drop(columns="repair")
    repaired.to_parquet(tmp_path / "votes.parquet")
    rows = rows_of(opened(tmp_path / "votes.parquet", judge="validator", label="none"))
    labels = pd.read_parquet(data / P4 / "labels.parquet").astype({"item": str, "generator": str})
    both = rows.merge(labels, on="item")
    cells = both.groupby(["generator", "judge", "label", "vote"]).size()
    assert len(counts) == 6 * 4
    for row in counts.itertuples():
        key = (row.generator, row.validator)
        ours = [cells.get((*key, label, vote), 0) for label in (0, 1) for vote in (0, 1)]
        assert ours == [row.tn, row.fp, row.fn, row.tp], key


def test_wide_votes_are_the_long_ones(data: Path, tmp_path: Path) -> None:
    long = pd.read_parquet(data / "rewardbench_rm149" / "votes.parquet").astype({"item": str})
    long = long[long["item"].astype(int) % 20 == 0].astype({"judge": str})
    wide = long.pivot(index="item", columns="judge", values="correct").reset_index()
    wide.to_csv(tmp_path / "wide.csv", index=False)
    rows = rows_of(opened(tmp_path / "wide.csv", wide=True))
    assert len(rows) == wide.shape[0] * (wide.shape[1] - 1)
    assert rows["vote"].count() == len(long)
    means = rows.groupby("judge")["vote"].mean()
    expected = long.groupby("judge")["correct"].mean()
    names = expected.index[expected.index.isin(means.index)]
    assert len(names) == long["judge"].nunique()
    np.testing.assert_allclose(means[names].astype(float), expected[names])
