"""Selection of judges by single rules: one of each family, at random, with perfect knowledge."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from judgebayes.arrays import AnyArray
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fit import Method, Training
from judgebayes.measures.scores import labelled_weight
from judgebayes.panel.judges import check_size, largest, posterior_accuracy
from judgebayes.votes.array import MISSING


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class OnePerFamily:
    """The most accurate judge of every family (P2, section 4.2); `families_of` returns families."""

    families: tuple[int, ...] = field(metadata={"static": True})
    """The family of every judge, numbered from 0."""

    def size(self, n_judges: int) -> int:
        """Return the number of families."""
        if len(self.families) != n_judges:
            raise JudgeBayesError(
                f"{len(self.families)} families were given for {n_judges} judges."
            )
        return len(set(self.families))

    def choose(self, aggregator: Method, data: Training) -> Bool[Array, " judge"]:  # noqa: ARG002
        """Return the panel."""
        self.size(data.given.n_judges)
        accuracy = posterior_accuracy(data)
        panel = jnp.zeros(len(self.families), bool)
        for family in sorted(set(self.families)):
            inside = np.array([f == family for f in self.families])
            panel = panel.at[jnp.argmax(jnp.where(inside, accuracy, -1.0))].set(True)
        return panel


def families_of(names: Sequence[str], families: Mapping[str, str] | None = None) -> tuple[int, ...]:
    """Return the number of each judge's family, in order of first appearance.

    Without a mapping from judges to families, the family is taken from the name: the part before the
    first slash (`GPT-4/CoT`, `openai/gpt-5`), or else the letters before the first digit, dash,
    underscore, colon or space (`claude-haiku-4.5`, `llama3`), in lower case. A vendor's name is not
    always a family; pass a mapping if it matters.

    >>> families_of(["gpt-5.4", "gpt-5.4-mini", "Claude 3"])
    (0, 0, 1)

    Raises
    ------
    JudgeBayesError
        If the mapping lacks a judge.
    """
    if families is not None:
        unmapped = [name for name in names if name not in families]
        if unmapped:
            raise JudgeBayesError(f"The families do not name the judge {unmapped[0]!r}.")
        family_of_judge = [families[name] for name in names]
    else:
        family_of_judge = [_family(name) for name in names]
    number = {name: i for i, name in enumerate(dict.fromkeys(family_of_judge))}
    return tuple(number[name] for name in family_of_judge)


def _family(name: str) -> str:
    if "/" in name:
        return name.split("/")[0].casefold()
    return re.split(r"[\d\-_:\s]", name, maxsplit=1)[0].casefold() or name.casefold()


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RandomPanel:
    """k random judges, determined by the key: the sanity floor of H.4."""

    k: int = field(metadata={"static": True})

    def choose(self, aggregator: Method, data: Training) -> Bool[Array, " judge"]:  # noqa: ARG002
        """Return the panel."""
        check_size(self.k, data.given.n_judges)
        return largest(jax.random.uniform(data.key, (data.given.n_judges,)), self.k)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class OracleTop:
    """The k judges with the highest accuracy on the items whose label is *hidden* from the fit.

    This is not a method but an upper bound: the value of perfect knowledge of the ranking (H.4). It
    needs the votes of the evaluation items in the fit, `fit_on="all"`.

    Parameters
    ----------
    truth
        The labels of all items, in their order.
    """

    truth: Int[AnyArray, " item"]
    k: int = field(metadata={"static": True})

    def choose(self, aggregator: Method, data: Training) -> Bool[Array, " judge"]:  # noqa: ARG002
        """Return the panel.

        Raises
        ------
        JudgeBayesError
            If the fit has only a part of the items.
        """
        extra = data.given.n_items - self.truth.shape[0]
        if extra < 0:
            raise JudgeBayesError(
                f"The oracle needs all {self.truth.shape[0]} items, and the fit has "
                f"{data.given.n_items}: evaluate it with fit_on='all'."
            )
        check_size(self.k, data.given.n_judges)
        truth = jnp.pad(jnp.asarray(self.truth), (0, extra), constant_values=MISSING)
        hidden = jnp.where(labelled_weight(data.labels, data.weight) > 0, MISSING, truth)
        return largest(posterior_accuracy(data._replace(labels=hidden)), self.k)
