"""Every estimator for which the laws are tested. A new estimator needs one line."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from laws.families import (
    AGGREGATOR,
    CALIBRATOR,
    CONFORMAL,
    DISTRIBUTION,
    FORMULA,
    ITEMS_OF_GENERATORS,
    LOSS,
    POOL,
    PRECISION,
    RESPONSE,
    STRATIFIED,
    UNDECIDED_VOTES,
    Family,
)
from scipy.special import softmax

from judgebayes import (
    DRPS,
    MAP,
    BaseRate,
    BayesianMap,
    Beta,
    Calibrated,
    Davidson,
    DawidSkene,
    HierarchicalDavidson,
    Identity,
    Isotonic,
    MajorityVote,
    MarginThreshold,
    MinimumScore,
    OneCoin,
    Platt,
    Pool,
    SharedDifficulty,
    Stacking,
    Temperature,
    VoteShare,
    WithUndecided,
    priors,
)
from judgebayes.calibrators.conformal import SplitConformal
from judgebayes.experiments.betaconform.binomial import Binomial
from judgebayes.experiments.betaconform.paper_em import PaperEM
from judgebayes.experiments.betaconform.pooling import PooledBetaBinomial
from judgebayes.experiments.beyond_consensus.fig6 import best_judge
from judgebayes.experiments.beyond_consensus.flat_program import FlatModel
from judgebayes.experiments.beyond_consensus.generator_validator import GeneratorValidator
from judgebayes.experiments.beyond_consensus.impression import Impression
from judgebayes.experiments.beyond_consensus.item_level import ItemLevel
from judgebayes.experiments.beyond_consensus.logit_shift import logit_shift
from judgebayes.experiments.beyond_consensus.regression import as_published, starts
from judgebayes.experiments.beyond_consensus.true_minimum import true_minimum
from judgebayes.experiments.calibrate_dont_curate.chain import Chain
from judgebayes.experiments.calibrate_dont_curate.curators import OnePerFamily, RandomPanel
from judgebayes.experiments.calibrate_dont_curate.item_response import LearntResponse
from judgebayes.experiments.calibrate_dont_curate.searches import (
    BackwardElimination,
    Beam,
    Exhaustive,
)
from judgebayes.experiments.calibrate_dont_curate.sparse_logistic import L1Logistic
from judgebayes.experiments.calibrate_dont_curate.weighted import AccuracyWeighted, LogOddsWeighted
from judgebayes.experiments.distribution_calibrated.confidence_votes import (
    ConfidenceVote,
    RoundedMedian,
    SoftVote,
)
from judgebayes.experiments.distribution_calibrated.minimum_loss import MinimumLoss
from judgebayes.experiments.distribution_calibrated.per_task import PerTask
from judgebayes.generators import Panel, mean_prediction, rogan_gladen
from judgebayes.generators.labelling import Stratified
from judgebayes.inference.registry import AGGREGATORS, CALIBRATORS
from judgebayes.item_response import ItemResponse
from judgebayes.majority import BetaBinomial, Thinning
from judgebayes.measures.scores import nll
from judgebayes.panel.judges import Curated, TopAccuracy, top_k
from judgebayes.workflow import methods

Prior = Callable[[Any, int, int], Any]
"""A function (fit, number of classes, group) -> probabilities of an item without votes."""


@dataclass(frozen=True)
class Case:
    """An estimator, and the laws that do not apply to it or do not hold."""

    family: Family
    estimator: Any
    prior: Prior | None = None
    lacks: dict[str, str] = field(default_factory=dict)
    """Laws that do not apply, and why, in addition to the family's."""
    breaks: dict[str, str] = field(default_factory=dict)
    """Laws that do not hold, and why; the test fails if one does hold."""
    classes: tuple[int, ...] = ()
    """The numbers of classes, if they are not the family's."""
    apart: float = 1e-6
    """The tolerance between two fits of the same data."""
    costly: bool = False
    """Takes seconds to compile: by default tested with one number of classes, in one precision."""
    slow_only: bool = False
    """Tested only in the slow tests, since other estimators share most of its code."""

    @property
    def reasons(self) -> dict[str, str]:
        """All laws that are not tested, and why."""
        return self.family.lacks | self.lacks

    @property
    def n_classes(self) -> tuple[int, ...]:
        """The numbers of classes, the usual one first."""
        return self.classes or self.family.classes


