"""Audit: differences of generators on new programs, and the probability that one is better.

Claim: none in the paper, which gives no intervals.
Command: judgebayes reproduce beyond-consensus/audit-differences --data DIR
Runtime: about 20 minutes of one core.
Expected: intervals of differences cover nearly 90 % where both generators are labelled, and more where
one has no label; a generator that is better with probability p is better in about p of the cases.

The target is the share of valid outputs among more items like these, of new programs, as `judgebayes
precision --target more --group program` has it. A replay draws 150 programs with replacement from those
of P4, whose shares are the truth, or simulates a world, whose shares on new programs are known
(`judgebayes.experiments.beyond_consensus.program_worlds`). Labels: all; those of half of the programs,
the same for all generators; or mixed, two generators in full, two by half of the programs and two not at
all. Beside `shares` stand the labels alone, with programs and with items as the independent units.
Intervals of coverage and of frequencies resample replays, since pairs of a replay share their items.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.figure import Figure

from judgebayes.experiments.beyond_consensus.common import DATASET, PAPER, item_votes
from judgebayes.experiments.beyond_consensus.program_worlds import (
    GENERATORS,
    Items,
    resampled,
    simulated,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.plots import reliability_diagrams
from judgebayes.experiments.significance import difference, success_rate
from judgebayes.generators import shares
from judgebayes.measures.scores import Reliability

REPLAYS = 60
PROGRAMS = 150
PAIRS = list(combinations(range(GENERATORS), 2))
DESIGNS = ("all labels", "half of the programs", "mixed")
METHODS = ("panel", "labels only, by programs", "labels only, by items")
SETTLED = 0.95
BINS = np.array((0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0))
"""Edges of the bins of the probability of the generator that is more probably the better one."""
RESAMPLES = 1000
LEVEL = 0.9
ENDS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)


def sources(run: Run) -> dict[tuple[str, str], list[Items]]:
    """Return the worlds of every replay by data set and name."""
    replays = min(run.splits, 2 if run.smoke else REPLAYS)
    programs = 20 if run.smoke else PROGRAMS
    worlds: dict[tuple[str, str], list[Items]] = {}
    if run.has(DATASET):
        cell = item_votes(run, "fcnhp")
        n = cell.program.max() + 1
        whole = Items(cell.votes, cell.labels, cell.generator, cell.program, cell.truth)
        # The release prints another share of one generator than its items have.
        whole = Items(cell.votes, cell.labels, cell.generator, cell.program, whole.these)
        rng = np.random.default_rng((run.seed, n))
        draws = [rng.integers(0, n, programs) for _ in range(replays)]
        worlds[DATASET, "P4's programs, resampled"] = [resampled(whole, draw) for draw in draws]
    kinds: list[Literal["weak", "strong"]] = ["weak", "strong"]
    for kind in run.few(kinds):
        seeds = range(run.seed + 1000, run.seed + 1000 + replays)
        name = f"simulated, {kind} judges"
        worlds["twin", name] = [simulated(kind, seed, programs) for seed in seeds]
    return worlds


def shown(items: Items, design: str, rng: np.random.Generator) -> Int[np.ndarray, " item"]:
    """Return the labels of a design, -1 where hidden."""
    programs = items.program.max() + 1
    half = np.isin(items.program, rng.permutation(programs)[: programs // 2])
    if design == "all labels":
        return items.labels
    if design == "half of the programs":
        return np.where(half, items.labels, -1)
    place = rng.permutation(GENERATORS)[items.generator]
    return np.where((place < 2) | ((place < 4) & half), items.labels, -1)


class Ends(NamedTuple):
    """The 90 % intervals of the differences of all pairs, and P(the first is better); NaN if none."""

    low: Float[np.ndarray, " pair"]
    high: Float[np.ndarray, " pair"]
    better: Float[np.ndarray, " pair"]


def fitted(items: Items, labels: Int[np.ndarray, " item"]) -> Ends:
    """Return what `shares` says of new programs."""
    fit = shares(
        items.votes, labels, items.generator, GENERATORS, target="more", groups=items.program
    )
    draws = fit.sample()
    gaps = np.stack([draws[:, a] - draws[:, b] for a, b in PAIRS], axis=1)
    low, high = np.quantile(gaps, ENDS, axis=0)
    return Ends(low, high, (gaps > 0).mean(0) + (gaps == 0).mean(0) / 2)


def from_labels(items: Items, labels: Int[np.ndarray, " item"], *, grouped: bool) -> Ends:
    """Return normal intervals from the labels of each pair alone; NaN where one has no label."""
    ends = np.full((3, len(PAIRS)), np.nan)
    own = [items.generator == place for place in range(GENERATORS)]
    some = [bool((labels[mask] >= 0).any()) for mask in own]
    for place, pair in enumerate(PAIRS):
        if all(some[g] for g in pair):
            one, other = (
                success_rate("labels", np.zeros(own[g].sum()), labels[own[g]]) for g in pair
            )
            groups = (items.program[own[pair[0]]], items.program[own[pair[1]]]) if grouped else None
            estimate = difference(one, other, groups)
            ends[:2, place] = estimate.low, estimate.high
    return Ends(*ends)


class Trials(NamedTuple):
    """Intervals of every pair in every replay."""

    low: Float[np.ndarray, "replay pair"]
    high: Float[np.ndarray, "replay pair"]
    better: Float[np.ndarray, "replay pair"]
    truth: Float[np.ndarray, "replay pair"]
    kind: Int[np.ndarray, "replay pair"]
    """How many of the pair have a label."""

    @property
    def covered(self) -> Bool[np.ndarray, "replay pair"]:
        """Whether the intervals contain the true difference."""
        return np.asarray((self.low <= self.truth) & (self.truth <= self.high))


def replays(worlds: Sequence[Items], design: str, seed: int) -> dict[str, Trials]:
    """Return the trials of every method under a design."""
    records: dict[str, list[tuple[np.ndarray, ...]]] = {name: [] for name in METHODS}
    for number, items in enumerate(worlds):
        labels = shown(items, design, np.random.default_rng((seed, number)))
        known = np.bincount(items.generator[labels >= 0], minlength=GENERATORS) > 0
        truth = np.array([items.truth[a] - items.truth[b] for a, b in PAIRS])
        kind = np.array([int(known[a]) + int(known[b]) for a, b in PAIRS])
        methods = {
            METHODS[0]: fitted(items, labels),
            METHODS[1]: from_labels(items, labels, grouped=True),
            METHODS[2]: from_labels(items, labels, grouped=False),
        }
        for name, ends in methods.items():
            records[name].append((*ends, truth, kind))
    return {
        name: Trials(*(np.stack(part) for part in zip(*each, strict=True)))
        for name, each in records.items()
    }


def _resampled(
    numerator: Float[np.ndarray, "replay pair"], of: Bool[np.ndarray, "replay pair"], seed: int
) -> dict[str, float]:
    """Return a mean over some pairs of all replays, with its bootstrap interval over replays."""
    rng = np.random.default_rng(seed)
    total, size = np.where(of, numerator, 0.0).sum(1), of.sum(1)
    n = len(size)
    weight = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES)
    count = weight @ size
    means = (weight @ total)[count > 0] / count[count > 0]
    low, high = np.quantile(means, (0.025, 0.975))
    return {"value": float(total.sum() / size.sum()), "low": float(low), "high": float(high)}


KINDS = {2: "both labelled", 1: "one labelled", 0: "none labelled"}


def _scores(base: dict[str, Any], trials: Trials, seed: int) -> Iterator[dict[str, Any]]:
    """Yield coverage and width by how many of a pair are labelled."""
    for number, name in KINDS.items():
        of = (trials.kind == number) & np.isfinite(trials.low)
        if not of.any():
            continue
        row = base | {"judge": name, "splits": int(of.sum())}
        covered = trials.covered.astype(float)
        yield row | {"metric": "coverage"} | _resampled(covered, of, seed)
        width = trials.high - trials.low
        yield row | {"metric": "width"} | _resampled(width, of, seed)


def binned(
    better: Float[np.ndarray, "*any"], truth: Float[np.ndarray, "*any"]
) -> tuple[Float[np.ndarray, "*any"], Bool[np.ndarray, "*any"], Int[np.ndarray, "*any"]]:
    """Return the probability of the more probable order, whether it is right, and its bin."""
    sure = np.maximum(better, 1 - better)
    right = (better >= 0.5) == (truth > 0)
    return sure, right, np.clip(np.searchsorted(BINS, sure, side="right") - 1, 0, len(BINS) - 2)


def _reliability(base: dict[str, Any], trials: Trials, seed: int) -> Iterator[dict[str, Any]]:
    """Yield how often the more probable order is right, by its probability."""
    sure, right, place = binned(trials.better, trials.truth)
    for at in range(len(BINS) - 1):
        of = place == at
        if not of.any():
            continue
        name = f"P {BINS[at]:g} to {BINS[at + 1]:g}"
        row = base | {"judge": name, "splits": int(of.sum())}
        yield row | {"metric": "order right"} | _resampled(right.astype(float), of, seed)
        yield row | {"metric": "mean probability"} | _resampled(sure, of, seed)
    everything = np.ones_like(right, bool)
    over = _resampled(sure - right, everything, seed)
    yield base | {"judge": "all", "metric": "probability minus frequency"} | over
    settled = sure >= SETTLED
    if settled.any():
        wrong = _resampled((~right).astype(float), settled, seed)
        share = _resampled(settled.astype(float), everything, seed)
        yield base | {"judge": "settled", "metric": "order wrong"} | wrong
        yield base | {"judge": "settled", "metric": "share of pairs"} | share


def _bins(trials: Sequence[Trials]) -> Reliability:
    """Return the bins of both orders of every pair."""
    better = np.concatenate([one.better.ravel() for one in trials])
    first = np.concatenate([one.truth.ravel() > 0 for one in trials])
    p, is_right = np.append(better, 1 - better), np.append(first, ~first)
    edges = np.append(1 - BINS[:0:-1], BINS[0:])
    place = np.clip(np.searchsorted(edges, p, side="right") - 1, 0, len(edges) - 2)
    mass, total, right = (
        np.bincount(place, weights=w, minlength=len(edges) - 1) for w in (p * 0 + 1, p, is_right)
    )
    some = np.maximum(mass, 1)
    return Reliability(*(jnp.asarray(part) for part in (mass, total / some, right / some)))


@experiment(
    PAPER,
    "audit-differences",
    "Audit: differences of generators on new programs",
    "intervals of differences have their nominal coverage, and P(better) is calibrated",
    twins=True,
)
def main(run: Run) -> Output:
    """Return coverage and widths of differences, and how often the more probable order is right."""
    records: list[dict[str, Any]] = []
    diagrams: dict[str, dict[str, Reliability]] = {}
    for (dataset, name), worlds in sources(run).items():
        for design in run.few(list(DESIGNS)):
            run.say(f"{name}, {design}")
            trials = replays(worlds, design, run.seed)
            base = {"dataset": dataset, "task": f"{name}: {design}"}
            for method, each in trials.items():
                records += _scores(base | {"method": method}, each, run.seed)
            panel = trials[METHODS[0]]
            records += _reliability(base | {"method": METHODS[0]}, panel, run.seed)
            diagrams.setdefault(name, {})[design] = _bins([panel])
    table = rows(PAPER, "audit-differences", records)
    return Output(table, {"better": _figure(diagrams)})


def _figure(diagrams: dict[str, dict[str, Reliability]]) -> Figure:
    return reliability_diagrams(
        diagrams,
        xlabel="P(A is better than B on new programs)",
        ylabel="share in which A is better",
        title="Order of two generators on new programs",
        columns=len(diagrams),
    )
