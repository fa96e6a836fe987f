"""The share of a generator's items that are valid, given the votes of biased judges.

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

Flat: the rates depend on the judge only, TPR_ij = TPR_j, as in the paper. Hierarchical: every
generator shifts its judges' rates on the logit scale::

    logit k_ij = kappa_j + u_i,   logit q_ij = a_j + lambda eta_i + d_i,   eta_i = logit g_i
    TPR_ij = k_ij + (1 - k_ij) q_ij,   1 - TNR_ij = (1 - k_ij) q_ij

where k is the probability that the judge *knows* whether the item is valid, and q the probability that
it otherwise accepts, by its impression of the generator. The shifts u_i and d_i are common to all
judges of a generator, so that the errors of judges on the same items are correlated. Each cell also has
its own deviation e_ij of the logits of TPR_ij, 1 - TNR_ij and P_ij (one judge's preference for one
generator's style), which is summed out (`judgebayes.models.cell_votes`)::

    u_i ~ Normal(0, sigma_u), d_i ~ Normal(0, sigma_d), e_ij ~ Normal(0, sigma_cell)
    eta_i ~ Normal(mu_g, 1.5)

`judgebayes.models.robust_validator` is the form in which no single cell decides.

Item level, for votes by item: the label of an unlabelled item is latent and summed out, and so is an
item's leaning z_i ~ Normal(0, 1), a common effect on all of its judges, which correlates their errors
on the item::

    logit P(vote_ij = 1 | label = 1) = alpha_j + tau z_i + w_1g
    logit P(vote_ij = 1 | label = 0) = alpha_j - gap_j + tau z_i + w_0g
    w_yg ~ Normal(follow (eta_g - mu_g), sigma_y)

with g the item's generator: its shifts partly follow its quality and are partly independent of it.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float, Int

from judgebayes.models.base import Sites, Traits, drawn, observe_panel
from judgebayes.models.cell_votes import CellVotes, Deviations, normal_deviations, vote_logits
from judgebayes.models.distributions import Hypergeometric, LeaningVotes, QuasiBinomial

Scalar = float | Float[Array, ""]
Pair = tuple[Scalar, Scalar]

POINTS = 15
"""Nodes of the quadrature over an item's leaning."""


class FlatPrior(NamedTuple):
    """The Beta priors, (a, b), of shares and rates."""

    g: Pair = (1.0, 1.0)
    """The share of a generator's items that are valid."""
    tpr: Pair = (2.0, 1.0)
    fpr: Pair = (1.0, 1.0)


class HierarchicalPrior(NamedTuple):
    """Normal priors, (location, scale), of the means, and spreads of judges and generators."""

    slope: Pair = (0.9, 0.3)
    """lambda."""
    impression: Pair = (0.0, 1.0)
    """The mean over judges of a_j."""
    knowledge: Pair = (-0.5, 1.5)
    """The mean over judges of kappa_j."""
    quality: Pair = (1.5, 1.5)
    """The mean over generators of eta_i."""
    judge_spread: Scalar = 0.7
    """The standard deviation of a_j and of kappa_j over judges."""
    quality_spread: Scalar = 1.5
    """The standard deviation of eta_i over generators."""
    log_sigma_d: Pair = (math.log(0.28), 0.5)
    log_sigma_u: Pair = (math.log(0.4), 0.5)
    log_sigma_cell: Pair = (math.log(0.15), 0.5)


class ItemPrior(NamedTuple):
    """Normal priors, (location, scale), of the item level; spreads are standard deviations."""

    lenience: Pair = (2.0, 1.5)
    """The mean over judges of alpha_j."""
    discernment: Pair = (1.5, 1.0)
    """The mean over judges of gap_j."""
    quality: Pair = (1.5, 1.5)
    """The mean over generators of eta_g."""
    judge_spread: Scalar = 0.7
    """The standard deviation of alpha_j and of gap_j over judges."""
    quality_spread: Scalar = 1.5
    """The standard deviation of eta_g over generators."""
    log_sigma_invalid: Pair = (math.log(0.3), 0.5)
    """sigma_0, of the generators' shifts on invalid items."""
    log_sigma_valid: Pair = (math.log(0.3), 0.5)
    """sigma_1, on valid items."""
    follow: Pair = (0.5, 0.5)
    log_tau: Pair = (0.0, 0.7)
    """log tau, the spread of the leanings; not a parameter if judges are independent given the label."""


