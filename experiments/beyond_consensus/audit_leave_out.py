"""Audit: a new generator with no label, a few labels, and many.

Claim: none in the paper, in which a generator is labelled in full or not at all.
Command: judgebayes reproduce beyond-consensus/audit-leave-out --data DIR
Runtime: about 15 minutes of one core.
Expected: labels only help: the mean width of the 90 % interval falls with every number of labels, at
about nominal coverage on average. A generator that lies near the end of what the others predict is
covered too seldom until its own labels count for more than the prediction, and no label shows it before:
only a wider prior covers it, at the price of wider intervals for all. About a quarter of the generators
are more than 1.2 standard deviations from the prediction, in the simulated worlds too.

Each generator is the new one in turn: the others are labelled in full, and k of its items have labels.
The target is the share of valid items among these items. Labels are drawn item by item, or by whole
programs until there are k; a draw with more labels contains those of the draw with fewer. Real votes are
those of P4. In the simulated worlds (`judgebayes.experiments.beyond_consensus.program_worlds`) every
generator of every world has one draw, so that coverage is over generators. The prior from the other
generators (`judgebayes.generators.own_labels`) is as it is, or its standard deviations are multiplied by
1.2 or 1.5: what robustness against a prior that is off costs in width.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy.stats import t

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus.common import DATASET, PAPER, item_votes
from judgebayes.experiments.beyond_consensus.program_worlds import GENERATORS, Items, simulated
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.generators import Panel, PrecisionCounts, count_votes
from judgebayes.generators.clusters import Clusters, correlation_within, residuals
from judgebayes.generators.item_posterior import Items as OwnItems
from judgebayes.generators.item_posterior import Mixture, quantiles, tail_probability
from judgebayes.generators.own_labels import item_scores
from judgebayes.generators.panel import PanelPosterior
from judgebayes.measures.significance import share_interval
from judgebayes.votes.columns import certain

LABELS = (0, 5, 20, 40, 80, 160)
FACTORS = {"panel": 1.0, "prior 1.2 times as wide": 1.2, "prior 1.5 times as wide": 1.5}
DRAWS = 60
WORLDS = 30
PROGRAMS = 150
ENDS = np.array((0.05, 0.5, 0.95))
Z90 = 1.6448536269514722
FAR = 1.2
"""Deviations of the prediction from which a generator lies far out: 23 % of them, if all is normal."""
SURPRISING = 0.05
"""As `judgebayes precision` says it."""
WHAT = ("items", "programs")


@dataclass(frozen=True)
class Source:
    """Worlds of generators, and the names of the generators."""

    dataset: str
    name: str
    worlds: tuple[Items, ...]
    generators: tuple[str, ...]
    draws: int
    """Draws of labels of each generator."""

    def by_cluster(
        self, values: Float[np.ndarray, "generator draw"]
    ) -> Float[np.ndarray, "cluster part"]:
        """Return values by generator, or by world if there are several: generators share judges."""
        return values.reshape(len(self.worlds), -1) if len(self.worlds) > 1 else values


def sources(run: Run) -> list[Source]:
    """Return P4's generators, if the data are there, and the simulated worlds."""
    listed = []
    if run.has(DATASET):
        cell = item_votes(run, "fcnhp")
        items = Items(cell.votes, cell.labels, cell.generator, cell.program, cell.truth)
        draws = min(run.splits, DRAWS)
        names = tuple(run.few(cell.generators, 2))
        listed.append(Source(DATASET, "P4", (items,), names, draws))
    worlds = run.few(list(range(min(run.splits, WORLDS))), 2)
    programs = 20 if run.smoke else PROGRAMS
    kinds: list[Literal["weak", "strong"]] = ["weak", "strong"]
    for kind in run.few(kinds):
        each = tuple(simulated(kind, run.seed + seed, programs) for seed in worlds)
        names = tuple(run.few([f"generator {place}" for place in range(GENERATORS)]))
        listed.append(Source("twin", f"simulated, {kind} judges", each, names, 1))
    return listed


@cache
def _fitting() -> Any:
    def fit(counts: PrecisionCounts, shown: Bool[Array, " generator"]) -> PanelPosterior:
        return Panel().fit(counts.reveal(shown))

    return jax.jit(fit)


@in_float64
def prior(items: Items, place: int) -> Mixture:
    """Return what the other generators, labelled in full, say of one: as in `shares`."""
    n = len(items.truth)
    counts = count_votes(items.votes, items.labels, items.generator, n)
    fit = _fitting()(counts, jnp.arange(n) != place)
    return (
        np.asarray(fit.weight),
        np.asarray(fit.mean[:, place]),
        np.sqrt(np.asarray(fit.covariance[:, place, place])),
    )


