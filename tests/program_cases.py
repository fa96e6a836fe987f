"""All programs with small data: missing votes, unknown labels, weights. Add a new program here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from judgebayes import Beta, Platt, Temperature
from judgebayes.experiments.betaconform.pooled_beta_binomial import (
    PooledBetaBinomialModel,
    PooledData,
)
from judgebayes.experiments.beyond_consensus.flat_program import FlatModel
from judgebayes.experiments.beyond_consensus.generator_counts import Counted
from judgebayes.experiments.beyond_consensus.hierarchical_program import HierarchicalModel
from judgebayes.experiments.beyond_consensus.robust_program import RobustModel
from judgebayes.models import davidson
from judgebayes.models.base import Model, PanelData, ProbsData
from judgebayes.models.beta_binomial import BetaBinomialModel, CountData
from judgebayes.models.calibration_maps import CalibrationMapModel
from judgebayes.models.davidson import DavidsonData, DavidsonModel
from judgebayes.models.dawid_skene import DawidSkeneModel
from judgebayes.models.hierarchical_davidson import HierarchicalDavidsonModel
from judgebayes.models.irt import ItemResponseModel
from judgebayes.models.item_validator import ItemModel
from judgebayes.models.one_coin import OneCoinModel
from judgebayes.models.opinion_pool import OpinionPoolModel
from judgebayes.models.pooled_dawid_skene import PooledDawidSkeneModel
from judgebayes.models.shared_difficulty import SharedDifficultyModel
from judgebayes.models.split_curve import SplitCurveModel, SplitData, split_data
from judgebayes.models.stacking import Form, StackingData, StackingModel

__all__ = ["PROGRAMS", "Program"]

ITEMS, JUDGES, SAMPLES, CLASSES = 12, 4, 2, 3


@dataclass(frozen=True)
class Program:
    """A program and its data, created on demand."""

    model: Callable[[], Model]
    data: Callable[[], Any]
    mixes: bool = True
    """Whether NUTS mixes on such data."""


def panel(classes: int = CLASSES, samples: int = SAMPLES) -> PanelData:
    """Return votes of mostly right judges; a fifth is missing, and some labels are unknown."""
    rng = np.random.default_rng(7)
    truth = rng.integers(0, classes, ITEMS)
    shape = (ITEMS, JUDGES, samples)
    right = rng.random(shape) < np.linspace(0.9, 0.5, JUDGES)[:, None]
    votes = np.where(right, truth[:, None, None], rng.integers(0, classes, shape))
    votes = np.where(rng.random(shape) < 0.2, -1, votes)
    weight = np.ones(ITEMS)
    weight[[2, 5]] = 2.0, 0.0
    labels = np.where(np.arange(ITEMS) % 3 == 1, -1, truth)
    return PanelData(jnp.asarray(votes), jnp.asarray(labels), jnp.asarray(weight))


def evidence(symmetric: bool) -> davidson.Features:
    """Return the features of the votes in Davidson's model."""
    votes = np.asarray(panel().votes).reshape(ITEMS, -1)
    counts = np.stack([(votes == k).sum(1) for k in range(CLASSES)], axis=1)
    return davidson.features(jnp.asarray(counts), symmetric=symmetric)


def of_davidson(symmetric: bool) -> DavidsonData:
    """Return evidence and labels."""
    data = panel()
    return DavidsonData(evidence(symmetric), data.labels, data.weight)


def of_tasks() -> DavidsonData:
    """Return evidence and labels for three tasks."""
    data = panel()
    return DavidsonData(evidence(True), data.labels, data.weight, jnp.arange(ITEMS) % 3)


def of_stacking() -> StackingData:
    """Return votes, a direction, and labels."""
    data = panel()
    direction = jnp.array([0.8, 0.6, 0.0, 0.0])
    return StackingData(data.votes, direction, data.labels, data.weight)


def of_splits() -> SplitData:
    """Return how the votes split, and labels."""
    data = panel()
    given = jnp.stack([(data.votes == k).sum((1, 2)) for k in range(CLASSES)], axis=1)
    return split_data(given, data.labels, data.weight)


def answers() -> ProbsData:
    """Return log-probabilities and labels."""
    data, rng = panel(), np.random.default_rng(8)
    logits = jnp.asarray(2 * rng.normal(size=(ITEMS, CLASSES)))
    return ProbsData(jax.nn.log_softmax(logits), data.labels, data.weight)


def two_answers() -> ProbsData:
    """Return the log-probabilities of two methods, and labels."""
    data, rng = panel(), np.random.default_rng(10)
    logits = jnp.asarray(2 * rng.normal(size=(ITEMS, 2, CLASSES)))
    return ProbsData(jax.nn.log_softmax(logits), data.labels, data.weight)


