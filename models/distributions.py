r"""Distributions of votes and counts that NumPyro does not have.

Votes of a panel. An item has a latent true class y; given y the judges' votes are independent, and y
is summed out inside the distribution::

    log p(votes of i) = log sum_y p_i(y) prod_js p(v_ijs | y)

so that `log_prob` is one number per item, `sample` draws y and then the votes, and programs need no
discrete latent site. A missing vote is -1 and contributes a factor of one; the pattern of missing
votes is fixed (`cast`).

Counts. `CorrectVotes` is the Beta-Binomial, or a mixture of two of them, parametrised by means and
dispersions.
"""

from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jaxtyping import Array, Bool, Float, Int, Num, PRNGKeyArray
from numpyro.distributions import Distribution, constraints

MISSING = -1
LEAST = -1e30
"""The log-likelihood of impossible values; finite also in 32 bits, so that weight 0 makes it 0."""
LOG_PROBS = constraints.independent(constraints.less_than_eq(1e-4), 1)
"""Log-probabilities along the last axis: up to 0 and a rounding error, minus infinity included."""


class _Counts(constraints.integer_greater_than):  # type: ignore[misc]
    """Whole numbers from 0, or -1 for a missing vote; masked values are not replaced.

    NumPyro replaces masked values by feasible ones. Under `vmap` over weights, and so masks, the values
    would then differ between lanes, and shared computations would be repeated. A support without
    feasible values, like the base class, leaves masked values unchanged.
    """

    feasible_like = constraints.Constraint.feasible_like


class PanelVotes(Distribution):  # type: ignore[misc]
    """Votes of a panel on items whose true class is summed out.

    Batch shape (item), event shape (judge, sample). The value is class indices, -1 where a vote is
    missing. Subclasses define the likelihood of votes given the class, and sample them.

    Parameters
    ----------
    log_class
        The log prior probabilities of the items' true classes.
    cast
        Which votes are sampled; the others stay missing.
    """

    support = constraints.independent(_Counts(MISSING), 2)
    arg_constraints: ClassVar[Mapping[str, Any]] = {
        "log_class": LOG_PROBS,
        "cast": constraints.independent(constraints.boolean, 2),
    }
    log_prob_by_class: Callable[
        [Int[Array, "*draw item judge sample"]], Float[Array, "*draw item class"]
    ]
    """log p(votes | y = k) of every item and class: a method of each subclass."""
    draw_given: Callable[[PRNGKeyArray, Int[Array, " item"]], Int[Array, "item judge sample"]]
    """Votes on items of the given classes, as if none were missing: a method of each subclass."""

    def __init__(
        self, log_class: Float[Array, "item class"], cast: Bool[Array, "item judge sample"]
    ) -> None:
        self.log_class, self.cast = log_class, cast
        super().__init__(batch_shape=cast.shape[:1], event_shape=cast.shape[1:])

    def of_class(self, log_class: Float[Array, "item class"]) -> "PanelVotes":
        """Return the votes on items whose classes have other probabilities."""
        other = copy(self)
        other.log_class = log_class
        return other

    def counts(
        self, value: Int[Array, "*draw item judge sample"]
    ) -> Float[Array, "*draw item judge_vote"]:
        """Return each judge's number of votes for each class."""
        n_classes = self.log_class.shape[-1]
        count = jnp.stack([(value == k).sum(-1) for k in range(n_classes)], axis=-1)
        return count.reshape(*count.shape[:-2], -1).astype(self.log_class.dtype)

    def log_prob(self, value: Int[Array, "*draw item judge sample"]) -> Float[Array, "*draw item"]:
        """Return log p(votes) of every item, its class summed out."""
        return jax.nn.logsumexp(self.log_class + self.log_prob_by_class(value), axis=-1)

    def log_class_given(
        self, value: Int[Array, "*draw item judge sample"]
    ) -> Float[Array, "*draw item class"]:
        """Return log p(y = k | votes) of every item and class."""
        return jax.nn.log_softmax(self.log_class + self.log_prob_by_class(value))

    def sample(
        self, key: PRNGKeyArray, sample_shape: tuple[int, ...] = ()
    ) -> Int[Array, "*draw item judge sample"]:
        """Draw the classes, then the votes."""

        def one(key: PRNGKeyArray) -> Int[Array, "item judge sample"]:
            of_class, of_votes = jax.random.split(key)
            truth = jax.random.categorical(of_class, self.log_class)
            return jnp.where(self.cast, self.draw_given(of_votes, truth), MISSING)

        keys = jax.random.split(key, int(np.prod(sample_shape, dtype=int)))
        return jax.vmap(one)(keys).reshape(*sample_shape, *self.cast.shape)


