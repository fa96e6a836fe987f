"""Draws of a program in ArviZ's container, with all groups that its functions and our checks look at.

One implementation for every fit by NUTS and for `judgebayes posterior`: what the groups hold follows
from the program (`judgebayes.models.base`) and its data.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import derived, posterior
from judgebayes.inference.numpyro_lock import alone
from judgebayes.inference.problem import Chains, Problem, Sites, Source
from judgebayes.votes.array import Votes
from judgebayes.votes.data import Data

__all__ = [
    "STATISTIC",
    "STATISTICS",
    "Described",
    "Sampled",
    "Statistics",
    "container",
    "with_source",
]

REPLICATIONS = 500
"""Sets of data drawn anew, from the prior and from the posterior each."""
LEAST = 100
CELLS = 2e7
"""Numbers that replications may have together, beyond `LEAST` of them."""
SLAB = 50
"""Draws looked at together."""
STATISTIC, STATISTICS = "statistic", "statistics"
"""The axis and the variable of what a set of data looks like, in the predictive groups."""

Statistics = Callable[[Mapping[str, np.ndarray]], dict[str, float]]
"""Numbers that a user understands, of one set of data, observed or replicated."""
F = TypeVar("F")


@dataclass(frozen=True, kw_only=True)
class Described:
    """A program with data, and the names of its axes.

    The functions take the sites of one draw, and run inside compiled code.
    """

    problem: Problem
    """What is sampled; its data may hold each different item once, with a weight."""
    data: Any
    """The data with every item."""
    coords: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """The names along the axes, where there are any; those of items count from 0 otherwise."""
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names of axes beside those that the program tells."""
    constrained: Callable[[Sites, PRNGKeyArray], Sites] | None = None
    """The draw as a user wants it named; the program's `quantities` if None."""
    statistics: Statistics | None = None
    """Of data by the names of their sites, observed or drawn anew."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """What each shown variable is, in words."""

    @property
    def given(self) -> tuple[str, ...]:
        """Sites that keep their observed values where data are drawn anew: labels, under votes."""
        return ("label",) if "votes" in self.problem.model.traits.sites else ()

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """The names of all axes; a label's, and those of items that count if labelled, say so."""
        named = {**self.problem.model.dims, **self.dims}
        for site in self.problem.model.traits.sites:
            if self.entering(site) is not None and self._only_labelled(site):
                named[site] = tuple("labelled_item" if n == "item" else n for n in named[site])
        return named

    @property
    def names(self) -> dict[str, list[Any]]:
        """The names along all axes that have any."""
        known = getattr(self.problem.model, "coords", {})
        coords = {name: list(of) for name, of in {**known, **self.coords}.items()}
        for site in self.problem.model.traits.sites:
            place = self.entering(site)
            axis = self.axes[site][0]
            if place is not None and axis not in coords:
                items = self.coords.get("item")
                coords[axis] = [int(i) if items is None else items[int(i)] for i in place]
        return coords

    @property
    def observed(self) -> dict[str, np.ndarray]:
        """The data by the names of their sites, without what is given."""
        found = {}
        for name in self.problem.model.traits.sites:
            if name not in self.given:
                array = np.asarray(getattr(self.data, derived.FIELDS.get(name, name)))
                whole = np.int8 if name in ("label", "votes") else np.int32
                array = array.astype(whole) if self.generates else array
                found[name] = self._entered(name, array)
        return found

    @property
    def generates(self) -> bool:
        """Whether data can be drawn: not where counts are shares, which no distribution is of."""
        return bool(getattr(self.problem.model, "whole", True))

    def entering(self, site: str) -> Int[np.ndarray, " some"] | None:
        """Return the positions of the items that count at a site; None where it has no items."""
        if "item" not in self.problem.model.dims[site]:
            return None
        value = np.asarray(getattr(self.data, derived.FIELDS.get(site, site)))
        weight = np.ones(len(value)) if self.data.weight is None else np.asarray(self.data.weight)
        used = weight > 0
        if self._only_labelled(site):
            used &= np.asarray(getattr(self.data, "labels", value)) >= 0
        return np.flatnonzero(used)

    def _only_labelled(self, site: str) -> bool:
        enters = self.problem.model.traits.enters
        return enters in ("labelled items", "items with a count") or site == "label"

    def _entered(self, site: str, array: Any) -> Any:
        place = self.entering(site)
        return array if place is None or len(place) == len(array) else array[place]

    def told(self, sites: Sites, key: PRNGKeyArray) -> Sites:
        """Return the draw as a user wants it named: on the scale of the story."""
        if self.constrained is not None:
            return self.constrained(sites, key)
        return derived.quantities(self.problem.model, self.data, sites)

    def pointwise(self, sites: Sites) -> dict[str, Float[Array, "..."]]:
        """Return the log-likelihood of every item that counts, or cell, by site; of labels, known."""
        each = derived.pointwise(self.problem.model, self.data, sites)
        found = {name: self._entered(name, x) for name, x in each.items()}
        return {name: x for name, x in found.items() if x.size}

    def replicate(self, key: PRNGKeyArray, sites: Sites) -> Sites:
        """Return data drawn anew, of the shape of `observed`."""
        fresh = derived.replicated(self.problem.model, self.data, key, sites, self.given)
        return {n: self._entered(n, fresh[n]).astype(x.dtype) for n, x in self.observed.items()}


