"""Shared code of P4's results: the released data as counts and votes, the calibration sets."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.claims import claim_equal
from judgebayes.experiments.core import Run, expected
from judgebayes.generators import PrecisionCounts
from judgebayes.votes import Votes, encode

PAPER = "beyond-consensus"
DATASET = "beyond_consensus_feedback"
LEVELS = {
    "noRepair": "original",
    "fc": "feedback repaired",
    "fcnh": "+ line number",
    "fcnhp": "+ label",
}
"""The released repair levels, by the paper's names; item votes exist for all but the first."""

MARGIN = {
    # Released with all digits; sums in another order differ in the last ones.
    "released number": 1e-12,
    # A third of the 1.4 points that the regression gains by the paper; where the released procedure
    # stops depends on rounding errors, so its errors cannot be equal.
    "released procedure": 0.004,
    # "Approximately 60 %", "around 28 %", "only 2 %": whole per cents, about.
    "share of items": 0.01,
    # "About 18 K of 193 K" missing votes: half a thousand either way.
    "missing votes": 0.003,
    # Half of the 1.4 points that the regression gains on the best ensemble by the paper.
    "gain in error": 0.007,
}
"""The largest difference from a printed number, or the smallest gain that matters, by what it is of."""


@dataclass(frozen=True)
class Matrix:
    """The 14 x 14 matrix of one repair level; the annotated generators come first."""

    counts: PrecisionCounts
    """With the labels of all annotated generators."""
    generators: list[str]
    judges: list[str]
    truth: Float[np.ndarray, " annotated"]


@dataclass(frozen=True)
class ItemVotes:
    """Item votes on the annotated generators at one repair level."""

    votes: Votes
    labels: Int[np.ndarray, " item"]
    generator: Int[np.ndarray, " item"]
    program: Int[np.ndarray, " item"]
    """The student program of each item; errors on items of the same program are correlated."""
    generators: list[str]
    judges: list[str]
    truth: Float[np.ndarray, " annotated"]


def truth() -> pd.Series:
    """Return the released precisions; gpt-4-turbo's is a constant that differs from its items'."""
    printed = expected(PAPER, "fig1")
    return printed[printed["metric"] == "precision"].set_index("judge")["value"].astype(float)


def equal(ours: float, theirs: float, of: str) -> dict[str, Any]:
    """Return the cells of the claim that our number is the released or printed one."""
    one = claim_equal(ours, theirs, kind="paper", source="own", margin=MARGIN[of])
    return {"paper_value": theirs, "claim": one}


def levels(run: Run, *, items: bool = False) -> list[str]:
    """Return the repair levels to run; with `items`, only those that have item votes."""
    available = [level for level in LEVELS if level != "noRepair" or not items]
    return run.few(available[::-1])


def _table(run: Run, name: str) -> pd.DataFrame:
    assert run.data is not None
    path = run.data / DATASET / name
    return run.remember(
        path, lambda: pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    )


def matrix(run: Run, level: str) -> Matrix:
    """Return the matrix and confusion counts of a repair level."""
    return run.remember((DATASET, level), lambda: _matrix(run, level))


def cells(run: Run, level: str) -> pd.DataFrame:
    """Return the released matrix, a row per generator and validator, with missing counts."""
    table = _table(run, "gv_matrix.csv")
    return table[table["repair"] == level]


def _matrix(run: Run, level: str) -> Matrix:
    cell_table = cells(run, level)
    confusion = _table(run, "confusion.csv")
    confusion = confusion[confusion["repair"] == level].set_index(["generator", "validator"])
    precision_table = truth()
    generators = [
        *precision_table.index,
        *sorted(set(cell_table["generator"]) - set(precision_table.index)),
    ]
    judges = list(dict.fromkeys(cell_table["validator"]))
    at = cell_table.set_index(["generator", "validator"])

    def square(values: pd.Series) -> Float[np.ndarray, "generator judge"]:
        wide = values.unstack().reindex(index=generators, columns=judges)
        return wide.fillna(0).to_numpy(float)

    return Matrix(
        counts_from_matrix(
            square(at["predicted_precision"]),
            square(at["total_fids"] - at["failed_fids"]),
            [square(confusion[name]) for name in ("tn", "fp", "fn", "tp")],
            precision_table.reindex(generators).to_numpy(float),
        ),
        generators,
        judges,
        precision_table.to_numpy(float),
    )


