"""Splits of the items into a calibration and an evaluation part, repeated and seeded."""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from judgebayes.arrays import ItemInts
from judgebayes.errors import JudgeBayesError


@dataclass(frozen=True)
class Splits:
    """Item indices of many splits, as arrays so that all splits share shapes.

    If parts differ in size (with whole groups), the shorter ones are padded with -1.
    """

    calibration: Int[np.ndarray, "split calibration"]
    evaluation: Int[np.ndarray, "split evaluation"]

    def __len__(self) -> int:
        """Return the number of splits."""
        return len(self.calibration)

    def __repr__(self) -> str:
        """Return a summary."""
        sizes = [
            f"{n.min()}" if n.min() == n.max() else f"{n.min()}-{n.max()}"
            for n in ((self.calibration >= 0).sum(1), (self.evaluation >= 0).sum(1))
        ]
        return f"Splits({len(self)} splits, calibration {sizes[0]}, evaluation {sizes[1]} items)"

    def with_calibration(self, size: int) -> "Splits":
        """Return the splits with the first `size` calibration items and the same evaluation part.

        Calibration items are in random order, so smaller sets are nested in larger ones. This serves for
        curves over the calibration size with a fixed evaluation part (P1 Fig 4).
        """
        if not 0 < size <= self.calibration.shape[1]:
            raise JudgeBayesError(
                f"{size} calibration items were requested; the splits have "
                f"{self.calibration.shape[1]}."
            )
        return replace(self, calibration=self.calibration[:, :size])


def random_splits(
    n_items: int,
    *,
    splits: int = 100,
    calibration: float | int = 0.05,
    strata: ItemInts | None = None,
    groups: ItemInts | None = None,
    among: Int[np.ndarray, " some"] | None = None,
    seed: int = 0,
) -> Splits:
    """Return random splits into a calibration part and the rest.

    Parameters
    ----------
    n_items
        The number of items.
    splits
        The number of splits.
    calibration
        The calibration part: a share if below 1, else a number of items.
    strata
        The stratum (task, label) of every item; `calibration` then applies within each stratum.
    groups
        The group of every item (its program, its question). Groups are never divided between the two
        parts, which prevents leakage; the size of the calibration part is then the nearest that whole
        groups in random order allow.
    among
        Only these items are split, for example the labelled ones.
    seed
        Seed of the random numbers.

    Raises
    ------
    JudgeBayesError
        If a part would be empty.

    Examples
    --------
    >>> parts = random_splits(10, splits=3, calibration=4, seed=0)
    >>> parts.calibration.shape, parts.evaluation.shape
    ((3, 4), (3, 6))
    """
    rng = np.random.default_rng(seed)
    pool = np.arange(n_items) if among is None else np.asarray(among)
    stratum = np.zeros(n_items, np.int64) if strata is None else np.asarray(strata)
    parts = [pool[stratum[pool] == s] for s in np.unique(stratum[pool])]
    chosen: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(splits):
        halves = [_halve(part, calibration, groups, rng) for part in parts]
        order = rng.permutation(sum(len(c) for c, _ in halves))
        chosen.append(
            (np.concatenate([c for c, _ in halves])[order], np.concatenate([e for _, e in halves]))
        )
    result = Splits(_stack([c for c, _ in chosen]), _stack([e for _, e in chosen]))
    for name, part in (("calibration", result.calibration), ("evaluation", result.evaluation)):
        if part.shape[1] == 0 or (part[:, 0] < 0).any():
            raise JudgeBayesError(
                f"With {len(pool)} items and calibration={calibration} the {name} part is empty; "
                "both parts need an item."
            )
    return result


def _halve(
    part: np.ndarray, calibration: float | int, groups: np.ndarray | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    target_size = round(calibration * len(part)) if calibration < 1 else math.floor(calibration)
    if groups is None:
        shuffled = rng.permutation(part)
        return shuffled[:target_size], shuffled[target_size:]
    names, which = np.unique(groups[part], return_inverse=True)
    order = rng.permutation(len(names))
    size = np.bincount(which, minlength=len(names))[order]
    before = np.concatenate([[0], size.cumsum()])
    n_groups = int(np.argmin(np.abs(before - target_size)))
    in_calibration = np.isin(which, order[:n_groups])
    return rng.permutation(part[in_calibration]), part[~in_calibration]


def _stack(parts: list[np.ndarray]) -> Int[np.ndarray, "split part"]:
    longest = max(len(p) for p in parts)
    result = np.full((len(parts), longest), -1, np.int64)
    for row, part in zip(result, parts, strict=True):
        row[: len(part)] = part
    return result