class ConfusionVotes(PanelVotes):
    """Each judge has a confusion matrix: p(v | y = k) = theta_jkv."""

    arg_constraints: ClassVar[Mapping[str, Any]] = {
        **PanelVotes.arg_constraints,
        "log_confusion": LOG_PROBS,
    }

    def __init__(
        self,
        log_class: Float[Array, "item class"],
        log_confusion: Float[Array, "judge class vote"],
        cast: Bool[Array, "item judge sample"],
    ) -> None:
        self.log_confusion = log_confusion
        super().__init__(log_class, cast)

    def log_prob_by_class(
        self, value: Int[Array, "*draw item judge sample"]
    ) -> Float[Array, "*draw item class"]:
        """Return the sum of the votes' log-probabilities: counts times a table."""
        table = jnp.swapaxes(self.log_confusion, 1, 2).reshape(-1, self.log_confusion.shape[-1])
        # `LEAST` is finite, so that impossible votes with count 0 contribute 0.
        return self.counts(value) @ jnp.maximum(table, LEAST)

    def draw_given(
        self, key: PRNGKeyArray, truth: Int[Array, " item"]
    ) -> Int[Array, "item judge sample"]:
        """Draw each vote from the judge's row of the class."""
        judge = jnp.arange(len(self.log_confusion))[:, None]
        logits = self.log_confusion[judge, truth].swapaxes(0, 1)[:, :, None]
        return jax.random.categorical(key, logits, shape=self.cast.shape)


class CoinVotes(PanelVotes):
    """A vote is the true class with some probability, otherwise each other class with equal probability.

    `log_right` and `log_wrong` are log P(right) and log P(not right), by judge, or by item and judge.
    """

    arg_constraints: ClassVar[Mapping[str, Any]] = {
        **PanelVotes.arg_constraints,
        "log_right": LOG_PROBS,
        "log_wrong": LOG_PROBS,
    }

    def __init__(
        self,
        log_class: Float[Array, "item class"],
        log_right: Float[Array, "... judge"],
        log_wrong: Float[Array, "... judge"],
        cast: Bool[Array, "item judge sample"],
    ) -> None:
        self.log_right, self.log_wrong = log_right, log_wrong
        super().__init__(log_class, cast)

    def log_prob_by_class(
        self, value: Int[Array, "*draw item judge sample"]
    ) -> Float[Array, "*draw item class"]:
        """Return log prod_j P(right)^n_jk ((1 - P(right)) / (K - 1))^(n_j - n_jk)."""
        n_classes = self.log_class.shape[-1]
        # `LEAST` is finite, so that impossible votes with count 0 contribute 0.
        right = jnp.maximum(self.log_right, LEAST)
        wrong = jnp.maximum(self.log_wrong, LEAST) - np.log(n_classes - 1)
        cast = (value >= 0).sum(-1)
        for_class = [(value == k).sum(-1) for k in range(n_classes)]
        each = [(own * right + (cast - own) * wrong).sum(-1) for own in for_class]
        return jnp.stack(each, axis=-1)

    def draw_given(
        self, key: PRNGKeyArray, truth: Int[Array, " item"]
    ) -> Int[Array, "item judge sample"]:
        """Draw whether each vote is right, and another class if it is not."""
        n_classes = self.log_class.shape[-1]
        of_right, of_other = jax.random.split(key)
        chance = jnp.broadcast_to(jnp.exp(self.log_right), self.cast.shape[:2])[..., None]
        right = jax.random.bernoulli(of_right, chance, self.cast.shape)
        step = jax.random.randint(of_other, self.cast.shape, 1, n_classes)
        return jnp.where(right, truth[:, None, None], (truth[:, None, None] + step) % n_classes)


