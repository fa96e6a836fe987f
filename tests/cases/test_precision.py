"""The share of valid items: what labels of other generators can say, copies, and one system."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cases.asking import FILES, result_of
from scipy.special import expit

from judgebayes.generators.clusters import copies_among
from judgebayes.votes import encode


def test_the_pass_rate_of_one_system_by_one_judge(tmp_path: Path) -> None:
    """2,000 verdicts and 40 labels: 70.9 % (60.1 to 80.2); 68.7 is true, 74.4 the raw mean."""
    result = result_of(
        *("precision", FILES / "ppi_votes.csv", "--labels", FILES / "ppi_labels.csv"),
        *("--item", "review_id", "--vote", "happy"),
        out=tmp_path / "r.json",
    )
    (row,) = result["tables"]["generators"]
    shares = [round(100 * row[name], 1) for name in ("estimate", "low", "high", "raw mean")]
    assert shares == [70.9, 60.1, 80.2, 74.4]
    assert "name their column with --set generator" in " ".join(result["sentences"])


def biased(rng: np.random.Generator, shift: float) -> pd.DataFrame:
    """Votes of three judges on two labelled generators and on one without labels, which they favour."""
    rows: list[tuple[Any, ...]] = []
    for g, quality in enumerate((0.55, 0.7, 0.35)):
        valid = rng.random(150) < quality
        lean = shift if g == 2 else 0.0
        for judge, right in (("a", 1.6), ("b", 1.3), ("c", 1.9)):
            accept = rng.random(150) < expit(np.where(valid, right, -right) + lean)
            rows += [
                (f"g{g}-{i}", f"g{g}", judge, int(vote), int(valid[i]) if g < 2 else None)
                for i, vote in enumerate(accept)
            ]
    return pd.DataFrame(rows, columns=["item", "generator", "judge", "vote", "label"])


@pytest.mark.parametrize("method", ["auto", "strata"])
def test_a_generator_without_labels_is_never_settled(method: str, tmp_path: Path) -> None:
    biased(np.random.default_rng(0), 2.5).to_csv(tmp_path / "v.csv", index=False)
    result = result_of("precision", tmp_path / "v.csv", "--method", method, out=tmp_path / "r.json")
    rows = result["tables"]["generators"]
    assert {row["generator"]: row["labelled"] for row in rows}["g2"] == 0
    for above, below in pairwise(rows):
        if "g2" in (above["generator"], below["generator"]):
            assert above["order settled"] == "no"
    said = " ".join(result["sentences"])
    assert "1 of 3 have no label of their own ('g2')" in said
    assert "assume that the judges err on them as on the labelled ones" in said


def panel(
    rng: np.random.Generator, n: int, judges: int, difficulty: float, flip: float | None
) -> pd.DataFrame:
    """Labelled votes of judges on three generators; with `flip` the second judge copies the first."""
    generator = rng.integers(0, 3, n)
    label = (rng.random(n) < rng.uniform(0.4, 0.85, 3)[generator]).astype(int)
    hard = rng.normal(0, difficulty, n)[:, None]
    valid = expit(rng.uniform(1, 2.5, judges) + hard)
    invalid = 1 - expit(rng.uniform(0, 2, judges) + hard)
    votes = (rng.random((n, judges)) < np.where(label[:, None] == 1, valid, invalid)).astype(int)
    if flip is not None:
        votes[:, 1] = np.where(rng.random(n) < flip, 1 - votes[:, 0], votes[:, 0])
    table = pd.DataFrame(votes, columns=[f"j{k}" for k in range(judges)])
    table = table.assign(item=range(n), label=label, generator=[f"g{g}" for g in generator])
    return table.melt(["item", "label", "generator"], var_name="judge", value_name="vote")


def alike(table: pd.DataFrame) -> list[tuple[int, int, float]]:
    votes, coding = encode(table)
    by_item = table.drop_duplicates("item").set_index("item").loc[list(coding.items)]
    generator = pd.factorize(by_item["generator"])[0]
    return copies_among(votes, by_item["label"].to_numpy(), generator)


@pytest.mark.parametrize(("n", "judges"), [(60, 3), (60, 6), (200, 5)])
def test_copies_are_named_and_others_are_not(n: int, judges: int) -> None:
    rng = np.random.default_rng(n + judges)
    replays = 25
    for difficulty in (0.0, 1.5):
        alone = [alike(panel(rng, n, judges, difficulty, None)) for _ in range(replays)]
        copied = [alike(panel(rng, n, judges, difficulty, 0.03)) for _ in range(replays)]
        assert sum(map(bool, alone)) <= 1
        assert sum([pair[:2] for pair in each] == [(0, 1)] for each in copied) >= 0.85 * replays


def test_the_command_names_copies(tmp_path: Path) -> None:
    panel(np.random.default_rng(1), 90, 3, 1.0, 0.02).to_csv(tmp_path / "v.csv", index=False)
    result = result_of(
        "precision", tmp_path / "v.csv", "--method", "strata", out=tmp_path / "r.json"
    )
    (line,) = [each for each in result["sentences"] if "vote alike beyond" in each]
    assert line.startswith(
        "Judges 'j0' and 'j1' vote alike beyond what label and generator explain"
    )