class Sampled:
    """A fit that may hold the draws of several `chains`; gives it `to_arviz`."""

    _unsampled: ClassVar[str] = (
        "is a point estimate and has no posterior: fit with inference=NUTS()."
    )

    @in_float64
    def to_arviz(self, coords: Mapping[str, Sequence[Any]] | None = None, *, seed: int = 0) -> Any:
        """Return the fit as ArviZ's own container, for its summaries, PSIS-LOO, plots and files.

        InferenceData before ArviZ 1.0, a DataTree from it on. Its groups:

        - ``posterior`` (chain, draw, ...): the parameters on the scale of the program's docstring
          and, where it declares `quantities`, these: accuracies, shares and precisions are
          probabilities, Davidson's parameters and the weights of stacking log-odds, abilities
          standard deviations of judges. Components stand harder first and classes under the names
          that the labels or the starts give them, so that chains do not switch labels.
        - ``sample_stats``: diverging, energy, tree_depth, acceptance_rate.
        - ``log_likelihood`` by site (chain, draw, item): log p of an item's votes given its label
          (the label summed out where it is unknown), of its label given its votes, of its number
          of correct votes, or of a cell's counts; what leaving the item out is about. Items that
          count for nothing are left out; weights other than 0 are not multiplied in.
        - ``observed_data``; ``posterior_predictive`` and ``prior_predictive`` (up to 500 draws):
          data drawn anew, votes where votes were given and under the labels as they are known.
          Left out where counts are shares of items, which cannot be drawn.
        - ``prior`` (1, draw, ...): draws of the same quantities from the prior.

        Parameters
        ----------
        coords
            Names by axis: "item" (every item, in the order of the fit), "judge", "class", "vote",
            "level", "task", "generator", "set". `Coding.coords` has those of a table. Axes without
            names count from 0, "labelled_item" the items as they were given.
        seed
            Of the predictive draws.

        Raises
        ------
        JudgeBayesError
            If the fit is a point estimate, one of a batch, or was made inside compiled code.
        """
        chains = getattr(self, "chains", None)
        if chains is None:
            raise JudgeBayesError(f"{type(self).__name__} {self._unsampled}")
        if chains.source is None:
            raise JudgeBayesError(
                "This fit does not hold the data that it was fitted to, because it is one of a batch "
                "or was made inside compiled code: fit it by itself, without jit and vmap."
            )
        problem = chains.source.method.problem(*chains.source.data)
        shape = chains.diverging.shape
        more = {n: jnp.asarray(x).reshape(*shape, -1) for n, x in self._more_quantities().items()}
        view = Described(problem=problem, data=problem.data, coords=coords or {})
        keys = jax.random.split(jax.random.key(seed), 5)[1:]
        attributes = {
            "model": type(chains.source.method).__name__,
            **_told_of(chains.source.data, coords or {}),
        }
        return container(view, chains, keys, more=more, attributes=attributes)

    def _more_quantities(self) -> Mapping[str, Float[Array, "draw any"]]:
        """Return quantities that the fit has of each draw and the program does not."""
        return {}


def _told_of(data: Sequence[Any], coords: Mapping[str, Sequence[Any]]) -> dict[str, str | int]:
    """Return what votes and labels these are, so that only posteriors of the same are compared."""
    if len(data) < 2 or not isinstance(data[0], Votes) or np.ndim(data[1]) != 1:
        return {}
    votes = data[0]
    sizes = {"item": votes.n_items, "judge": votes.index.shape[1], "class": votes.n_classes}
    names = {axis: tuple(map(str, coords.get(axis, range(n)))) for axis, n in sizes.items()}
    known = Data(votes, np.asarray(data[1]), names["item"], names["judge"], names["class"])
    return {"data": known.sizes(), "data_checksum": known.checksum()}


def with_source(fit: F, method: Any, *data: Any) -> F:
    """Return a sampled fit that holds what it was fitted to; others as they are.

    Inside compiled code, and in a batch of fits, the data would be copied for each: not there.
    """
    chains = getattr(fit, "chains", None)
    if chains is None or any(
        isinstance(x, jax.core.Tracer) for x in jax.tree.leaves((chains, method, data))
    ):
        return fit
    own = jax.tree.map(lambda x: jnp.array(x) if isinstance(x, np.ndarray) else x, data)
    kept = replace(chains, source=Source(method, own))
    return replace(fit, chains=kept)  # type: ignore[type-var]


