"""Audit: coverage of success rates, differences, win rates and rankings of systems.

Claim: none in the paper, which gives no intervals.
Command: judgebayes reproduce beyond-consensus/audit-systems --data DIR
Runtime: about 45 seconds.
Expected: intervals that treat programs as groups cover less than nominal with few labelled programs and
near it with many; those that do not have a lower coverage at every number. Judges this weak make
intervals hardly narrower, and Rogan and Gladen's correction useless. Win rates of pairs: `stratified`
covers near the nominal level with narrower intervals than prediction-powered, and `impression` covers
too little. Mean win rates are covered too seldom, but every order reported as settled is right. With few
labels of each of three generators `impression` is overconfident and `stratified` is not. The command
line therefore uses `stratified` when a generator is partly labelled.

Success rates: whole programs of one of P4's generators are labelled at random (a person who labels
a program labels all of its items), and the mean vote of 14 judges is the score. Differences: the
same programs of two generators. Win rates: MT-Bench, where each item compares two of six models,
GPT-4 is the judge, people give the labels and ties are left out; a random part of the items is
labelled, and `impression` and `stratified` treat a pair of models as a generator. The truth is the
share among all labels. The intervals are for more items like these, so they become too wide as the
labelled part grows. Last, three generators of P4 with 60 or 200 random labels each, to test whether
both estimators account for so few labels.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus.common import DATASET, PAPER, ItemVotes, item_votes
from judgebayes.experiments.beyond_consensus.impression import Impression
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import MTBENCH_PEOPLE, model_pairs
from judgebayes.experiments.significance import Method, difference, interval, success_rate
from judgebayes.generators import PrecisionCounts, count_votes, stratify, valid_share
from judgebayes.generators.labelling import Stratified, StratumCounts, count_strata
from judgebayes.generators.systems import mean_win_rates

METHODS: tuple[Method, ...] = ("labels", "rogan-gladen", "prediction-powered")
PROGRAMS = (25, 50, 100)
REPLAYS = 200
MATCHES = 40
LABELLED = (0.1, 0.2, 0.4)
PARTS = (60, 200)


def _summary(
    base: dict[str, Any], ends: Sequence[np.ndarray], truth: np.ndarray
) -> list[dict[str, Any]]:
    """Return coverage, mean width and mean error over replays (first axis) and systems.

    `ends` are the low end, the estimate and the high end.
    """
    low, middle, high = ends
    values = {
        "coverage": (low <= truth) & (truth <= high),
        "width": high - low,
        "mean error": np.abs(middle - truth),
    }
    records = []
    for metric, each in values.items():
        by_replay = np.asarray(each, float).reshape(len(low), -1).mean(1)
        half = 1.96 * by_replay.std(ddof=1) / np.sqrt(len(low))
        mean = float(by_replay.mean())
        records.append(
            base
            | {"metric": metric, "value": mean, "low": mean - half, "high": mean + half}
            | {"splits": len(low)}
        )
    return records


def _partial_labels(cell: ItemVotes, chosen: np.ndarray, place: int) -> Int[np.ndarray, " item"]:
    """Return the labels of a generator's items, for the chosen programs only."""
    own = cell.generator == place
    return np.where(np.isin(cell.program[own], chosen), cell.labels[own], -1)


def _success(run: Run, cell: ItemVotes, replays: int) -> list[dict[str, Any]]:
    score = valid_share(cell.votes)
    rng = np.random.default_rng(run.seed)
    truth = np.array([cell.labels[cell.generator == i].mean() for i in range(6)])
    records = []
    for n in run.few(list(PROGRAMS), 1):
        values_by_method: dict[tuple[str, str], list[list[tuple[float, float, float]]]] = {}
        for _ in range(replays):
            chosen = rng.choice(cell.program.max() + 1, n, replace=False)
            each: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
            for place in range(6):
                own = cell.generator == place
                labels = _partial_labels(cell, chosen, place)
                for method in METHODS:
                    if method == "rogan-gladen" and len(set(labels[labels >= 0])) < 2:
                        answer = success_rate("labels", score[own], labels)
                    else:
                        answer = success_rate(method, score[own], labels)
                    for name, groups in (("programs", cell.program[own]), ("items", None)):
                        estimate = interval(answer, groups)
                        each.setdefault((method, name), []).append(
                            (estimate.low, estimate.mean, estimate.high)
                        )
            for key, values in each.items():
                values_by_method.setdefault(key, []).append(values)
        for (method_name, name), replay_values in values_by_method.items():
            array = np.asarray(replay_values)
            base = {"dataset": DATASET, "task": "success rate", "n": n}
            base |= {"method": f"{method_name}, by {name}"}
            records += _summary(base, list(np.moveaxis(array, -1, 0)), truth)
    return records


