"""Populations from which data sets are drawn: votes and labels of many items, simulated or real."""

from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from judgebayes.experiments.beyond_consensus.common import DATASET as PROGRAMS
from judgebayes.experiments.beyond_consensus.common import item_votes
from judgebayes.experiments.core import Run
from judgebayes.experiments.data import LLMBAR
from judgebayes.experiments.panels import REWARDBENCH, llmbar_panel, rewardbench_panel
from judgebayes.votes import Votes

ITEMS = 20_000


@dataclass(frozen=True)
class Population:
    """Class indices of one vote of each judge on each item, -1 if missing, with all labels."""

    name: str
    index: Int[np.ndarray, "item judge"]
    labels: Int[np.ndarray, " item"]
    groups: Int[np.ndarray, " item"] | None = None
    n_classes: int = 2

    @property
    def size(self) -> int:
        """The number of items."""
        return len(self.labels)

    def judges(self, judges: Int[np.ndarray, " some"]) -> "Population":
        """Return the population with the votes of some judges only."""
        return Population(
            self.name, self.index[:, judges], self.labels, self.groups, self.n_classes
        )

    def votes(self, items: Int[np.ndarray, " part"] | slice = slice(None)) -> Votes:
        """Return the votes on some items."""
        return votes_of(self.index[items], self.n_classes)

    def accuracy(self) -> Float[np.ndarray, " judge"]:
        """Return the share of each judge's votes that are right."""
        voted = self.index >= 0
        return np.asarray(((self.index == self.labels[:, None]) & voted).sum(0) / voted.sum(0))


def votes_of(index: Int[np.ndarray, "item judge"], n_classes: int) -> Votes:
    """Return `Votes` with one vote of each judge on each item."""
    with jax.enable_x64(True):
        return Votes(jnp.asarray(index[:, :, None], jnp.int8), None, None, None, n_classes)


@lru_cache(maxsize=8)
def simulated(n_classes: int = 2, items: int = ITEMS, judges: int = 9) -> Population:
    """Return judges with independent errors and accuracies of 55 to 95 %; a tenth of votes missing.

    Classes are equally common, and all wrong classes are equally likely.
    """
    rng = np.random.default_rng(11)
    accuracy = np.linspace(0.55, 0.95, judges)
    labels = rng.integers(0, n_classes, items)
    other = (labels[:, None] + rng.integers(1, n_classes, (items, judges))) % n_classes
    index = np.where(rng.random((items, judges)) < accuracy, labels[:, None], other)
    index = np.where(rng.random((items, judges)) < 0.1, -1, index)
    return Population("simulated: independent judges", index, labels, None, n_classes)


def llmbar(run: Run) -> Population | None:
    """Return 65 evaluators on the 419 pairs of LLMBar, if the data are there."""
    if not run.has(LLMBAR):
        return None
    panel = llmbar_panel(run)
    return Population("LLMBar", np.asarray(panel.votes.index)[:, :, 0], panel.labels)


def rewardbench(run: Run) -> Population | None:
    """Return 148 reward models on the 2,985 pairs of RewardBench, if the data are there."""
    if not run.has(REWARDBENCH):
        return None
    panel = rewardbench_panel(run).oriented("true")
    return Population("RewardBench", np.asarray(panel.votes.index)[:, :, 0], panel.labels)


def programs(run: Run) -> Population | None:
    """Return 14 judges on six generators' feedback on programs, if the data are there."""
    if not run.has(PROGRAMS):
        return None
    cell = item_votes(run, "fcnhp")
    index = np.asarray(cell.votes.index)[:, :, 0]
    return Population("feedback on programs", index, cell.labels, cell.program)
