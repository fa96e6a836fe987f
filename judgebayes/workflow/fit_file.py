"""Fits in files: plain JSON, read as data and never as code.

A file contains the fitted parameters, their classes and columns, and a summary of the votes, so that
new votes can be checked for drift. It has a digest of its content, so that no part can be damaged or
changed unnoticed.
"""

import dataclasses
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from judgebayes.arrays import LogProbs
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.one_split import check_answers
from judgebayes.inference.fit import Fitted
from judgebayes.inference.registry import FITTED
from judgebayes.inference.status import Status
from judgebayes.io.columns import plain_label
from judgebayes.io.options import split_names
from judgebayes.io.records import unique_fields
from judgebayes.sentence import percent
from judgebayes.votes import Classes, Votes
from judgebayes.workflow import methods  # noqa: F401 (imports every module that declares what files contain)
from judgebayes.workflow.binning import bins_from
from judgebayes.workflow.options import ROLES, ReadRequest
from judgebayes.workflow.sources import Earlier, Opened

FORMAT = "judgebayes fit"
VERSION = 4
NUMBERS = {
    "bool",
    *(f"{kind}{size}" for kind in ("int", "uint", "float") for size in (8, 16, 32, 64)),
}
"""The dtypes of arrays."""
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What a field that was damaged raises, where it is read or used."""
MINUS_INFINITY = ("log_rates", "log_prior")
"""Log-probabilities, which are -inf for a class without labelled items."""
OPTIMISER_FIELDS = ("objective", "projected_gradient", "log_posterior")
"""Fields about the optimiser, which are NaN for draws; the answers do not use them."""
PLAIN = ("method", "tasks", "judges", "notes")
"""The fields of a fit that are stored as they are."""
KEPT = ("wide", "missing", "undecided", "encoding", "skip_rows", "verdicts")
"""The options for reading that a fit keeps for later files, which may give others."""
SHARE_CHANGE = 0.05
Z_LIMIT = 4.0


@dataclass(frozen=True)
class VoteProfile:
    """A summary of votes: the mean share of each class over items, and votes per item."""

    items: int
    mean_share: list[float]
    covariance: list[list[float]]
    """Covariance of the shares over items."""
    votes_per_item: float


@dataclass(frozen=True)
class SavedFit:
    """A fit with everything needed to apply it to new votes."""

    method: str
    fitted: Fitted
    classes: Classes
    profile: VoteProfile
    tasks: list[str] = field(default_factory=list)
    judges: list[str] = field(default_factory=list)
    """The judges in the order of the fit; empty if the fit pools their votes."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Number of labels, version, columns and reading options."""