def _differences(run: Run, cell: ItemVotes, replays: int) -> list[dict[str, Any]]:
    score = valid_share(cell.votes)
    rng = np.random.default_rng(run.seed + 1)
    pairs = list(combinations(range(6), 2))
    share = np.array([cell.labels[cell.generator == i].mean() for i in range(6)])
    truth = np.array([share[a] - share[b] for a, b in pairs])
    records = []
    for n in run.few(list(PROGRAMS), 1):
        values_by_design: dict[str, list[list[tuple[float, float, float]]]] = {
            "paired": [],
            "apart": [],
        }
        for _ in range(replays):
            chosen = rng.choice(cell.program.max() + 1, n, replace=False)
            groups = [cell.program[cell.generator == i] for i in range(6)]
            answers = [
                success_rate(
                    "prediction-powered",
                    score[cell.generator == i],
                    _partial_labels(cell, chosen, i),
                )
                for i in range(6)
            ]
            # Apart: each system's programs count as different programs.
            own = [g + 10_000 * i for i, g in enumerate(groups)]
            for name, group_ids in (("paired", groups), ("apart", own)):
                estimates = [
                    difference(answers[a], answers[b], (group_ids[a], group_ids[b]))
                    for a, b in pairs
                ]
                values_by_design[name].append([(f.low, f.mean, f.high) for f in estimates])
        for name, values in values_by_design.items():
            array = np.asarray(values)
            base = {"dataset": DATASET, "task": "difference of two systems", "n": n}
            base |= {"method": f"prediction-powered, {name}"}
            records += _summary(base, list(np.moveaxis(array, -1, 0)), truth)
    return records


@in_float64
def _parts(run: Run, cell: ItemVotes, replays: int) -> list[dict[str, Any]]:
    """Return the intervals of both estimators when three generators are partly labelled at random."""
    strata = stratify(valid_share(cell.votes))
    rng = np.random.default_rng(run.seed + 3)
    truth = np.array([cell.labels[cell.generator == i].mean() for i in range(6)])
    records = []
    for n in run.few(list(PARTS), 1):
        values_by_method: dict[str, list[np.ndarray]] = {"impression": [], "stratified": []}
        fully_labelled = []
        for _ in range(replays):
            chosen = rng.choice(6, 3, replace=False)
            labels = np.full(len(cell.labels), -1)
            for i in chosen:
                own = rng.choice(np.flatnonzero(cell.generator == i), n, replace=False)
                labels[own] = cell.labels[own]
            fully_labelled.append(np.isin(np.arange(6), chosen))
            draws = _both(
                count_votes(cell.votes, jnp.asarray(labels), jnp.asarray(cell.generator), 6),
                count_strata(strata, labels, cell.generator, 6),
            )
            for name, each in draws.items():
                values_by_method[name].append(
                    np.quantile(np.asarray(each), [0.05, 0.5, 0.95], axis=0)
                )
        inside = np.array(fully_labelled)
        for name, values in values_by_method.items():
            low, middle, high = np.stack(values, axis=1)
            for which, mask in (("labelled in part", inside), ("without labels", ~inside)):
                base = {"dataset": DATASET, "task": f"generators {which}", "n": n, "method": name}
                own = np.broadcast_to(truth, mask.shape)
                ends = [a[mask].reshape(replays, 3) for a in (low, middle, high)]
                records += _summary(base, ends, own[mask].reshape(replays, 3))
    return records


