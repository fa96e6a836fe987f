"""Intervals of the Python interface: success rates of systems, and means over splits."""

from collections.abc import Iterator

import numpy as np

from judgebayes.experiments.coverage import populations
from judgebayes.experiments.coverage.engine import LEVELS, Ends, Setting, Trials, trials
from judgebayes.experiments.significance import (
    Method,
    bootstrap_interval,
    clustered_interval,
    difference,
    interval,
    normal_interval,
    success_rate,
)

METHODS: tuple[Method, ...] = ("labels", "rogan-gladen", "prediction-powered")
PROGRAMS, SHOWN = 120, 40
"""Number of programs of a data set, and of labelled programs."""
SPLITS, HELD_OUT = 30, 0.2


def success(setting: Setting) -> Iterator[Trials]:
    """Yield trials of one system's success rate and of two systems' difference, by program."""
    sources = [("simulated: programs of four", *_systems())]
    grouped = populations.programs(setting.run)
    if grouped is not None and grouped.groups is not None:
        cast = (grouped.index >= 0).sum(1)
        voted = np.flatnonzero(cast)
        score = (grouped.index == 1).sum(1)[voted] / cast[voted]
        name = f"{grouped.name}, by program"
        sources.append((name, score, grouped.labels[voted], grouped.groups[voted]))
    for place, (name, score, labels, program) in enumerate(sources):
        yield from _success(setting, name, score, labels, program, place)


def _success(
    setting: Setting,
    name: str,
    score: np.ndarray,
    labels: np.ndarray,
    program: np.ndarray,
    place: int,
) -> Iterator[Trials]:
    rng = setting.rng(15, place)
    of_program = [np.flatnonzero(program == g) for g in np.unique(program)]
    system = np.arange(len(labels)) % 2  # two systems that share every program
    truth = np.array([labels[system == s].mean() for s in (0, 1)])
    by_interval: dict[str, list[tuple[Ends, float]]] = {}
    for _ in range(setting.replays):
        program_items = [of_program[g] for g in rng.integers(0, len(of_program), PROGRAMS)]
        items = np.concatenate(program_items)
        groups = np.repeat(np.arange(PROGRAMS), [*map(len, program_items)])
        partial_labels = np.where(groups < SHOWN, labels[items], -1)
        apart = [system[items] == s for s in (0, 1)]
        for method in METHODS:
            both = [success_rate(method, score[items][a], partial_labels[a]) for a in apart]
            ends = [interval(both[0], groups[apart[0]], level=level) for level in LEVELS]
            by_interval.setdefault(f"success rate, {method} (Python)", []).append(
                ([(e.low, e.high) for e in ends], float(truth[0]))
            )
            if method == "prediction-powered":
                pair = (groups[apart[0]], groups[apart[1]])
                ends = [difference(both[0], both[1], pair, level=level) for level in LEVELS]
                by_interval.setdefault("difference of two systems (Python)", []).append(
                    ([(e.low, e.high) for e in ends], float(truth[0] - truth[1]))
                )
    for title, each in by_interval.items():
        yield trials(title, name, each)


def _systems() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return programs of four items with varying difficulty, two per system, and a panel's score."""
    rng = np.random.default_rng(16)
    program = np.repeat(np.arange(3000), 4)
    ease = rng.normal(0.8, 1.2, 3000)[program] + np.where(np.arange(12_000) % 2 == 0, 0.3, -0.3)
    labels = (rng.random(12_000) < 1 / (1 + np.exp(-ease))).astype(int)
    score = rng.binomial(10, np.where(labels == 1, 0.75, 0.35)) / 10
    return score, labels, program


def over_splits(setting: Setting) -> Iterator[Trials]:
    """Yield trials of means over random splits of the same items, and over items.

    The truth for the splits is the mean over all splits of these items, which is what they estimate.
    """
    run = setting.run
    for place, population in enumerate((populations.simulated(), populations.llmbar(run))):
        if population is None:
            continue
        rng = setting.rng(16, place)
        cast = population.index
        share = np.where(cast >= 0, cast == population.labels[:, None], 0).sum(1)
        right = share > (cast >= 0).sum(1) / 2
        by_interval: dict[str, list[tuple[Ends, float]]] = {
            "normal": [],
            "bootstrap": [],
            "items": [],
        }
        for replay in range(setting.replays):
            own = right[rng.integers(0, population.size, 200)].astype(float)
            part = int(HELD_OUT * len(own))
            of_split = np.array([rng.permutation(own)[:part].mean() for _ in range(SPLITS)])
            for name, each, truth in (
                ("normal", [normal_interval(of_split, level=q) for q in LEVELS], own.mean()),
                (
                    "bootstrap",
                    [bootstrap_interval(of_split, level=q, seed=replay) for q in LEVELS],
                    own.mean(),
                ),
                ("items", [clustered_interval(own, level=q) for q in LEVELS], right.mean()),
            ):
                by_interval[name].append(([(e.low, e.high) for e in each], float(truth)))
        for name, title in (
            ("normal", "mean over splits, normal (Python)"),
            ("bootstrap", "mean over splits, bootstrap (Python)"),
            ("items", "mean over items (Python)"),
        ):
            yield trials(title, population.name, by_interval[name])
