"""The error of a decision by every method that can estimate it, with intervals.

How wide the interval is now, and how many labels a target width needs, in sentences.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from judgebayes.arrays import ItemFloats, ItemInts
from judgebayes.majority import (
    Counts,
    ErrorCurve,
    FittedDistribution,
    FittedSplitCurve,
    MeanLoss,
    Measure,
    SplitCurve,
    Splits,
    Thinning,
    is_check,
    label_forecast,
    labelling_order,
    losses,
    mean_loss,
    next_check,
    odd_sizes,
    splits_of,
    stopping_level,
)
from judgebayes.sentence import of_votes, percent
from judgebayes.workflow.data import Study
from judgebayes.workflow.ensemble_panel import EnsemblePanel
from judgebayes.workflow.options import EnsembleRequest

FAR = 3.0
"""Standard errors between the margins of labelled and all items that chance does not explain."""
EARLY = 0.001
"""The labelled items are called the first ones below this p-value of the rank test (Mann-Whitney)."""
LEAST_LABELS = 5
CURVE, FREE, MIXTURE = "split curve", "model-free", "mixture"


@dataclass(frozen=True)
class Estimates:
    """What a user asked about, and the labelled items."""

    request: EnsembleRequest
    panel: EnsemblePanel
    counts: Counts
    """The number of correct votes of each item."""
    groups: ItemInts | None
    effect: float
    """The design effect of the groups."""
    noise: float
    """The share of wrong labels."""

    @cached_property
    def fitted(self) -> FittedSplitCurve:
        """How probably each class is right given how the votes split."""
        method = SplitCurve(by_class=self.panel.by_class, noise=self.noise)
        key = jax.random.key(self.request.seed)
        return method.fit(self.panel.splits, weight=self.weight, key=key)

    def curve(
        self, sizes: tuple[int, ...] | None, measure: Measure, level: float | None = None
    ) -> ErrorCurve:
        """Return the curve as it is asked for."""
        asked = replace(self.asked, measure=measure, level=level or self.request.level)
        return self.fitted.curve(self.panel.splits, sizes, asked, seed=self.request.seed)

    @property
    def weight(self) -> ItemFloats:
        """The items' weights: as many independent items as say as much as these."""
        return np.full(len(self.counts.correct), 1 / self.effect)

    @property
    def these(self) -> bool:
        """Whether the intervals are about these items."""
        return self.request.target == "these"

    @property
    def asked(self) -> MeanLoss:
        """The mean loss in question."""
        return MeanLoss(
            "these" if self.these else "more",
            "paper" if self.panel.papers_error else "wrong",
            self.panel.decision,
            self.groups,
            self.effect,
            self.request.level,
        )

    def population(self, sizes: tuple[int, ...]) -> Float[np.ndarray, " size"] | None:
        """Return the number of independent items that those with k votes are, by k.

        None if the intervals are about more items like these.
        """
        if not self.these:
            return None
        return np.array([(self.panel.splits.total >= k).sum() for k in sizes]) / self.effect

    def paper(self, mixture: FittedDistribution, sizes: tuple[int, ...]) -> dict[str, ErrorCurve]:
        """Return P(S < k/2) at odd numbers of votes (P3 Definition 3.2)."""
        level = self.request.level
        alone = self.from_labels(sizes, level)
        modelled = mixture.curve(
            sizes,
            level=level,
            of=self.counts if self.these else None,
            design_effect=self.effect,
            seed=self.request.seed,
        )
        return {
            CURVE: self.no_narrower(self.curve(sizes, "paper"), alone),
            FREE: alone,
            MIXTURE: self.no_narrower(modelled, alone),
        }

    def from_labels(self, sizes: tuple[int, ...], level: float) -> ErrorCurve:
        """Return P(S < k/2) from the votes on labelled items alone, without a model."""
        fit = Thinning().fit(self.counts, weight=self.weight)
        return fit.curve(sizes, level=level, population=self.population(sizes))

    def no_narrower(self, curve: ErrorCurve, alone: ErrorCurve) -> ErrorCurve:
        """Return a curve whose intervals include those from the labels `alone`, if these are few.

        A prior would otherwise say more than one or two labels can.
        """
        if self.panel.splits.labelled.sum() >= LEAST_LABELS:
            return curve
        low, high = np.fmin(curve.low, alone.low), np.fmax(curve.high, alone.high)
        return replace(curve, low=low, high=high)

    def decided(self, sizes: tuple[int, ...], measure: Measure) -> dict[str, ErrorCurve]:
        """Return P(the decision is wrong), or its mean distance from the label in classes."""
        alone = self.free(sizes, measure)
        return {CURVE: self.no_narrower(self.curve(sizes, measure), alone), FREE: alone}

    def free(self, sizes: tuple[int, ...], measure: Measure) -> ErrorCurve:
        """Return the same from the votes on labelled items alone, without a model."""
        splits = self.panel.splits
        labelled, position = np.flatnonzero(splits.labelled), splits.positions()
        some = splits.take(labelled)
        largest = splits.given.shape[1] - 1 if measure == "absolute" else 1
        known = np.stack(
            [
                losses(some, size, measure, self.panel.decision)[
                    np.arange(len(labelled)), position[labelled]
                ]
                for size in sizes
            ]
        )
        free = mean_loss(
            sizes,
            known / largest,
            weight=self.weight[labelled],
            level=self.request.level,
            population=self.population(sizes),
        )
        parts = {name: getattr(free, name) * largest for name in ("error", "low", "high")}
        return replace(free, **parts)


