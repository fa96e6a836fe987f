"""The methods of `judgebayes calibrate` by name, and those that suit given votes.

The user's own methods: a Python file, or a package with an entry point.
"""

import importlib.util
import pkgutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np

from judgebayes import aggregators, calibrators
from judgebayes.aggregators.base import Cost, cost_of
from judgebayes.aggregators.one_coin import OneCoin
from judgebayes.aggregators.wrapped import Calibrated, WithUndecided
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.one_split import FitOn, is_jax
from judgebayes.inference import DRPS, MAP, NUTS, MinimumScore
from judgebayes.inference.fit import Method
from judgebayes.inference.problem import Inference
from judgebayes.inference.registry import AGGREGATORS, CALIBRATORS, Traits
from judgebayes.measures.scores import nll
from judgebayes.panel.judges import top_k
from judgebayes.votes import UNDECIDED, Classes, Votes
from judgebayes.workflow.options import TOP

GROUP = "judgebayes.methods"
"""The group of entry points; each names a module that declares methods when it is imported."""


def declared(name: str) -> str:
    """Return the name of a method or map; of `FILE.py:NAME`, after the file that declares it was run.

    Raises
    ------
    JudgeBayesError
        If there is no such file, or it or an installed package with methods cannot be imported.
    """
    _installed()
    file, _, own = name.rpartition(":")
    if not file.endswith(".py"):
        return name
    if not Path(file).is_file():
        raise JudgeBayesError(f"There is no file {file!r} for {name!r}.")
    _run(Path(file).resolve())
    return own


@cache
def _installed() -> None:
    for each in entry_points(group=GROUP):
        try:
            each.load()
        except Exception as error:
            raise JudgeBayesError(
                f"The package of the method {each.name!r} ({each.value}) cannot be imported: "
                f"{type(error).__name__}: {error}"
            ) from error


@cache
def _run(file: Path) -> None:
    """Run a file once, as a module."""
    name = f"judgebayes_plugin_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except JudgeBayesError:
        raise
    except Exception as error:
        lines = [f.lineno for f in extract_tb(error.__traceback__) if f.filename == str(file)]
        where = f" (line {lines[-1]})" if lines else ""
        raise JudgeBayesError(
            f"{str(file)!r} cannot be run{where}: {type(error).__name__}: {error}"
        ) from error


# Importing a module registers its methods, so all modules of the two packages are imported.
for _package in (aggregators, calibrators):
    for _module in pkgutil.iter_modules(_package.__path__):
        importlib.import_module(f"{_package.__name__}.{_module.name}")

INFERENCES: dict[str, Inference] = {
    "drps": DRPS(),
    "ml": MinimumScore(nll),
    "map": MAP(),
    "nuts": NUTS(),
}
FEW_LABELS = 30
"""With fewer labels, a choice between methods is not clear."""
PANEL_DEFAULTS = ("pool", "stacking")
"""The default of `auto` for several judges: the first that is not too large."""
PANEL_FOR_TOP = 6
FOLDS = 5
MOST_NUMBERS = 2**26
"""The numbers in memory of one fit, of 8 bytes each, up to which `auto` compares a method."""
MOST_OPERATIONS = 5e10
"""The operations of one fit up to which `auto` compares a method: ten seconds on one core."""


@dataclass(frozen=True)
class Choice:
    """A method with its calibration map, by name; `davidson:nuts` is a method and its inference."""

    method: str
    calibrator: str = "auto"
    label_noise: float = 0.0

    @property
    def inference(self) -> str:
        """The name of the inference, empty for the method's own."""
        return self.method.partition(":")[2]

    @property
    def map_name(self) -> str:
        """The calibration map that is applied after the method."""
        if self.calibrator == "auto":
            return "beta" if traits_of(self.method).needs_map else "none"
        return self.calibrator

    @property
    def name(self) -> str:
        """The name in tables."""
        return self.method if self.map_name == "none" else f"{self.method} + {self.map_name}"


def _in_order() -> list[str]:
    return sorted(AGGREGATORS, key=lambda name: traits_of(name).place)


def known_methods() -> tuple[str, ...]:
    """Return the names that `--method` takes, including the user's own methods."""
    return ("auto", *_in_order(), *TOP)


def known_calibrators() -> tuple[str, ...]:
    """Return the names that `--calibrator` takes."""
    return ("auto", "none", *sorted(CALIBRATORS))


def traits_of(method: str) -> Traits:
    """Return the declared traits of a method, by its name without a calibration map."""
    method = method.partition(":")[0]
    if method in TOP:
        kind: Any = "baseline" if TOP[method] == 1 else "no"
        return Traits(method, knows_judges=True, needs_map=True, compared=kind)
    traits = getattr(AGGREGATORS.get(method), "traits", Traits(method))
    assert isinstance(traits, Traits)
    return traits


def fit_on_of(names: Iterable[str]) -> dict[str, FitOn]:
    """Return the votes that each method of a comparison is fitted to, by its name in tables."""
    learners = {name: traits_of(name.split(" + ")[0]).learns_from_unlabelled for name in names}
    return {name: "all" if learns else "calibration" for name, learns in learners.items()}


