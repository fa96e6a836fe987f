"""Intervals of fitted judges in the Python interface: `reliability` of three methods."""

from collections.abc import Iterator

import numpy as np

from judgebayes import DawidSkene, OneCoin, Stacking
from judgebayes.experiments.coverage import populations
from judgebayes.experiments.coverage.engine import LEVELS, Ends, Setting, Trials, trials
from judgebayes.experiments.coverage.populations import Population, votes_of

LABELS, VOTED = 50, 200
WEIGHTS = np.array([1.2, 0.9, 0.6, 0.3, 0.0, -0.4])
STACKED = 120
MOST = 9
"""Number of judges in real data for Dawid-Skene."""


def reliability(setting: Setting) -> Iterator[Trials]:
    """Yield trials of one judge of a fit; items are drawn with replacement."""
    run = setting.run
    three = populations.simulated(3)
    for place, population in enumerate((three, populations.rewardbench(run))):
        if population is not None:
            yield _one_coin(setting, population, place)
    two = populations.simulated()
    for place, population in enumerate((two, populations.rewardbench(run))):
        if population is not None:
            yield _dawid_skene(setting, _spread(population), place)
    yield _stacking(setting)


def _spread(population: Population) -> Population:
    """Return a few judges from the least to the most accurate."""
    order = np.argsort(population.accuracy(), kind="stable")
    return population.judges(order[np.linspace(0, len(order) - 1, MOST).round().astype(int)])


def _ends(fit: object, judge: int) -> Ends:
    each = [fit.reliability(level) for level in LEVELS]  # type: ignore[attr-defined]
    return [(float(r.low[judge]), float(r.high[judge])) for r in each]


def _one_coin(setting: Setting, population: Population, place: int) -> Trials:
    truth, rng = population.accuracy(), setting.rng(3, place)
    intervals = []
    for replay in range(setting.replays):
        judge = replay % len(truth)
        items = rng.integers(0, population.size, LABELS)
        fit = OneCoin().fit(population.votes(items), population.labels[items])
        intervals.append((_ends(fit, judge), float(truth[judge])))
    return trials("one-coin accuracy (Python)", population.name, intervals)


def _dawid_skene(setting: Setting, population: Population, place: int) -> Trials:
    """Return trials of the fit at the mode, with labels for 50 of 200 items."""
    voted = population.index >= 0
    right = (population.index == population.labels[:, None]) & voted
    by_class = [
        right[population.labels == k].sum(0) / voted[population.labels == k].sum(0)
        for k in range(population.n_classes)
    ]
    truth, rng = np.mean(by_class, axis=0), setting.rng(4, place)
    intervals = []
    for replay in range(setting.fewer(2)):
        items = rng.integers(0, population.size, VOTED)
        labels = np.where(np.arange(VOTED) < LABELS, population.labels[items], -1)
        fit = DawidSkene().fit(population.votes(items), labels)
        judge = replay % len(truth)
        intervals.append((_ends(fit, judge), float(truth[judge])))
    return trials("Dawid-Skene accuracy at the mode (Python)", population.name, intervals)


def _stacking(setting: Setting) -> Trials:
    """Return trials of weights: votes are fair coins, and the label's log-odds sum their weights."""
    rng = setting.rng(5)
    intervals = []
    for replay in range(setting.replays):
        index = rng.integers(0, 2, (STACKED, len(WEIGHTS)))
        chance = 1 / (1 + np.exp(-(2 * index - 1) @ WEIGHTS))
        labels = (rng.random(STACKED) < chance).astype(int)
        judge = replay % len(WEIGHTS)
        fit = Stacking().fit(votes_of(index, 2), labels)
        intervals.append((_ends(fit, judge), float(WEIGHTS[judge])))
    return trials("stacking's weight (Python)", "simulated: logistic labels", intervals)