def normals(name: str, axis: str, *priors: Pair) -> Array:
    """Sample independent normal values as one site; a common scale stays a plain number."""
    location, scale = zip(*priors, strict=True)
    shared = all(type(x) is float and x == scale[0] for x in scale)
    normal = dist.Normal(jnp.array(location), scale[0] if shared else jnp.array(scale))
    with numpyro.plate(axis, len(priors)):
        sample: Array = numpyro.sample(name, normal)
    return sample


class Counted(NamedTuple):
    """The data of the model: counts by generator and judge, 0 where there are no votes."""

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

    def filled(self, **drawn: Array) -> "Counted":
        """Return the counts with sampled values in place; invalid judged items are the remainder."""
        if "accepted_by_label" in drawn:
            by_label = drawn.pop("accepted_by_label")
            names = ("true_accepted", "false_accepted", "accepted")
            drawn |= {name: by_label[..., place] for place, name in enumerate(names)}
        judged = self.valid_judged + self.invalid_judged
        counts = self._replace(**{name: x.astype(judged.dtype) for name, x in drawn.items()})
        return counts._replace(invalid_judged=judged - counts.valid_judged)


def link(
    g: Float[Array, " generator"],
    tpr: Float[Array, "*generator judge"],
    fpr: Float[Array, "*generator judge"],
) -> Float[Array, "generator judge"]:
    """Return P_ij = g_i TPR_ij + (1 - g_i) FPR_ij (P4 eq 1)."""
    return g[:, None] * tpr + (1 - g[:, None]) * fpr


def _observe(
    name: str, count: Array, n: Array, p: Array, *, whole: bool, observed: Collection[str] | None
) -> Array:
    """Sample independent binomial counts; fractional counts have the quasi-likelihood."""
    p = jnp.clip(p, 1e-9, 1 - 1e-9)
    counts = dist.Binomial(n.astype(int), p) if whole else QuasiBinomial(n, p)
    value = count.astype(int) if whole else count
    sample: Array = numpyro.sample(name, counts, obs=None if drawn(name, observed) else value)
    return sample


@contextmanager
def cells(data: Counted) -> Iterator[None]:
    """Enter the plates of generators and judges."""
    generators, judges = data.judged.shape
    with numpyro.plate("generator", generators, dim=-2), numpyro.plate("judge", judges, dim=-1):
        yield


def _observe_labels(
    data: Counted, g: Array, options: dict[str, Any], most_labelled: int
) -> tuple[Array, Array]:
    """Sample the labels; return how many valid and invalid items each judge voted on.

    Given are the number of labelled items, and how many labelled and unlabelled items each judge voted
    on. The number of valid items among a judge's labelled items depends on the labels: if these are
    sampled, it is sampled too, without replacement.
    """
    with numpyro.plate("generator", len(g)):
        valid = _observe("valid", data.valid, data.labelled, g, **options)
    if not drawn("valid", options["observed"]):
        return data.valid_judged, data.invalid_judged
    judged = (data.valid_judged + data.invalid_judged).astype(int)
    total = data.labelled.astype(int)[:, None]
    most = most_labelled or _most_labelled(data)
    of_valid = Hypergeometric(total, valid[:, None], judged, most)
    with cells(data):
        valid_judged = numpyro.sample("valid_judged", of_valid)
    return valid_judged, judged - valid_judged