def profile(votes: Votes) -> VoteProfile:
    """Return a summary of votes; items without votes are left out."""
    counts = np.asarray(votes.pooled_counts()).astype(float)
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

    A class's share has drifted if it changed by more than 0.05 and by more than four standard errors
    over items. The smoothed features of Davidson's model also depend on the number of votes per item,
    so a change of that number is reported too.
    """
    messages = []
    for k, name in enumerate(classes.names):
        change = now.mean_share[k] - before.mean_share[k]
        error = math.sqrt(before.covariance[k][k] / before.items + now.covariance[k][k] / now.items)
        if abs(change) > SHARE_CHANGE and abs(change) > Z_LIMIT * error:
            messages.append(
                f"The share of votes for {name} was {percent(before.mean_share[k])} when the fit was "
                f"made and is {percent(now.mean_share[k])} now: the votes have drifted, and the "
                "calibration may be wrong. Label some of the new items and fit again."
            )
    if before.votes_per_item != now.votes_per_item:
        messages.append(
            f"The fit was made on {before.votes_per_item:g} votes per item (median), but these "
            f"items have {now.votes_per_item:g}. Its parameters are valid only for the number of "
            "votes that it was fitted to."
        )
    return messages


def save_fit(path: Path | str, saved: SavedFit) -> None:
    """Write a fit.

    Raises
    ------
    JudgeBayesError
        If the fit failed, a parameter is not finite, `load_fit` could not read it, or the file cannot
        be written.
    """
    try:
        _check_status(saved.fitted)
        fields = _to_json(saved.fitted)
    except ValueError as error:
        raise JudgeBayesError(
            f"The fit of {saved.method} cannot be saved: {error}. Nothing was written to {str(path)!r}."
        ) from error
    document = {
        "format": FORMAT,
        "version": VERSION,
        **{name: getattr(saved, name) for name in PLAIN},
        "classes": dataclasses.asdict(saved.classes),
        "profile": dataclasses.asdict(saved.profile),
        "fitted": fields,
    }
    document["digest"] = digest_of(document)
    with atomically(Path(path)) as temporary:
        temporary.write_text(json.dumps(document, indent=1, allow_nan=False), encoding="utf-8")


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
        document = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique_fields)
        is_fit = isinstance(document, dict) and document.get("format") == FORMAT
    except (ValueError, RecursionError):
        is_fit = False
    if not is_fit:
        raise JudgeBayesError(
            f"{str(path)!r} is not a saved fit; use a file that `judgebayes calibrate --save` "
            "wrote."
        )
    if type(document.get("version")) is not int or document["version"] != VERSION:
        raise JudgeBayesError(
            f"{str(path)!r} is a saved fit of format version {document.get('version')!r}; this "
            f"program reads version {VERSION}. Fit again."
        )
    try:
        if document.pop("digest") != digest_of(document):
            raise ValueError("it was changed after it was saved")
        classes: dict[str, Any] = document["classes"]
        classes |= {name: tuple(classes[name]) for name in ("values", "undecided")}
        saved = SavedFit(
            fitted=_from_json(document["fitted"]),
            classes=Classes(**classes),
            profile=VoteProfile(**document["profile"]),
            **{name: document[name] for name in PLAIN},
        )
        _check_status(saved.fitted)
        return saved
    except (*DAMAGE, RecursionError) as error:
        raise JudgeBayesError(
            f"{str(path)!r} is damaged: its content is not a valid fit ({error}). Fit again."
        ) from error


def digest_of(document: Mapping[str, Any]) -> str:
    """Return a digest of a document, whatever the order of its fields."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


@contextmanager
def using(saved: SavedFit) -> Iterator[None]:
    """Refuse a fit that cannot be used, although it has its digest: somebody made it by hand.

    Raises
    ------
    JudgeBayesError
        If a field is not what its use needs.
    """
    try:
        yield
    except JudgeBayesError:
        raise
    except DAMAGE as error:
        raise JudgeBayesError(
            f"The fit of {saved.method} cannot answer these votes ({error}): the file is damaged. Fit "
            "again."
        ) from error


def answers(saved: SavedFit, votes: Votes) -> LogProbs:
    """Return the log-probabilities of a saved fit on new votes, checked.

    Raises
    ------
    JudgeBayesError
        If the fit cannot answer, or its answers are no probabilities.
    """
    with using(saved):
        log_probs = saved.fitted(votes)
    check_answers(log_probs, votes, f"The saved fit of {saved.method}")
    return log_probs


def _check_status(fitted: Any) -> None:
    """Refuse a fit that failed, or whose status is unknown.

    Raises
    ------
    ValueError
        If it is so.
    """
    status = Status(int(getattr(fitted, "status", Status.CONVERGED)))
    if status == Status.NONFINITE:
        raise ValueError(f"the fit failed: {status.sentence}")


def _stored(cls: type) -> list[str]:
    """Return the fields that a file stores of a fit or a part of one: of a method, those it names."""
    names = [field.name for field in dataclasses.fields(cls) if field.name != "chains"]
    return list(getattr(cls, "saved", names))