def container(
    view: Described,
    chains: Chains,
    keys: Key[Array, " 4"],
    *,
    more: Sites | None = None,
    attributes: Mapping[str, str | int] | None = None,
) -> Any:
    """Return draws of a program in ArviZ's container, as `Sampled.to_arviz` tells.

    Parameters
    ----------
    view
        The program, its data, and the names of the axes. With `statistics`, observed and replicated
        data have a variable of this name as well.
    chains
        The draws of the program's sites.
    keys
        For draws of what quantities leave open, of the prior (two), and of replicated data.
    more
        Further quantities (chain, draw, ...), for the posterior.
    attributes
        What the container should know of itself.

    Raises
    ------
    JudgeBayesError
        If these are the chains of several fits at once.
    """
    if chains.diverging.ndim != 2:
        raise JudgeBayesError(
            f"These chains have the shape {chains.diverging.shape} and not (chain, draw): they are "
            "of several fits. Take one of them."
        )
    names, first, fresh, replicate = keys
    n_chains, n_draws = chains.diverging.shape
    flat = {name: x.reshape(-1, *x.shape[2:]) for name, x in chains.draws.items()}
    own, log_likelihood = _looked(view, flat, jax.random.split(names, n_chains * n_draws))

    def by_chain(tree: Mapping[str, Any], of: int = n_chains) -> dict[str, np.ndarray]:
        return {k: np.asarray(v).reshape(of, -1, *v.shape[1:]) for k, v in tree.items()}

    kept = _kept(view, n_chains, n_draws)
    thin = {name: x[:, kept].reshape(-1, *x.shape[2:]) for name, x in chains.draws.items()}
    n = len(kept) * n_chains
    prior, replicated = _replicated(
        view,
        jax.random.split(first, n),
        jax.random.split(fresh, n),
        jax.random.split(replicate, 2 * n),
        thin,
    )
    halves = [
        {name: np.asarray(x)[part] for name, x in replicated.items()}
        for part in (slice(None, n), slice(n, None))
    ]
    observed, coords, axes = view.observed, view.names, view.axes
    if view.statistics is not None:
        numbers = view.statistics(observed)
        for half in halves:
            half[STATISTICS] = _statistics(view.statistics, half, list(numbers))
        observed |= {STATISTICS: np.array(list(numbers.values()))}
        coords, axes = coords | {STATISTIC: list(numbers)}, axes | {STATISTICS: (STATISTIC,)}
    return posterior.to_arviz(
        replace(
            chains, draws={n: jnp.asarray(x) for n, x in (by_chain(own) | (more or {})).items()}
        ),
        log_likelihood=by_chain(log_likelihood),
        prior=by_chain(prior, 1),
        prior_predictive=by_chain(halves[0], 1) if halves[0] else None,
        posterior_predictive=by_chain(halves[1]) if halves[1] else None,
        observed=observed,
        coords=coords,
        dims=axes,
        attributes={"meanings": json.dumps(dict(view.meanings)), **(attributes or {})},
    )


def _looked(view: Described, flat: Sites, keys: Key[Array, " draw"]) -> tuple[Sites, Sites]:
    """Return every draw as a user wants it named, and its pointwise log-likelihoods."""

    @jax.jit
    @alone
    def look(flat: Sites, keys: Key[Array, " draw"]) -> tuple[Sites, Sites]:
        return jax.lax.map(
            lambda at: (view.told(*at), view.pointwise(at[0])), (flat, keys), batch_size=SLAB
        )

    return look(flat, keys)


def _replicated(
    view: Described,
    first: Key[Array, " draw"],
    names: Key[Array, " draw"],
    keys: Key[Array, " twice"],
    thin: Sites,
) -> tuple[Sites, Sites]:
    """Return draws of the prior, and data of the prior's and the posterior's draws."""

    @alone
    def drawn(key: PRNGKeyArray) -> Sites:
        trace = numpyro.handlers.trace(numpyro.handlers.seed(view.problem.prior, key)).get_trace()
        return {name: trace[name]["value"] for name in thin}

    @jax.jit
    @alone
    def replicate(
        first: Key[Array, " draw"],
        names: Key[Array, " draw"],
        keys: Key[Array, " twice"],
        thin: Sites,
    ) -> tuple[Sites, Sites]:
        prior = jax.lax.map(drawn, first)
        both = jax.tree.map(lambda *x: jnp.concatenate(x), prior, thin)
        told = jax.lax.map(lambda at: view.told(*at), (prior, names))
        return told, (
            jax.lax.map(lambda at: view.replicate(*at), (keys, both)) if view.generates else {}
        )

    return replicate(first, names, keys, thin)


def _kept(view: Described, n_chains: int, n_draws: int) -> np.ndarray:
    """Return which draws of every chain data are replicated from, evenly spread."""
    cells = sum(x.size for x in view.observed.values())
    wanted = int(np.clip(CELLS / max(cells, 1), LEAST, REPLICATIONS))
    each = min(-(-wanted // n_chains), n_draws)
    return np.linspace(0, n_draws - 1, each).round().astype(int)


def _statistics(
    of: Statistics, replicated: Mapping[str, np.ndarray], names: list[str]
) -> np.ndarray:
    """Return the statistics of each replicated set of data, replication x statistic."""
    n = len(next(iter(replicated.values())))
    rows = [of({name: x[i] for name, x in replicated.items()}) for i in range(n)]
    return np.array([[row[name] for name in names] for row in rows])
