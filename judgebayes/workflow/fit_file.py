"""Fits kept in files: plain JSON, read as data and never as code.

A file holds the fitted parameters, the classes and columns that they belong to, and what the votes
looked like, so that new votes can be checked for drift.
"""

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from judgebayes.aggregators import FittedAggregator
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.by_loop import PlainFit
from judgebayes.inference.registry import FITTED
from judgebayes.inference.status import Status
from judgebayes.votes import Classes
from judgebayes.votes.sparse import AnyVotes, counts_by_item
from judgebayes.workflow import methods  # noqa: F401 (imports every module that declares what files hold)

__all__ = ["SavedFit", "VoteProfile", "drift", "load_fit", "profile", "save_fit"]

FORMAT = "judgebayes fit"
VERSION = 1
NOT_KEPT = ("chains",)
MINUS_INFINITY = ("log_rates", "log_prior")
"""Log-probabilities that may be -inf: of a class that no labelled item has."""
OF_THE_SEARCH = ("objective", "projected_gradient", "log_evidence", "log_posterior")
"""What a fit says of how it was found, NaN where draws have no such number; no answer uses it."""
NUMBERS = {
    "bool",
    *(f"{kind}{size}" for kind in ("int", "uint", "float") for size in (8, 16, 32, 64)),
}
"""What arrays may hold."""
SHARE_CHANGE = 0.05
Z_LIMIT = 4.0


@dataclass(frozen=True)
class VoteProfile:
    """What votes look like: the mean share of each class over items, and votes per item."""

    items: int
    mean_share: list[float]
    covariance: list[list[float]]
    """Covariance of the shares over items."""
    votes_per_item: float


@dataclass(frozen=True)
class SavedFit:
    """A fit with everything needed to apply it to new votes."""

    method: str
    fitted: FittedAggregator
    classes: Classes
    profile: VoteProfile
    tasks: list[str] = field(default_factory=list)
    judges: list[str] = field(default_factory=list)
    """The judges in the order of the fit, where it knows them apart; empty where votes are pooled."""
    notes: dict[str, Any] = field(default_factory=dict)
    """For the reader: number of labels, version, columns."""


def profile(votes: AnyVotes) -> VoteProfile:
    """Return the profile of some votes; items without votes are left out."""
    counts = counts_by_item(votes).astype(float)
    total = counts.sum(1)
    share = counts[total > 0] / total[total > 0, None]
    spread = np.cov(share.T) if len(share) > 1 else np.zeros((share.shape[1],) * 2)
    return VoteProfile(
        len(share),
        share.mean(0).tolist(),
        np.atleast_2d(spread).tolist(),
        float(np.median(total[total > 0])),
    )


def drift(before: VoteProfile, now: VoteProfile, classes: Classes) -> list[str]:
    """Return in sentences how new votes differ from those that a fit was made on.

    A class's share has drifted if it moved by more than 0.05 and by more than four standard
    errors over items. The smoothed features of Davidson's model also depend on how many votes an
    item has, so a change of that is said too.
    """
    found = []
    for k, name in enumerate(classes.names):
        change = now.mean_share[k] - before.mean_share[k]
        error = math.sqrt(before.covariance[k][k] / before.items + now.covariance[k][k] / now.items)
        if abs(change) > SHARE_CHANGE and abs(change) > Z_LIMIT * error:
            found.append(
                f"The share of votes for {name} was {before.mean_share[k]:.0%} when the fit was "
                f"made and is {now.mean_share[k]:.0%} now: the votes have drifted, and the "
                "calibration may not hold. Label some of the new items and fit again."
            )
    if before.votes_per_item != now.votes_per_item:
        found.append(
            f"The fit was made on {before.votes_per_item:g} votes per item (median), these have "
            f"{now.votes_per_item:g}: its parameters belong to the number of votes they were "
            "fitted at."
        )
    return found


def save_fit(path: Path | str, saved: SavedFit) -> None:
    """Write a fit.

    Raises
    ------
    JudgeBayesError
        If the fit failed or a parameter of it is not finite: its answers would mean nothing. If it is of
        a kind that `load_fit` could not read, or the file cannot be written.
    """
    try:
        _check_numbers(saved.fitted)
        plain = _plain(saved.fitted)
    except ValueError as error:
        raise JudgeBayesError(
            f"The fit of {saved.method} cannot be kept: {error}. Nothing was written to {str(path)!r}."
        ) from error
    document = {
        "format": FORMAT,
        "version": VERSION,
        "method": saved.method,
        "classes": list(saved.classes.values),
        "pairwise": saved.classes.pairwise,
        "tasks": saved.tasks,
        "judges": saved.judges,
        "profile": dataclasses.asdict(saved.profile),
        "fitted": plain,
        "notes": saved.notes,
    }
    with atomically(Path(path)) as beside:
        beside.write_text(json.dumps(document, indent=1, allow_nan=False), encoding="utf-8")