def panel_errors(estimates: Estimates, data: Study) -> pd.DataFrame:
    """Return the error of all votes on each item, and its interval: a row, or two.

    A named panel is compared with all judges.
    """
    panel, named = estimates.panel, estimates.curve(None, "wrong")
    if panel.chosen is None:
        splits = panel.splits
        alone = estimates.free((int(splits.total[splits.labelled].max()),), "wrong")
        curves = {"all votes of each item": estimates.no_narrower(named, alone)}
    else:
        names = [str(name) for name in data.coding.judges]
        splits = splits_of(data.votes, data.labels, panel.splits.label_classes)
        every = replace(estimates, panel=replace(panel, splits=splits))
        curves = {
            ", ".join(names[judge] for judge in panel.chosen): named,
            f"all {len(names)} judges": every.curve(None, "wrong"),
        }
    return pd.DataFrame(
        [(name, curve.error[0], curve.low[0], curve.high[0]) for name, curve in curves.items()],
        columns=["panel", "error", "low", "high"],
    )


def split_words(fitted: FittedSplitCurve, splits: Splits) -> list[str]:
    """Return what the split of the votes says about the label, in sentences."""
    voted = splits.take(np.flatnonzero(splits.total > 0))
    share, margin = _margins(voted)
    clear, close = margin == margin.max(), margin == margin[margin > 0].min(initial=1.0)
    if margin.max() == margin[margin > 0].min(initial=1.0):
        return []
    right = plurality_right(fitted, voted, share)
    return [
        f"Where the votes are clearest ({percent(clear.mean())} of the items), their plurality is "
        f"right with probability {right[clear].mean():.2f}; where they are closest to a tie "
        f"({percent(close.mean())}), with probability {right[close].mean():.2f}."
    ]


def chosen_words(splits: Splits) -> list[str]:
    """Return that the labelled items are not a random part of all, if their votes show it."""
    voted = splits.take(np.flatnonzero(splits.total > 0))
    known, margin = voted.labelled, _margins(voted)[1]
    n, items = int(known.sum()), len(margin)
    if n == items or n < LEAST_LABELS:
        return []
    one, every = margin[known].mean(), margin.mean()
    spread = margin.std() * np.sqrt((items - n) / (n * (items - 1)))
    if abs(one - every) <= FAR * spread:
        return []
    which = "closer" if one < every else "clearer"
    return [
        f"The votes on the labelled items are {which} than on all items (mean margin {one:.2f} and "
        f"{every:.2f}), as if these items had been chosen. Estimates from labelled items only are then "
        "about such items; the split curve assumes that votes which split alike are as often right on "
        "the other items."
    ]


def first_words(splits: Splits) -> list[str]:
    """Return that the labelled items are the first or the last of the file, by a rank test."""
    known = splits.labelled
    place = np.arange(len(known))
    if known.all():
        return []
    test = stats.mannwhitneyu(place[known], place[~known])
    if test.pvalue >= EARLY:
        return []
    which, other = ("first", "last") if place[known].mean() < place.mean() else ("last", "first")
    return [
        f"The labelled items are mostly among the {which} of the file (rank test, p < {EARLY:g}) and no "
        "random part of it. If judges or items change along the file, the error on the others differs, "
        f"and no interval here counts this: label some of the {other} items, or items drawn at random."
    ]


def shares_of(splits: Splits) -> Float[np.ndarray, "item label"]:
    """Return the share of an item's votes that each class of the labels has, 0 without votes."""
    return splits.given[:, splits.label_classes] / np.maximum(splits.total, 1)[:, None]


def plurality_right(
    fitted: FittedSplitCurve, splits: Splits, share: Float[np.ndarray, "item label"]
) -> ItemFloats:
    """Return the probability that an item's plurality is right; of several, one at random."""
    top = share == share.max(1, keepdims=True)
    return np.where(top, fitted.mean_probs(splits), 0.0).sum(1) / top.sum(1)