@in_float64
def counts_from_matrix(
    share: Float[np.ndarray, "generator judge"],
    n: Float[np.ndarray, "generator judge"],
    confusion: list[Float[np.ndarray, "generator judge"]],
    precision: Float[np.ndarray, " generator"],
) -> PrecisionCounts:
    """Return counts from the shares of n items that judges call valid, NaN where they were not run.

    `confusion` has TN, FP, FN and TP on the fully labelled generators, `precision` theirs.
    """
    run = np.isfinite(share) & (n > 0)
    tn, fp, fn, tp = confusion
    total = tn + fp + fn + tp
    labelled = total.sum(1) > 0
    size = np.maximum(np.where(run, n, 0), total).max(1)
    valid = np.where(labelled, precision, 0.0) * size
    unlabelled = ~labelled[:, None] & run
    votes = [np.where(unlabelled, np.nan_to_num(share) * n, 0.0), np.where(unlabelled, n, 0.0)]
    items = [valid, (size - valid) * labelled, size * ~labelled]
    return PrecisionCounts(*map(jnp.asarray, [*votes, tp, tp + fn, fp, fp + tn, *items]))


def item_votes(run: Run, level: str) -> ItemVotes:
    """Return the item votes of a repaired level."""
    return run.remember((DATASET, "items", level), lambda: _item_votes(run, level))


def _item_votes(run: Run, level: str) -> ItemVotes:
    long = _table(run, "votes.parquet")
    long = long[long["repair"] == level].astype({"item": str, "validator": str})
    gold = _table(run, "labels.parquet").astype({"item": str, "generator": str})
    silent = gold[~gold["item"].isin(long["item"])]
    if len(silent):  # items that no judge voted on keep their place, with votes missing
        long = pd.concat(
            [long, pd.DataFrame({"item": silent["item"], "validator": long["validator"].iloc[0]})]
        )
    votes, coding = encode(long[["item", "validator", "vote"]], judge="validator", classes=(0, 1))
    by_item = gold.set_index("item").loc[coding.items]
    precision_table = truth()
    place = {name: i for i, name in enumerate(precision_table.index)}
    return ItemVotes(
        votes,
        by_item["label"].to_numpy().astype(int),
        by_item["generator"].map(place).to_numpy().astype(int),
        pd.factorize(by_item["sid"])[0],
        list(precision_table.index),
        [str(j) for j in coding.judges],
        precision_table.to_numpy(float),
    )


def calibration_sets(sizes: range) -> list[tuple[int, ...]]:
    """Return every set of annotated generators of the given sizes, as positions."""
    return [chosen for size in sizes for chosen in combinations(range(6), size)]


def calibration_masks(
    sets: list[tuple[int, ...]], generators: int
) -> Bool[np.ndarray, "set generator"]:
    """Return calibration sets as masks over the generators."""
    mask = np.zeros((len(sets), generators), bool)
    for row, chosen in zip(mask, sets, strict=True):
        row[list(chosen)] = True
    return mask


def expected_errors(level: str, size: int) -> Float[np.ndarray, " annotated"]:
    """Return the released error of each generator when only it is held out (`size` is five)."""
    printed = expected(PAPER, "fig6")
    names = list(truth().index)
    own = printed[
        (printed["task"] == level) & (printed["n"] == size) & (printed["metric"] == "mean error")
    ]
    errors_by_judge = np.full(len(names), np.nan)
    for labelled, value in zip(own["judge"], own["value"], strict=True):
        (left_out,) = set(names) - set(labelled.split("+"))
        errors_by_judge[names.index(left_out)] = float(value)
    return errors_by_judge


def spread_over_generators(
    estimates: Float[np.ndarray, "set generator"],
    precision: Float[np.ndarray, " annotated"],
    sets: list[tuple[int, ...]],
) -> float:
    """Return half the width of Student's 90 % interval of a mean error over generators.

    A generator's error is its mean over the sets that do not label it.
    """
    from scipy.stats import t

    each = []
    for place, value in enumerate(precision):
        held_out = [r for r, chosen in enumerate(sets) if place not in chosen]
        if held_out:
            each.append(float(np.abs(estimates[held_out, place] - value).mean()))
    if len(each) < 2:
        return float("nan")
    return float(t.ppf(0.95, len(each) - 1) * np.std(each, ddof=1) / np.sqrt(len(each)))


def errors(
    estimate: Float[np.ndarray, " generator"],
    precision: Float[np.ndarray, " annotated"],
    calibration: tuple[int, ...],
) -> dict[str, float]:
    """Return the maximum and mean absolute error over the held-out annotated generators."""
    out = [i for i in range(len(precision)) if i not in calibration]
    gap = np.abs(np.asarray(estimate)[out] - precision[out])
    return {"max error": float(gap.max()), "mean error": float(gap.mean())}
