"""The interface of generative programs, and the sampling of their observed sites.

A program is a frozen object that is called with its data and runs `numpyro.sample` for the parameters
and for the observations. As is NumPyro's convention, a site whose values are None is sampled::

    Predictive(model, num_samples=100)(key, PanelData(voted=voted))   # sampled parameters and data
    MCMC(NUTS(model), ...).run(key, PanelData(votes, labels))         # the posterior
    log_likelihood(model, draws, PanelData(votes, labels))            # one number per item and site

Labels may be partly known: they are -1 where unknown; the `label` of such an item is masked, and its
`votes` have the distribution for an unknown class.

Label noise: a known share of the labels is wrong, any other class alike.

An observed label z is the true class y with probability 1 - e and each other class with probability
e / (K - 1)::

    p(z) = sum_y p(y) p(z | y),   p(y | z) = p(y) p(z | y) / p(z)
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int

from judgebayes.models.distributions import LEAST, PanelVotes

Sites = Mapping[str, Array]
Scalar = float | Float[Array, ""]
D = TypeVar("D")
FIELDS = {
    "label": ("labels",),
    "accepted_by_label": ("true_accepted", "false_accepted", "accepted"),
}
"""The fields of the data that hold the values of a site, where they have other names."""


@dataclass(frozen=True)
class Traits:
    """The data that a program is fitted to."""

    sites: tuple[str, ...]
    """Its observed sites, in order."""
    enters: Literal["labelled items", "all items", "items with a count", "all cells"]
    """The items that enter the likelihood; the others are masked."""
    latent_data: tuple[str, ...] = ()
    """Sites that are sampled together with the data, but are data where these are observed."""


@runtime_checkable
class Model(Protocol):
    """A generative program with its hyper-parameters.

    `quantities(sites, data)`, if defined, returns the reported quantities of one draw, on the scale of
    the docstring; otherwise these are the parameters. A site's axes are its plates, then its
    `event_dims`, which is what ArviZ reads (`axes`). `dims`, if defined, has the names of the axes of
    quantities that are no sites, and `coords` the names along axes that are specific to the program.
    """

    @property
    def traits(self) -> Traits:
        """The data that it is fitted to."""

    def __call__(self, data: Any) -> None:
        """Sample parameters and data; sites take the data's values where these are not None."""


@runtime_checkable
class Predictor(Protocol):
    """A program that predicts the labels, or counts of correct votes, of items."""

    def predict(self, sites: Sites, data: Any) -> Float[Array, "item class"]:
        """Return the log-probabilities that scores are computed from, under one draw.

        These are of the items' true labels, given everything except their labels, or of counts if the
        program observes counts.
        """


class PanelData(NamedTuple):
    """Votes of a panel, and partly known labels; None where these are sampled."""

    votes: Int[Array, "item judge sample"] = None  # type: ignore[assignment]
    """Class indices, -1 where a vote is missing."""
    labels: Int[Array, " item"] = None  # type: ignore[assignment]
    """Class indices, -1 where unknown."""
    weight: Float[Array, " item"] | None = None
    """Powers to which the items' likelihoods are raised; 0 equals a dropped item."""
    voted: Bool[Array, "item judge sample"] | None = None
    """Which votes are not missing; read from the votes if None."""
    generator: Int[Array, " item"] = None  # type: ignore[assignment]
    """The generator of each item, from 0, for programs of generators; given."""

    @property
    def cast(self) -> Bool[Array, "item judge sample"]:
        """Which votes are not missing."""
        return self.votes >= 0 if self.voted is None else self.voted


class ProbsData(NamedTuple):
    """Log-probabilities of the classes, which are given, and the labels."""

    log_probs: Float[Array, "item *method class"]
    """Finite: an impossible class has a large negative number."""
    labels: Int[Array, " item"] = None  # type: ignore[assignment]
    """Class indices, -1 where unknown."""
    weight: Float[Array, " item"] | None = None
    """Powers to which the items' likelihoods are raised; 0 equals a dropped item."""


def unobserved(model: Model, data: D, observed: Collection[str] = ()) -> D:
    """Return the data without values, but with the same missing votes: the program samples them.

    `observed` names the sites that keep their values.
    """
    sites = [name for name in model.traits.sites if name not in observed]
    fields = dict.fromkeys(field for site in sites for field in FIELDS.get(site, (site,)))
    voted = {"voted": data.cast} if "votes" in sites else {}  # type: ignore[attr-defined]
    return data._replace(**fields, **voted)  # type: ignore[attr-defined]


def uniform_class(n_items: int, n_classes: int) -> Float[Array, "item class"]:
    """Return the log-probabilities of a uniform prior over classes."""
    return jnp.full((n_items, n_classes), -jnp.log(n_classes))


