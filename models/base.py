"""What a generative program is, and how its observed sites are sampled.

A program is a frozen object that is called with its data and runs `numpyro.sample` for the parameters
and for what is observed. NumPyro's own tools take it as it is::

    Predictive(model, num_samples=100)(key, data, observed=())      # parameters and data, drawn
    MCMC(NUTS(model), ...).run(key, data)                           # the posterior
    log_likelihood(model, draws, data)                              # a number per item and site

`observed` names the sites whose values are given; the others are drawn, in the shape of the data. So
that labels are known in part, they are -1 where unknown: such an item's `label` is masked, and its
`votes` are those of an item of unknown class.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Bool, Float, Int

from judgebayes.models.distributions import LEAST, PanelVotes
from judgebayes.models.label_noise import class_given_label, with_label_noise

__all__ = [
    "Model",
    "PanelData",
    "Predictor",
    "Sites",
    "Traits",
    "drawn",
    "observe",
    "observe_label",
    "observe_panel",
    "uniform_class",
]

Sites = Mapping[str, Array]


@dataclass(frozen=True)
class Traits:
    """What a program learns from."""

    sites: tuple[str, ...]
    """Its observed sites, in their order."""
    enters: Literal["labelled items", "all items", "items with a count", "all cells"]
    """What counts in the likelihood; the rest is masked."""
    given: tuple[str, ...] = ()
    """Data that the program conditions on and does not generate."""
    latent_data: tuple[str, ...] = ()
    """Sites that are drawn with the data, and are given data where these are observed."""


@runtime_checkable
class Model(Protocol):
    """A generative program with its hyper-parameters."""

    @property
    def traits(self) -> Traits:
        """What it learns from."""
        ...

    @property
    def dims(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the axes of each site, and of each of its `quantities`, where it has any.

        `quantities(sites, data)` returns what a reader looks at of one draw, on the scale of the
        story; of a program without it, its parameters. `coords`, where it has it, names places along
        axes that are the program's own.
        """
        ...

    def __call__(self, data: Any, *, observed: Collection[str] | None = None) -> None:
        """Sample parameters and data; sites in `observed` (all by default) have the data's values."""
        ...


@runtime_checkable
class Predictor(Protocol):
    """A program with items whose labels, or counts of correct votes, it predicts."""

    def predict(self, sites: Sites, data: Any) -> Float[Array, "item class"]:
        """Return the log-probabilities of what scores look at, under one draw.

        Of the items' true labels, from all but their labels; of counts, where these are observed.
        """
        ...


class PanelData(NamedTuple):
    """Votes of a panel and what is known of the labels."""

    votes: Int[Array, "item judge sample"]
    """Class indices, -1 where a vote is missing."""
    labels: Int[Array, " item"]
    """Class indices, -1 where unknown."""
    weight: Float[Array, " item"] | None = None
    """Powers to which the items' likelihoods are raised; 0 equals a dropped item."""


def uniform_class(n_items: int, n_classes: int) -> Float[Array, "item class"]:
    """Return the log-probabilities of classes that are equally likely before the votes are seen."""
    return jnp.full((n_items, n_classes), -jnp.log(n_classes))


def drawn(name: str, observed: Collection[str] | None) -> bool:
    """Tell whether a site is drawn and not given."""
    return observed is not None and name not in observed


def observe(
    name: str,
    distribution: dist.Distribution,
    value: Int[Array, "item ..."],
    used: Bool[Array, " item"] | None,
    weight: Float[Array, " item"] | None,
    observed: Collection[str] | None,
) -> Int[Array, "item ..."]:
    """Sample a site with a number an item: at its value if it is observed, else drawn.

    Items that are not `used`, or whose weight is 0, count for nothing where the site is observed; the
    others' log-probabilities are multiplied by their weights. `numpyro.handlers.scale` refuses 0,
    hence the mask.
    """
    n_items = value.shape[0]
    given = not drawn(name, observed)
    seen = jnp.ones(n_items, bool) if used is None or not given else used
    weight = jnp.ones(n_items) if weight is None else weight
    seen = seen & (weight > 0)
    with (
        numpyro.plate("item", n_items),
        numpyro.handlers.mask(mask=seen),
        numpyro.handlers.scale(scale=jnp.where(seen, weight, 1.0)),
    ):
        at: Array = numpyro.sample(name, distribution, obs=value if given else None)
    return at


def observe_label(
    log_probs: Float[Array, "item class"],
    labels: Int[Array, " item"],
    weight: Float[Array, " item"] | None,
    observed: Collection[str] | None,
    noise: float | Float[Array, ""] = 0.0,
) -> tuple[Int[Array, " item"], Bool[Array, " item"]]:
    """Sample `label`, of which a share is wrong; return the labels, and which are known."""
    known = labels >= 0
    category = dist.Categorical(logits=jnp.maximum(with_label_noise(log_probs, noise), LEAST))
    at = observe("label", category, jnp.maximum(labels, 0), known, weight, observed)
    return at, jnp.ones_like(known) if drawn("label", observed) else known


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
        The items' classes before label and votes are seen.
    panel
        The votes' distribution given the log-probabilities of the true class.
    data
        Votes, labels and weights, as in `PanelData`.
    noise
        The known share of the labels that are wrong.
    labelled_only
        Whether the votes of items without a label count for nothing.
    """
    labels, known = observe_label(log_class, data.labels, data.weight, observed, noise)
    votes = panel(class_given_label(log_class, labels, known, noise))
    observe("votes", votes, data.votes, known if labelled_only else None, data.weight, observed)
