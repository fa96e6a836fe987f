"""Checks of a fit that came from a file: each field has its declared type, shape and range.

The fitted classes declare their fields with types and shapes (jaxtyping). A file is data from anywhere,
so these declarations are checked before a fit is used.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import jax.numpy as jnp
import numpy as np
from jaxtyping import jaxtyped

from judgebayes.arrays import AnyArray
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fit import Fit
from judgebayes.inference.registry import FITTED
from judgebayes.inference.status import Status
from judgebayes.votes.classes import canonical
from judgebayes.workflow.binning import bins_from

POSITIVE = ("alpha", "beta", "kappa", "tau")
"""Numbers that are above zero wherever a fit has them."""
NOT_NEGATIVE = ("pseudo_count", "pseudo_votes", "deviation", "clip", "judge", "samples", "status")
"""Numbers that are zero or more."""
SUM_ERROR = 1e-6
MINUS_INFINITY = ("log_rates", "log_prior")
"""Log-probabilities, which are -inf for a class without labelled items."""
OPTIMISER_FIELDS = ("objective", "projected_gradient", "log_evidence", "log_posterior")
"""Fields about the optimiser, which are NaN for draws; the answers do not use them."""


def _texts(value: Any) -> bool:
    return type(value) is list and all(type(each) is str for each in value)


def _names(value: Any) -> bool:
    return _texts(value) and len(set(value)) == len(value)


def _text(value: Any) -> bool:
    return type(value) is str


def _flag(value: Any) -> bool:
    return type(value) is bool


def _text_or_none(value: Any) -> bool:
    return value is None or _text(value)


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0


NOTES: dict[str, Callable[[Any], bool]] = {
    "labels": _count,
    "items": _count,
    "version": _text,
    "seed": lambda value: type(value) is int,
    "judges": _names,
    "wide": _flag,
    "repeats": _flag,
    "columns": lambda value: type(value) is dict and _texts([*value.values()]),
    "ignore": _texts,
    "missing": _text_or_none,
    "undecided": _text_or_none,
    "encoding": _text_or_none,
    "skip_rows": lambda value: value is None or _count(value),
    "bins": lambda value: bins_from(value) is not None,
}
"""What a note on the reading of votes may be, by its name."""
DOCUMENT: dict[str, Callable[[Any], bool]] = {
    "method": _text,
    "tasks": _names,
    "judges": _names,
    "notes": lambda value: type(value) is dict,
}
"""What the plain fields of a fit's file may be, by their names."""


def check_fields(fitted: Any, n_classes: set[int], n_judges: int | None) -> None:
    """Refuse a fit with a field of another type, shape or range than its class declares.

    Parameters
    ----------
    fitted
        The fit, or a part of one.
    n_classes
        The numbers of classes that it may have: with and without those that are undecided.
    n_judges
        The number of judges, if it is known.

    Raises
    ------
    ValueError
        For the first such field.
    """
    if type(fitted) not in FITTED.values():
        raise ValueError(f"a {type(fitted).__name__} is no fit")
    hints = get_type_hints(type(fitted))
    with jaxtyped("context"):
        for name in stored(type(fitted)):
            _check(getattr(fitted, name), hints[name], name, n_classes, n_judges)
    if isinstance(fitted, Fit):
        _check_axes(fitted, n_classes, n_judges)


def check_finite(name: str, value: Any) -> None:
    """Refuse parameters that are NaN or infinite.

    Raises
    ------
    ValueError
        If a number of a field is.
    """
    array = np.asarray(value)
    if array.dtype.kind == "f" and name not in OPTIMISER_FIELDS:
        wrong = array[~np.isfinite(array)]
        wrong = wrong[wrong != -np.inf] if name in MINUS_INFINITY else wrong
        if wrong.size:
            raise ValueError(f"{wrong.size} number(s) of {name} are {wrong.flat[0]}, not finite")


def check_status(fitted: Any) -> None:
    """Refuse a fit that failed, or whose status is unknown.

    Raises
    ------
    ValueError
        If it is so.
    """
    status = Status(int(getattr(fitted, "status", Status.CONVERGED)))
    if status == Status.NONFINITE:
        raise ValueError(f"the fit failed: {status.sentence}")


def stored(cls: type) -> list[str]:
    """Return the fields that a file stores of a fit or a part of one: of a method, those it names."""
    names = [field.name for field in dataclasses.fields(cls) if field.name != "chains"]
    return list(getattr(cls, "saved", names))


def _check_axes(fit: Fit, n_classes: set[int], n_judges: int | None) -> None:
    """Refuse values whose axes are not those that the method declares, or differ in length."""
    dims, sizes = fit.method.dims, {} if n_judges is None else {"judge": n_judges}
    values = {name: (("draw", *dims.get(name, ())), x) for name, x in fit.draws.items()}
    values |= {name: (dims[name], x) for name, x in fit.details.items() if name in dims}
    for name, (axes, x) in values.items():
        lengths = dict(zip(axes, np.shape(x), strict=False))
        known = all(sizes.setdefault(axis, n) == n for axis, n in lengths.items())
        if (
            np.ndim(x) != len(axes)
            or not known
            or lengths.get("class", max(n_classes)) not in n_classes
        ):
            raise ValueError(f"{name} is {_short(x)}, and needs the axes {', '.join(axes)}")


