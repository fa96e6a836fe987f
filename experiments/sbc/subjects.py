"""The programs whose samplers are checked, by name. A new program needs an entry here.

Truth and data are drawn from the program itself (`engine.of_program`); an entry gives the shape of the
data, which labels are hidden, and the library's fit.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from judgebayes import (
    BayesianMap,
    Beta,
    Davidson,
    DawidSkene,
    HierarchicalDavidson,
    OneCoin,
    Platt,
    SharedDifficulty,
    Stacking,
    Temperature,
)
from judgebayes.aggregators.davidson import tasks_of
from judgebayes.experiments.betaconform import pooled_beta_binomial as pooled_model
from judgebayes.experiments.betaconform.pooled_beta_binomial import (
    PooledBetaBinomialModel,
    PooledData,
)
from judgebayes.experiments.betaconform.pooling import PooledBetaBinomial
from judgebayes.experiments.beyond_consensus.flat_program import FlatModel
from judgebayes.experiments.beyond_consensus.generator_counts import Counted
from judgebayes.experiments.beyond_consensus.generator_validator import TARGET, GeneratorValidator
from judgebayes.experiments.beyond_consensus.hierarchical_program import HierarchicalModel
from judgebayes.experiments.beyond_consensus.robust_program import RobustModel
from judgebayes.experiments.sbc.engine import Subject, of_program
from judgebayes.generators.counts import PrecisionCounts
from judgebayes.inference import NUTS
from judgebayes.inference.problem import Chains, Problem
from judgebayes.item_response import ItemResponse
from judgebayes.majority import BetaBinomial, Counts, SplitCurve
from judgebayes.models import beta_binomial as beta_binomial_model
from judgebayes.models import davidson as davidson_model
from judgebayes.models import irt as irt_model
from judgebayes.models import stacking as stacking_model
from judgebayes.models.base import PanelData, ProbsData
from judgebayes.models.beta_binomial import BetaBinomialModel, CountData, Parameters
from judgebayes.models.calibration_maps import CalibrationMapModel
from judgebayes.models.davidson import DavidsonData, DavidsonModel
from judgebayes.models.dawid_skene import DawidSkeneModel
from judgebayes.models.hierarchical_davidson import HierarchicalDavidsonModel
from judgebayes.models.item_validator import ItemModel
from judgebayes.models.one_coin import OneCoinModel
from judgebayes.models.opinion_pool import OpinionPoolModel
from judgebayes.models.shared_difficulty import SharedDifficultyModel
from judgebayes.models.split_curve import SplitCurveModel, SplitData, split_data
from judgebayes.models.stacking import Form, StackingData, StackingModel
from judgebayes.votes import Votes, from_counts

SAMPLER = NUTS(draws=500, warmup=500, chains=2)
SHORT = NUTS(draws=250, warmup=250, chains=2, target_accept=TARGET)
"""For programs whose metric is that of the normal at the mode, with their own short steps."""
ITEMS, JUDGES, SKIPPED = 60, 4, 0.1
TEST_ITEMS, TEST_JUDGES = 10, 6
GENERATORS, LABELLED, OUTPUTS = 4, 2, 40
FEW_ITEMS, FEW_JUDGES, FEW_GENERATORS = 24, 3, 2
VOTES = 4
MOST = 7
N_VOTES = np.where(np.arange(ITEMS) % 7 == 0, 4, MOST)
SETS = 3
SET_ITEMS = (10, 20, 30)
ERROR = "error"
PROGRAMS_OF_COUNTS = {
    "flat": FlatModel,
    "hierarchical": HierarchicalModel,
    "robust": RobustModel,
}
UNCENTRED = stacking_model.StackingPrior(kappa=0.0)


def some_votes(n_classes: int, n_tasks: int = 0) -> Votes:
    """Return up to four votes of one judge on sixty items; some have fewer, one item has none."""
    rng = np.random.default_rng(0)
    quality = 1.5 * rng.normal(size=(ITEMS, 1)) * np.linspace(-1, 1, n_classes)
    probs = np.exp(quality) / np.exp(quality).sum(1, keepdims=True)
    counts = rng.multinomial(np.where(np.arange(ITEMS) % 7 == 0, 2, VOTES), probs)
    counts[0] = 0
    votes = from_counts(counts)
    if not n_tasks:
        return votes
    task = jnp.asarray(np.arange(ITEMS) % n_tasks, jnp.int32)
    return Votes(votes.index, votes.score, votes.order, task, n_classes, n_tasks)


def blank_votes(items: int = ITEMS, judges: int = JUDGES, skipped: float = SKIPPED) -> Array:
    """Return votes of class 0 where one is cast and -1 where it is skipped, from a fixed seed."""
    skipped_votes = np.random.default_rng(3).uniform(size=(items, judges)) < skipped
    return jnp.where(jnp.asarray(skipped_votes), -1, 0)[..., None]


def unlabelled(items: int = ITEMS) -> Array:
    """Return labels of class 0 everywhere: only their shape matters."""
    return jnp.zeros(items, int)


def sixth_hidden(data: Any) -> Any:
    """Return the data with every sixth label or count unknown."""
    name = "labels" if hasattr(data, "labels") else "correct"
    values = getattr(data, name)
    return data._replace(**{name: jnp.where(jnp.arange(len(values)) % 6 == 5, -1, values)})


def half_hidden(data: Any) -> Any:
    """Return the data with every second label unknown."""
    return data._replace(labels=jnp.where(jnp.arange(len(data.labels)) % 2 == 0, data.labels, -1))


def votes_of(index: Int[Array, "item judge 1"], n_classes: int = 2) -> Votes:
    """Return an array of votes as `Votes`."""
    return Votes(index.astype(jnp.int8), None, None, None, n_classes)


def chains_of(fitted: Any) -> Chains:
    """Return the chains of a fit by NUTS."""
    assert fitted.chains is not None
    return fitted.chains


def davidson(n_classes: int, symmetric: bool) -> Subject:
    votes = some_votes(n_classes)
    evidence = davidson_model.features(votes.pooled_counts(), symmetric=symmetric)

    def fit(data: DavidsonData, key: PRNGKeyArray) -> Chains:
        method = Davidson(SAMPLER, symmetric=symmetric)
        return chains_of(method.fit(votes, data.labels, key=key))

    form = "symmetric" if symmetric else "free"
    return of_program(
        f"Davidson, {form} form, {n_classes} classes",
        DavidsonModel(n_classes, symmetric),
        DavidsonData(evidence, unlabelled()),
        fit,
        hide=sixth_hidden,
    )


def hierarchical(n_tasks: int) -> Subject:
    votes = some_votes(3, n_tasks)
    evidence = davidson_model.features(votes.pooled_counts())

    def fit(data: DavidsonData, key: PRNGKeyArray) -> Chains:
        return chains_of(HierarchicalDavidson(SAMPLER).fit(votes, data.labels, key=key))

    return of_program(
        f"Hierarchical Davidson, {n_tasks} tasks",
        HierarchicalDavidsonModel(n_tasks, 3),
        DavidsonData(evidence, unlabelled(), task=tasks_of(votes)),
        fit,
        hide=sixth_hidden,
    )


def one_coin() -> Subject:
    """Return the one-coin model, whose posterior has a closed form."""

    def fit(data: PanelData, key: PRNGKeyArray) -> Chains:
        values = OneCoin().fit(votes_of(data.votes), data.labels).first
        draws = jax.random.beta(key, values["alpha"], values["beta"], (2, 500, JUDGES))
        nothing = jnp.zeros((2, 500))
        return Chains({"accuracy": draws}, nothing > 0, nothing, nothing, nothing)

    return of_program(
        "One coin, the conjugate posterior",
        OneCoinModel(2),
        PanelData(blank_votes(), unlabelled()),
        fit,
    )


def dawid_skene(n_classes: int) -> Subject:
    """Return Dawid and Skene's model, with labels for every second item."""

    def fit(data: PanelData, key: PRNGKeyArray) -> Chains:
        votes = votes_of(data.votes, n_classes)
        return chains_of(DawidSkene(SAMPLER).fit(votes, data.labels, key=key))

    return of_program(
        f"Dawid-Skene, {n_classes} classes",
        DawidSkeneModel(n_classes),
        PanelData(blank_votes(), unlabelled()),
        fit,
        hide=half_hidden,
    )