def counts() -> CountData:
    """Return numbers of correct votes, of five and seven; one unknown."""
    correct = jnp.array([5, 4, 1, 7, 7, 6, 2, 5, -1, 3])
    given = jnp.array([5, 5, 5, 7, 7, 7, 7, 5, 5, 7])
    return CountData(correct, given, jnp.array([1, 2, 1, 1, 1, 0, 1, 1, 1, 1.0]))


def pooled_counts() -> PooledData:
    """Return numbers of correct votes for two data sets."""
    data = counts()
    return PooledData(data.correct, data.given, jnp.arange(10) % 2, data.weight)


def cells() -> Counted:
    """Return counts of three generators and four judges; the last generator is not labelled."""
    labelled = jnp.array([20.0, 30.0, 0.0])
    valid = jnp.array([16.0, 21.0, 0.0])
    valid_judged = jnp.array([[16.0, 15, 16, 0], [21, 20, 18, 21], [0, 0, 0, 0]])
    invalid_judged = jnp.array([[4.0, 4, 3, 0], [9, 8, 9, 7], [0, 0, 0, 0]])
    return Counted(
        accepted=jnp.array([[8.0, 9, 7, 9], [0, 0, 0, 0], [35, 33, 30, 36]]),
        judged=jnp.array([[10.0, 10, 10, 10], [0, 0, 0, 0], [40, 40, 39, 40]]),
        true_accepted=jnp.array([[15.0, 13, 14, 0], [20, 19, 15, 20], [0, 0, 0, 0]]),
        valid_judged=valid_judged,
        false_accepted=jnp.array([[2.0, 1, 2, 0], [5, 3, 4, 5], [0, 0, 0, 0]]),
        invalid_judged=invalid_judged,
        valid=valid,
        labelled=labelled,
    )


def items() -> PanelData:
    """Return binary votes on the items of three generators."""
    data = panel(classes=2, samples=1)
    return data._replace(generator=jnp.arange(ITEMS) % 3)


PROGRAMS: dict[str, Program] = {
    "davidson": Program(lambda: DavidsonModel(CLASSES), lambda: of_davidson(True)),
    "davidson, free, noise": Program(
        lambda: DavidsonModel(CLASSES, symmetric=False, noise=0.1), lambda: of_davidson(False)
    ),
    "hierarchical davidson": Program(lambda: HierarchicalDavidsonModel(3, CLASSES), of_tasks),
    "one coin": Program(lambda: OneCoinModel(CLASSES), panel),
    "one coin, noise": Program(lambda: OneCoinModel(CLASSES, noise=0.2), panel),
    "dawid-skene": Program(lambda: DawidSkeneModel(CLASSES), panel),
    "dawid-skene, noise": Program(lambda: DawidSkeneModel(CLASSES, noise=0.2), panel),
    "pooled dawid-skene, noise": Program(lambda: PooledDawidSkeneModel(CLASSES, noise=0.2), panel),
    "stacking": Program(lambda: StackingModel(Form(JUDGES, CLASSES, True)), of_stacking),
    "stacking, free, noise": Program(
        lambda: StackingModel(Form(JUDGES, CLASSES, False), noise=0.1), of_stacking
    ),
    "shared difficulty": Program(lambda: SharedDifficultyModel(CLASSES, symmetric=True), panel),
    "shared difficulty, free, noise": Program(
        lambda: SharedDifficultyModel(CLASSES, symmetric=False, noise=0.2), panel
    ),
    "opinion pool": Program(lambda: OpinionPoolModel(CLASSES, symmetric=True), two_answers),
    "opinion pool, free, noise": Program(
        lambda: OpinionPoolModel(CLASSES, symmetric=False, noise=0.1), two_answers
    ),
    "split curve": Program(lambda: SplitCurveModel(CLASSES, by_class=False), of_splits),
    "split curve, by class, noise": Program(
        lambda: SplitCurveModel(CLASSES, by_class=True, noise=0.1), of_splits
    ),
    "temperature": Program(lambda: CalibrationMapModel(CLASSES, Temperature().form), answers),
    "platt": Program(lambda: CalibrationMapModel(CLASSES, Platt().form), answers),
    "platt, symmetric, noise": Program(
        lambda: CalibrationMapModel(CLASSES, Platt(symmetric=True).form, noise=0.1), answers
    ),
    "beta": Program(lambda: CalibrationMapModel(CLASSES, Beta().form), answers),
    "irt": Program(lambda: ItemResponseModel(CLASSES), panel),
    "irt, noise": Program(lambda: ItemResponseModel(CLASSES, noise=0.2), panel),
    "beta-binomial": Program(lambda: BetaBinomialModel(7, 1), counts),
    "beta-binomial mixture": Program(lambda: BetaBinomialModel(7), counts),
    "pooled beta-binomial": Program(lambda: PooledBetaBinomialModel(2, 7), pooled_counts),
    "generators, flat": Program(FlatModel, cells),
    "generators, hierarchical": Program(HierarchicalModel, cells, mixes=False),
    "generators, robust": Program(RobustModel, cells, mixes=False),
    "generators, items": Program(lambda: ItemModel(3), items),
}
