"""Intervals of judges: accuracy, TPR, TNR and position bias, as in `diagnose` and `report`."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from judgebayes.experiments.core import Run
from judgebayes.experiments.coverage import populations
from judgebayes.experiments.coverage.engine import LEVELS, Ends, Setting, Trials, trials
from judgebayes.experiments.coverage.populations import Population
from judgebayes.experiments.data import LLMBAR, MTBENCH, llmbar_orders, mtbench_orders
from judgebayes.panel.judges import judge_table
from judgebayes.votes import Votes

LABELS = 50
BY_PROGRAM = 15
"""Number of programs of a data set whose items share programs."""
ITEMS = 4000


def shares(setting: Setting) -> Iterator[Trials]:
    """Yield trials of accuracy, TPR and TNR: one judge, 50 items drawn with replacement."""
    run = setting.run
    available = (populations.simulated(), populations.llmbar(run), populations.rewardbench(run))
    for place, population in enumerate(available):
        if population is not None:
            yield from _shares(setting, population, place)
    grouped = populations.programs(run)
    if grouped is not None:
        yield from _by_program(setting, grouped)


def _shares(setting: Setting, population: Population, place: int) -> Iterator[Trials]:
    whole = judge_table(population.votes(), population.labels)
    names = ("accuracy", "tpr", "tnr")
    by_interval: dict[str, list[tuple[Ends, float]]] = {name: [] for name in names}
    rng = setting.rng(1, place)
    for replay in range(setting.replays):
        judge = replay % population.index.shape[1]
        items = rng.integers(0, population.size, LABELS)
        tables = _tables(population.judges(np.array([judge])), items, None)
        for name in names:
            ends = [(t[f"{name}_low"][0], t[f"{name}_high"][0]) for t in tables]
            by_interval[name].append((ends, float(whole[name][judge])))
    for name, title in zip(names, ("judge's accuracy", "judge's TPR", "judge's TNR"), strict=True):
        yield trials(title, population.name, by_interval[name])


def _by_program(setting: Setting, population: Population) -> Iterator[Trials]:
    """Yield trials of accuracy with whole programs drawn, with and without their groups."""
    assert population.groups is not None
    truth = population.accuracy()
    rng = setting.rng(1, 9)
    of_program = [np.flatnonzero(population.groups == g) for g in np.unique(population.groups)]
    by_suffix: dict[str, list[tuple[Ends, float]]] = {"": [], ", groups told": []}
    for replay in range(setting.replays):
        judge = replay % population.index.shape[1]
        program_items = [of_program[g] for g in rng.integers(0, len(of_program), BY_PROGRAM)]
        items, groups = (
            np.concatenate(program_items),
            np.repeat(np.arange(BY_PROGRAM), [*map(len, program_items)]),
        )
        one = population.judges(np.array([judge]))
        for suffix, group_ids in (("", None), (", groups told", groups)):
            tables = _tables(one, items, group_ids)
            ends = [(t["accuracy_low"][0], t["accuracy_high"][0]) for t in tables]
            by_suffix[suffix].append((ends, float(truth[judge])))
    for suffix, each in by_suffix.items():
        yield trials("judge's accuracy", f"{population.name}, by program{suffix}", each)


def _tables(one: Population, items: np.ndarray, groups: np.ndarray | None) -> list[pd.DataFrame]:
    votes = one.votes(items)
    return [judge_table(votes, one.labels[items], groups=groups, level=level) for level in LEVELS]


def position_bias(setting: Setting) -> Iterator[Trials]:
    """Yield trials of the position bias: one judge, 50 items in both orders."""
    run: Run = setting.run
    sources = [("simulated: independent judges", _both_orders())]
    if run.has(LLMBAR):
        sources.append(("LLMBar", llmbar_orders(run)[0]))
    if run.has(MTBENCH):
        sources.append(("MT-Bench, repeated", mtbench_orders(run)[0]))
    for place, (name, votes) in enumerate(sources):
        whole = judge_table(votes, np.full(votes.n_items, -1))["position_bias"].to_numpy()
        index, order = np.asarray(votes.index), np.asarray(votes.order)
        rng = setting.rng(2, place)
        intervals = []
        for replay in range(setting.replays):
            judge = replay % votes.n_judges
            items = rng.integers(0, votes.n_items, LABELS)
            cast, judge_order = (jnp.asarray(x[items][:, [judge]]) for x in (index, order))
            own = Votes(cast, None, judge_order, None, votes.n_classes)
            tables = [judge_table(own, np.full(LABELS, -1), level=level) for level in LEVELS]
            ends = [(t["position_bias_low"][0], t["position_bias_high"][0]) for t in tables]
            intervals.append((ends, float(whole[judge])))
        yield trials("judge's position bias", name, intervals)


def _both_orders() -> Votes:
    """Return judges with a logistic preference for the first response, once in each order."""
    rng = np.random.default_rng(12)
    better = rng.choice([-1.2, 1.2], (ITEMS, 1, 1))
    bias = np.linspace(-0.6, 1.5, 8)[None, :, None]
    order = np.broadcast_to(np.array([0, 1]), (ITEMS, 8, 2))
    logit = better + np.where(order == 0, bias, -bias)
    index = rng.random(logit.shape) < 1 / (1 + np.exp(-logit))
    with jax.enable_x64(True):
        return Votes(jnp.asarray(index, jnp.int8), None, jnp.asarray(order, jnp.int8), None, 2)