def stacking(symmetric: bool) -> Subject:
    """Return logistic stacking, with weights centred at zero.

    The default centre is learnt from the same labels (empirical Bayes), so it is not a prior from
    which to draw.
    """
    cast = np.asarray(blank_votes()[..., 0])
    random_votes = np.random.default_rng(1).integers(0, 2, cast.shape)
    index = jnp.asarray(np.where(cast < 0, -1, random_votes))[..., None]
    form = Form(JUDGES, 2, symmetric)

    def fit(data: StackingData, key: PRNGKeyArray) -> Chains:
        method = Stacking(SAMPLER, symmetric=symmetric, prior=UNCENTRED)
        return chains_of(method.fit(votes_of(index), data.labels, key=key))

    name = "symmetric" if symmetric else "free"
    return of_program(
        f"Stacking, {name} form",
        StackingModel(form, UNCENTRED),
        StackingData(index, jnp.zeros(JUDGES), unlabelled()),
        fit,
        hide=sixth_hidden,
    )


def shared_difficulty(n_classes: int, symmetric: bool) -> Subject:
    """Return the votes of judges who share an item's difficulty: on pairs, or on given classes."""

    def fit(data: PanelData, key: PRNGKeyArray) -> Chains:
        votes = votes_of(data.votes, n_classes)
        return chains_of(SharedDifficulty(SAMPLER, symmetric).fit(votes, data.labels, key=key))

    form = "symmetric form" if symmetric else f"free form, {n_classes} classes"
    return of_program(
        f"Shared difficulty, {form}",
        SharedDifficultyModel(n_classes, symmetric),
        PanelData(blank_votes(), unlabelled()),
        fit,
    )


