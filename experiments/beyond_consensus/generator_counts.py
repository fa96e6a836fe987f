"""Counts of the items that judges accept, by generator: what programs of generators share.

Source: *Beyond consensus: mitigating the agreeableness bias in LLM judge evaluations* (P4), whose
judges are called validators.

The story. A share g_i of generator i's items is valid. Judge j calls a valid item valid with
probability TPR_ij and an invalid one with probability 1 - TNR_ij, so that the number of items it
accepts out of those it voted on is (P4 eq 1, with counts where the paper has shares)::

    accepted_ij ~ Binomial(judged_ij, P_ij),   P_ij = g_i TPR_ij + (1 - g_i) (1 - TNR_ij)

Labelled items are data, not a penalty (the paper's eq 3)::

    TP_ij ~ Binomial(valid_ij, TPR_ij),   FP_ij ~ Binomial(invalid_ij, 1 - TNR_ij)
    valid_i ~ Binomial(labelled_i, g_i)

Each item is counted once, as labelled or as unlabelled; pairs of generator and judge without votes have
zero counts and carry no information.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int, PRNGKeyArray
from numpyro.distributions import Distribution, constraints

from judgebayes.experiments.beyond_consensus.cell_votes import CellVotes, Deviations
from judgebayes.models.base import Traits
from judgebayes.models.distributions import LEAST, log_choose

BY_LABEL = "accepted_by_label"


class Hypergeometric(Distribution):  # type: ignore[misc]
    r"""The number of valid items among `drawn`, taken without replacement from `total` with `valid`.

    .. math:: P(X = x) = \binom{v}{x} \binom{n - v}{m - x} / \binom{n}{m}

    with n = total, v = valid and m = drawn. `most` is at least the largest m, a size.
    """

    support = constraints.nonnegative_integer
    arg_constraints: ClassVar[Mapping[str, Any]] = {
        "total": constraints.nonnegative_integer,
        "valid": constraints.nonnegative_integer,
        "drawn": constraints.nonnegative_integer,
    }
    pytree_aux_fields = ("most",)

    def __init__(
        self,
        total: Int[Array, "*any"],
        valid: Int[Array, "*any"],
        drawn: Int[Array, "*any"],
        most: int,
    ) -> None:
        self.total, self.valid, self.drawn = jnp.broadcast_arrays(total, valid, drawn)
        self.most = most
        super().__init__(batch_shape=self.total.shape)

    def log_prob(self, value: Int[Array, "*any"]) -> Float[Array, "*any"]:
        """Return log P(X = value); impossible counts have `LEAST`."""
        other = self.drawn - value
        possible = (value >= 0) & (value <= self.valid) & (other >= 0)
        possible &= other <= self.total - self.valid
        x = jnp.clip(value, 0, self.valid)
        y = jnp.clip(other, 0, self.total - self.valid)
        log_ways = log_choose(self.valid, x) + log_choose(self.total - self.valid, y)
        return jnp.where(possible, log_ways - log_choose(self.total, self.drawn), LEAST)

    def sample(self, key: PRNGKeyArray, sample_shape: tuple[int, ...] = ()) -> Int[Array, "..."]:
        """Sample from the table of all counts up to `most`."""

        def log_prob(x: Int[Array, ""]) -> Float[Array, "*any"]:
            return self.log_prob(jnp.full(self.batch_shape, x))

        logits = jax.vmap(log_prob, out_axes=-1)(jnp.arange(self.most + 1))
        return jax.random.categorical(key, logits, shape=(*sample_shape, *self.batch_shape))


class Counted(NamedTuple):
    """The data of the model: counts by generator and judge, 0 where there are no votes.

    Where `valid` and the accepted ones are None, they are sampled; of `valid_judged` and
    `invalid_judged` only the sum is then used.
    """

    accepted: Float[Array, "generator judge"]
    judged: Float[Array, "generator judge"]
    true_accepted: Float[Array, "generator judge"]
    valid_judged: Float[Array, "generator judge"]
    false_accepted: Float[Array, "generator judge"]
    invalid_judged: Float[Array, "generator judge"]
    valid: Float[Array, " generator"]
    labelled: Float[Array, " generator"]

    @property
    def accepted_by_label(self) -> Float[Array | np.ndarray, "generator judge label"]:
        """The numbers of accepted items: labelled valid, labelled invalid, and without a label."""
        counts = self.true_accepted, self.false_accepted, self.accepted
        traced = any(isinstance(x, jax.core.Tracer) for x in counts)
        return (jnp.stack if traced else np.stack)(counts, axis=-1)

    @property
    def whole(self) -> bool:
        """Whether all counts are whole numbers, so that they can be replicated."""
        return all((np.asarray(x) % 1 == 0).all() for x in self if x is not None)

    def filled(self, **drawn: Array) -> "Counted":
        """Return the counts with sampled values in place; invalid judged items are the remainder."""
        if "accepted_by_label" in drawn:
            by_label = drawn.pop("accepted_by_label")
            names = ("true_accepted", "false_accepted", "accepted")
            drawn |= {name: by_label[..., place] for place, name in enumerate(names)}
        judged = self.valid_judged + self.invalid_judged
        counts = self._replace(**{name: x.astype(judged.dtype) for name, x in drawn.items()})
        return counts._replace(invalid_judged=judged - counts.valid_judged)


@contextmanager
def cells(data: Counted) -> Iterator[None]:
    """Enter the plates of generators and judges."""
    generators, judges = data.judged.shape
    with numpyro.plate("generator", generators, dim=-2), numpyro.plate("judge", judges, dim=-1):
        yield


@dataclass(frozen=True)
class CountProgram(ABC):
    """What programs of counts have in common: how labels and votes are observed.

    Counts may be fractions of items. They have a quasi-likelihood, the binomial's formula, but are not
    the values of a distribution, and so cannot be sampled.
    """

    prior: Any
    most_labelled: int = 0
    """An upper bound of the labelled items of a generator, a static size; 0 takes it from the data."""
    traits: ClassVar[Traits] = Traits(("valid", BY_LABEL), "all cells", ("valid_judged",))
    in_turns: ClassVar[bool] = True
    """Whether a sampler's chains make their steps one after the other (`Problem.in_turns`)."""
    dims: ClassVar[dict[str, tuple[str, ...]]] = {
        "g": ("generator",),
        "precision": ("generator",),
    }

    @abstractmethod
    def __call__(self, data: Counted) -> None:
        """Sample parameters and counts."""

    def observe_count(self, name: str, count: Array | None, n: Array, p: Array) -> Array:
        """Sample independent binomial counts."""
        n = n if count is not None else _whole(n)
        # Fractions are outside of the support that NumPyro validates.
        counts = dist.Binomial(n, jnp.clip(p, 1e-9, 1 - 1e-9), validate_args=False)
        sample: Array = numpyro.sample(name, counts, obs=count)
        return sample

    def observe_labels(self, data: Counted, g: Array) -> tuple[Array, Array]:
        """Sample the labels; return how many valid and invalid items each judge voted on.

        Given are the number of labelled items, and how many labelled and unlabelled items each judge
        voted on. The number of valid items among a judge's labelled items depends on the labels: if
        these are sampled, it is sampled too, without replacement.
        """
        given = data.valid is not None
        with numpyro.plate("generator", len(g)):
            valid = self.observe_count("valid", data.valid, data.labelled, g)
        if given:
            return data.valid_judged, data.invalid_judged
        judged = _whole(data.valid_judged + data.invalid_judged)
        total = _whole(data.labelled)[:, None]
        most = self.most_labelled or _most_labelled(data)
        of_valid = Hypergeometric(total, valid[:, None], judged, most)
        with cells(data):
            valid_judged = numpyro.sample("valid_judged", of_valid)
        return valid_judged, judged - valid_judged

    def observe_cells(
        self,
        data: Counted,
        quality: Float[Array, " generator"],
        logits: Float[Array, "3 generator judge"],
        sigma: Array,
        deviations: Deviations,
        log_odds: Float[Array, " judge"] | None = None,
    ) -> None:
        """Sample the labels, and the votes of all cells with their deviations summed out.

        Parameters
        ----------
        data
            The counts.
        quality
            The logits of the generators' shares of valid items.
        logits
            The logits of accepting an item, from `vote_logits`.
        sigma, deviations, log_odds
            As in `CellVotes`.
        """
        by_label = self.observe_labels(data, jax.nn.sigmoid(quality))
        judged = data.judged if data.accepted is not None else _whole(data.judged)
        total = jnp.stack([*by_label, judged], axis=-1)
        votes = CellVotes(total, jnp.moveaxis(logits, 0, -1), sigma, deviations, log_odds)
        given = None if data.accepted is None else jnp.asarray(data.accepted_by_label)
        with cells(data):
            numpyro.sample(BY_LABEL, votes, obs=given, infer={"event_dims": ("of_label",)})


def _whole(n: Array) -> Array:
    """Return numbers of items as integers; compiled code cannot check that they are no fractions."""
    if not isinstance(n, jax.core.Tracer) and (np.asarray(n) % 1 != 0).any():
        raise ValueError(
            "These counts are fractions of items, not whole numbers: they have a "
            "quasi-likelihood, which cannot be sampled. Use whole counts."
        )
    return n.astype(int)


def _most_labelled(data: Counted) -> int:
    """Return the size of the table of counts of labelled items."""
    if isinstance(data.labelled, jax.core.Tracer):
        raise ValueError(
            "To sample counts inside compiled code, set most_labelled=... of the program."
        )
    return int(np.asarray(data.labelled).max())