class Answer(NamedTuple):
    """The 5 %, 50 % and 95 % quantiles of a share for each factor; the labels' tail probability."""

    quantiles: Float[np.ndarray, "factor end"]
    tail_probability: float


def answer(
    items: Items, place: int, mixture: Mixture, shown: Int[np.ndarray, " label"], *, grouped: bool
) -> Answer:
    """Return the posterior of one generator as `shares` has it, which would fit all again."""
    own = items.generator == place
    labels = np.where(own, -1, items.labels)
    labels[shown] = items.labels[shown]
    scores = item_scores(items.votes, labels)
    group, correlation = np.arange(len(labels)), 0.0
    if grouped:
        group = items.program
        residual = residuals(scores, labels, items.generator, len(items.truth))
        correlation = correlation_within(residual, labels, items.generator, group)
    one = OwnItems(scores[own], certain(labels[own]), Clusters(group[own], correlation))
    weight, mean, spread = (np.asarray(part) for part in mixture)
    each = [
        quantiles(one, (weight, mean, factor * spread), ENDS, "these")
        for factor in FACTORS.values()
    ]
    return Answer(np.stack(each), tail_probability(one, mixture))


def nested(
    items: Items, place: int, what: str, rng: np.random.Generator
) -> list[Int[np.ndarray, " label"]]:
    """Return random items of a generator for each of `LABELS`; each has those before it.

    By whole programs, the last program may have more items than are needed; all if there are fewer.
    """
    own = rng.permutation(np.flatnonzero(items.generator == place))
    if what == "items":
        return [own[:k] for k in LABELS]
    program = items.program[own]
    first = np.sort(np.unique(program, return_index=True)[1])  # programs in order of appearance
    size = np.bincount(program)[program[first]]
    ordered = np.concatenate([own[program == program[at]] for at in first])
    total = np.cumsum(size)
    last = np.minimum(np.searchsorted(total, LABELS), len(total) - 1)
    return [ordered[: end if k else 0] for k, end in zip(LABELS, total[last].tolist(), strict=True)]


class Draws(NamedTuple):
    """Answers by generator (of all worlds), draw, number of labels, and factor."""

    ends: Float[np.ndarray, "generator draw k factor 3"]
    tail_probability: Float[np.ndarray, "generator draw k"]
    labels: Float[np.ndarray, "generator draw k"]
    truth: Float[np.ndarray, " generator"]

    @property
    def width(self) -> Float[np.ndarray, "generator draw k factor"]:
        """The widths of the intervals."""
        return np.asarray(self.ends[..., 2] - self.ends[..., 0])

    @property
    def error(self) -> Float[np.ndarray, "generator draw k factor"]:
        """The absolute errors of the medians."""
        return np.asarray(np.abs(self.ends[..., 1] - self._truth))

    @property
    def covered(self) -> Bool[np.ndarray, "generator draw k factor"]:
        """Whether the intervals contain the truth."""
        low, high = self.ends[..., 0] - 1e-9, self.ends[..., 2] + 1e-9
        return np.asarray((low <= self._truth) & (self._truth <= high))

    @property
    def far_out(self) -> Bool[np.ndarray, " generator"]:
        """Whether the truth is far out in the interval without a label of the generator."""
        low, middle, high = self.ends[:, 0, 0, 0].T
        side = np.where(self.truth > middle, high - middle, middle - low) / Z90
        return np.asarray(np.abs(self.truth - middle) > FAR * side)

    @property
    def _truth(self) -> Float[np.ndarray, "generator 1 1 1"]:
        return self.truth[:, None, None, None]


@in_float64
def replay(run: Run, source: Source) -> dict[str, Draws]:
    """Return the draws of labels by items and by programs."""
    parts: dict[str, list[tuple[np.ndarray, ...]]] = {what: [] for what in WHAT}
    for number, items in enumerate(source.worlds):
        for place in range(len(source.generators)):
            mixture = prior(items, place)
            for what in WHAT:
                parts[what].append(
                    _of_generator(run, source.draws, number, items, place, mixture, what)
                )
    shown = range(len(source.generators))
    truth = np.concatenate([items.these[shown] for items in source.worlds])
    drawn = {}
    for what, each in parts.items():
        ends, unexpected, labels = (np.stack(arrays) for arrays in zip(*each, strict=True))
        drawn[what] = Draws(ends, unexpected, labels, truth)
    return drawn


