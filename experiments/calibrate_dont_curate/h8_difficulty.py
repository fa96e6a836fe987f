"""P2 H.8: labels from hard items only, or from easy ones only.

Claim: a calibrator learnt on hard items works on easy ones; one learnt on easy items works badly on
hard ones, and difficulty-aware, stratified and importance-weighted Platt scaling help only in part.
Graded: Platt loses more on hard items with labels of easy ones than on easy items with labels of hard
ones (margin 0.01 nats).
Command: judgebayes reproduce calibrate-dont-curate/h8-difficulty --data DIR
Runtime: about 20 seconds.
Expected: replicated in the true orientation on the reward models and RewardBench 2, uninformative on
LLMBar and the twin: Platt loses more on hard items with labels of easy ones than the other way round.
Random labels are not always best: on the reward models, labels of hard items give a *lower* NLL on easy
items. Without labels of hard items the agreement feature hurts hard items on all panels; weights help
on the reward models and hurt on LLMBar. With a tenth of such labels weights help on all public panels.
On RewardBench 2 two strata, or weights, help with random labels too. Under the correctness encoding
nearly all are at the floor, except where a feature or a stratum has only easy labels.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from judgebayes import OneCoin, Platt
from judgebayes.calibrators.maps import clipped_by_class
from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.calibrate_dont_curate.answers import CLIP, evidence_on
from judgebayes.experiments.calibrate_dont_curate.common import FLOOR, MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import both_orientations
from judgebayes.experiments.calibrate_dont_curate.h11 import agreement
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    value_row,
)
from judgebayes.experiments.claims import Evidence
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.panels import Panel
from judgebayes.experiments.significance import bootstrap_interval
from judgebayes.inference.optimise import minimise_each
from judgebayes.inference.problem import Design, score_derivatives
from judgebayes.measures.scores import nll
from judgebayes.votes import Votes

SPLITS, STRATA, MIXED = 50, 3, 0.1
MOST, FEWEST = 500, 10
CLAIM = Statement("labels of easy items cost more than labels of hard ones", "paper", MARGIN["nll"])


class Losses(NamedTuple):
    """The NLL of every evaluation item of every split, by method."""

    items: np.ndarray
    nll: dict[str, np.ndarray]


@experiment(
    PAPER,
    "h8-difficulty",
    "H.8: calibrating on hard or on easy items",
    "calibration on hard items works on easy ones, calibration on easy items not on hard ones",
    twins=True,
)
def main(run: Run) -> Output:
    """Return NLL on hard and easy items, by the source of the labels."""
    records: list[dict[str, Any]] = []
    for panel in both_orientations(run):
        run.say(f"{panel.name}, {panel.orientation}")
        share = agreement(panel)
        hard = hard_items(share)
        platt: dict[tuple[str, str], Evidence] = {}
        for target, inside in (("hard", hard), ("easy", ~hard)):
            for source, mix in (
                ("other side", 0.0),
                (f"{MIXED:.0%} of its own", MIXED),
                ("at random", None),
            ):
                losses = transfer(panel, inside, share, mix, run)
                platt[target, source] = evidence_on(panel, losses.nll["platt"], losses.items)
                for method, each in losses.nll.items():
                    name = f"{method}, labels {source}"
                    interval = bootstrap_interval(each.mean(1))
                    records.append(
                        value_row(panel, name, f"nll on {target} items", interval, len(each))
                    )
        lost = {t: platt[t, "other side"].less(platt[t, "at random"]) for t in ("hard", "easy")}
        more, title = lost["hard"].less(lost["easy"]), "lost on hard minus on easy"
        count = min(SPLITS, run.splits)
        records.append(claim_row(panel, title, "nll difference", more, count, CLAIM))
    notes = [
        "Hard items are those whose majority share is below the median; labels are not used. On "
        "RewardBench 2, whose judges agree on most items, hard items are those with any dissent.",
        f"platt + agreement is eq 3 with the majority share as feature; stratified fits Platt in "
        f"{STRATA} strata of it; weighted gives calibration items weights that make their strata as "
        "frequent as the target's. These methods need labels of both hard and easy items: without "
        f"labels of one kind they change little, with {MIXED:.0%} they do.",
        "The graded difference has an interval for new items and new splits.",
    ]
    return Output(rows(PAPER, "h8-difficulty", graded(records)), notes=notes)


def hard_items(share: np.ndarray) -> np.ndarray:
    """Return which items have less agreement than the median; tied items stay together.

    If more than half of the items tie at the smallest agreement, these are the hard ones.
    """
    below = share < np.median(share)
    return below if below.any() else share <= np.median(share)


def transfer(
    panel: Panel, target: np.ndarray, share: np.ndarray, mix: float | None, run: Run
) -> Losses:
    """Return the NLL on target items, with labels drawn from a source (None: all items)."""
    rng = np.random.default_rng(run.seed)
    inside, outside = np.flatnonzero(target), np.flatnonzero(~target)
    # Half of the smaller side, so that both directions have the same sizes.
    evaluation_size = min(len(inside), len(outside)) // 2
    n = min(MOST, evaluation_size)
    own = round((len(inside) / len(target) if mix is None else mix) * n)
    cal, ev = [], []
    for _ in range(min(SPLITS, run.splits)):
        shuffled = rng.permutation(inside)
        cal.append(np.concatenate([shuffled[:own], rng.choice(outside, n - own, replace=False)]))
        ev.append(shuffled[own : own + evaluation_size])
    return Losses(np.array(ev), _fitted(panel, share, np.array(cal), np.array(ev)))


@in_float64
def _fitted(
    panel: Panel, share: np.ndarray, calibration: np.ndarray, evaluation: np.ndarray
) -> dict[str, np.ndarray]:
    edges = np.quantile(share, np.arange(1, STRATA) / STRATA)
    nll_by_map = _fitted_splits(
        panel.votes,
        jnp.asarray(panel.labels),
        jnp.asarray((share - share.mean()) / share.std()),
        jnp.asarray(np.digitize(share, edges)),
        jnp.asarray(calibration),
        jnp.asarray(evaluation),
    )
    return {name: np.asarray(values) for name, values in nll_by_map.items()}


@jax.jit
def _fitted_splits(
    votes: Votes,
    labels: jax.Array,
    standard: jax.Array,
    stratum: jax.Array,
    calibration: jax.Array,
    evaluation: jax.Array,
) -> dict[str, jax.Array]:
    def one(split: tuple[jax.Array, jax.Array]) -> dict[str, jax.Array]:
        cal, ev = split
        aggregate = OneCoin().fit(votes.take(cal), labels[cal])
        x, new, y = aggregate(votes.take(cal)), aggregate(votes.take(ev)), labels[cal]
        member = stratum[cal] == jnp.arange(STRATA)[:, None]
        here, there = member.mean(1), (stratum[ev] == jnp.arange(STRATA)[:, None]).mean(1)
        ratio = jnp.where(here > 0, there / jnp.maximum(here, 1e-9), 0.0)[stratum[cal]]
        plain = Platt(clip=FLOOR).fit(x, y)
        aware = platt_with_feature(x, y, standard[cal])
        weighted = Platt(clip=FLOOR).fit(x, y, weight=jnp.where(ratio.sum() > 0, ratio, 1.0))
        own = jax.vmap(lambda m: Platt(clip=FLOOR).fit(x, y, weight=m.astype(float))(new))(member)
        by_stratum = jnp.where((member.sum(1) >= FEWEST)[:, None, None], own, plain(new))
        answers = {
            "one-coin": new,
            "platt": plain(new),
            "platt + agreement": aware(new, standard[ev]),
            "stratified": by_stratum[stratum[ev], jnp.arange(len(ev))],
            "weighted": weighted(new),
        }
        return {name: _nll(a, labels[ev]) for name, a in answers.items()}

    nll_by_map: dict[str, jax.Array] = jax.lax.map(one, (calibration, evaluation))
    return nll_by_map


def platt_with_feature(
    log_probs: jax.Array, labels: jax.Array, feature: jax.Array
) -> Callable[[jax.Array, jax.Array], jax.Array]:
    """Return Platt's map of two classes with a feature of the items beside the log-odds."""

    def design(log_probs: jax.Array, feature: jax.Array) -> Design:
        own = clipped_by_class(log_probs, FLOOR)
        return Design([dict(enumerate(own)), {1: jnp.ones(len(feature))}, {1: feature}], 2)

    weight, begin = jnp.ones(len(labels)), jnp.array([[1.0, 0.0, 0.0]])
    factor = 1 / len(labels)
    loss = score_derivatives(nll, design(log_probs, feature), labels, weight, 0.0, factor=factor)
    theta = minimise_each(loss, begin).x[0]

    def answers(log_probs: jax.Array, feature: jax.Array) -> jax.Array:
        return jax.nn.log_softmax(design(log_probs, feature).matrix() @ theta)

    return answers


def _nll(log_probs: jax.Array, truth: jax.Array) -> jax.Array:
    p = jnp.clip(jnp.exp(log_probs[:, 1]), CLIP, 1 - CLIP)
    return -jnp.log(jnp.where(truth == 1, p, 1 - p))