def _to_json(value: Any, name: str = "fit") -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        own = type(value)
        if FITTED.get(own.__name__) is not own:
            raise ValueError(
                f"a {own.__name__} cannot be saved, because it is not declared `in_files`"
            )
        saved = {field: _to_json(getattr(value, field), field) for field in _stored(own)}
        return {"type": own.__name__, **saved}
    if isinstance(value, tuple):
        return {"tuple": [_to_json(v, name) for v in value]}
    if isinstance(value, Mapping):
        return {str(k): _to_json(v, str(k)) for k, v in value.items()}
    if isinstance(value, (str, int)) or value is None:  # of static fields
        return value
    array: Float[np.ndarray, ...] = np.asarray(value)
    if array.dtype.name not in NUMBERS:
        raise ValueError(f"a {type(value).__name__} cannot be saved, only dataclasses of numbers")
    wrong = array[~np.isfinite(array)]
    wrong = wrong[wrong != -np.inf] if name in MINUS_INFINITY else wrong
    if wrong.size and name not in OPTIMISER_FIELDS:
        raise ValueError(f"{wrong.size} number(s) of {name} are {wrong.flat[0]}, not finite")
    # JSON has no numbers that are not finite: these are texts.
    finite = np.where(np.isfinite(array), array.astype(object), array.astype(str))
    return {"array": finite.tolist(), "dtype": array.dtype.name}


def _from_json(value: Any) -> Any:
    if isinstance(value, dict) and "array" in value:
        if str(value["dtype"]) not in NUMBERS:
            raise ValueError(f"an array of {value['dtype']}")
        dtype = np.dtype(value["dtype"])
        array = np.asarray(value["array"], dtype=dtype)  # texts such as nan become numbers
        return array.item() if array.ndim == 0 and "f" in dtype.kind else jnp.asarray(array)
    if isinstance(value, dict) and "tuple" in value:
        return tuple(_from_json(v) for v in value["tuple"])
    if isinstance(value, dict) and "type" in value:
        if value["type"] not in FITTED:
            raise ValueError(
                f"it contains a {value['type']!r}, which no loaded method defines; if it belongs to "
                "your own method, use --method FILE.py:NAME"
            )
        cls = FITTED[value["type"]]
        fields = {k: _from_json(v) for k, v in value.items() if k != "type"}
        if fields.keys() != set(_stored(cls)):
            raise ValueError(f"its {value['type']} has the fields {sorted(fields)}")
        # Of a method that fitted, the other fields are unknown; its answers do not depend on them.
        unknown = {
            f.name: None
            for f in dataclasses.fields(cls)
            if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        }
        return cls(**(unknown | fields))
    if isinstance(value, dict):
        return {k: _from_json(v) for k, v in value.items()}
    return value


def reading_notes(opened: Opened) -> dict[str, Any]:
    """Return the reading options to save with a fit, for later files of such votes."""
    columns = {role: name for role, name in opened.columns.items() if name is not None}
    request = opened.request
    one_label = opened.label is None or request.label in (None, opened.label)
    annotators = [] if one_label else split_names(str(request.label))
    return {
        **{name: getattr(request, name) for name in KEPT},
        "repeats": request.repeats,
        "columns": columns if opened.label is None else columns | {"label": opened.label},
        "ignore": [*request.left_out, *annotators],
        **({} if opened.bins is None else {"bins": opened.bins.to_json()}),
    }


def apply_notes(request: ReadRequest, notes: Mapping[str, Any]) -> tuple[ReadRequest, Earlier]:
    """Return the request and what is known, by what `reading_notes` saved, which was checked."""
    judges, label = notes.get("judges", []), request.label
    earlier = {
        role: name
        for role, name in notes.get("columns", {}).items()
        if role in ROLES and not (role == "label" and name in judges)
    }
    if label is None and "label" not in earlier and plain_label(judges):
        label = "none"  # a judge with the name of a label
    kept = {
        name: notes[name]
        for name in KEPT
        if name in notes and getattr(request, name) is getattr(ReadRequest, name)
    }
    repeats = request.repeats or notes.get("repeats", False)
    return (
        replace(request, **kept, label=label, repeats=repeats),
        Earlier(earlier, tuple(notes.get("ignore", ())), bins_from(notes.get("bins"))),
    )