@jax.jit
def _both(counts: PrecisionCounts, by_stratum: StratumCounts) -> dict[str, jax.Array]:
    return {
        "impression": Impression().fit(counts).sample(1000),
        "stratified": Stratified().fit(by_stratum).sample(1000),
    }


@in_float64
def _win_rates(run: Run, replays: int) -> list[dict[str, Any]]:
    votes, labels, generator, pairs, names = model_pairs(run)
    score = valid_share(votes)
    strata = stratify(score)
    truth = np.bincount(generator, weights=labels) / np.bincount(generator)
    to_systems = mean_win_rates(pairs, len(names))
    strength = to_systems @ (truth - 0.5) + 0.5
    rng = np.random.default_rng(run.seed + 2)
    records: list[dict[str, Any]] = []

    for part in run.few(list(LABELLED), 1):
        values_by_method: dict[str, list[np.ndarray]] = {}
        for _ in range(replays):
            partial_labels = np.where(rng.random(len(labels)) < part, labels, -1)
            draws_by_method = _both(
                count_votes(votes, jnp.asarray(partial_labels), jnp.asarray(generator), len(pairs)),
                count_strata(strata, partial_labels, generator, len(pairs)),
            )
            for name, draws in draws_by_method.items():
                values_by_method.setdefault(name, []).append(np.asarray(draws))
            each = []
            for place in range(len(pairs)):
                own = generator == place
                ends = _powered(score[own], partial_labels[own])
                each.append(ends)
            values_by_method.setdefault("prediction-powered", []).append(np.array(each).T)
        for name, values in values_by_method.items():
            array = np.stack(values)
            base = {"dataset": MTBENCH_PEOPLE, "task": "win rate of a pair", "n": 100 * part}
            if name == "prediction-powered":
                low, middle, high = (array[:, i] for i in range(3))
            else:
                low, middle, high = np.quantile(array, [0.05, 0.5, 0.95], axis=1)
                systems = 0.5 + (array - 0.5) @ to_systems.T
                ends = np.quantile(systems, [0.05, 0.5, 0.95], axis=1)
                ranked = base | {"task": "mean win rate of a model", "method": name}
                records += _summary(ranked, list(ends), strength)
                records.append(ranked | _orders(systems, strength))
            records += _summary(base | {"method": name}, [low, middle, high], truth)
    return records


def _powered(
    score: Float[np.ndarray, " item"], labels: Int[np.ndarray, " item"]
) -> tuple[float, float, float]:
    """Return the prediction-powered interval, or all of [0, 1] with fewer than two labels."""
    if (labels >= 0).sum() < 2:
        return 0.0, 0.5, 1.0
    estimate = interval(success_rate("prediction-powered", score, labels))
    return estimate.low, estimate.mean, estimate.high


def _orders(
    systems: Float[np.ndarray, "replay draw system"], strength: Float[np.ndarray, " system"]
) -> dict[str, Any]:
    """Return how often an order that is settled (posterior probability 95 %) is right."""
    right = total = 0
    for a, b in combinations(range(len(strength)), 2):
        above = (systems[..., a] > systems[..., b]).mean(1)
        settled = (above >= 0.95) | (above <= 0.05)
        total += int(settled.sum())
        right += int((settled & ((above > 0.5) == (strength[a] > strength[b]))).sum())
    return {"metric": "settled orders that are right", "value": right / max(total, 1)} | {
        "splits": total
    }


@experiment(
    PAPER,
    "audit-systems",
    "Audit: success rates, differences, win rates and rankings",
    "intervals that account for shared items and judge bias have their nominal coverage",
    needs=(DATASET,),
)
def main(run: Run) -> Output:
    """Return coverage, width and error of every estimate."""
    cell = item_votes(run, "fcnhp")
    replays = min(REPLAYS, 2 * run.splits)
    run.say("success rates")
    records = _success(run, cell, replays)
    run.say("differences")
    records += _differences(run, cell, replays)
    run.say("partly labelled generators")
    records += _parts(run, cell, min(MATCHES, run.splits))
    if run.has(MTBENCH_PEOPLE):
        run.say("win rates")
        records += _win_rates(run, min(MATCHES, run.splits))
    return Output(rows(PAPER, "audit-systems", records))