def baselines(classes: Classes, votes: Votes) -> list[str]:
    """Return the baselines for these votes: simple rules, and the best single judge of a panel."""
    own = {name: traits_of(name) for name in _in_order()}
    fixed = (None, len(classes)) if classes.ordered else (None,)  # three classes: one between two
    names = [
        name
        for name, traits in own.items()
        if traits.compared == "baseline" and traits.n_classes in fixed
    ]
    return [*names, *(["best-judge"] if votes.n_judges > 1 else [])]


def suited(votes: Votes) -> list[str]:
    """Return the methods that `auto` compares on these votes, its default first.

    Methods that are too large are left out.
    """
    large = too_large(votes)
    names = [name for name in _kinds_suited(votes) if name not in large]
    default = next((name for name in PANEL_DEFAULTS if name in names), names[0])
    return sorted(names, key=lambda name: name != default)


def too_large(votes: Votes) -> list[str]:
    """Return the methods that `auto` would compare if one fit needed less memory and time.

    Only methods that declare their cost: that of others is a rough upper bound.
    """
    names = [n for n in _kinds_suited(votes) if hasattr(AGGREGATORS.get(n, OneCoin), "cost")]
    costs = {name: cost_of_fit(name, votes) for name in names}
    return [
        name
        for name, cost in costs.items()
        if cost.numbers > MOST_NUMBERS or cost.operations > MOST_OPERATIONS
    ]


def cost_of_fit(name: str, votes: Votes, labelled: int | None = None) -> Cost:
    """Return the cost of one fit of a method, with its folds if it has a calibration map.

    In a comparison a method sees only the labelled items, whose number is `labelled`, unless it learns
    from the others.
    """
    items = votes.n_items
    if labelled is not None and not traits_of(name).learns_from_unlabelled:
        items = labelled
    cls, traits = AGGREGATORS.get(name, OneCoin), traits_of(name)
    settings = {"symmetric": False} if hasattr(cls, "symmetric") else {}
    numbers, operations = cost_of(cls(**settings), items, votes)
    return Cost(numbers, operations * (1 + FOLDS if traits.needs_map else 1))


def _kinds_suited(votes: Votes) -> list[str]:
    when = {"always": True, "panel": votes.n_judges > 1, "tasks": votes.n_tasks > 1}
    names = [name for name in _in_order() if when.get(traits_of(name).compared, False)]
    if votes.n_judges >= PANEL_FOR_TOP:
        names.append("top-3")
    return [*names, "best-constant"]


def compared_methods(
    choices: Sequence[Choice], classes: Classes, votes: Votes
) -> dict[str, Method]:
    """Return the methods to compare and the baselines, by name.

    Posteriors are replaced by their modes: minutes instead of hours.
    """
    methods = {}
    for choice in choices:
        at_mode = choice.method.replace(":nuts", ":map")
        methods[choice.name] = build(replace(choice, method=at_mode), classes, votes)
    for name in baselines(classes, votes):
        plain = Choice(name, "none", label_noise=choices[0].label_noise)
        methods.setdefault(name, build(plain, classes, votes))
    return methods


def build(choice: Choice, classes: Classes, votes: Votes) -> Method:
    """Return a method with its calibration map.

    Raises
    ------
    JudgeBayesError
        If the method cannot be run on these votes.
    """
    aggregator = _aggregator(choice, classes, votes)
    undecided = bool((np.asarray(votes.index) == UNDECIDED).any())
    if traits_of(choice.method).independent and not classes.pairwise and undecided:
        aggregator = WithUndecided(aggregator)
    if choice.map_name == "none":
        return aggregator
    if not is_jax(aggregator):
        raise JudgeBayesError(
            f"{choice.method} is not JAX code, so a calibration map cannot be fitted to its answers; "
            "use --calibrator none."
        )
    calibrator = CALIBRATORS[choice.map_name]
    return Calibrated(aggregator, _with_settings(calibrator, choice, classes), cross_fit=FOLDS)


def _aggregator(choice: Choice, classes: Classes, votes: Votes) -> Method:
    name, traits = choice.method.partition(":")[0], traits_of(choice.method)
    if traits.needs_tasks and votes.task is None:
        raise JudgeBayesError(f"--method {name} needs tasks: add --set task=COLUMN.")
    if traits.n_classes not in (None, votes.n_classes):
        needed = {2: "two", 3: "three"}.get(traits.n_classes or 0, str(traits.n_classes))
        raise JudgeBayesError(
            f"--method {name} needs {needed} classes; these votes have {votes.n_classes}."
        )
    if name in TOP:
        if votes.n_judges < TOP[name]:
            raise JudgeBayesError(
                f"--method {name} needs {TOP[name]} judges; there are {votes.n_judges}."
            )
        return top_k(_with_settings(OneCoin, choice, classes), TOP[name])
    return _with_settings(AGGREGATORS[name], choice, classes)


def _with_settings(cls: Any, choice: Choice, classes: Classes) -> Any:
    """Return an instance with the settings for these classes, as far as it has the fields."""
    settings: dict[str, Any] = {
        "symmetric": classes.pairwise,
        "label_noise": choice.label_noise,
        "class_prior": "uniform" if classes.pairwise else "labels",
    }
    if not classes.ordered:
        settings["tie"] = "drawn"
    if choice.inference in cls.traits.inferences:
        settings["inference"] = INFERENCES[choice.inference]
    names = {each.name for each in fields(cls)} if is_dataclass(cls) else set()
    return cls(**{name: value for name, value in settings.items() if name in names})
