"""The interface of generative programs, and the sampling of their observed sites.

A program is a frozen object that is called with its data and runs `numpyro.sample` for the parameters
and for the observations. NumPyro's own tools accept it::

    Predictive(model, num_samples=100)(key, data, observed=())      # sampled parameters and data
    MCMC(NUTS(model), ...).run(key, data)                           # the posterior
    log_likelihood(model, draws, data)                              # one number per item and site

`observed` names the sites whose values are given; the others are sampled, in the shape of the data.
Labels may be partly known: they are -1 where unknown; the `label` of such an item is masked, and its
`votes` have the distribution for an unknown class.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int

from judgebayes.models.distributions import LEAST, PanelVotes
from judgebayes.models.label_noise import class_given_label, with_label_noise

Sites = Mapping[str, Array]


@dataclass(frozen=True)
class Traits:
    """The data that a program is fitted to."""

    sites: tuple[str, ...]
    """Its observed sites, in order."""
    enters: Literal["labelled items", "all items", "items with a count", "all cells"]
    """The items that enter the likelihood; the others are masked."""
    given: tuple[str, ...] = ()
    """Data that the program conditions on and does not generate."""
    latent_data: tuple[str, ...] = ()
    """Sites that are sampled together with the data, but are data where these are observed."""


@runtime_checkable
class Model(Protocol):
    """A generative program with its hyper-parameters."""

    @property
    def traits(self) -> Traits:
        """The data that it is fitted to."""
        ...

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the axes of its `quantities`, if it has any that are no sites.

        `quantities(sites, data)` returns the reported quantities of one draw, on the scale of the
        docstring; without it, these are the parameters. `coords`, if defined, has the names along axes
        that are specific to the program. A site's axes are its plates, then its `event_dims`, which is
        what ArviZ reads (`axes`).
        """
        ...

    def __call__(self, data: Any, *, observed: Collection[str] | None = None) -> None:
        """Sample parameters and data; sites in `observed` (by default all) take the data's values."""
        ...


@runtime_checkable
class Predictor(Protocol):
    """A program that predicts the labels, or counts of correct votes, of items."""

    def predict(self, sites: Sites, data: Any) -> Float[Array, "item class"]:
        """Return the log-probabilities that scores are computed from, under one draw.

        These are of the items' true labels, given everything except their labels, or of counts if the
        program observes counts.
        """
        ...


class PanelData(NamedTuple):
    """Votes of a panel, and partly known labels."""

    votes: Int[Array, "item judge sample"]
    """Class indices, -1 where a vote is missing."""
    labels: Int[Array, " item"]
    """Class indices, -1 where unknown."""
    weight: Float[Array, " item"] | None = None
    """Powers to which the items' likelihoods are raised; 0 equals a dropped item."""


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


def drawn(name: str, observed: Collection[str] | None) -> bool:
    """Return whether a site is sampled instead of observed."""
    return observed is not None and name not in observed


def observe(
    name: str,
    distribution: dist.Distribution,
    value: Int[Array, "item ..."],
    used: Bool[Array, " item"] | None,
    weight: Float[Array, " item"] | None,
    observed: Collection[str] | None,
    event_dims: tuple[str, ...] = (),
) -> Int[Array, "item ..."]:
    """Sample a site with one value per item, or condition on its value if the site is observed.

    Items that are not `used`, or have weight 0, are masked if the site is observed; the other
    log-probabilities are multiplied by their weights. The mask is needed because
    `numpyro.handlers.scale` does not accept 0.
    """
    n_items = value.shape[0]
    given = not drawn(name, observed)
    counts = jnp.ones(n_items, bool) if used is None or not given else used
    weight = jnp.ones(n_items) if weight is None else weight
    counts = counts & (weight > 0)
    with (
        numpyro.plate("item", n_items),
        numpyro.handlers.mask(mask=counts),
        numpyro.handlers.scale(scale=jnp.where(counts, weight, 1.0)),
    ):
        infer = {"event_dims": event_dims}
        sample: Array = numpyro.sample(
            name, distribution, obs=value if given else None, infer=infer
        )
    return sample


def observe_label(
    log_probs: Float[Array, "item class"],
    labels: Int[Array, " item"],
    weight: Float[Array, " item"] | None,
    observed: Collection[str] | None,
    noise: float | Float[Array, ""] = 0.0,
) -> tuple[Int[Array, " item"], Bool[Array, " item"]]:
    """Sample `label` with label noise; return the labels, and whether each is known."""
    labelled = labels >= 0
    category = dist.Categorical(logits=jnp.maximum(with_label_noise(log_probs, noise), LEAST))
    sample = observe("label", category, jnp.maximum(labels, 0), labelled, weight, observed)
    return sample, jnp.ones_like(labelled) if drawn("label", observed) else labelled


def observe_panel(
    log_class: Float[Array, "item class"],
    panel: Callable[[Float[Array, "item class"]], PanelVotes],
    data: Any,
    observed: Collection[str] | None,
    *,
    noise: float | Float[Array, ""] = 0.0,
    labelled_only: bool = False,
) -> None:
    """Sample `label`, then `votes` given it; together they are p(z) p(votes | z).

    Parameters
    ----------
    log_class
        The log prior of the items' classes.
    panel
        The votes' distribution given the log-probabilities of the true class.
    data
        Votes, labels and weights, as in `PanelData`.
    noise
        The known share of the labels that are wrong.
    labelled_only
        Whether the votes on items without a label are masked.
    """
    labels, labelled = observe_label(log_class, data.labels, data.weight, observed, noise)
    votes = panel(class_given_label(log_class, labels, labelled, noise))
    used = labelled if labelled_only else None
    observe("votes", votes, data.votes, used, data.weight, observed, ("judge", "repeat"))