def _of_generator(
    run: Run, draws: int, world: int, items: Items, place: int, mixture: Mixture, what: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    shape = draws, len(LABELS)
    ends, unexpected = np.zeros((*shape, len(FACTORS), 3)), np.full(shape, np.nan)
    n_labels = np.zeros(shape)
    for draw in range(draws):
        rng = np.random.default_rng((run.seed, world, place, draw))
        for at, shown in enumerate(nested(items, place, what, rng)):
            n_labels[draw, at] = len(shown)
            if draw and not len(shown):  # without a label, nothing is drawn
                ends[draw, at] = ends[0, at]
                continue
            ends[draw, at], unexpected[draw, at] = answer(
                items, place, mixture, shown, grouped=what == "programs"
            )
    return ends, unexpected, n_labels


def _clustered(values: Float[np.ndarray, "cluster part"]) -> dict[str, float]:
    """Return a mean with Student's 95 % interval over clusters."""
    each = values.mean(1)
    half = t.ppf(0.975, len(each) - 1) * each.std(ddof=1) / np.sqrt(len(each))
    mean = float(each.mean())
    return {"value": mean, "low": mean - float(half), "high": mean + float(half)}


def _within(share: dict[str, float]) -> dict[str, float]:
    """Return the interval of a share without what lies outside [0, 1]."""
    return {name: float(np.clip(value, 0.0, 1.0)) for name, value in share.items()}


def _paired(values: Float[np.ndarray, "generator draw"]) -> dict[str, float]:
    """Return a mean with its normal 95 % interval over draws, the generators being fixed."""
    n = values.shape[1]
    error = np.sqrt((values.var(1, ddof=1) / n).mean() / len(values)) if n > 1 else 0.0
    mean = float(values.mean())
    return {"value": mean, "low": mean - 1.96 * float(error), "high": mean + 1.96 * float(error)}


def _scores(source: Source, what: str, draws: Draws) -> Iterator[dict[str, Any]]:
    """Yield every score of a source and way of drawing."""
    base: dict[str, Any] = {"dataset": source.dataset, "task": f"{source.name}, by {what}"}
    base |= {"splits": draws.covered[..., 0, 0].size}
    every = draws.width, draws.error, draws.covered.astype(float)

    def mean(values: Float[np.ndarray, "generator draw"]) -> dict[str, float]:
        return _clustered(source.by_cluster(values))

    yield (
        base
        | {"method": "panel", "metric": "share far out"}
        | {"value": float(draws.far_out.mean())}
    )
    for at, k in enumerate(LABELS):
        for place, method in enumerate(FACTORS):
            row = base | {"n": k, "method": method}
            width, error, covered = (x[:, :, at, place] for x in every)
            yield row | {"metric": "width"} | mean(width)
            yield row | {"metric": "mean error"} | mean(error)
            yield row | {"metric": "coverage"} | _within(mean(covered))
            if source.draws > 1:
                yield from _by_generator(row, source, covered)
            if draws.far_out.any():
                far = covered[draws.far_out]
                low, high = share_interval(np.array([far.sum()]), np.array([far.size]))
                yield row | {"metric": "coverage, far out"} | _row([far.mean(), low[0], high[0]])
            if at:
                step = width - draws.width[:, :, at - 1, place]
                over = _paired(step) if source.draws > 1 else mean(step)
                yield row | {"metric": "width, over that with fewer labels"} | over
                wider = (step > 0).astype(float)
                yield (
                    row
                    | {"metric": "share that is wider than with fewer labels"}
                    | _within(mean(wider))
                )
        if at:
            row = base | {"n": k, "method": "panel"}
            contradicted = (draws.tail_probability[:, :, at] < SURPRISING).astype(float)
            yield row | {"metric": "share said to contradict"} | _within(mean(contradicted))
            number = float(draws.labels[:, :, at].mean())
            yield row | {"metric": "mean number of labels", "value": number}


def _by_generator(
    row: dict[str, Any], source: Source, covered: Float[np.ndarray, "generator draw"]
) -> Iterator[dict[str, Any]]:
    """Yield the coverage of each generator, and the least with an interval for all generators."""
    level = 1 - 0.05 / len(covered)
    shares = covered.mean(1)
    low, high = share_interval(covered.sum(1), np.full(len(covered), covered.shape[1]), level=level)
    least = int(shares.argmin())
    metric = "coverage of a generator"
    for name, *ends in zip(source.generators, shares, low, high, strict=True):
        yield row | {"judge": name, "metric": metric} | _row(ends)
    ends = [shares[least], low[least], high[least]]
    yield row | {"metric": "coverage of the hardest"} | _row(ends)


def _row(ends: Sequence[float]) -> dict[str, float]:
    return dict(zip(("value", "low", "high"), map(float, ends), strict=True))


@experiment(
    PAPER,
    "audit-leave-out",
    "Audit: a new generator, from no label to many",
    "labels only help: intervals get narrower with every label, and keep their coverage",
    twins=True,
)
def main(run: Run) -> Output:
    """Return widths, errors and coverage by the number of labels."""
    records: list[dict[str, Any]] = []
    for source in sources(run):
        run.say(source.name)
        for what, draws in replay(run, source).items():
            records += _scores(source, what, draws)
    table = rows(PAPER, "audit-leave-out", records)
    return Output(table)