@in_float64
def load_fit(path: Path | str) -> SavedFit:
    """Read a fit.

    Raises
    ------
    JudgeBayesError
        If the file does not exist, or is not a fit that this version can read.
    """
    path = Path(path)
    if not path.is_file():
        raise JudgeBayesError(f"There is no file {str(path)!r}.")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        kept = isinstance(document, dict) and document.get("format") == FORMAT
        unknown = [name for name in _kinds(document) if name not in FITTED]
    except (ValueError, RecursionError):
        kept = False
    if not kept:
        raise JudgeBayesError(f"{str(path)!r} is not a fit: judgebayes calibrate --save makes one.")
    if document.get("version") != VERSION:
        raise JudgeBayesError(
            f"{str(path)!r} is a fit of version {document.get('version')!r}; this program reads "
            f"version {VERSION}. Fit again."
        )
    if unknown and unknown[0].isidentifier():
        raise JudgeBayesError(
            f"{str(path)!r} holds a {unknown[0]!r}, and no method that is loaded has one. If it is of a "
            "method of your own, say --plugin FILE."
        )
    try:
        fitted = _revived(document["fitted"])
        _check_numbers(fitted)
        return SavedFit(
            method=str(document["method"]),
            fitted=fitted,
            classes=Classes(tuple(document["classes"]), bool(document["pairwise"])),
            profile=VoteProfile(**document["profile"]),
            tasks=[str(name) for name in document["tasks"]],
            judges=[str(name) for name in document.get("judges", [])],
            notes=dict(document["notes"]),
        )
    except (
        *(LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError),
    ) as error:
        raise JudgeBayesError(
            f"{str(path)!r} is damaged: its content is not that of a fit ({error})."
        ) from error


def _check_numbers(fitted: FittedAggregator) -> None:
    """Refuse a fit that failed, or that holds numbers from which no decision may be made.

    Raises
    ------
    ValueError
        If its status says that it failed or is none, or a parameter is NaN or infinite.
    """
    status = Status(int(getattr(fitted, "status", Status.CONVERGED)))
    if status == Status.NONFINITE:
        raise ValueError(f"the fit failed: {status.sentence}")
    _check_finite(fitted, "fit")


def _check_finite(value: Any, name: str) -> None:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for f in dataclasses.fields(value):
            if f.name not in (*NOT_KEPT, *OF_THE_SEARCH):
                _check_finite(getattr(value, f.name), f.name)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            _check_finite(each, str(key))
    elif isinstance(value, tuple):
        for each in value:
            _check_finite(each, name)
    elif isinstance(value, float) or (hasattr(value, "dtype") and value.dtype.kind == "f"):
        array = np.asarray(value)
        allowed = (array == -np.inf) if name in MINUS_INFINITY else False
        wrong = array[~(np.isfinite(array) | allowed)]
        if wrong.size:
            raise ValueError(f"{wrong.size} number(s) of {name} are {wrong.flat[0]}, not finite")


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        own = type(value.inner if isinstance(value, PlainFit) else value)
        if FITTED.get(own.__name__) is not own:
            raise ValueError(f"no file holds a {own.__name__}, which is not declared `in_files`")
        kept = {
            f.name: _plain(getattr(value, f.name))
            for f in dataclasses.fields(value)
            if f.name not in NOT_KEPT
        }
        return {"type": type(value).__name__, **kept}
    if isinstance(value, tuple):
        return {"tuple": [_plain(v) for v in value]}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (str, bool)) or value is None:
        return value
    array: Float[np.ndarray, ...] = np.asarray(value)
    if array.dtype.name not in NUMBERS:
        raise ValueError(f"no file holds a {type(value).__name__}; it holds dataclasses of numbers")
    return {"array": _finite(array.tolist()), "dtype": array.dtype.name}


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _revived(value: Any) -> Any:
    if isinstance(value, dict) and "array" in value:
        if str(value["dtype"]) not in NUMBERS:
            raise ValueError(f"an array of {value['dtype']}")
        dtype = np.dtype(value["dtype"])
        array = np.asarray(_numbers(value["array"]), dtype=dtype)
        return array.item() if array.ndim == 0 and "f" in dtype.kind else jnp.asarray(array)
    if isinstance(value, dict) and "tuple" in value:
        return tuple(_revived(v) for v in value["tuple"])
    if isinstance(value, dict) and "type" in value:
        cls = FITTED[value["type"]]
        names = {f.name for f in dataclasses.fields(cls)}
        fields = {k: _revived(v) for k, v in value.items() if k != "type"}
        if not fields.keys() <= names:
            raise ValueError(f"unknown fields {sorted(fields.keys() - names)}")
        missing = dict.fromkeys(names & set(NOT_KEPT))
        return cls(**missing, **_integers(cls, fields))
    if isinstance(value, dict):
        return {k: _revived(v) for k, v in value.items()}
    return value


def _kinds(value: Any) -> Iterator[str]:
    """Yield the names of the classes that a document holds."""
    if isinstance(value, dict):
        if isinstance(value.get("type"), str):
            yield value["type"]
        for each in value.values():
            yield from _kinds(each)
    elif isinstance(value, list):
        for each in value:
            yield from _kinds(each)


def _integers(cls: type, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with those that are static numbers as Python integers."""
    static = {f.name for f in dataclasses.fields(cls) if f.metadata.get("static")}
    return {
        name: int(value) if name in static and hasattr(value, "dtype") else value
        for name, value in fields.items()
    }


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    return float(value) if isinstance(value, str) else value
