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
from judgebayes.inference.registry import FITTED
from judgebayes.votes.classes import canonical
from judgebayes.workflow.binning import bins_from

POSITIVE = ("alpha", "beta", "kappa", "tau")
"""Numbers that are above zero wherever a fit has them."""
NOT_NEGATIVE = ("pseudo_count", "pseudo_votes", "deviation", "clip", "judge", "samples", "status")
"""Numbers that are zero or more."""
SUM_ERROR = 1e-6


def _texts(value: Any) -> bool:
    return type(value) is list and all(type(each) is str for each in value)


def _text_or_none(value: Any) -> bool:
    return value is None or type(value) is str


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0


NOTES: dict[str, Callable[[Any], bool]] = {
    "labels": _count,
    "items": _count,
    "version": lambda value: type(value) is str,
    "seed": lambda value: type(value) is int,
    "judges": lambda value: _texts(value) and len(set(value)) == len(value),
    "wide": lambda value: type(value) is bool,
    "repeats": lambda value: type(value) is bool,
    "columns": lambda value: type(value) is dict and _texts([*value.values()]),
    "ignore": _texts,
    "missing": _text_or_none,
    "undecided": _text_or_none,
    "encoding": _text_or_none,
    "skip_rows": lambda value: value is None or _count(value),
    "bins": lambda value: bins_from(value) is not None,
}
"""What a note on the reading of votes may be, by its name."""


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
    names = [field.name for field in dataclasses.fields(fitted) if field.name != "chains"]
    with jaxtyped("context"):
        for name in names:
            _check(getattr(fitted, name), hints[name], name, n_classes, n_judges)


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


def check_names(names: Any, what: str) -> None:
    """Refuse names of tasks or judges that are no different texts.

    Raises
    ------
    ValueError
        For such names.
    """
    if not _texts(names) or len(set(names)) < len(names):
        raise ValueError(f"{what} is {_short(names)}")


def check_notes(notes: Any) -> None:
    """Refuse notes on how votes are read that `reading_notes` would not write.

    Raises
    ------
    ValueError
        For the first such note.
    """
    if type(notes) is not dict:
        raise ValueError(f"notes is {_short(notes)}")
    for name, right in NOTES.items():
        if name in notes and not right(notes[name]):
            raise ValueError(f"the note {name!r} is {_short(notes[name])}")


def check_summary(
    items: Any, mean_share: Any, covariance: Any, votes_per_item: Any, n_classes: int
) -> None:
    """Refuse a summary of votes that is none: each share needs a place for each class.

    Raises
    ------
    ValueError
        For the first field of another type, shape or range.
    """
    if type(items) is not int or items < 1:
        raise ValueError(f"items is {_short(items)}")
    if type(votes_per_item) not in (int, float) or not 0 <= votes_per_item < math.inf:
        raise ValueError(f"votes_per_item is {_short(votes_per_item)}")
    if type(mean_share) is not list or len(mean_share) < n_classes:
        raise ValueError(f"mean_share is {_short(mean_share)}")
    if type(covariance) is not list or len(covariance) != len(mean_share):
        raise ValueError(f"covariance is {_short(covariance)}")
    for place, row in enumerate(covariance):
        if type(row) is not list or len(row) != len(mean_share):
            raise ValueError(f"covariance has the row {_short(row)}")
        if not all(type(each) in (int, float) and math.isfinite(each) for each in row):
            raise ValueError(f"covariance has the row {_short(row)}")
        if row[place] < 0:
            raise ValueError(f"a variance is {row[place]}")
    for share in mean_share:
        if type(share) not in (int, float) or not 0 <= share <= 1 + SUM_ERROR:
            raise ValueError(f"mean_share has {_short(share)}")


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
            _check_range(str(key), each, n_classes, n_judges)
    else:
        _check_range(name, value, n_classes, n_judges)


def _is_a(value: Any, hint: Any) -> bool:
    """Return whether the value has the declared type."""
    if get_origin(hint) is dict:
        return isinstance(value, Mapping) and all(
            hasattr(x, "dtype") and x.dtype.kind in "fiub" for x in value.values()
        )
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return any(_is_one(value, option) for option in options)


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
