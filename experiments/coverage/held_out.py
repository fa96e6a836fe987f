"""Intervals of held-out results: the comparison by `calibrate`, and the method's scores in `report`.

A data set is 60 labelled items, or 30 programs of ten, drawn without replacement from a population
many times as large. Its truth is the quantity that the program estimates: the mean over fits to as
many labels as its calibration parts have, and over all items of the population.

Two judges who differ on three items of ten, where any answer is right on half of the items, are a
population of their own: there all methods are equally good, and only the interval of their difference is
of interest.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from judgebayes import BaseRate, MajorityVote, OneCoin, Stacking
from judgebayes.evaluate.one_split import Evaluation
from judgebayes.evaluate.splits import Splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.experiments.coverage import populations
from judgebayes.experiments.coverage.engine import LEVELS, Ends, Setting, Trials, trials
from judgebayes.experiments.coverage.populations import Population
from judgebayes.inference.fit import Method
from judgebayes.measures.scores import confidence_bins
from judgebayes.votes import Classes
from judgebayes.workflow.answers import abstention, sent_of
from judgebayes.workflow.comparing import Compared, compare
from judgebayes.workflow.losses import losses_of
from judgebayes.workflow.next_steps import grow

LABELS = 60
PROGRAMS, OF_PROGRAM = 30, 10
POOL = 4000
JUDGES = 12
BINS = 10
COST = 0.2
"""Cost of asking a person: items with a higher expected loss are sent."""
LOSSES = losses_of(f"absolute:person={COST}", Classes((0, 1), pairwise=False))
SPLITS = 100
OWN = "one-coin"
FITS = 5
"""Number of splits of each data set over whose fits the truth is averaged."""
HALF = 2
EVEN_LABELS, DIFFER, RIGHT = (40, 100, 200, 400), 0.3, 0.95
"""Labels of the two judges' data sets, how often they differ, and how often they are right elsewhere."""
NOTHING: Ends = [(np.nan, np.nan)] * len(LEVELS)


@dataclass(frozen=True)
class _Pool:
    """A population with the groups (programs) of its items, all of the same size."""

    population: Population
    of_group: Int[np.ndarray, "group item"]
    """The items of each group; one item per group if items are independent."""
    draw: int
    """How many groups a data set has."""

    @property
    def grouped(self) -> bool:
        return self.of_group.shape[1] > 1

    def sample(self, rng: np.random.Generator) -> Int[np.ndarray, " item"]:
        return self.of_group[rng.permutation(len(self.of_group))[: self.draw]].ravel()


def held_out(setting: Setting) -> Iterator[Trials]:
    """Yield trials of every held-out interval, for the one-coin model against two simple answers."""
    for place, pool in enumerate(_pools(setting)):
        yield from _of_pool(setting, pool, place)
    for n in EVEN_LABELS:
        yield _of_even_labels(setting, n)


def _of_even_labels(setting: Setting, n: int) -> Trials:
    """Return trials of the extra loss of a majority over stacking, which is 0 on new items."""
    rng, loss = setting.rng(9, n), LOSSES.matrix
    methods: Mapping[str, Method] = {"stacking": Stacking(), "sc": MajorityVote()}
    intervals: list[tuple[Ends, float]] = []
    for replay in range(setting.replays):
        differ = rng.random(n) < DIFFER
        index = rng.integers(0, 2, (n, 2))
        index[:, 1] = np.where(differ, 1 - index[:, 0], index[:, 0])
        right = rng.random(n) < np.where(differ, 0.5, RIGHT)
        labels = np.where(right, index[:, 0], 1 - index[:, 0])
        votes = populations.votes_of(index, 2)
        compared = compare(methods, votes, labels, None, loss, splits=SPLITS, seed=replay)
        leads = [at.leads("stacking", loss)["sc"] for at in _at_levels(compared)]
        intervals.append(([(lead.low, lead.high) for lead in leads], 0.0))
    name = f"simulated: two judges, labels even where they differ, {n}"
    return trials("extra loss of sc", name, intervals)