def observe_cells(
    data: Counted,
    quality: Float[Array, " generator"],
    logits: Float[Array, "3 generator judge"],
    sigma: Array,
    deviations: Deviations,
    log_odds: Float[Array, " judge"] | None = None,
    *,
    whole: bool,
    most_labelled: int,
    observed: Collection[str] | None,
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
    sigma, deviations, log_odds, whole
        As in `CellVotes`.
    most_labelled
        As in `FlatModel`.
    observed
        The sites whose values are given; all if None.
    """
    options: dict[str, Any] = {"whole": whole, "observed": observed}
    by_label = _observe_labels(data, jax.nn.sigmoid(quality), options, most_labelled)
    total = jnp.stack([*by_label, data.judged], axis=-1)
    votes = CellVotes(total, jnp.moveaxis(logits, 0, -1), sigma, deviations, log_odds, whole=whole)
    given = None if drawn(BY_LABEL, observed) else jnp.asarray(data.accepted_by_label)
    with cells(data):
        numpyro.sample(BY_LABEL, votes, obs=given, infer={"event_dims": ("of_label",)})


def _most_labelled(data: Counted) -> int:
    """Return the size of the table of counts of labelled items."""
    if isinstance(data.labelled, jax.core.Tracer):
        raise ValueError(
            "To sample counts inside compiled code, set most_labelled=... of the program."
        )
    return int(np.asarray(data.labelled).max())


BY_LABEL = "accepted_by_label"
GIVEN = ("labelled", "labelled_judged", "judged")


@dataclass(frozen=True)
class FlatModel:
    """The program whose judges have the same rates on all generators.

    g ~ Beta(1, 1), TPR ~ Beta(2, 1) and FPR ~ Beta(1, 1) by default. Sites: `g` (generator), `tpr`
    and `fpr` (judge); `valid` (generator), `true_accepted`, `false_accepted`, `accepted` (generator,
    judge).
    """

    prior: FlatPrior = FlatPrior()
    whole: bool = True
    """Whether counts are whole; fractions have a quasi-likelihood and cannot be sampled."""
    most_labelled: int = 0
    """An upper bound of the labelled items of a generator, a static size; 0 takes it from the data."""
    traits: ClassVar[Traits] = Traits(
        ("valid", "true_accepted", "false_accepted", "accepted"),
        "all cells",
        GIVEN,
        ("valid_judged",),
    )
    dims: ClassVar[dict[str, tuple[str, ...]]] = {
        "precision": ("generator",),
    }

    def __call__(self, data: Counted, *, observed: Collection[str] | None = None) -> None:
        """Sample g, TPR and FPR, then the counts."""
        generators, judges = data.judged.shape
        with numpyro.plate("generator", generators):
            g = numpyro.sample("g", dist.Beta(*self.prior.g))
        with numpyro.plate("judge", judges):
            tpr = numpyro.sample("tpr", dist.Beta(*self.prior.tpr))
            fpr = numpyro.sample("fpr", dist.Beta(*self.prior.fpr))
        wide = jnp.zeros((generators, 1))
        options: dict[str, Any] = {"whole": self.whole, "observed": observed}
        valid_judged, invalid_judged = _observe_labels(data, g, options, self.most_labelled)
        with cells(data):
            _observe("true_accepted", data.true_accepted, valid_judged, wide + tpr, **options)
            _observe("false_accepted", data.false_accepted, invalid_judged, wide + fpr, **options)
            _observe("accepted", data.accepted, data.judged, link(g, tpr, fpr), **options)


@dataclass(frozen=True)
class HierarchicalModel:
    """The program whose judges and generators are partially pooled; cells' deviations are summed out.

    Sites: `a`, `kappa` (judge), `eta` (generator), `impression` (generator, lambda eta + d), `u`
    (generator, in units of its spread); `slope`, `centre` (means of a, kappa, eta); `log_sigma` (d, u,
    cell); `valid` (generator) and `accepted_by_label` (generator, judge, label).
    """

    prior: HierarchicalPrior = HierarchicalPrior()
    whole: bool = True
    """Whether counts are whole numbers, as in `FlatModel`."""
    most_labelled: int = 0
    """As in `FlatModel`."""
    traits: ClassVar[Traits] = Traits(("valid", BY_LABEL), "all cells", GIVEN, ("valid_judged",))
    dims: ClassVar[dict[str, tuple[str, ...]]] = {
        "g": ("generator",),
        "precision": ("generator",),
    }
    coords: ClassVar[dict[str, list[str]]] = {
        "mean_of": ["a", "kappa", "eta"],
        "spread_of": ["d", "u", "cell"],
        "of_label": ["valid", "invalid", "none"],
    }

    def __call__(self, data: Counted, *, observed: Collection[str] | None = None) -> None:
        """Sample judges, generators and their shifts, then the counts."""
        prior, (generators, judges) = self.prior, data.judged.shape
        slope = numpyro.sample("slope", dist.Normal(*prior.slope))
        centre = normals("centre", "mean_of", prior.impression, prior.knowledge, prior.quality)
        spreads = prior.log_sigma_d, prior.log_sigma_u, prior.log_sigma_cell
        sigma = jnp.exp(normals("log_sigma", "spread_of", *spreads))
        with numpyro.plate("judge", judges):
            a = numpyro.sample("a", dist.Normal(centre[0], prior.judge_spread))
            kappa = numpyro.sample("kappa", dist.Normal(centre[1], prior.judge_spread))
        with numpyro.plate("generator", generators):
            eta, impression, u = self._of_generators(data, slope, centre[2], sigma)
        logits = vote_logits(*impressions(a, kappa, eta, impression, u))
        observe_cells(
            data,
            eta,
            logits,
            sigma[2],
            normal_deviations(),
            whole=self.whole,
            most_labelled=self.most_labelled,
            observed=observed,
        )

    def _of_generators(
        self,
        data: Counted,  # noqa: ARG002
        slope: Array,
        mean: Array,
        sigma: Array,
    ) -> tuple[Array, Array, Array]:
        """Sample eta, lambda eta + d, and u of each generator."""
        eta = numpyro.sample("eta", dist.Normal(mean, self.prior.quality_spread))
        # The votes determine each sum of both, and not the shift d by itself.
        impression = numpyro.sample("impression", dist.Normal(slope * eta, sigma[0]))
        return eta, impression, sigma[1] * numpyro.sample("u", dist.Normal())

    def for_sampler(
        self, data: Counted
    ) -> tuple["HierarchicalModel", Callable[[dict[str, Array]], dict[str, Array]]]:
        """Return the program in parameters that are less dependent, and the map back to these sites."""
        labelled, spread = jnp.asarray(data.labelled) > 0, self.prior.quality_spread

        def back(sites: dict[str, Array]) -> dict[str, Array]:
            sigma = jnp.exp(sites["log_sigma"])
            slope, mean, impression = sites["slope"], sites["centre"][2], sites["impression"]
            location, scale = quality_given(impression, slope, mean, sigma[0], spread)
            eta = jnp.where(labelled, sites["eta"], location + scale * sites["eta"])
            return {**sites, "eta": eta, "u": sites["u"] / sigma[1]}

        return _Sampled(self.prior, self.whole, self.most_labelled), back

    def quantities(self, sites: Sites, data: Counted) -> dict[str, Array]:  # noqa: ARG002
        """Return g, and the sites."""
        return {"g": jax.nn.sigmoid(sites["eta"]), **sites}


@dataclass(frozen=True)
class _Sampled(HierarchicalModel):
    """The program with `u` in logits, and `eta` standardised given the impression where it has no label.

    Without labels, the votes determine a generator's impression better than its quality.
    """

    def _of_generators(
        self, data: Counted, slope: Array, mean: Array, sigma: Array
    ) -> tuple[Array, Array, Array]:
        spread, labelled = self.prior.quality_spread, data.labelled > 0
        own = dist.Normal(jnp.where(labelled, mean, 0.0), jnp.where(labelled, spread, 1.0))
        sampled = numpyro.sample("eta", own)
        total = jnp.sqrt((slope * spread) ** 2 + sigma[0] ** 2)
        around_quality = dist.Normal(
            slope * jnp.where(labelled, sampled, mean), jnp.where(labelled, sigma[0], total)
        )
        impression = numpyro.sample("impression", around_quality)
        location, scale = quality_given(impression, slope, mean, sigma[0], spread)
        eta = jnp.where(labelled, sampled, location + scale * sampled)
        return eta, impression, numpyro.sample("u", dist.Normal(0.0, sigma[1]))


def quality_given(
    impression: Float[Array, " generator"], slope: Array, mean: Array, sigma: Array, spread: Scalar
) -> tuple[Float[Array, " generator"], Float[Array, ""]]:
    r"""Return the mean and standard deviation of eta given :math:`\lambda \eta + d`.

    They are those of a regression, with eta ~ Normal(mean, spread) and d ~ Normal(0, sigma).
    """
    total = (slope * spread) ** 2 + sigma**2
    location = mean + slope * spread**2 / total * (impression - slope * mean)
    return location, spread * sigma / jnp.sqrt(total)


def impressions(
    a: Float[Array, " judge"],
    kappa: Float[Array, " judge"],
    eta: Float[Array, " generator"],
    impression: Float[Array, " generator"],
    u: Float[Array, " generator"],
) -> tuple[Array, Array, Array]:
    """Return the logits of accepting by impression, of knowing, and of g, for every cell."""
    own = jnp.zeros((len(eta), len(a)))
    return own + a + impression[:, None], own + kappa + u[:, None], own + eta[:, None]


class ItemSites(NamedTuple):
    """The item-level parameters, on the logit scale."""

    eta: Float[Array, " generator"]
    alpha: Float[Array, " judge"]
    gap: Float[Array, " judge"]
    tau: Float[Array, ""]
    shift: Float[Array, "class generator"]
    """w, invalid items first."""


def item_sites(sites: Mapping[str, Array], prior: ItemPrior) -> ItemSites:
    """Return the parameters of one draw of `ItemModel`'s sites, which are in units of its prior."""
    eta = sites["centre"][2] + prior.quality_spread * sites["eta"]
    sigma = jnp.exp(sites["log_sigma"])
    shift = sites["follow"] * prior.quality_spread * sites["eta"] + sigma[:, None] * sites["w"]
    return ItemSites(
        eta,
        sites["centre"][0] + prior.judge_spread * sites["alpha"],
        sites["centre"][1] + prior.judge_spread * sites["gap"],
        jnp.exp(sites["log_tau"]) if "log_tau" in sites else jnp.zeros(()),
        shift,
    )


class ItemData(NamedTuple):
    """Items with their votes, labels and generators."""

    votes: Int[Array, "item judge 1"]
    """1 valid, 0 invalid, -1 missing."""
    labels: Int[Array, " item"]
    """Likewise, -1 unknown."""
    generator: Int[Array, " item"]
    """From 0; given."""
    weight: Float[Array, " item"] | None = None
    """Powers to which the items' likelihoods are raised; 0 equals a dropped item."""


@dataclass(frozen=True)
class ItemModel:
    """The program of items: labels and leanings are summed out.

    Sites: `alpha`, `gap` (judge), `eta` (generator) and `w` (class, generator), all in units of
    their spread; `centre` (means of alpha, gap, eta), `log_tau` (unless judges are `independent`
    given the label), `log_sigma` (class), `follow`; `label` (item), `votes` (item, judge, 1).
    """

    n_generators: int
    points: int = POINTS
    """Nodes of the quadrature over an item's leaning."""
    independent: bool = False
    """Whether judges are independent given the label, without leanings; then one node suffices."""
    prior: ItemPrior = ItemPrior()
    traits: ClassVar[Traits] = Traits(("label", "votes"), "all items", given=("generator",))
    dims: ClassVar[dict[str, tuple[str, ...]]] = {
        "precision": ("generator",),
        "quality": ("generator",),
        "tpr": ("judge",),
        "tnr": ("judge",),
        "lenience": ("judge",),
        "discernment": ("judge",),
        "shift": ("class", "generator"),
    }

    def __call__(self, data: ItemData, *, observed: Collection[str] | None = None) -> None:
        """Sample judges, generators and their shifts, then labels and votes."""
        prior = self.prior
        spreads = prior.log_sigma_invalid, prior.log_sigma_valid
        sites = {
            "centre": normals(
                "centre", "mean_of", prior.lenience, prior.discernment, prior.quality
            ),
            "log_sigma": normals("log_sigma", "class", *spreads),
            "follow": numpyro.sample("follow", dist.Normal(*prior.follow)),
        }
        with numpyro.plate("judge", data.votes.shape[1]):
            sites["alpha"] = numpyro.sample("alpha", dist.Normal())
            sites["gap"] = numpyro.sample("gap", dist.Normal())
        with numpyro.plate("generator", self.n_generators):
            sites["eta"] = numpyro.sample("eta", dist.Normal())
            with numpyro.plate("class", 2):
                sites["w"] = numpyro.sample("w", dist.Normal())
        if not self.independent:
            sites["log_tau"] = numpyro.sample("log_tau", dist.Normal(*prior.log_tau))
        at = item_sites(sites, prior)
        observe_panel(
            self._log_class(at, data),
            lambda log_class: self._votes(log_class, at, data),
            data,
            observed,
        )

    def quantities(self, sites: Sites, data: ItemData) -> dict[str, Array]:  # noqa: ARG002
        """Return qualities and the judges' rates as probabilities, the rest in logits."""
        own = item_sites(sites, self.prior)
        return {
            "quality": jax.nn.sigmoid(own.eta),
            "tpr": self._rate(own.alpha, own.tau),
            "tnr": 1 - self._rate(own.alpha - own.gap, own.tau),
            "leaning": own.tau,
            "lenience": own.alpha,
            "discernment": own.gap,
            "shift": own.shift,
        }

    def _rate(self, base: Float[Array, " judge"], tau: Array) -> Float[Array, " judge"]:
        """Return how often each judge accepts an item of a typical generator, leaning averaged."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(self.points)
        return jax.nn.sigmoid(base[:, None] + tau * nodes) @ jnp.asarray(weights / weights.sum())

    def predict(self, sites: Mapping[str, Array], data: ItemData) -> Float[Array, "item class"]:
        """Return the log-probabilities of the items' labels given their votes; invalid first."""
        at = item_sites(sites, self.prior)
        return self._votes(self._log_class(at, data), at, data).log_class_given(data.votes)

    def _log_class(self, at: ItemSites, data: ItemData) -> Float[Array, "item class"]:
        own = at.eta[data.generator]
        return jnp.stack([jax.nn.log_sigmoid(-own), jax.nn.log_sigmoid(own)], axis=1)

    def _votes(
        self, log_class: Float[Array, "item class"], at: ItemSites, data: ItemData
    ) -> LeaningVotes:
        base = jnp.stack([at.alpha - at.gap, at.alpha])
        cast = data.votes >= 0
        return LeaningVotes(log_class, base, at.shift, at.tau, data.generator, cast, self.points)