def uniform(_: Any, n_classes: int, __: int) -> Any:
    """Uniform probabilities."""
    return np.full(n_classes, 1 / n_classes)


def middle(_: Any, n_classes: int, __: int) -> Any:
    """The middle class of the scale, or both middle classes."""
    inside = np.isin(np.arange(n_classes), [(n_classes - 1) // 2, n_classes // 2])
    return inside / inside.sum()


def lowest(_: Any, n_classes: int, __: int) -> Any:
    """The lowest class."""
    return np.eye(n_classes)[0]


def _ends(inner: Any) -> Any:
    return np.concatenate([[0.0], np.ravel(inner), [0.0]])


def of_levels(n_classes: int, at_level: Any, offset: float, symmetric: bool) -> Any:
    """Return Davidson's probabilities at margin zero: x delta + eta0 by level."""
    from judgebayes.models.davidson import level_of_class, positions

    levels = np.asarray(level_of_class(n_classes, symmetric))
    eta = np.append(np.ravel(at_level), 0.0)[levels]
    return softmax(offset * positions(n_classes) + eta)


def davidson(fit: Any, n_classes: int, _: int) -> Any:
    """Davidson's probabilities without votes: margin zero, no tie votes."""
    draws = {k: np.asarray(v)[0] for k, v in fit.draws.items()}
    return of_levels(
        n_classes, draws.get("eta0", []), draws.get("delta", 0.0), fit.method.symmetric
    )


def by_task(fit: Any, n_classes: int, group: int) -> Any:
    """Davidson's probabilities without votes, for one task."""
    eta0 = np.asarray(fit.method.by_task(fit)["eta0"])
    return of_levels(n_classes, eta0[group] if eta0.size else [], 0.0, fit.method.symmetric)


def stacking(fit: Any, n_classes: int, _: int) -> Any:
    """Stacking's probabilities without votes; the free form has terms for absent votes."""
    draws = {k: np.asarray(v)[0] for k, v in fit.draws.items()}
    offset = draws.get("offset", 0.0) + np.sum(draws.get("absent", 0.0))
    return of_levels(n_classes, draws.get("level", []), offset / 2, fit.method.symmetric)


def difficulty(fit: Any, *_: int) -> Any:
    """The class prior of the model of shared difficulty."""
    return softmax(np.asarray(fit.details["log_class"]))


def pool(fit: Any, n_classes: int, _: int) -> Any:
    """The weighted geometric mean of the methods' probabilities without votes."""
    each = [
        difficulty(fit.parts["shared-difficulty"]),
        stacking(fit.parts["stacking"], n_classes, 0),
    ]
    each += [davidson(fit.parts["davidson"], n_classes, 0)] if "davidson" in fit.parts else []
    weight = np.asarray(fit.first["weight"])
    intercept = np.append(0.0, np.asarray(fit.first.get("intercept", np.zeros(n_classes - 1))))
    return softmax(weight @ np.log(np.stack(each)) + intercept)


def curated(inner: Prior) -> Prior:
    """Return the aggregator's prior, for an aggregator on chosen judges."""
    return lambda fit, n_classes, group: inner(fit.parts["aggregator"], n_classes, group)


def mapped(inner: Prior) -> Prior:
    """Return the aggregator's prior after its calibration map."""

    def prior(fit: Any, n_classes: int, group: int) -> Any:
        with np.errstate(divide="ignore"):
            raw = np.log(inner(fit.parts["aggregator"], n_classes, group))
        return np.exp(np.asarray(fit.parts["calibrator"](raw[None])))[0]

    return prior


def coin(fit: Any, *_: int) -> Any:
    """The class prior of the one-coin model."""
    return softmax(np.asarray(fit.first["log_prior"]))


def shares(fit: Any, *_: int) -> Any:
    """The class shares of Dawid and Skene's model."""
    return np.asarray(fit.draws["pi"])[0]


def rates(fit: Any, *_: int) -> Any:
    """The frequencies of the labels."""
    return np.exp(np.asarray(fit.first["log_rates"]))


ASYMMETRIC = {"swapping responses": "treats the two ends of the scale differently"}
ORDERED = {"renaming classes": "its classes are ordered, or their middle is special"}
BY_NUMBER = {"renaming classes": "breaks ties by the order of the classes"}
POOLS = {
    "permuting groups": "does not use tasks",
    "unseen judge": "pools the votes of all judges",
}
ONE_TASK = {"permuting groups": "does not use tasks"}
UNSAVED = {"save and apply": "has no file format"}
PANEL_OF_TWO = {"one item of one judge": "a panel of two needs two judges, and raises an error"}
REFERENCE = dict.fromkeys(
    ("swapping responses", "renaming classes"),
    "with three classes or more, the penalty and the bounds depend on a reference class",
)
OTHER_DRAWS = dict.fromkeys(
    ("swapping responses", "renaming classes"),
    "mirrored draws are different draws from the same posterior",
)
COPIES = {
    "weight 2 = row twice": "an item of weight 2 is one item with doubled votes, not two items"
}
FEW_VOTES = {
    "one judge": "returns NaN for majorities of more votes than there are",
    "missing 0 to 95 %": "returns NaN for majorities of more votes than there are",
    "no labels": "returns NaN without labels, since it has no prior",
}
NOT_RUN = "returns NaN where no judge was run on a generator"
ONE_GENERATOR = {"one item of one judge": "returns NaN for generators without items"}
NO_RATES = "returns NaN where labels or judges do not determine the rates"
STOPS_SHORT = dict.fromkeys(
    ("permuting judges", "permuting groups"),
    "stops near a kink of the loss, as the released code does",
)
RATES = dict.fromkeys(
    ("one item", "constant votes", "constant labels", "no labels", "missing 0 to 95 %"), NO_RATES
)
BEST_JUDGE = {
    "one item": NOT_RUN,
    "no labels": "returns NaN without labels, which determine the best judge",
    "missing 0 to 95 %": NOT_RUN,
}
LEARNS_NOTHING = {
    "unlabelled rows": "learns nothing",
    "weight 0 = dropped row": "learns nothing",
    "weight 2 = row twice": "learns nothing",
    "unseen judge": "learns nothing",
}
UNSUPERVISED = {"unlabelled rows": "also learns from the agreement on unlabelled rows"}
RANDOM = {
    "permuting items": "divides items at random, by position",
    "weight 2 = row twice": "divides items at random, and a row of weight 2 is not divided",
}


def rule(estimator: Any, prior: Prior, **more: Any) -> Case:
    """Return the case of a rule, which learns nothing."""
    lacks = ONE_TASK | LEARNS_NOTHING | more.pop("lacks", {})
    return Case(AGGREGATOR, estimator, prior, lacks=lacks, **more)


def curator(chosen: Any, **more: Any) -> Case:
    """Return the case of the one-coin model on a chosen panel."""
    lacks = ONE_TASK | more.pop("lacks", {})
    return Case(AGGREGATOR, Curated(OneCoin(), chosen), curated(coin), lacks=lacks, **more)


def vote(estimator: Any, prior: Prior, **more: Any) -> Case:
    """Return the case of an aggregator that does not use tasks."""
    return Case(AGGREGATOR, estimator, prior, lacks=ONE_TASK | more.pop("lacks", {}), **more)


def pooling(estimator: Any, prior: Prior, **more: Any) -> Case:
    """Return the case of an aggregator that uses neither tasks nor judges."""
    lacks = POOLS | more.pop("lacks", {})
    return Case(
        AGGREGATOR, estimator, prior, lacks=lacks, breaks=more.pop("breaks", ORDERED), **more
    )


def true_minimum_from_one_start(aim: Any) -> Any:
    """Return the minimum of P4's loss from the released start."""
    return true_minimum(aim, starts(aim.matrix, 1))


def as_published_from_one_start(aim: Any) -> Any:
    """Return the result of the released procedure from that start."""
    return as_published(aim, restarts=1)


CASES: dict[str, Case] = {
    "davidson": pooling(Davidson(DRPS(starts=2)), davidson, costly=True),
    "davidson-ml": pooling(
        Davidson(MinimumScore(nll, starts=1), label_noise=0.05),
        davidson,
        costly=True,
        slow_only=True,
    ),
    "davidson-map": pooling(Davidson(MAP(starts=1)), davidson, costly=True, slow_only=True),
    "davidson-mae": pooling(
        Davidson(MinimumLoss(candidates=256)), davidson, costly=True, slow_only=True
    ),
    "davidson-free": pooling(
        Davidson(DRPS(starts=1), symmetric=False), davidson, costly=True, slow_only=True
    ),
    "hierarchical": Case(
        AGGREGATOR,
        HierarchicalDavidson(),
        by_task,
        lacks={"unseen judge": POOLS["unseen judge"]},
        breaks=ORDERED,
        costly=True,
    ),
    "per-task": Case(
        AGGREGATOR,
        PerTask(MarginThreshold()),
        middle,
        lacks={"unseen judge": POOLS["unseen judge"]} | UNSAVED,
        breaks=ORDERED,
        classes=(3,),
    ),
    "margin-threshold": pooling(MarginThreshold(), middle, classes=(3,)),
    "margin-threshold-noisy": pooling(MarginThreshold(label_noise=0.1), middle, classes=(3,)),
    "base-rate": pooling(BaseRate(), rates, breaks={}),
    "base-rate-noisy": pooling(BaseRate(1.0, label_noise=0.1), rates, breaks={}),
    "one-coin": vote(OneCoin(), coin),
    "one-coin-noisy": vote(
        OneCoin(priors.OneCoin((2.0, 1.0)), class_prior="labels", label_noise=0.05), coin
    ),
    "one-coin-undecided": Case(
        UNDECIDED_VOTES,
        WithUndecided(OneCoin()),
        lambda fit, *_: coin(fit.parts["aggregator"]),
        lacks=ONE_TASK,
    ),
    "stacking": vote(Stacking(), stacking, breaks=ORDERED, costly=True),
    "stacking-free": vote(
        Stacking(symmetric=False, label_noise=0.05), stacking, breaks=ORDERED, costly=True
    ),
    "shared-difficulty": vote(SharedDifficulty(), difficulty, breaks=ORDERED, costly=True),
    "shared-difficulty-free": vote(
        SharedDifficulty(symmetric=False, class_prior="labels", label_noise=0.05),
        difficulty,
        breaks=ASYMMETRIC | ORDERED,
        costly=True,
        slow_only=True,
    ),
    "pool": vote(Pool(), pool, breaks=ORDERED, costly=True),
    "pool-free": vote(
        Pool(symmetric=False, class_prior="labels", label_noise=0.05),
        pool,
        breaks=ASYMMETRIC | ORDERED,
        costly=True,
        slow_only=True,
    ),
    "dawid-skene": vote(DawidSkene(), shares, lacks=UNSUPERVISED),
    "dawid-skene-noisy": vote(
        DawidSkene(label_noise=0.1), shares, lacks=UNSUPERVISED, slow_only=True
    ),
    "dawid-skene-pooled": vote(
        DawidSkene(prior=priors.PooledDawidSkene()), shares, lacks=UNSUPERVISED
    ),
    "vote-share": rule(VoteShare(), uniform),
    "accuracy-weighted": vote(AccuracyWeighted(), uniform),
    "log-odds-weighted": vote(LogOddsWeighted(), uniform),
    "sc": rule(MajorityVote(), middle, breaks=BY_NUMBER),
    "sc-outer": rule(MajorityVote("outer"), middle, breaks=BY_NUMBER),
    "sc-first": rule(
        MajorityVote("first"),
        lowest,
        breaks={"permuting judges": "the first judge's vote breaks a tie"},
        lacks={"swapping responses": "decides for the lowest class without votes", **BY_NUMBER},
    ),
    "soft-sc": rule(SoftVote(), middle, lacks=UNSAVED, breaks=BY_NUMBER),
    "soft-sc-min": rule(SoftVote("min"), middle, lacks=UNSAVED, breaks=BY_NUMBER),
    "soft-sc-product": rule(SoftVote("product"), middle, lacks=UNSAVED, breaks=BY_NUMBER),
    "ci-sc": rule(ConfidenceVote(), middle, lacks=UNSAVED, breaks=BY_NUMBER),
    "greedy-2": rule(RoundedMedian(), middle, lacks=UNSAVED, breaks=ORDERED),
    "calibrated": vote(
        Calibrated(MajorityVote(), Isotonic(symmetric=True), None),
        mapped(middle),
        breaks=ORDERED,
    ),
    "calibrated-nested": vote(
        Calibrated(OneCoin(), Temperature()),
        mapped(coin),
        lacks=RANDOM,
        costly=True,
        slow_only=True,
    ),
    "calibrated-folds": vote(
        Calibrated(OneCoin(), Platt(), cross_fit=3),
        mapped(coin),
        lacks=RANDOM | ASYMMETRIC,
        slow_only=True,
    ),
    "top-2": Case(AGGREGATOR, top_k(OneCoin(), 2), curated(coin), lacks=ONE_TASK | PANEL_OF_TWO),
    "family": curator(
        OnePerFamily((0, 0, 1, 1)),
        lacks={"one item of one judge": "needs the families of four judges"},
        breaks={"permuting judges": "identifies families by position"},
        slow_only=True,
    ),
    "beam": curator(Beam(2, width=2), lacks=PANEL_OF_TWO),
    "backward": curator(BackwardElimination(), slow_only=True),
    "exhaustive": curator(Exhaustive(TopAccuracy(2)), lacks=PANEL_OF_TWO, slow_only=True),
    "l1": curator(L1Logistic(0.05), classes=(2,), slow_only=True),
    "random-panel": curator(
        RandomPanel(2),
        lacks=PANEL_OF_TWO,
        breaks={"permuting judges": "the key chooses judges by position"},
        slow_only=True,
    ),
    "identity": Case(CALIBRATOR, Identity()),
    "temperature": Case(CALIBRATOR, Temperature()),
    "platt": Case(CALIBRATOR, Platt()),
    "platt-symmetric": Case(CALIBRATOR, Platt(symmetric=True), breaks=ORDERED, slow_only=True),
    "isotonic": Case(CALIBRATOR, Isotonic()),
    "isotonic-symmetric": Case(CALIBRATOR, Isotonic(symmetric=True), breaks=ORDERED),
    "temperature-posterior": Case(CALIBRATOR, BayesianMap(Temperature()), costly=True),
    "platt-posterior": Case(
        CALIBRATOR, BayesianMap(Platt()), lacks=OTHER_DRAWS, costly=True, slow_only=True
    ),
    "beta-posterior": Case(
        CALIBRATOR, BayesianMap(Beta()), lacks=OTHER_DRAWS, costly=True, slow_only=True
    ),
    "beta": Case(CALIBRATOR, Beta(), breaks=REFERENCE),
    "beta-unpenalised": Case(CALIBRATOR, Beta(penalty=None), slow_only=True),
    "beta-ridge": Case(
        CALIBRATOR, Beta(penalty=0.05, l1_share=0.0), breaks=REFERENCE, slow_only=True
    ),
    "beta-lasso": Case(
        CALIBRATOR, Beta(penalty=0.05, l1_share=1.0), lacks=REFERENCE, slow_only=True
    ),
    "beta-free": Case(CALIBRATOR, Beta(free_slopes=True), breaks=REFERENCE, slow_only=True),
    "beta-symmetric": Case(CALIBRATOR, Beta(symmetric=True), breaks=ORDERED, slow_only=True),
    "chain": Case(CALIBRATOR, Chain((Platt(), Beta())), breaks=REFERENCE, slow_only=True),
    "conformal": Case(
        CONFORMAL, SplitConformal(0.8), lacks={"permuting groups": "has only one group"}
    ),
    "conformal-full": Case(
        CONFORMAL,
        SplitConformal(0.8, no_empty=True),
        lacks={"permuting groups": "has only one group"},
    ),
    "conformal-groups": Case(CONFORMAL, SplitConformal(0.7, n_groups=3)),
    "binomial": Case(DISTRIBUTION, Binomial()),
    "beta-binomial": Case(
        DISTRIBUTION, BetaBinomial(1, MAP(starts=1)), costly=True, slow_only=True
    ),
    "mixture": Case(DISTRIBUTION, BetaBinomial(2, MAP(starts=3)), costly=True),
    "em": Case(DISTRIBUTION, PaperEM()),
    "em-printed": Case(DISTRIBUTION, PaperEM("printed")),
    "thinning": Case(
        DISTRIBUTION,
        Thinning(),
        lacks={"one item of one judge": FEW_VOTES["one judge"]},
        breaks=FEW_VOTES,
    ),
    "pooled": Case(POOL, PooledBetaBinomial(MAP(starts=2)), costly=True, slow_only=True),
    "impression": Case(PRECISION, Impression(), costly=True),
    "precision-panel": Case(PRECISION, Panel(), costly=True),
    "generator-validator": Case(
        PRECISION, GeneratorValidator(FlatModel(), MAP(starts=1)), costly=True, slow_only=True
    ),
    "stratified": Case(STRATIFIED, Stratified(), costly=True),
    "item-level": Case(ITEMS_OF_GENERATORS, ItemLevel(MAP(starts=1)), costly=True, slow_only=True),
    "mean-prediction": Case(
        FORMULA, mean_prediction, lacks=ONE_GENERATOR, breaks={"one item": NOT_RUN}
    ),
    "best-judge": Case(FORMULA, best_judge, lacks=ONE_GENERATOR, breaks=BEST_JUDGE),
    "logit-shift": Case(FORMULA, logit_shift, lacks=ONE_GENERATOR, breaks={"one item": NOT_RUN}),
    "rogan-gladen": Case(FORMULA, rogan_gladen, lacks=ONE_GENERATOR, breaks=RATES),
    "true-minimum": Case(LOSS, true_minimum_from_one_start, costly=True),
    "as-published": Case(LOSS, as_published_from_one_start, breaks=STOPS_SHORT),
    "irt": Case(RESPONSE, ItemResponse(), costly=True, breaks=COPIES),
    "irt-noisy": Case(
        RESPONSE, ItemResponse(label_noise=0.1), costly=True, breaks=COPIES, slow_only=True
    ),
    "irt-learnt": Case(RESPONSE, LearntResponse(), costly=True, breaks=COPIES, slow_only=True),
}
"""Estimators by name."""


def with_declared(
    cases: dict[str, Case], aggregators: dict[str, type], calibrators: dict[str, type]
) -> dict[str, Case]:
    """Return the cases, with one more for each declared method that has none: it needs no line here."""
    more = {}
    for family, declared in ((AGGREGATOR, aggregators), (CALIBRATOR, calibrators)):
        for name, method in declared.items():
            if any(type(case.estimator) is method for case in cases.values()):
                continue
            traits: Any = vars(method)["traits"]
            lacks = {} if traits.needs_tasks else dict(ONE_TASK)
            lacks |= {} if traits.knows_judges else {"unseen judge": POOLS["unseen judge"]}
            lacks |= UNSUPERVISED if traits.learns_from_unlabelled else {}
            if family is AGGREGATOR:
                lacks["item without votes"] = (
                    "a declaration does not give the prior: an entry would"
                )
            classes = () if traits.n_classes is None else (traits.n_classes,)
            more[name] = Case(family, method(), lacks=lacks, classes=classes)
    return cases | more


assert methods.known_methods()  # every module of methods is imported, and declared, by then
CASES = with_declared(CASES, AGGREGATORS, CALIBRATORS)