def check_classes(values: tuple[Any, ...], undecided: tuple[Any, ...]) -> None:
    """Refuse values of votes that are no different names or finite numbers.

    Raises
    ------
    ValueError
        For the first such value.
    """
    for value in (*values, *undecided):
        if type(value) not in (str, int, float) or canonical(value) is None:
            raise ValueError(f"a class is {_short(value)}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"a class is {value}")
    if len(values) < 2 or len(set(map(canonical, values))) < len(values):
        raise ValueError("the classes are not two or more different ones")


def check_plain(values: Mapping[str, Any], rules: Mapping[str, Callable[[Any], bool]]) -> None:
    """Refuse plain fields of a file that this program would not write.

    Raises
    ------
    ValueError
        For the first such field.
    """
    for name, right in rules.items():
        if name in values and not right(values[name]):
            raise ValueError(f"{name} is {_short(values[name])}")


def check_summary(summary: Mapping[str, Any], n_classes: int) -> None:
    """Refuse a summary of votes that is none: each share needs a place for each class.

    Raises
    ------
    ValueError
        For the first field of another type, shape or range.
    """
    share, covariance = (np.asarray(summary[name]) for name in ("mean_share", "covariance"))
    rows = [summary["mean_share"], *summary["covariance"]]
    numbers = all(type(each) in (int, float) for row in rows for each in row)
    most = 1 + SUM_ERROR
    rules: dict[str, Callable[[Any], bool]] = {
        "items": lambda value: type(value) is int and value >= 1,
        "votes_per_item": lambda value: type(value) in (int, float) and 0 <= value < math.inf,
        "mean_share": lambda _: bool(
            (numbers and share.ndim == 1 and len(share) >= n_classes)
            and ((share >= 0) & (share <= most)).all()
        ),
        "covariance": lambda _: bool(
            (numbers and covariance.shape == (len(share), len(share)))
            and np.isfinite(covariance).all()
            and (np.diag(covariance) >= 0).all()
        ),
    }
    check_plain(summary, rules)


def _check(value: Any, hint: Any, name: str, n_classes: set[int], n_judges: int | None) -> None:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        check_fields(value, n_classes, n_judges)
    elif isinstance(value, tuple):
        parts = [each for each in value if dataclasses.is_dataclass(each)]
        plain = [each for each in value if isinstance(each, (bool, int, str))]
        if len(parts) + len(plain) < len(value):
            raise ValueError(f"{name} is {_short(value)}")
        for each in parts:
            check_fields(each, n_classes, n_judges)
    elif get_origin(hint) is Literal:
        if value not in get_args(hint) or isinstance(value, bool):
            raise ValueError(f"{name} is {value!r}")
    elif not _is_a(value, hint):
        raise ValueError(f"{name} is {_short(value)}")
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if dataclasses.is_dataclass(each):
                check_fields(each, n_classes, n_judges)
            else:
                _check_range(str(key), each, n_classes, n_judges)
    else:
        _check_range(name, value, n_classes, n_judges)


def _is_a(value: Any, hint: Any) -> bool:
    """Return whether the value has the declared type."""
    if get_origin(hint) is dict:
        return isinstance(value, Mapping) and all(map(_is_number_or_fit, value.values()))
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return any(_is_one(value, option) for option in options)


def _is_number_or_fit(value: Any) -> bool:
    if dataclasses.is_dataclass(value) or type(value) is float:
        return True
    return hasattr(value, "dtype") and value.dtype.kind in "fiub"


def _is_one(value: Any, hint: Any) -> bool:
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(value, float) and hasattr(hint, "dtypes"):  # of one number: an array of no axis
        value = jnp.asarray(value)
    try:
        return isinstance(value, hint)
    except TypeError:  # a protocol, which only classes fulfil: those were checked before
        return False


def _check_range(name: str, value: Any, n_classes: set[int], n_judges: int | None) -> None:
    if name == "n_classes" and value not in n_classes:
        raise ValueError(f"n_classes is {value}, and the fit has {max(n_classes)} classes")
    if name == "judge" and isinstance(value, int) and n_judges is not None and value >= n_judges:
        raise ValueError(f"judge is {value}, and the fit has {n_judges} judges")
    if isinstance(value, (str, bool)) or value is None:
        return
    check_finite(name, value)
    numbers = np.asarray(value)
    if name in POSITIVE and not (numbers > 0).all():
        raise ValueError(f"{name} is {_short(numbers.min())}, and must be above 0")
    if name in NOT_NEGATIVE and not (numbers >= 0).all():
        raise ValueError(f"{name} is {_short(numbers.min())}, and must be 0 or more")


def _short(value: Any) -> str:
    if hasattr(value, "shape") and np.ndim(value):
        return f"an array of shape {tuple(value.shape)} and type {value.dtype.name}"
    text = repr(value.item() if hasattr(value, "item") else value)
    return text if len(text) < 40 else f"{text[:37]}..."


def check_answers(log_probs: AnyArray, n_items: int, n_classes: int) -> None:
    """Refuse answers that are no probabilities, whatever made them.

    Raises
    ------
    JudgeBayesError
        If the shape is not (item, class), or the probabilities of an item are not finite or do not sum
        to one.
    """
    with np.errstate(over="ignore"):
        probs = np.exp(np.asarray(log_probs, float))
    if probs.shape != (n_items, n_classes):
        raise JudgeBayesError(
            f"The fit answers with an array of shape {probs.shape}, and {n_items} items with "
            f"{n_classes} classes were asked for: the file is damaged. Fit again."
        )
    wrong = ~(np.abs(probs.sum(1) - 1) < SUM_ERROR)
    if wrong.any():
        total = float(probs[wrong][0].sum())
        what = f"sum to {total:g}" if math.isfinite(total) else "are not finite"
        raise JudgeBayesError(
            f"The fit's probabilities {what} on {int(wrong.sum())} of {n_items} items, so no decision "
            "can be based on them: the file is damaged. Fit again."
        )