def _pools(setting: Setting) -> Iterator[_Pool]:
    for population in (
        populations.simulated(items=POOL),
        populations.rewardbench(setting.run),
    ):
        if population is not None:
            few = np.linspace(0, population.index.shape[1] - 1, JUDGES).astype(int)
            single_judges = np.arange(population.size)[:, None]
            yield _Pool(population.judges(np.unique(few)), single_judges, LABELS)
    grouped = populations.programs(setting.run)
    if grouped is not None and grouped.groups is not None:
        places = [np.flatnonzero(grouped.groups == g) for g in np.unique(grouped.groups)]
        large = np.stack([p[:OF_PROGRAM] for p in places if len(p) >= OF_PROGRAM])
        yield _Pool(grouped, large, PROGRAMS)


def _methods(population: Population) -> Mapping[str, Method]:
    grouped = population.groups is not None
    own = OneCoin(class_prior="labels" if grouped else "uniform")
    return {OWN: own, "best-constant": BaseRate(), "sc": MajorityVote()}


def _of_pool(setting: Setting, pool: _Pool, place: int) -> Iterator[Trials]:
    population, rng = pool.population, setting.rng(8, place)
    methods, loss = _methods(population), LOSSES.matrix
    by_interval: dict[str, list[tuple[Ends, Any]]] = {}
    fitted: list[np.ndarray] = []
    smaller: list[int] = []
    for replay in range(setting.replays):
        items = pool.sample(rng)
        votes, labels = population.votes(items), population.labels[items]
        groups = np.arange(len(items)) // pool.of_group.shape[1] if pool.grouped else None
        compared = compare(methods, votes, labels, groups, loss, splits=SPLITS, seed=replay)
        fitted.append(items[compared.parts.calibration[:FITS]])
        for name, ends in _ends(compared, loss).items():
            by_interval.setdefault(name, []).append((ends, None))
        own = compared.evaluations[OWN]
        held_out_answers = (*_answers(own), _items(own), compared.groups)
        bins = [confidence_bins(*held_out_answers, bins=BINS, level=level) for level in LEVELS]
        which = replay % len(bins[0])
        ends = [tuple(b.loc[which, ["low", "high"]]) for b in bins]
        by_interval.setdefault("right by probability", []).append(
            (ends, bins[0].loc[which, "place"])
        )
        if replay < setting.fewer(HALF):
            grown, levels = grow(compared, OWN), _at_levels(compared)
            smaller, gain = list(grown.labels), grown.losses[-2] - grown.losses[-1]
            for name, each in (
                ("NLL by labels", [at.interval(OWN, grown.losses[0], least=0.0) for at in levels]),
                ("gain of more labels", [at.interval(OWN, gain) for at in levels]),
            ):
                by_interval.setdefault(name, []).append(([(i.low, i.high) for i in each], None))
    truth = _truths(pool, methods, np.concatenate(fitted), smaller, loss)
    for name, intervals in by_interval.items():
        values = [(ends, truth[name if at is None else f"bin {at}"]) for ends, at in intervals]
        # A bin without answers has no truth; its trials do not count.
        values = [v if np.isfinite(v[1]) else (NOTHING, 0.0) for v in values]
        title = f"{population.name}, by program" if pool.grouped else population.name
        yield trials(name, title, values)


def _at_levels(compared: Compared) -> list[Compared]:
    return [replace(compared, level=level) for level in LEVELS]


def _ends(compared: Compared, loss: np.ndarray) -> dict[str, Ends]:
    nll = compared.nll(OWN)
    by_level = []
    for at in _at_levels(compared):
        leads = at.leads(OWN, loss)
        abstained = abstention(at, OWN, LOSSES, level=at.level)
        by_level.append(
            {f"extra loss of {name}": (lead.low, lead.high) for name, lead in leads.items()}
            | {
                name: (interval.low, interval.high)
                for name, interval in (
                    ("held-out accuracy", at.right(OWN)),
                    ("held-out NLL", at.interval(OWN, nll, least=0.0)),
                    ("share sent to a person", abstained.share),
                    ("risk of the rest", abstained.risk),
                )
            }
        )
    return {name: [each[name] for each in by_level] for name in by_level[0]}