def opinion_pool() -> Subject:
    """Return the pool of two methods with three classes, given random answers."""
    logits = np.random.default_rng(2).normal(0, 2, (ITEMS, 2, 3))
    program = OpinionPoolModel(3, symmetric=False)

    def fit(data: ProbsData, key: PRNGKeyArray) -> Chains:
        chains = SAMPLER.solve(Problem(program, data), key).chains
        assert chains is not None
        return chains

    return of_program(
        "Opinion pool, free form, 3 classes",
        program,
        ProbsData(jax.nn.log_softmax(jnp.asarray(logits)), unlabelled()),
        fit,
        hide=sixth_hidden,
    )


def split_curve(n_classes: int) -> Subject:
    """Return the split curve by class, given random splits."""
    votes = np.random.default_rng(1).integers(0, n_classes, (ITEMS, VOTES))
    given = jnp.stack([jnp.asarray((votes == k).sum(1)) for k in range(n_classes)], axis=1)

    def fit(data: SplitData, key: PRNGKeyArray) -> Chains:
        chains = SAMPLER.solve(SplitCurve().problem(data), key).chains
        assert chains is not None
        return chains

    return of_program(
        f"Split curve, {n_classes} classes",
        SplitCurveModel(n_classes, by_class=True),
        split_data(given, unlabelled()),
        fit,
        hide=sixth_hidden,
    )


def calibration_map(own: Temperature | Platt | Beta, n_classes: int) -> Subject:
    """Return a calibration map of answers with normal logits."""
    logits = 2 * np.random.default_rng(4).normal(size=(ITEMS, n_classes))
    log_probs = jax.nn.log_softmax(jnp.asarray(logits))

    def fit(data: ProbsData, key: PRNGKeyArray) -> Chains:
        return chains_of(BayesianMap(own, SAMPLER).fit(log_probs, data.labels, key=key))

    return of_program(
        f"{type(own).__name__} map, {n_classes} classes",
        CalibrationMapModel(n_classes, own.form),
        ProbsData(log_probs, unlabelled()),
        fit,
        hide=sixth_hidden,
    )


def item_response() -> Subject:
    """Return the two-parameter logistic model of six judges on ten labelled items."""

    def fit(data: PanelData, key: PRNGKeyArray) -> Chains:
        method = ItemResponse(prior=irt_model.ItemResponsePrior(), inference=SAMPLER)
        return chains_of(method.fit(votes_of(data.votes), data.labels, key=key))

    blank = PanelData(blank_votes(TEST_ITEMS, TEST_JUDGES, 0.0), unlabelled(TEST_ITEMS))
    model = irt_model.ItemResponseModel(2)
    return of_program("2PL, six judges on ten items", model, blank, fit)


def correct_votes(components: int) -> Subject:
    """Return the Beta-Binomial, or the mixture of two: seven votes per item, four on some items.

    The error of a majority is ranked too, since the labels of the two components could be exchanged.
    """
    n_votes = jnp.asarray(N_VOTES)

    def fit(data: CountData, key: PRNGKeyArray) -> Chains:
        method = BetaBinomial(components, SAMPLER)
        return chains_of(method.fit(Counts(data.correct, n_votes, MOST), key=key))

    return of_program(
        "Beta-Binomial" if components == 1 else "Mixture of two Beta-Binomials",
        BetaBinomialModel(MOST, components),
        CountData(jnp.zeros(ITEMS, int), n_votes),
        fit,
        hide=sixth_hidden,
        more=lambda sites: {ERROR: majority_error(beta_binomial_model.parameters(sites))},
    )


