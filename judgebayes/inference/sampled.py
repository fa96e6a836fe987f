"""Draws of a program in ArviZ's container, with all groups that its functions and our checks use.

One implementation for every fit by NUTS and for `judgebayes posterior`: the content of the groups is
derived from the program (`judgebayes.models.base`) and its data.

Quantities derived from a program and its data: draws of both, and the likelihood of each item.

Nothing here is specific to a model: a program is run under NumPyro's handlers. The functions run inside
compiled code; callers hold `inference.numpyro_lock`, because NumPyro has one stack of handlers.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jaxtyping import Array, Float, Int
from jaxtyping import Key as Keys

from judgebayes.arrays import ItemValues, Key
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import posterior
from judgebayes.inference.problem import Chains, Problem, Sites, numpyro_lock
from judgebayes.inference.status import shortened, status_text
from judgebayes.models.base import Model, Predictor, axes, unobserved, with_label_noise
from judgebayes.votes.array import Data, Votes

D = TypeVar("D")


def drawn_from_prior(
    model: Model, data: Any, key: Key, observed: Collection[str] = ()
) -> tuple[Sites, Sites]:
    """Return parameters drawn from the prior, and data given them in the shape of `data`."""
    trace = numpyro.handlers.trace(numpyro.handlers.seed(model, key))
    sites = trace.get_trace(unobserved(model, data, observed))
    values = {n: s["value"] for n, s in sites.items() if s["type"] == "sample"}
    generated = {n: x for n, x in values.items() if n in _generated(model) and n not in observed}
    return {n: x for n, x in values.items() if n not in _generated(model)}, generated


def replicated(
    model: Model, data: Any, key: Key, sites: Sites, observed: Collection[str] = ()
) -> Sites:
    """Return replicated data for one draw of the parameters; `observed` sites keep their values."""
    substituted = numpyro.handlers.substitute(numpyro.handlers.seed(model, key), data=dict(sites))
    blank = unobserved(model, data, observed)
    trace = numpyro.handlers.trace(substituted).get_trace(blank)
    return {n: trace[n]["value"] for n in _generated(model) if n in trace and n not in observed}


def log_likelihoods(model: Model, data: Any, sites: Sites) -> dict[str, Float[Array, "..."]]:
    """Return the log-likelihood of every item (or cell) by observed site, masked ones 0.

    Weights are left out: it is what `numpyro.infer.log_likelihood` returns, for one draw.
    """
    substituted = numpyro.handlers.substitute(model, data=dict(sites))
    trace = numpyro.handlers.trace(substituted).get_trace(data)
    return {n: trace[n]["fn"].log_prob(trace[n]["value"]) for n in model.traits.sites}


def pointwise(model: Model, data: Any, sites: Sites) -> dict[str, ItemValues]:
    """Return the log-likelihoods of each item by site, as leave-one-out cross-validation needs them.

    For a label given the votes this is `predict` at the label, with label noise; for other sites the
    log-likelihood of the site. A program that integrates out an item's own parameters defines its own
    `pointwise`.
    """
    own = getattr(model, "pointwise", None)
    if own is not None:
        declared: dict[str, ItemValues] = own(sites, data)
        return declared
    each = log_likelihoods(model, data, sites)
    if "label" in each and isinstance(model, Predictor):
        label = jnp.maximum(data.labels, 0)[:, None]
        log_probs = with_label_noise(model.predict(sites, data), getattr(model, "noise", 0.0))
        each["label"] = jnp.take_along_axis(log_probs, label, axis=1)[:, 0]
    return each


def quantities(model: Model, data: Any, sites: Sites) -> Sites:
    """Return the reported quantities of one draw: the program's `quantities`, or its parameters."""
    own = getattr(model, "quantities", None)
    values: Sites = dict(sites) if own is None else own(sites, data)
    return values


def filled(data: D, drawn: Mapping[str, Array]) -> D:
    """Return the data with drawn values in place of the observed ones."""
    own = getattr(data, "filled", None)
    replace: Any = data._replace if own is None else own  # type: ignore[attr-defined]
    return replace(**{_field(name): x for name, x in drawn.items()})


def _field(site: str) -> str:
    """Return the name in the data of a site's values."""
    return "labels" if site == "label" else site


