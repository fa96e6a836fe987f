"""Answers of methods on every split, computed once for all tables, and their scores."""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from judgebayes.evaluate.engine import Cell, Engine
from judgebayes.evaluate.one_split import FitOn
from judgebayes.evaluate.splits import Splits
from judgebayes.evaluate.sweeps import with_each_map
from judgebayes.experiments.calibrate_dont_curate.methods import aggregator, calibrator
from judgebayes.experiments.calibrate_dont_curate.parts import (
    FEW_SPLITS,
    LARGE,
    Parts,
    halves,
    some_splits,
    split_batches,
    votes_of_labels,
)
from judgebayes.experiments.claims import Evidence, evidence
from judgebayes.experiments.core import Run
from judgebayes.experiments.panels import Panel
from judgebayes.experiments.significance import bootstrap_interval
from judgebayes.inference.fit import Method
from judgebayes.measures.scores import zero_one_loss
from judgebayes.measures.significance import Interval, item_means

CLIP = 1e-3
"""Lower bound of a scored probability.

The paper leaves its value blank, but it follows from Table 1: the votes of the top 3, 5 and 10 reward
models are public, their NLLs with a floor of 0.001 are 0.203, 0.216 and 0.260, the printed ones 0.200,
0.214 and 0.257, and a floor of 0.0001 or 0.005 gives values that differ by 20 %.
"""


@dataclass(frozen=True)
class Answers:
    """One method's answers on the evaluation items of every split of a panel."""

    panel: Panel
    log_probs: Float[np.ndarray, "split item class"]
    items: np.ndarray
    """The index of each item; -1 pads shorter parts."""

    @property
    def inside(self) -> np.ndarray:
        """Whether there is an item."""
        return self.items >= 0

    @property
    def labels(self) -> np.ndarray:
        """The labels, -1 where there is no item."""
        return np.where(self.inside, self.panel.labels[np.maximum(self.items, 0)], -1)

    @property
    def p(self) -> Float[np.ndarray, "split item"]:
        """The probability of class 1, clipped."""
        return np.clip(np.exp(self.log_probs[..., 1]), CLIP, 1 - CLIP)

    @property
    def p_label(self) -> Float[np.ndarray, "split item"]:
        """The probability of the label, clipped."""
        return np.where(self.labels == 1, self.p, 1 - self.p)

    def each(self, metric: str) -> Float[np.ndarray, "split item"]:
        """Return nll, brier (0 to 1) or accuracy of every answer, NaN where there is no item.

        An answer of exactly one half has accuracy one half.
        """
        p = self.p_label
        if metric == "nll":
            value = -np.log(p)
        elif metric == "brier":
            value = (1 - p) ** 2
        else:
            value = (p > 0.5) + 0.5 * (p == 0.5)
        return np.where(self.inside, value, np.nan)

    def by_split(self, metric: str) -> Float[np.ndarray, " split"]:
        """Return a metric of every split: one of `each`, or ece (of class 1)."""
        if metric == "ece":
            return np.array(
                [
                    class_ece(p[i], y[i])
                    for p, y, i in zip(self.p, self.labels, self.inside, strict=True)
                ]
            )
        return np.nanmean(self.each(metric), axis=1)

    def by_item(self, metric: str = "nll") -> Float[np.ndarray, " all_items"]:
        """Return each item's mean over the splits that evaluate it."""
        return item_means(self.each(metric), self.items, len(self.panel.labels))

    def interval(self, metric: str = "nll") -> Interval:
        """Return the mean over splits with the paper's bootstrap interval."""
        return bootstrap_interval(self.by_split(metric))


def class_ece(p: Float[np.ndarray, " item"], labels: np.ndarray, bins: int = 10) -> float:
    r"""Return :math:`\sum_b n_b / n\,|\bar y_b - \bar p_b|` over equal bins of the probability of 1.

    Calibration of the most probable class (`scores.ece`) cannot detect a constant label. With a
    constant label, this error is 1 - mean p.
    """
    which = np.clip((p * bins).astype(int), 0, bins - 1)
    gap = np.bincount(which, weights=labels - p, minlength=bins)
    return float(np.abs(gap).sum() / len(p))