def _right(evaluation: Evaluation) -> Float[np.ndarray, "split item"]:
    labels = np.asarray(evaluation.labels)
    return np.where(labels >= 0, np.asarray(evaluation.decisions) == labels, np.nan)


def _answers(
    evaluation: Evaluation,
) -> tuple[Float[np.ndarray, "answer class"], Int[np.ndarray, " answer"]]:
    """Return the answers and labels of all splits, without padding."""
    labels = np.asarray(evaluation.labels)
    return np.asarray(evaluation.log_probs)[labels >= 0], labels[labels >= 0]


def _items(evaluation: Evaluation) -> Int[np.ndarray, " answer"]:
    """Return the index of the item of each answer."""
    return np.asarray(evaluation.items)[np.asarray(evaluation.labels) >= 0]


def _truths(
    pool: _Pool,
    methods: Mapping[str, Method],
    fitted: Int[np.ndarray, "fit label"],
    smaller: list[int],
    loss: np.ndarray,
) -> dict[str, float]:
    """Return the means over the fits of all data sets and over all other items of the population."""
    population, every = pool.population, pool.of_group.ravel()
    votes, labels = population.votes(every), jnp.asarray(population.labels[every])
    where = np.empty(population.size, int)
    where[every] = np.arange(len(every))
    labelled_items = where[fitted]
    new = np.ones((len(labelled_items), len(every)), bool)
    np.put_along_axis(new, labelled_items, False, axis=1)

    def evaluated(name: str, calibration: np.ndarray) -> Evaluation:
        parts = Splits(calibration, np.tile(np.arange(len(every)), (len(calibration), 1)))
        evaluation = evaluate_splits(
            methods[name], votes, labels, parts, fit_on="calibration", loss=loss
        )
        items = np.maximum(np.asarray(evaluation.items), 0)
        fresh = np.take_along_axis(new[: len(calibration)], items, axis=1)
        return replace(evaluation, labels=jnp.where(fresh, evaluation.labels, -1))

    def nll(evaluation: Evaluation) -> float:
        log_probs, answer_labels = _answers(evaluation)
        return -float(np.take_along_axis(log_probs, answer_labels[:, None], 1).mean())

    whole = {name: evaluated(name, labelled_items) for name in methods}
    own = whole[OWN]
    lost = {name: float(np.nanmean(each.losses(loss))) for name, each in whole.items()}
    truth = {f"extra loss of {n}": lost[n] - lost[OWN] for n in methods if n != OWN}
    not_sent = np.where(np.asarray(own.labels) >= 0, ~sent_of(own, LOSSES), np.nan)
    truth |= {
        "share sent to a person": 1 - float(np.nanmean(not_sent)),
        "risk of the rest": float(
            np.nansum(not_sent * np.nan_to_num(own.losses(loss))) / np.nansum(not_sent)
        ),
    }
    truth |= {"held-out accuracy": float(np.nanmean(_right(own))), "held-out NLL": nll(own)}
    # Calibration items, or their groups, are in random order: the first ones are a random subset.
    some = [nll(evaluated(OWN, labelled_items[:, :size])) for size in smaller]
    if some:
        truth |= {"NLL by labels": some[0], "gain of more labels": some[-2] - some[-1]}
    log_probs, own_labels = _answers(own)
    best = log_probs.argmax(1) == own_labels
    place = np.clip(np.ceil(np.exp(log_probs).max(1) * BINS - 1e-12).astype(int) - 1, 0, BINS - 1)
    for b in range(BINS):
        here = place == b
        truth[f"bin {b}"] = float(best[here].mean()) if here.any() else np.nan
    return truth