def _generated(model: Model) -> tuple[str, ...]:
    """Return all sites that generate data."""
    return (*model.traits.sites, *model.traits.latent_data)


REPLICATIONS = 500
"""The most replicated data sets, from the prior and from the posterior each."""
LEAST = 100
CELLS = 2e7
"""The most numbers in all replications together, beyond `LEAST` replications."""
SLAB = 50
"""Draws processed together."""
STATISTIC, STATISTICS = "statistic", "statistics"
"""The axis and the variable of summary statistics of the data, in the predictive groups."""

Statistics = Callable[[Mapping[str, np.ndarray]], dict[str, float]]
"""Summary statistics of one data set, observed or replicated."""
F = TypeVar("F", bound="Sampled")


@dataclass(frozen=True, kw_only=True)
class Described:
    """A program with data, the names of its axes, and its descriptions for users.

    The functions take the sites of one draw, and run inside compiled code.
    """

    problem: Problem
    """The sampled problem; its data may contain each distinct item once, with a weight."""
    data: Any
    """The data with every item."""
    coords: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """The names along the axes; axes without names count from 0."""
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names of axes besides those that the program declares."""
    constrained: Callable[[Sites, Key], Sites] | None = None
    """Maps a draw to the reported quantities; the program's `quantities` if None."""
    statistics: Statistics | None = None
    """Summary statistics of data by site, observed or replicated."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """A description of each reported variable."""
    shown: tuple[str, ...] = ()
    """The variables that summary and forest plot show."""
    watched: tuple[str, ...] | None = None
    """The variables on which chains must agree; all if None."""
    advice: str = ""
    """What to try if the replications differ from the data."""
    words: tuple[str, ...] = ()
    """Notes for the user about this model and data."""

    @property
    def given(self) -> tuple[str, ...]:
        """Sites that keep their observed values in replicated data: labels, if votes are generated."""
        return ("label",) if "votes" in self.problem.model.traits.sites else ()

    @cached_property
    @numpyro_lock
    def _of_sites(self) -> dict[str, tuple[str, ...]]:
        return axes(self.problem.model, self.problem.data)

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """The names of all axes; the item axis of a site with labelled items only is `labelled_item`."""
        named = {**self._of_sites, **getattr(self.problem.model, "dims", {}), **self.dims}
        for site in self.problem.model.traits.sites:
            if self.used_items(site) is not None and self._only_labelled(site):
                named[site] = tuple("labelled_item" if n == "item" else n for n in named[site])
        return named

    @property
    def names(self) -> dict[str, list[Any]]:
        """The names along all axes that have names."""
        declared = getattr(self.problem.model, "coords", {})
        coords = {name: list(of) for name, of in {**declared, **self.coords}.items()}
        for site in self.problem.model.traits.sites:
            positions = self.used_items(site)
            axis = self.axes[site][0]
            if positions is not None and axis not in coords:
                items = self.coords.get("item")
                coords[axis] = [int(i) if items is None else items[int(i)] for i in positions]
        return coords

    @property
    def observed(self) -> dict[str, np.ndarray]:
        """The data by site, without the sites in `given`."""
        arrays = {}
        for name in self.problem.model.traits.sites:
            if name not in self.given:
                array = np.asarray(getattr(self.data, _field(name)))
                dtype = np.int8 if name in ("label", "votes") else np.int32
                array = array.astype(dtype) if self.generates else array
                arrays[name] = self._restrict(name, array)
        return arrays

    @property
    def generates(self) -> bool:
        """Whether data can be replicated: not where they say that they are fractions of items."""
        return getattr(self.data, "whole", True)

    def used_items(self, site: str) -> Int[np.ndarray, " some"] | None:
        """Return the positions of the items that enter a site; None where it has no item axis."""
        if "item" not in self._of_sites[site]:
            return None
        value = np.asarray(getattr(self.data, _field(site)))
        weight = np.ones(len(value)) if self.data.weight is None else np.asarray(self.data.weight)
        used = weight > 0
        if self._only_labelled(site):
            used &= np.asarray(getattr(self.data, "labels", value)) >= 0
        return np.flatnonzero(used)

    def _only_labelled(self, site: str) -> bool:
        enters = self.problem.model.traits.enters
        return enters in ("labelled items", "items with a count") or site == "label"

    def _restrict(self, site: str, array: Any) -> Any:
        positions = self.used_items(site)
        return array if positions is None or len(positions) == len(array) else array[positions]

    def reported(self, sites: Sites, key: Key) -> Sites:
        """Return the reported quantities of a draw, on the scale of the model's docstring."""
        if self.constrained is not None:
            return self.constrained(sites, key)
        return quantities(self.problem.model, self.data, sites)

    def pointwise(self, sites: Sites) -> dict[str, Float[Array, "..."]]:
        """Return the log-likelihood of every used item, or cell, by site."""
        each = pointwise(self.problem.model, self.data, sites)
        restricted = {name: self._restrict(name, x) for name, x in each.items()}
        return {name: x for name, x in restricted.items() if x.size}

    def replicate(self, key: Key, sites: Sites) -> Sites:
        """Return replicated data of the shape of `observed`."""
        drawn = replicated(self.problem.model, self.data, key, sites, self.given)
        return {n: self._restrict(n, drawn[n]).astype(x.dtype) for n, x in self.observed.items()}