def answers(
    run: Run,
    panel: Panel,
    method: str,
    calibrators: Sequence[str] = ("beta",),
    *,
    parts: Parts | None = None,
    share: float | None = None,
) -> dict[str, Answers]:
    """Return a named method's answers with each named calibrator, computed once per run.

    Uncalibrated answers are part of every fit, so that one compiled program gives both.
    `share=None`: both steps learn from all labels; 0.7 is the paper's nested protocol.
    """
    parts = halves(run, panel) if parts is None else parts
    if method == "stacking" and votes_of_labels(panel) > LARGE:
        parts = Parts(
            f"{parts.name}, few",
            some_splits(parts.splits, np.arange(len(parts.splits))[:FEW_SPLITS]),
        )

    key = ("answers", panel.key, method, parts.name, share)
    cached: dict[str, Answers] = run.remember(key, dict)
    requested = dict.fromkeys(("none", *calibrators))
    missing = {name: calibrator(name) for name in requested if name not in cached}
    if missing:
        cached |= answers_of(run, panel, aggregator(method, panel), missing, parts, share=share)
    return {name: cached[name] for name in calibrators}


def answers_of(
    run: Run,
    panel: Panel,
    method: Method,
    maps: Mapping[str, Method],
    parts: Parts,
    *,
    share: float | None = None,
    cross_fit: int | None = None,
    fit_on: FitOn = "calibration",
) -> dict[str, Answers]:
    """Return an aggregator's answers with each calibrator, with splits in batches."""
    splits = parts.splits
    width = splits.evaluation.shape[1]

    def make(part: Splits) -> dict[str, np.ndarray]:
        engine = Engine([Cell(panel.votes, panel.labels, part)], zero_one_loss(2), run.seed)
        (of_map,) = engine(with_each_map(method, maps, share, cross_fit), fit_on)
        return {name: np.asarray(one.log_probs)[:, :width] for name, one in of_map.items()}

    made_from = (method, dict(maps), panel.votes, panel.labels, share, cross_fit, fit_on)
    batches = [
        run.resumed((*made_from, part), partial(make, part))
        for part in split_batches(panel, splits, fit_on)
    ]
    return {
        name: Answers(panel, np.concatenate([each[name] for each in batches]), splits.evaluation)
        for name in maps
    }


def advantage(
    method: Answers, other: Answers, metric: str = "nll", *, groups: np.ndarray | None = None
) -> Evidence:
    """Return evidence on how much lower the method's NLL is than the other's, on shared splits.

    For new items (with `groups`, new groups of items) and new calibration sets.
    """
    n = min(len(method.items), len(other.items))
    difference = other.each(metric)[:n] - method.each(metric)[:n]
    return evidence_on(method.panel, difference, method.items[:n], groups=groups)


def evidence_on(
    panel: Panel,
    values: Float[np.ndarray, "split item"],
    items: np.ndarray,
    *,
    groups: np.ndarray | None = None,
) -> Evidence:
    """Return evidence on the mean of outcomes on a panel's items; by default groups share a prompt."""
    groups = panel.group if groups is None else groups
    return evidence(values, items, len(panel.labels), groups, seed=seed_of(panel))


def seed_of(panel: Panel) -> int:
    """Return the seed of a data set's bootstrap: results on the same items have joint draws."""
    return zlib.crc32(panel.dataset.encode())


def split_p_values(
    difference: Float[np.ndarray, "split item"], *, flips: int = 10_000, seed: int = 0
) -> Float[np.ndarray, " split"]:
    """Return each split's two-sided p-value by random sign flips of its items (P2 Appendix F).

    The flips are the same for all splits, which makes them one matrix product.
    """
    d = np.nan_to_num(difference)
    observed = np.abs(d.sum(1))
    rng = np.random.default_rng(seed)
    exceed = np.zeros(len(d))
    for size in (1000,) * (flips // 1000):
        signs = rng.integers(0, 2, (size, d.shape[1]), dtype=np.int8).astype(float) * 2 - 1
        exceed += (np.abs(signs @ d.T) >= observed * (1 - 1e-12)).sum(0)
    return (1 + exceed) / (1 + flips)
