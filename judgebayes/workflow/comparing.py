"""Methods compared on held-out labels, in numbers and in sentences."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int

from judgebayes.aggregators import Aggregator
from judgebayes.arrays import Scalar
from judgebayes.evaluate.one_split import Evaluation, FitOn, measure
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.measures.significance import (
    Interval,
    independent_trials,
    item_means,
    share_interval,
    two_way_interval,
)
from judgebayes.models.label_noise import with_label_noise
from judgebayes.progress import Progress, followed
from judgebayes.votes import Votes
from judgebayes.workflow.losses import Losses
from judgebayes.workflow.methods import traits_of

__all__ = [
    "HEAD",
    "Compared",
    "Growth",
    "compare",
    "comparison_rows",
    "comparison_table",
    "comparison_words",
    "grow",
    "within_noise",
]

HELD_IN = 0.8
AT_ONCE = 4
"""So many methods are fitted at once, on enough cores: each takes memory of its own."""
METRICS = ("mae", "accuracy", "nll", "ece")
HEAD = ("method", "MAE", "accuracy", "NLL", "ECE", "extra loss [95 %]")
SIMPLE = {
    "best-constant": "best-constant: one answer for all, the best on the labels it was fitted on.",
    "sc": "sc: a plain majority vote (self-consistency).",
    "margin-threshold": "margin-threshold: a tie unless the margin reaches a calibrated one.",
}
"""What to beat."""
LEAST_SIZE, MOST_SIZES = 10, 6
"""Fewest labels of a point of `grow`, and how many points there are."""


@dataclass(frozen=True)
class Compared:
    """Held-out results of several methods on the same splits of the labelled items."""

    parts: Splits
    means: dict[str, dict[str, float]]
    """Mean metrics by method."""
    evaluations: dict[str, Evaluation]
    n_items: int
    groups: Int[np.ndarray, " item"] | None
    label_noise: float = 0.0

    @property
    def held_in(self) -> int:
        """How many labels each fit saw: of whole groups, about so many."""
        return int((self.parts.calibration[0] >= 0).sum())

    @property
    def title(self) -> str:
        """What the comparison is, in a line."""
        return (
            f"Held out: fitted on {self.held_in} labels, decided the others, mean of "
            f"{len(self.parts)} splits" + ("" if self.groups is None else " between groups")
        )

    def interval(
        self,
        name: str,
        values: Float[np.ndarray, "split item"],
        *,
        level: float = 0.95,
        least: float = -np.inf,
    ) -> Interval:
        """Return the mean over splits of a method's outcomes on held-out items, with an interval.

        Not finite where an outcome is not. The interval is cut at `least`, which no outcome is below.
        """
        if np.isinf(values).any():
            return Interval(np.inf, np.inf, np.inf)
        items = np.asarray(self.evaluations[name].items)
        found = two_way_interval(values, items, self.n_items, self.groups, level=level)
        mean = float(np.nanmean(values, axis=1).mean())  # as `means`: items as often as drawn
        low, high = mean - found.mean + found.low, mean - found.mean + found.high
        return Interval(mean, max(low, least), high)

    def right(self, name: str, *, level: float = 0.95) -> Interval:
        """Return how often a method's decisions on held-out items are the label: `share` of them."""
        own = self.evaluations[name]
        labels = np.asarray(own.labels)
        hits = np.where(labels >= 0, np.asarray(own.decisions) == labels, np.nan)
        return self.share(name, hits, level=level)

    def share(
        self, name: str, hits: Float[np.ndarray, "split item"], *, level: float = 0.95
    ) -> Interval:
        """Return the mean of outcomes 0 or 1 on held-out items, with an interval within [0, 1].

        The hull of two: that of `interval`, which knows that splits are a sample too, and
        `share_interval` over the distinct items (where items share a source, over as many as
        independent ones would tell as much: `independent_trials`). The first has no width where
        every decision is right, although a few labels cannot tell that from an error now and then.
        """
        found = self.interval(name, hits, level=level)
        low, high = self.ends_over_items(name, hits, found.mean, level=level)
        return Interval(found.mean, max(min(found.low, low), 0.0), min(max(found.high, high), 1.0))

    def ends_over_items(
        self, name: str, hits: Float[np.ndarray, "split item"], mean: float, *, level: float
    ) -> tuple[float, float]:
        """Return the ends of `share_interval` around a mean of `hits`, over the distinct items."""
        of_item = item_means(hits, np.asarray(self.evaluations[name].items), self.n_items)
        known = np.isfinite(of_item)
        n = np.asarray(float(known.sum()))
        if self.groups is not None:
            right, seen = np.nan_to_num(of_item)[:, None], known[:, None]
            n = independent_trials(right, seen, self.groups, level=level)[0]
        low, high = share_interval(np.asarray(mean * n), np.asarray(n), level=level)
        return float(low), float(high)

    def mean_loss(
        self,
        name: str,
        losses: Float[np.ndarray, "split item"],
        most: float,
        *,
        level: float = 0.95,
    ) -> Interval:
        """Return the mean loss of decisions on held-out items, with an interval not below 0.

        The hull of two, as in `share`: that of `interval`, and the share of decisions that lose
        anything times what such a decision loses on the average; `most`, where none was seen.
        """
        found = self.interval(name, losses, level=level, least=0.0)
        wrong = self.share(name, np.where(np.isfinite(losses), losses > 0, np.nan), level=level)
        each = found.mean / wrong.mean if wrong.mean > 0 else most
        return Interval(
            found.mean, min(found.low, wrong.low * each), max(found.high, wrong.high * each)
        )

    def best(self, names: list[str], default: str) -> str:
        """Return the method of least NLL whose 95 % interval says that it beats the default.

        Few labels tell methods apart badly, and the least of several NLLs is often the luckiest: on
        public panels with 25 to 50 labels, taking the least, or the least by one standard error,
        was worse than never looking (P2, audit-stacking).
        """
        ranked = sorted(names, key=lambda name: self.means[name]["nll"])
        if not np.isfinite(self.means[default]["nll"]):
            return ranked[0]
        clear = (n for n in ranked[: ranked.index(default)] if self.clearly_less(n, default))
        return next(clear, default)

    def clearly_less(self, name: str, than: str) -> bool:
        """Return whether the 95 % interval says that a method has less NLL than another."""
        ahead = self.nll(than) - self.nll(name)
        items = np.asarray(self.evaluations[name].items)
        if np.isinf(ahead).any():  # the other was certain and wrong, or this one
            return bool(self.means[name]["nll"] < self.means[than]["nll"])
        return two_way_interval(ahead, items, self.n_items, self.groups).low > 0

    def with_less(self, than: str) -> list[str]:
        """Return all methods of less NLL than this one, the least first."""
        less = [name for name, m in self.means.items() if m["nll"] < self.means[than]["nll"]]
        return sorted(less, key=lambda name: self.means[name]["nll"])

    def nll(self, name: str) -> Float[np.ndarray, "split item"]:
        """Return a method's NLL of each held-out label as it was seen, NaN where there is none."""
        return _nll(self.evaluations[name], self.label_noise)

    def leads(
        self, method: str, loss: Float[np.ndarray, "action class"], *, level: float = 0.95
    ) -> dict[str, Interval]:
        """Return how much more every other method loses than this one: by their means."""
        own = self.evaluations[method].losses(loss)
        return {
            name: self.interval(name, other.losses(loss) - own, level=level)
            for name, other in self.evaluations.items()
            if name != method
        }