@dataclass(frozen=True, repr=False)
class Sampled:
    """What every fit of a method has: draws of the values that it estimated, and their status."""

    method: Any
    draws: Sites
    """The estimated values by name, with a leading axis of draws: one of a point estimate, or many of a
    posterior."""
    status: Int[Array, "*batch"]
    """The status of the fit, a `Status` as a number."""
    details: dict[str, Array] = field(default_factory=dict)
    """What else is known of the fit, by name, such as its `objective`: no axis of draws."""
    parts: dict[str, Any] = field(default_factory=dict)
    """The fits of the methods inside this one, by the name of their role."""
    chains: Chains | None = None

    _unsampled: ClassVar[str] = (
        "is a point estimate and has no posterior; fit with inference=NUTS()."
    )

    @in_float64
    def to_arviz(self, coords: Mapping[str, Sequence[Any]] | None = None, *, seed: int = 0) -> Any:
        """Return the fit as ArviZ's own container, for its summaries, PSIS-LOO, plots and files.

        InferenceData before ArviZ 1.0, a DataTree from it on. Its groups:

        - ``posterior`` (chain, draw, ...): the parameters on the scale of the program's docstring,
          or its `quantities` where it declares them: accuracies, shares and precisions are
          probabilities; Davidson's parameters and the weights of stacking are log-odds; abilities are
          in standard deviations of judges. Components are ordered, the harder first, and classes are
          identified by the labels or the starts, so that chains do not switch labels.
        - ``sample_stats``: diverging, energy, tree_depth, acceptance_rate.
        - ``log_likelihood`` by site (chain, draw, item): log p of an item's votes given its label
          (the label summed out where it is unknown), of its label given its votes, of its number
          of correct votes, or of a cell's counts, for PSIS-LOO. Items that do not enter the
          likelihood are left out; weights other than 0 are not multiplied in.
        - ``observed_data``; ``posterior_predictive`` and ``prior_predictive`` (up to 500 draws):
          replicated data, with votes where votes were observed and given the known labels.
          Absent where counts are fractions of items, which cannot be drawn.
        - ``prior`` (1, draw, ...): draws of the same quantities from the prior.
        - ``log_prior`` by parameter of the program (chain, draw): its log-density under the prior
          given the other parameters, for power-scaling of the prior.

        Parameters
        ----------
        coords
            Names by axis: "item" (every item, in the order of the fit), "judge", "class", "vote",
            "level", "task", "generator", "set". `Coding.coords` has those of a table. Axes without
            names count from 0; "labelled_item" takes its names from "item".
        seed
            The seed of the predictive draws.

        Raises
        ------
        JudgeBayesError
            If the fit is a point estimate, one of a batch, or was made inside compiled code.
        """
        chains = self.chains
        if chains is None:
            why = getattr(self.method, "unsampled", self._unsampled)
            raise JudgeBayesError(f"This fit of {type(self.method).__name__} {why}")
        if chains.source is None:
            raise JudgeBayesError(
                "This fit does not store its data, because it is one of a batch or was made inside "
                "compiled code; fit it separately, without jit and vmap."
            )
        problem = self.method.problem(*chains.source)
        shape = chains.diverging.shape
        more = {n: jnp.asarray(x).reshape(*shape, -1) for n, x in self._more_quantities().items()}
        view = Described(problem=problem, data=problem.data, coords=coords or {})
        keys = jax.random.split(jax.random.key(seed), 5)[1:]
        attributes = {
            "model": type(self.method).__name__,
            **_data_attributes(chains.source, coords or {}),
        }
        return container(view, chains, keys, more=more, attributes=attributes)

    def _more_quantities(self) -> Mapping[str, Float[Array, "draw any"]]:
        """Return further quantities of each draw, which the program does not define."""
        return {}

    @property
    def first(self) -> Sites:
        """The values of the first draw, the only one of a point estimate."""
        return {name: x[0] for name, x in self.draws.items()}

    @property
    def n_draws(self) -> int:
        """The number of draws; 1 for a point estimate."""
        return next((len(x) for x in self.draws.values()), 1)

    def mean(self, name: str) -> Float[np.ndarray, " *shape"]:
        """Return the mean of a value over the draws."""
        return np.asarray(np.asarray(self.draws[name]).mean(0))

    def __repr__(self) -> str:
        """Return the method's name, the values' means, the number of draws, and the status."""
        means = {
            name: x[0] if isinstance(x, jax.core.Tracer) else self.mean(name)
            for name, x in self.draws.items()
        }
        shown = [f"{name} {shortened(x)}" for name, x in means.items()]
        shown += [f"{name} {part!r}" for name, part in self.parts.items()]
        n_draws = {np.shape(x)[:1] for x in self.draws.values()}
        drawn = f"{min(n_draws)[0]} draws, " if self.chains is not None else ""
        return f"{type(self.method).__name__} fit({', '.join(shown)}; {drawn}{status_text(self.status)})"