def _margins(voted: Splits) -> tuple[Float[np.ndarray, "item label"], ItemFloats]:
    """Return the share of each class, and how much larger the largest is than the next."""
    share = shares_of(voted)
    first, second = np.sort(share, axis=1)[:, ::-1][:, :2].T
    return share, np.round(first - second, 12)


class Stop(NamedTuple):
    """Whether labelling may stop, and the item to label next if not."""

    width: float
    """The width of the interval that decides; NaN if it is not checked at this number of labels."""
    enough: bool
    """Whether that interval meets the target width."""
    next_item: object
    """None if every item with votes has a label."""
    sentences: list[str]

    @property
    def numbers(self) -> dict[str, Any]:
        """All but the sentences, by name."""
        return {name: each for name, each in self._asdict().items() if name != "sentences"}


def stop_of(estimates: Estimates, items: pd.Index, goal: float) -> Stop:
    """Return whether the interval meets a target width, by a rule that may be asked after each label.

    An interval that is used at the first moment when it is narrow covers less often than it says. So
    a stricter one decides (`stopping_level`), at few numbers of labels (`is_check`). The next item is
    the first without a label in a random order.
    """
    splits, request = estimates.panel.splits, estimates.request
    voted = np.flatnonzero(splits.total > 0)
    order = voted[labelling_order(len(voted), request.seed)]
    n, left = int(splits.labelled.sum()), order[~splits.labelled[order]]
    width, enough, said = np.nan, False, []
    if not splits.labelled[order[:n]].all():
        said.append(
            "The labelled items are not those that were proposed: the interval holds only if they are a "
            "random part of all."
        )
    if is_check(n) or not len(left):
        level = stopping_level(request.level)
        now = interval_now(estimates, level)
        width = float(now.high[0] - now.low[0])
        enough = width <= goal
        said.append(
            f"The {percent(level)} interval, which decides about stopping, is {points(width)} wide; the "
            f"target is {points(goal)}: {'stop' if enough else 'continue'}."
        )
    next_item = items[left[0]] if len(left) else None
    if len(left) and not enough:
        said.append(f"The width is checked next at {next_check(n)} labels. Next item: {next_item}")
    return Stop(width, enough, next_item, said)


ASSURANCE = 0.9
"""The probability that the larger number of labels is enough."""
SIMULATIONS = 48


def labels_to_go(estimates: Estimates) -> list[str]:
    """Return the width of the interval, and the labels that a target width needs.

    They are computed at the largest odd number of votes that half of the labelled items have. The
    default target is half the present width.
    """
    splits, request = estimates.panel.splits, estimates.request
    target_width, now = request.target_width, interval_now(estimates, request.level)
    size, width = int(now.size[0]), float(now.high[0] - now.low[0])
    said = f"With {of_votes(size)}, the {percent(request.level)} interval is {points(width)} wide"
    if width == 0:
        return [f"{said}: the label of every item is known."]
    goal = float(f"{width / 2:.1g}") if target_width is None else target_width
    if width <= goal:
        return [f"{said}, which meets the target of {points(goal)}."]
    forecast = label_forecast(
        estimates.fitted,
        splits,
        size,
        goal,
        estimates.asked,
        simulations=SIMULATIONS,
        seed=request.seed,
    )
    typical, assured = forecast.needed(), forecast.needed(ASSURANCE)
    labels, items = int(splits.labelled.sum()), forecast.items
    these = "half as wide" if target_width is None else f"{points(goal)} wide"
    if typical is None:
        more = "" if estimates.these else " Add items, or use --target these."
        return [f"{said}; labels of all {items} items would typically not make it {these}.{more}"]
    typical = max(typical, labels + 1)
    words = f"{said}. To make it {these} takes about {typical} labels, {typical - labels} more"
    if assured is None:
        return [f"{words}; even labels of all {items} items do not assure it at 90 %."]
    assured = max(assured, typical)
    return [f"{words}; with {percent(ASSURANCE)} assurance {assured}, {assured - labels} more."]


def interval_now(estimates: Estimates, level: float) -> ErrorCurve:
    """Return the error at the largest odd number of votes that half of the labelled items have."""
    splits = estimates.panel.splits
    size = odd_sizes(max(int(np.median(splits.total[splits.labelled])), 1))[-1]
    curve = estimates.curve((size,), estimates.asked.measure, level)
    return estimates.no_narrower(curve, estimates.from_labels((size,), level))


def points(width: float) -> str:
    """Return a width in percentage points."""
    return f"{100 * width:.3g} points"
