"""The methods of `judgebayes calibrate` by name, and which of them suit some votes."""

from dataclasses import dataclass

from judgebayes.aggregators import (
    EM,
    AccuracyWeighted,
    Aggregator,
    BaseRate,
    Calibrated,
    Davidson,
    DawidSkene,
    HierarchicalDavidson,
    LogOddsWeighted,
    MajorityVote,
    MarginThreshold,
    OneCoin,
    Stacking,
    VoteShare,
)
from judgebayes.aggregators.one_coin import ClassPrior
from judgebayes.calibrators import Beta, Calibrator, Isotonic, Platt, Temperature
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import DRPS, MAP, NUTS, Laplace, MinimumScore
from judgebayes.inference.problem import Inference
from judgebayes.measures.scores import nll
from judgebayes.panel.curate import top_k
from judgebayes.votes import Classes, Votes
from judgebayes.workflow.names import BASELINES, CALIBRATORS, METHODS, OWN_MAP, TOP

__all__ = [
    "BASELINES",
    "CALIBRATORS",
    "INFERENCES",
    "METHODS",
    "Choice",
    "build",
    "suited",
]

INFERENCES: dict[str, Inference] = {
    "drps": DRPS(),
    "ml": MinimumScore(nll),
    "map": MAP(),
    "nuts": NUTS(),
}
BY_JUDGE = ("one-coin", "dawid-skene", "accuracy-weighted", "log-odds", "stacking", *TOP)
"""Methods that know the judges apart; the others pool their votes."""
NO_FLOOR = 1e-300
"""Least probability that a map is shown. A floor makes one answer of all that are surer, and the
answers of models of independent judges are surer than any floor: 1e-6 costs a fifth of the NLL on
panels of 20 to 150 judges (P2, table11)."""
PANEL_FOR_TOP = 6
FOLDS = 5


@dataclass(frozen=True)
class Choice:
    """A method with its calibration map, by name."""

    method: str
    calibrator: str = "auto"
    inference: str = "drps"
    label_noise: float = 0.0

    @property
    def map_name(self) -> str:
        """The calibration map that stands behind the method."""
        if self.calibrator == "auto":
            return "beta" if self.method in (*OWN_MAP, *TOP) else "none"
        return self.calibrator

    @property
    def name(self) -> str:
        """What tables call it."""
        return self.method if self.map_name == "none" else f"{self.method} + {self.map_name}"


def suited(votes: Votes) -> list[str]:
    """Return the methods that `auto` compares on such votes."""
    names = ["davidson"]
    if votes.n_judges > 1:
        names += ["one-coin", "dawid-skene", "stacking"]
    if votes.n_judges >= PANEL_FOR_TOP:
        names.append("top-3")
    if votes.n_tasks > 1:
        names.append("hierarchical")
    return [*names, "best-constant"]


def build(choice: Choice, classes: Classes, votes: Votes) -> Aggregator:
    """Return a method with its map.

    Raises
    ------
    JudgeBayesError
        If the method cannot be run on these votes.
    """
    aggregator = _aggregator(choice, classes, votes)
    calibrator = _calibrator(choice.map_name, classes, choice.label_noise)
    if calibrator is None:
        return aggregator
    return Calibrated(aggregator, calibrator, cross_fit=FOLDS)


def _aggregator(choice: Choice, classes: Classes, votes: Votes) -> Aggregator:
    name, noise = choice.method, choice.label_noise
    if name == "hierarchical":
        if votes.task is None:
            raise JudgeBayesError("--method hierarchical needs tasks: name their column, --task.")
        return HierarchicalDavidson(symmetric=classes.pairwise, label_noise=choice.label_noise)
    if name == "margin-threshold" and len(classes) != 3:
        raise JudgeBayesError(
            f"--method margin-threshold needs three classes; these votes have {len(classes)}."
        )
    if name in TOP:
        if votes.n_judges < TOP[name]:
            raise JudgeBayesError(
                f"--method {name} needs {TOP[name]} judges; there are {votes.n_judges}."
            )
        one_coin = OneCoin(class_prior=_class_prior(classes), label_noise=noise)
        return top_k(one_coin, TOP[name])
    sampled = choice.inference == "nuts"
    made: dict[str, Aggregator] = {
        "davidson": Davidson(
            INFERENCES[choice.inference], symmetric=classes.pairwise, label_noise=noise
        ),
        "one-coin": OneCoin(class_prior=_class_prior(classes), label_noise=noise),
        "dawid-skene": DawidSkene(NUTS() if sampled else EM(), label_noise=noise),
        "stacking": Stacking(
            NUTS() if sampled else Laplace(), symmetric=classes.pairwise, label_noise=noise
        ),
        "vote-share": VoteShare(),
        "accuracy-weighted": AccuracyWeighted(label_noise=noise),
        "log-odds": LogOddsWeighted(label_noise=noise),
        "margin-threshold": MarginThreshold(label_noise=noise),
        "sc": MajorityVote(),
        "best-constant": BaseRate(label_noise=noise),
    }
    return made[name]


def _class_prior(classes: Classes) -> ClassPrior:
    return "uniform" if classes.pairwise else "labels"


def _calibrator(name: str, classes: Classes, noise: float) -> Calibrator | None:
    mirrored = classes.pairwise
    made: dict[str, Calibrator] = {
        "temperature": Temperature(NO_FLOOR, noise),
        "platt": Platt(mirrored, NO_FLOOR, noise),
        "isotonic": Isotonic(symmetric=mirrored, label_noise=noise),
        "beta": Beta(symmetric=mirrored, clip=NO_FLOOR, label_noise=noise),
    }
    return made.get(name)