def _data_attributes(
    data: Sequence[Any], coords: Mapping[str, Sequence[Any]]
) -> dict[str, str | int]:
    """Return attributes that identify the votes and labels, so that comparisons can check them."""
    if len(data) < 2 or not isinstance(data[0], Votes) or np.ndim(data[1]) != 1:
        return {}
    votes = data[0]
    sizes = {"item": votes.n_items, "judge": votes.index.shape[1], "class": votes.n_classes}
    names = {axis: tuple(map(str, coords.get(axis, range(n)))) for axis, n in sizes.items()}
    data_set = Data(votes, np.asarray(data[1]), names["item"], names["judge"], names["class"])
    return {"data": data_set.sizes(), "data_checksum": data_set.checksum()}


def with_source(fit: F, *data: Any) -> F:
    """Return a sampled fit together with its data; return other fits unchanged.

    Inside compiled code and in a batch of fits the data are not stored: each fit would copy them.
    """
    chains = fit.chains
    if chains is None or any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves((fit, data))):
        return fit
    own_data = jax.tree.map(lambda x: jnp.array(x) if hasattr(x, "__array__") else x, data)
    return replace(fit, chains=replace(chains, source=own_data))


def container(
    view: Described,
    chains: Chains,
    keys: Keys[Array, " 4"],
    *,
    more: Sites | None = None,
    attributes: Mapping[str, str | int] | None = None,
) -> Any:
    """Return draws of a program in ArviZ's container, as described in `Sampled.to_arviz`.

    Parameters
    ----------
    view
        The program, its data, and the names of the axes. With `statistics`, observed and replicated
        data have a variable of this name as well.
    chains
        The draws of the program's sites.
    keys
        Random keys: of reported quantities, of the prior (two), and of replicated data.
    more
        Further quantities (chain, draw, ...), for the posterior.
    attributes
        Attributes of the container.

    Raises
    ------
    JudgeBayesError
        If these are the chains of several fits at once.
    """
    if chains.diverging.ndim != 2:
        raise JudgeBayesError(
            f"These chains have the shape {chains.diverging.shape} and not (chain, draw), because "
            "they contain several fits. Select one fit."
        )
    coords, axes = view.names, view.axes
    draws, computed = _computed(view, chains, keys)
    chains = replace(chains, draws=draws | (more or {}))
    groups = {"observed_data": view.observed, **computed}
    if view.statistics is not None:
        numbers = view.statistics(view.observed)
        for name in ("prior_predictive", "posterior_predictive"):
            groups[name][STATISTICS] = _statistics(view.statistics, groups[name], list(numbers))
        groups["observed_data"][STATISTICS] = np.array(list(numbers.values()))
        coords, axes = coords | {STATISTIC: list(numbers)}, axes | {STATISTICS: (STATISTIC,)}
    return posterior.to_arviz(
        chains,
        groups,
        coords=coords,
        dims=axes,
        attributes={"meanings": json.dumps(dict(view.meanings)), **(attributes or {})},
    )