def pooled_votes() -> Subject:
    """Return the pooled mixture over three data sets of ten, twenty and thirty items."""
    n_votes = jnp.asarray(N_VOTES)
    ends = np.cumsum(SET_ITEMS)[:-1]

    def fit(data: PooledData, key: PRNGKeyArray) -> Chains:
        parts = zip(jnp.split(data.correct, ends), jnp.split(n_votes, ends), strict=True)
        sets = [Counts(own, votes, MOST) for own, votes in parts]
        return chains_of(PooledBetaBinomial(SAMPLER).fit(sets, key=key))

    member = jnp.asarray(np.repeat(np.arange(SETS), SET_ITEMS))
    return of_program(
        f"Pooled mixture, {SETS} data sets",
        PooledBetaBinomialModel(SETS, MOST),
        PooledData(jnp.zeros(ITEMS, int), n_votes, member),
        fit,
        hide=sixth_hidden,
        more=lambda sites: {ERROR: jax.vmap(majority_error)(pooled_model.set_parameters(sites))},
    )


def majority_error(theta: Parameters) -> Float[Array, ""]:
    """Return the error of a majority of all votes."""
    return beta_binomial_model.majority_error(theta, MOST)


def generator_validator(form: Any) -> Subject:
    """Return the generator-validator model of counts: forty outputs of each of four generators.

    Two generators are labelled. Judges are independent given the rates, as in the model.
    """
    labelled = np.arange(GENERATORS) < LABELLED
    cells = np.broadcast_to(labelled[:, None], (GENERATORS, JUDGES))
    nothing, everything = (jnp.zeros((GENERATORS, JUDGES)) + n for n in (0.0, OUTPUTS))
    blank = Counted(
        accepted=nothing,
        judged=jnp.where(cells, nothing, everything),
        true_accepted=nothing,
        valid_judged=jnp.where(cells, everything, nothing),
        false_accepted=nothing,
        invalid_judged=nothing,
        valid=jnp.zeros(GENERATORS),
        labelled=jnp.where(labelled, float(OUTPUTS), 0.0),
    )

    def fit(data: Counted, key: PRNGKeyArray) -> Chains:
        counts = PrecisionCounts(
            **{name: x for name, x in data._asdict().items() if name != "labelled"},
            invalid=data.labelled - data.valid,
            unlabelled=OUTPUTS - data.labelled,
        )
        sampler = SAMPLER if form == "flat" else SHORT
        return chains_of(GeneratorValidator(program, sampler).fit(counts, key=key))

    program = PROGRAMS_OF_COUNTS[form](most_labelled=OUTPUTS)
    return of_program(f"Generators and judges, {form} form", program, blank, fit)


def generator_validator_items() -> Subject:
    """Return the item-level model: three judges on twelve outputs of each of two generators.

    Every second label is known. Data are small and chains short, because trajectories are long: with
    few items, the parameters of generators and judges are correlated.
    """
    sampler = NUTS(draws=250, warmup=300, chains=2)
    generator = jnp.arange(FEW_ITEMS) % FEW_GENERATORS
    cast = blank_votes(FEW_ITEMS, FEW_JUDGES)
    program = ItemModel(FEW_GENERATORS)

    def fit(data: PanelData, key: PRNGKeyArray) -> Chains:
        return chains_of(sampler.solve(Problem(program, data), key))

    def half(data: PanelData) -> PanelData:
        labelled = jnp.arange(FEW_ITEMS) % 4 < FEW_GENERATORS
        return data._replace(labels=jnp.where(labelled, data.labels, -1))

    return of_program(
        "Generators and judges, items",
        program,
        PanelData(cast, unlabelled(FEW_ITEMS), generator=generator),
        fit,
        hide=half,
    )


SUBJECTS: Mapping[str, Callable[[], Subject]] = {
    "davidson": partial(davidson, 3, True),
    "davidson-free": partial(davidson, 3, False),
    "davidson-binary": partial(davidson, 2, False),
    "davidson-hierarchical": partial(hierarchical, 3),
    "beta-binomial": partial(correct_votes, 1),
    "beta-binomial-mixture": partial(correct_votes, 2),
    "beta-binomial-pooled": pooled_votes,
    "one-coin": one_coin,
    "dawid-skene": partial(dawid_skene, 2),
    "dawid-skene-3": partial(dawid_skene, 3),
    "stacking": partial(stacking, True),
    "stacking-free": partial(stacking, False),
    "shared-difficulty": partial(shared_difficulty, 2, True),
    "shared-difficulty-free": partial(shared_difficulty, 3, False),
    "opinion-pool": opinion_pool,
    "split-curve": partial(split_curve, 2),
    "split-curve-3": partial(split_curve, 3),
    "temperature-map": partial(calibration_map, Temperature(), 2),
    "platt-map": partial(calibration_map, Platt(), 2),
    "beta-map": partial(calibration_map, Beta(), 3),
    "irt": item_response,
    "generator-validator-flat": partial(generator_validator, "flat"),
    "generator-validator": partial(generator_validator, "hierarchical"),
    "generator-validator-robust": partial(generator_validator, "robust"),
    "generator-validator-items": generator_validator_items,
}
"""Functions, so that nothing is drawn or compiled at import."""