def compare(
    methods: Mapping[str, Aggregator],
    votes: Votes,
    labels: Int[np.ndarray, " item"],
    groups: Int[np.ndarray, " item"] | None,
    loss: Float[np.ndarray, "action class"],
    *,
    splits: int,
    seed: int,
    label_noise: float = 0.0,
    progress: Progress | None = None,
) -> Compared:
    """Fit on four fifths of the labels and decide the rest, many times; show how far it is.

    With label noise, NLL is that of the labels as they were seen.
    """
    parts = random_splits(
        votes.n_items,
        splits=splits,
        calibration=HELD_IN,
        groups=groups,
        among=np.flatnonzero(labels >= 0),
        seed=seed,
    )

    def one(name: str) -> Evaluation:
        return evaluate_splits(
            methods[name], votes, labels, parts, fit_on=_fit_on(name), loss=loss, seed=seed
        )

    what = f"methods held out on {splits} splits"
    # One method is compiled while another runs; the splits of a method are fitted all at once. One
    # more than there are cores, for those with one map wait for one compilation of it.
    with ThreadPoolExecutor(min(1 + (os.cpu_count() or 1), AT_ONCE)) as pool:
        evaluations = pool.map(one, methods)
        found = dict(zip(followed(methods, what, progress), evaluations, strict=True))
    means = {
        name: {m: float(v.mean()) for m, v in measure(e, METRICS).items()}
        for name, e in found.items()
    }
    if label_noise > 0:
        for name, e in found.items():
            means[name]["nll"] = float(np.nanmean(_nll(e, label_noise), axis=1).mean())
    return Compared(parts, means, found, votes.n_items, groups, label_noise)