def axes(model: Model, data: Any) -> dict[str, tuple[str, ...]]:
    """Return the names of the axes of each site: its plates, then the `event_dims` that it declares."""
    names: dict[str, tuple[str, ...]] = {}

    def run() -> None:
        trace = numpyro.handlers.trace(numpyro.handlers.seed(model, 0)).get_trace(data)
        for name, site in trace.items():
            if site["type"] == "sample":
                plates = sorted(site["cond_indep_stack"], key=lambda plate: plate.dim)
                names[name] = (*(p.name for p in plates), *site["infer"].get("event_dims", ()))

    jax.eval_shape(run)  # traced only, nothing is computed
    return names


def observe(
    name: str,
    distribution: dist.Distribution,
    value: Int[Array, "item ..."] | None,
    used: Bool[Array, " item"] | None,
    weight: Float[Array, " item"] | None,
    event_dims: tuple[str, ...] = (),
) -> Int[Array, "item ..."]:
    """Sample a site with one value per item, or condition on its value if there is one.

    Items that are not `used`, or have weight 0, are masked if the site is observed; the other
    log-probabilities are multiplied by their weights. The mask is needed because
    `numpyro.handlers.scale` does not accept 0.
    """
    n_items = distribution.batch_shape[0]
    counts = jnp.ones(n_items, bool) if used is None or value is None else used
    weight = jnp.ones(n_items) if weight is None else weight
    counts = counts & (weight > 0)
    with (
        numpyro.plate("item", n_items),
        numpyro.handlers.mask(mask=counts),
        numpyro.handlers.scale(scale=jnp.where(counts, weight, 1.0)),
    ):
        infer = {"event_dims": event_dims}
        sample: Array = numpyro.sample(name, distribution, obs=value, infer=infer)
    return sample


def observe_label(
    log_probs: Float[Array, "item class"],
    labels: Int[Array, " item"] | None,
    weight: Float[Array, " item"] | None,
    noise: Scalar = 0.0,
) -> tuple[Int[Array, " item"], Bool[Array, " item"]]:
    """Sample `label` with label noise; return the labels, and whether each is known."""
    labelled = jnp.ones(len(log_probs), bool) if labels is None else labels >= 0
    category = dist.Categorical(logits=jnp.maximum(with_label_noise(log_probs, noise), LEAST))
    return observe("label", category, labels, labelled, weight), labelled


class PanelProgram(ABC):
    """A program of labels and votes that says how votes are distributed, their class summed out."""

    noise: Scalar = 0.0
    """The known share of the labels that are wrong."""

    @property
    @abstractmethod
    def traits(self) -> Traits:
        """The data that it is fitted to."""

    @abstractmethod
    def votes(self, sites: Sites, data: Any) -> PanelVotes:
        """Return the distribution of the votes, with the prior of the items' classes."""

    def observe(self, sites: Sites, data: Any) -> None:
        """Sample `label`, then `votes` given it; together they are p(z) p(votes | z)."""
        votes = self.votes(sites, data)
        labels, labelled = observe_label(votes.log_class, data.labels, data.weight, self.noise)
        given = votes.of_class(class_given_label(votes.log_class, labels, labelled, self.noise))
        used = labelled if self.traits.enters == "labelled items" else None
        observe("votes", given, data.votes, used, data.weight, ("judge", "repeat"))

    def predict(self, sites: Sites, data: Any) -> Float[Array, "item class"]:
        """Return the log-probabilities of the items' classes given their votes."""
        return self.votes(sites, data).log_class_given(data.votes)


def noise_matrix(noise: Scalar, n_classes: int) -> Float[Array, "class label"]:
    """Return p(observed label | true label): 1 - noise on the diagonal, equal elsewhere."""
    other = jnp.asarray(noise) / (n_classes - 1)
    return jnp.where(jnp.eye(n_classes, dtype=bool), 1 - noise, other)


@partial(jax.jit, inline=True)
def with_label_noise(
    log_probs: Float[Array, "item class"], noise: Scalar
) -> Float[Array, "item label"]:
    """Return the log-probabilities of the observed labels, given those of the true labels."""
    error = jnp.log(noise_matrix(noise, log_probs.shape[-1]))
    return jax.nn.logsumexp(log_probs[:, :, None] + error, axis=1)


def class_given_label(
    log_class: Float[Array, "item class"],
    labels: Int[Array, " item"],
    labelled: Bool[Array, " item"],
    noise: Scalar,
) -> Float[Array, "item class"]:
    """Return log p(y | z) of every item, and log p(y) where its label is unknown.

    For an impossible label, p(z) = 0, the posterior is undefined. log p(z | y) is returned instead,
    which is finite for some y, so that the item's log-probability is minus infinity and not NaN.
    """
    error = jnp.log(noise_matrix(noise, log_class.shape[-1]))[:, labels].T
    total = jax.nn.logsumexp(log_class + error, axis=1, keepdims=True)
    possible = jnp.isfinite(total)
    posterior = jnp.where(possible, log_class, 0.0) + error - jnp.where(possible, total, 0.0)
    return jnp.where(labelled[:, None], posterior, log_class)