class LeaningVotes(PanelVotes):
    r"""Accepting or rejecting judges with a common effect of each item, its leaning z ~ Normal(0, 1).

    .. math:: \mathrm{logit}\, p(v_{ij} = 1 | y, z) = b_{yj} + s_{y g(i)} + \tau z

    with the item's generator g(i). z is summed out by Gauss-Hermite quadrature; `sample` draws it.
    One node, or tau = 0, makes judges independent given the class.

    Parameters
    ----------
    log_class, cast
        As in `PanelVotes`; classes are invalid (0) and valid (1), with one vote per judge.
    base, shift
        The logits by class and judge, and by class and generator.
    tau
        The effect of the leaning on the logits.
    generator
        The generator of each item.
    points
        The number of nodes of the quadrature.
    """

    arg_constraints: ClassVar[Mapping[str, Any]] = {
        **PanelVotes.arg_constraints,
        "base": constraints.real_matrix,
        "shift": constraints.real_matrix,
        "tau": constraints.nonnegative,
        "generator": constraints.nonnegative_integer,
    }
    pytree_aux_fields = ("points",)

    def __init__(
        self,
        log_class: Float[Array, "item 2"],
        base: Float[Array, "2 judge"],
        shift: Float[Array, "2 generator"],
        tau: Float[Array, ""],
        generator: Int[Array, " item"],
        cast: Bool[Array, "item judge 1"],
        points: int,
    ) -> None:
        self.base, self.shift, self.tau = base, shift, tau
        self.generator, self.points = generator, points
        super().__init__(log_class, cast)

    def log_prob_by_class(
        self, value: Int[Array, "*draw item judge 1"]
    ) -> Float[Array, "*draw item 2"]:
        """Return log p(votes | y), the leaning summed out."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(self.points)
        log_weight = jnp.asarray(np.log(weights / weights.sum()))
        # A vote's probability depends on the item only through its generator: matrix products replace a
        # logarithm for every vote and node. Log-probabilities of both kinds of votes are only added,
        # because at logits of 1e20 a difference would have rounding errors of 1e4.
        member = self.generator[:, None] == jnp.arange(self.shift.shape[1])
        indicator = jnp.stack([value[..., 0] == 1, value[..., 0] == 0], axis=-2)
        indicator = jnp.asarray(member[:, None, :, None] & indicator[..., None, :], self.base.dtype)
        indicator = indicator.reshape(*value.shape[:-2], -1)

        def of_class(base: Array, shift: Array) -> Array:
            logit = (base + shift[:, None])[..., None] + self.tau * nodes  # generator, judge, node
            log_probs = jnp.stack([jax.nn.log_sigmoid(logit), jax.nn.log_sigmoid(-logit)])
            each = indicator @ log_probs.reshape(-1, self.points)
            return jax.nn.logsumexp(each + log_weight, axis=-1)

        return jnp.stack([of_class(self.base[k], self.shift[k]) for k in range(2)], axis=-1)

    def draw_given(
        self, key: PRNGKeyArray, truth: Int[Array, " item"]
    ) -> Int[Array, "item judge 1"]:
        """Draw each item's leaning, then the votes."""
        of_item, of_vote = jax.random.split(key)
        lean = self.tau * jax.random.normal(of_item, truth.shape)
        if self.points == 1:
            lean = jnp.zeros_like(lean)
        logit = self.base[truth] + (self.shift[truth, self.generator] + lean)[:, None]
        return jax.random.bernoulli(of_vote, jax.nn.sigmoid(logit))[..., None].astype(int)