class Growth(NamedTuple):
    """Held-out results of one method, fitted on ever more labels; the evaluation parts are the same."""

    labels: tuple[int, ...]
    nll: tuple[Interval, ...]
    """Not finite where the method was certain and wrong."""
    loss: tuple[Interval, ...]
    gain: Interval
    """What the last doubling took off the NLL; not finite where one of the two is not."""
    loss_gain: Interval
    """What it took off the loss of the decisions."""


def grow(
    compared: Compared,
    name: str,
    method: Aggregator,
    votes: Votes,
    labels: Int[np.ndarray, " item"],
    loss: Float[np.ndarray, "action class"],
    *,
    seed: int,
    level: float = 0.95,
    progress: Progress | None = None,
) -> Growth:
    """Fit a compared method on half, a quarter, ... of the labels of every split.

    The fits on all of them are those that were compared, and are not made again; the smaller sets
    are nested in them, and filled up, so that the compiled program is the same.
    """
    sizes = [compared.held_in]
    while len(sizes) < MOST_SIZES and sizes[-1] // 2 >= LEAST_SIZE:
        sizes.append(sizes[-1] // 2)
    sizes.reverse()
    parts, whole = compared.parts, compared.evaluations[name]
    place = np.arange(parts.calibration.shape[1])
    found = [
        evaluate_splits(
            method,
            votes,
            labels,
            replace(parts, calibration=np.where(place < size, parts.calibration, -1)),
            fit_on=_fit_on(name),
            loss=loss,
            seed=seed,
        )
        for size in followed(sizes[:-1], "numbers of labels to learn from", progress)
    ]
    nll = [_nll(each, compared.label_noise) for each in (*found, whole)]
    losses = [each.losses(loss) for each in (*found, whole)]

    def gain(scores: list[np.ndarray]) -> Interval:
        if len(scores) < 2 or any(np.isinf(each).any() for each in scores[-2:]):
            return Interval(np.nan, np.nan, np.nan)
        return compared.interval(name, scores[-2] - scores[-1], level=level)

    return Growth(
        tuple(sizes),
        tuple(compared.interval(name, values, level=level, least=0.0) for values in nll),
        tuple(
            compared.mean_loss(name, values, float(loss.max()), level=level) for values in losses
        ),
        gain(nll),
        gain(losses),
    )


def _fit_on(name: str) -> FitOn:
    return "all" if traits_of(name.split(" + ")[0]).learns_from_unlabelled else "calibration"


def _nll(found: Evaluation, label_noise: float) -> Float[np.ndarray, "split item"]:
    labels = np.asarray(found.labels)
    seen = np.asarray(_with_label_noise(found.log_probs, label_noise))
    own = np.take_along_axis(seen, np.maximum(labels, 0)[..., None], 2)[..., 0]
    return np.where(labels >= 0, -own, np.nan)


@jax.jit
def _with_label_noise(
    log_probs: Float[Array, "split item class"], label_noise: Scalar
) -> Float[Array, "split item class"]:
    return jax.vmap(with_label_noise, (0, None))(log_probs, label_noise)


def comparison_rows(
    compared: Compared, leads: Mapping[str, Interval], *, hide_nll: bool
) -> list[list[str]]:
    """Return a row per method, the chosen one first, with the cells that `HEAD` names."""
    rows = []
    for name in [*(n for n in compared.means if n not in leads), *leads]:
        means, lead = compared.means[name], leads.get(name)
        figures = (
            "refused" if hide_nll and m in ("nll", "ece") else _figure(means[m]) for m in METRICS
        )
        extra = "" if lead is None else f"{lead.mean:+z.3f} [{lead.low:+z.3f}, {lead.high:+z.3f}]"
        rows.append([name, *figures, extra])
    return rows


def comparison_table(
    compared: Compared, leads: Mapping[str, Interval], *, hide_nll: bool
) -> pd.DataFrame:
    """Return the same in numbers, NaN where there is none; extra loss with the ends of its interval."""
    rows = []
    for name in [*(n for n in compared.means if n not in leads), *leads]:
        hidden = ("nll", "ece") if hide_nll else ()
        means = {m: np.nan if m in hidden else compared.means[name][m] for m in METRICS}
        lead = leads.get(name, Interval(np.nan, np.nan, np.nan))
        extra = zip(("extra_loss", "low", "high"), lead, strict=True)
        rows.append({"method": name, **means, **dict(extra)})
    return pd.DataFrame(rows)


def comparison_words(
    compared: Compared, leads: Mapping[str, Interval], losses: Losses, *, hide_nll: bool
) -> list[str]:
    """Return what the cells of the comparison mean, in sentences.

    `leads` is of all methods but the chosen one.
    """
    words = []
    if leads:
        chosen = next(name for name in compared.means if name not in leads)
        words.append(
            f"Loss of a decision: {losses.meaning}{losses.mean}. Extra loss: a method's mean loss minus "
            f"that of {chosen}, with a 95 % interval; above 0 the method does worse."
        )
    if not hide_nll:
        held = int((compared.parts.evaluation[0] >= 0).sum())
        finite = {name: bool(np.isfinite(m["nll"])) for name, m in compared.means.items()}
        scored = [name for name, ends in finite.items() if ends and traits_of(name).rule]
        certain = compared.label_noise == 0  # otherwise no label is seen with certainty
        words.append(
            "NLL: mean -log of the label's probability"
            + (", - where a method is certain and wrong" if not all(finite.values()) else "")
            + (
                f". A rule claims certainty: {' and '.join(scored)} can be given an NLL only because "
                "no label was against it but at a draw, where it is even."
                if scored and certain
                else ": a rule has no probabilities."
                if certain
                and not all(ends for name, ends in finite.items() if traits_of(name).rule)
                else "."
            )
            + f" ECE: how far probabilities are from frequencies; on {held} held-out labels a split "
            "it errs upwards, least for best-constant, which tells no items apart: choose by NLL."
        )
    return [*words, " ".join(text for name, text in SIMPLE.items() if name in compared.means)]


def _figure(value: float) -> str:
    return f"{value:z.3f}" if np.isfinite(value) else "-"


def within_noise(leads: Mapping[str, Interval]) -> list[str]:
    """Return which simple answers the method does not clearly beat, in sentences."""
    words = {
        "best-constant": "always giving the same answer",
        "sc": "a plain majority vote",
        "margin-threshold": "one calibrated threshold on the margin",
    }
    return [
        f"Held out, {words[name]} is {'better' if lead.high < 0 else 'not clearly worse'} "
        f"(extra loss {lead.mean:+z.3f} [{lead.low:+z.3f}, {lead.high:+z.3f}])."
        for name, lead in leads.items()
        if name in words and lead.low <= 0 and not (name == "margin-threshold" and lead.high >= 0)
    ]
