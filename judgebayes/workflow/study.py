"""Study files: where votes and labels are and how they are read, so that nothing is typed twice.

A study file is TOML with a key for every option that says how files are read, also for those that
the command line has only as `--set KEY=VALUE`::

    votes = "votes.csv"
    labels = "gold.csv"
    missing = ["n/a", "refused"]
    labels_merge = "majority"

`judgebayes check VOTES --save study.toml` writes one; commands and functions take it in place of the
votes. Paths are relative to the file. What is given beside it comes first.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import join_names, key_of
from judgebayes.sentence import did_you_mean
from judgebayes.workflow.leaves import leaves
from judgebayes.workflow.options import CalibrateRequest, PrecisionRequest, ReadRequest

FILES = ("votes", "labels", "items")
"""The keys that name files."""
HEAD = "# How judgebayes reads these files. Commands take this file in place of the votes.\n"


@cache
def keys() -> dict[str, Any]:
    """Return the type of every key that a study file may have."""
    records = (PrecisionRequest, CalibrateRequest)
    others = [leaf for record in records for leaf in leaves(record, {}) if leaf.option.key]
    types = {leaf.name: leaf.type for leaf in (*others, *leaves(ReadRequest, {}))}
    del types["set"]
    return dict.fromkeys(FILES, Any) | types


def read_study(path: Path) -> dict[str, Any]:
    """Return the options in a study file, by name.

    Raises
    ------
    JudgeBayesError
        If the file cannot be read, has no votes, or has a key that is unknown or of another type.
    """
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise JudgeBayesError(f"The study file {str(path)!r} cannot be read: {reason}.") from error
    if "votes" not in content:
        raise JudgeBayesError(
            f'The study file {str(path)!r} does not say where the votes are: votes = "votes.csv".'
        )
    values = {key: _value(key, value, repr(str(path))) for key, value in content.items()}
    folder = path.parent
    return values | {n: folder / values[n] for n in FILES if values.get(n) is not None}


def set_values(pairs: Iterable[str]) -> dict[str, Any]:
    """Return the options in texts such as `missing=n/a` or `wide=true`, by name.

    Raises
    ------
    JudgeBayesError
        If a text is no pair, or a key is unknown or of another type.
    """
    values: dict[str, Any] = {}
    for pair in pairs:
        _, equals, text = pair.partition("=")
        if not equals:
            raise JudgeBayesError(f"--set {pair!r} is not KEY=VALUE, such as missing=n/a.")
        key = key_of(pair)
        if key in FILES:
            raise JudgeBayesError(f"--set {pair}: files have options of their own.")
        kinds = _kinds(keys().get(key))
        plain = bool in kinds or int in kinds or float in kinds
        try:
            value = json.loads(text.strip().lower()) if plain else text
        except ValueError:
            value = text  # of a wrong type, which is said
        values[key] = _value(key, value, "--set")
    return values


def write_study(path: Path, files: Mapping[str, Path | None], options: Mapping[str, Any]) -> None:
    """Write a study file, with paths relative to it where they are in its folder or below."""
    from judgebayes.compiled.store import atomically

    if path.suffix != ".toml":
        raise JudgeBayesError(f"A study file ends in .toml; {str(path)!r} does not.")
    folder = path.resolve().parent
    paths = {name: own.resolve() for name, own in files.items() if own is not None}
    shown = {
        name: (own.relative_to(folder) if own.is_relative_to(folder) else own).as_posix()
        for name, own in paths.items()
    }
    lines = [f"{key} = {_toml(value)}\n" for key, value in (shown | dict(options)).items()]
    with atomically(path) as temporary:
        temporary.write_text(HEAD + "".join(lines), encoding="utf-8")


def _value(key: str, value: Any, where: str) -> Any:
    """Return the value of an option; a list of texts is written as one, with commas."""
    if key not in keys():
        raise JudgeBayesError(
            f"{where}: there is no key {key!r}; the keys are {', '.join(keys())}."
            f"{did_you_mean(key, keys())}"
        )
    kinds = _kinds(keys()[key])
    if isinstance(value, bool):
        fits = bool in kinds
    elif isinstance(value, list):
        fits = str in kinds and all(isinstance(each, str | int | float) for each in value)
        value = join_names(map(str, value)) if fits else value
    else:
        fits = type(value) in kinds or (isinstance(value, int) and float in kinds)
        if isinstance(value, int | float) and not fits and str in kinds:
            value, fits = str(value), True
    if not fits:
        right = {bool: "true or false", int: "a whole number", float: "a number"}
        wanted = next((words for kind, words in right.items() if kind in kinds), "a text")
        raise JudgeBayesError(f"{where}: {key} is {value!r}, but must be {wanted}.")
    return value


def _kinds(hint: Any) -> tuple[type, ...]:
    """Return the types that a value may have; those of files are texts."""
    return get_args(hint) or ((str,) if hint is Any else (hint,))


def _toml(value: object) -> str:
    # A JSON text is a TOML text but for one character that TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