class CorrectVotes(Distribution):  # type: ignore[misc]
    r"""The number of correct votes among an item's k votes: a mixture of Beta-Binomials.

    .. math:: P(S = s) = \sum_c w_c \binom{k}{s}
              \frac{\prod_{i<s} (\mu_c + i d_c) \prod_{i<k-s} (1 - \mu_c + i d_c)}
                   {\prod_{i<k} (1 + i d_c)}

    (P3 eq 4, by means and dispersions: d = 0 is the Binomial). Batch shape (item). NumPyro's
    `MixtureSameFamily` does not accept components whose support depends on a size, and its
    `BetaBinomial` has an error of 1.3e-6 at alpha = 4, beta = 1, n = 5.

    Parameters
    ----------
    share, mean, dispersion
        w, mu and d of the components, by data set.
    member
        The data set of each item.
    given
        k, the number of votes on each item.
    most
        The largest k, a size.
    """

    support = _Counts(0)
    arg_constraints: ClassVar[Mapping[str, Any]] = {
        "shares": constraints.simplex,
        "means": constraints.unit_interval,
        "dispersions": constraints.nonnegative,
        "member": constraints.nonnegative_integer,
        "given": constraints.nonnegative_integer,
    }
    pytree_aux_fields = ("most",)

    def __init__(
        self,
        share: Float[Array, "set component"],
        mean: Float[Array, "set component"],
        dispersion: Float[Array, "set component"],
        member: Int[Array, " item"],
        given: Int[Array, " item"],
        most: int,
    ) -> None:
        self.shares, self.means, self.dispersions = share, mean, dispersion
        self.member, self.given, self.most = member, given, most
        super().__init__(batch_shape=given.shape)

    def log_prob(self, value: Int[Array, "*draw item"]) -> Float[Array, "*draw item"]:
        """Return log P(S = value) of every item; impossible counts have `LEAST`."""
        each = component_log_pmf(
            self.means, self.dispersions, self.member, value, self.given, self.most
        )
        whole = jax.nn.logsumexp(each + jnp.log(self.shares)[self.member], axis=-1)
        return jnp.maximum(whole, LEAST)

    def sample(
        self, key: PRNGKeyArray, sample_shape: tuple[int, ...] = ()
    ) -> Int[Array, "*draw item"]:
        """Draw each item's component, its chance of a correct vote, and the count."""
        shape = (*sample_shape, *self.batch_shape)
        of_component, of_chance, of_count = jax.random.split(key, 3)
        which = jax.random.categorical(of_component, jnp.log(self.shares)[self.member], shape=shape)
        mean, spread = (x[self.member, which] for x in (self.means, self.dispersions))
        theta = jax.random.beta(of_chance, mean / spread, (1 - mean) / spread)
        votes = jax.random.uniform(of_count, (*shape, self.most)) < theta[..., None]
        return (votes & (jnp.arange(self.most) < self.given[:, None])).sum(-1)


@partial(jax.jit, static_argnames="most", inline=True)
def component_log_pmf(
    mean: Float[Array, "set component"],
    dispersion: Float[Array, "set component"],
    member: Int[Array, " item"],
    correct: Int[Array, "*draw item"],
    given: Int[Array, " item"],
    most: int,
) -> Float[Array, "*draw item component"]:
    """Return log P(S = correct | k = given) under the components of each item's data set.

    It is -inf where S > k. `most` is the largest k, a static size: the sums over i < k are computed
    once for all items.
    """
    s, f = jnp.clip(correct, 0, given), jnp.clip(given - correct, 0, given)
    steps = jnp.arange(most) * dispersion[..., None]

    def rising(start: Array, i: Array) -> Array:
        sums = jnp.cumsum(jnp.log(start[..., None] + steps), axis=-1)
        return jnp.pad(sums, ((0, 0), (0, 0), (1, 0)))[member, :, i]

    each = rising(mean, s) + rising(1 - mean, f) - rising(jnp.ones_like(mean), given)
    return jnp.where(
        (correct <= given)[..., None], each + log_choose(given, s)[..., None], -jnp.inf
    )


def log_choose(n: Num[Array, "..."], s: Num[Array, "..."]) -> Float[Array, "..."]:
    """Return the log of the binomial coefficient."""
    return gammaln(n + 1.0) - gammaln(s + 1.0) - gammaln(n - s + 1.0)