def _computed(
    view: Described, chains: Chains, keys: Keys[Array, " 4"]
) -> tuple[Sites, dict[str, dict[str, np.ndarray]]]:
    """Return the reported quantities of every draw, and what is computed from draws by group."""
    names, prior_key, prior_names, replicate = keys
    n_chains, n_draws = chains.diverging.shape
    thinned = _thinning(view, n_chains, n_draws)
    n = len(thinned) * n_chains

    @jax.jit
    @numpyro_lock
    def of_draws(flat: Sites, keys: Keys[Array, " draw"]) -> tuple[Sites, Sites, Sites]:
        def of(at: tuple[Sites, Key]) -> tuple[Sites, Sites, Sites]:
            return view.reported(*at), view.pointwise(at[0]), view.problem.log_prior(at[0])

        return jax.lax.map(of, (flat, keys), batch_size=SLAB)

    @jax.jit
    @numpyro_lock
    def predicted(
        first: Keys[Array, " draw"],
        names: Keys[Array, " draw"],
        keys: Keys[Array, " twice"],
        thin: Sites,
    ) -> tuple[Sites, Sites]:
        prior = jax.lax.map(view.problem.draw_prior, first)
        both = jax.tree.map(lambda *x: jnp.concatenate(x), prior, thin)
        reported = jax.lax.map(lambda at: view.reported(*at), (prior, names))
        return reported, (
            jax.lax.map(lambda at: view.replicate(*at), (keys, both)) if view.generates else {}
        )

    def flat(draws: Sites) -> Sites:
        return {name: x.reshape(-1, *x.shape[2:]) for name, x in draws.items()}

    def by_chain(tree: Sites, chains: int) -> dict[str, np.ndarray]:
        return {k: np.asarray(x).reshape(chains, -1, *x.shape[1:]) for k, x in tree.items()}

    own, log_likelihood, log_prior = of_draws(
        flat(chains.draws), jax.random.split(names, n_chains * n_draws)
    )
    prior, replicated = predicted(
        jax.random.split(prior_key, n),
        jax.random.split(prior_names, n),
        jax.random.split(replicate, 2 * n),
        flat({name: x[:, thinned] for name, x in chains.draws.items()}),
    )
    groups = {
        "log_likelihood": by_chain(log_likelihood, n_chains),
        "log_prior": by_chain(log_prior, n_chains),
        "prior": by_chain(prior, 1),
    }
    if replicated:
        groups["prior_predictive"] = by_chain({k: x[:n] for k, x in replicated.items()}, 1)
        groups["posterior_predictive"] = by_chain(
            {k: x[n:] for k, x in replicated.items()}, n_chains
        )
    return {k: jnp.asarray(x) for k, x in by_chain(own, n_chains).items()}, groups


def _thinning(view: Described, n_chains: int, n_draws: int) -> np.ndarray:
    """Return the evenly spaced draws of every chain from which data are replicated."""
    cells = sum(x.size for x in view.observed.values())
    n_replications = int(np.clip(CELLS / max(cells, 1), LEAST, REPLICATIONS))
    each = min(-(-n_replications // n_chains), n_draws)
    return np.linspace(0, n_draws - 1, each).round().astype(int)


def _statistics(
    of: Statistics, replicated: Mapping[str, np.ndarray], names: list[str]
) -> Float[np.ndarray, "chain replication statistic"]:
    """Return the statistics of each replicated data set."""
    n_chains, n = next(iter(replicated.values())).shape[:2]
    rows = [
        of({name: x[chain, i] for name, x in replicated.items()})
        for chain in range(n_chains)
        for i in range(n)
    ]
    return np.array([[row[name] for name in names] for row in rows]).reshape(n_chains, n, -1)
