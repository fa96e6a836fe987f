"""Turn a function of records of options into a function of their fields."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import is_dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import join_names
from judgebayes.workflow.leaves import Leaf, leaves, parts_of
from judgebayes.workflow.options import Fixed, check_choice

R = TypeVar("R")
SEEDS = 2**63
"""Seeds are below this."""


def with_options(function: Callable[..., R]) -> Callable[..., R]:
    """Return a function that takes the fields of the records of `function` as keywords.

    A record is a dataclass. Its options are the fields annotated with an `Option` or with a help text.
    `positional` options and `labels` may be passed by position. A record in place of all its options is
    taken as it is.
    """
    kinds, flat = records_of(function), list[inspect.Parameter]()
    parameters = inspect.signature(function, eval_str=True).parameters
    for name, kind in kinds.items():
        own = [parameters[name].replace(kind=inspect.Parameter.KEYWORD_ONLY)]
        flat += own if kind is None else map(_parameter, leaves(*kind))
    flat.sort(key=lambda each: each.kind)  # those that may be passed by position come first
    signature = inspect.Signature(
        flat, return_annotation=inspect.signature(function).return_annotation
    )
    records = tuple(kind[0] for kind in kinds.values() if kind is not None)

    @wraps(function)
    def run(*given: Any, **named: Any) -> R:
        if given and isinstance(given[0], records):
            return function(*given, **named)
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        values = bound.arguments
        return function(
            **{
                name: values[name] if kind is None else make_record(*kind, values)
                for name, kind in kinds.items()
            }
        )

    vars(run)["__signature__"] = signature
    run.__doc__ = f"{inspect.getdoc(function)}\n\n{_parameters_section(kinds)}"
    return run


def records_of(
    function: Callable[..., Any],
) -> dict[str, tuple[type, Mapping[str, object]] | None]:
    """Return the record of each parameter with its fixed values, None for one that is no record."""
    kinds: dict[str, tuple[type, Mapping[str, object]] | None] = {}
    for name, each in inspect.signature(function, eval_str=True).parameters.items():
        bare, marks = parts_of(each.annotation)
        fixed = next((mark.values for mark in marks if isinstance(mark, Fixed)), {})
        kinds[name] = (bare, fixed) if isinstance(bare, type) and is_dataclass(bare) else None
    return kinds


def _parameter(leaf: Leaf) -> inspect.Parameter:
    first = leaf.name == "labels" or leaf.option.positional
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if first else inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(leaf.name, kind, default=leaf.default, annotation=leaf.type)


def _parameters_section(kinds: Mapping[str, Any]) -> str:
    lines = ["Parameters", "----------"]
    for kind in kinds.values():
        for leaf in () if kind is None else leaves(*kind):
            lines += [leaf.name, f"    {leaf.option.help}"]
    return "\n".join(lines)


def make_record(record: type, fixed: Mapping[str, object], options: Mapping[str, object]) -> Any:
    """Return a record with these values.

    Raises
    ------
    JudgeBayesError
        If the seed is no seed, an option has none of its values, or `--set` has another key.
    """
    values = dict(fixed)
    known = list(leaves(record, fixed))
    studied = _from_study(options, {leaf.name for leaf in known})
    for leaf in known:
        value, option = options.get(leaf.name, leaf.default), leaf.option
        if leaf.name in studied and (leaf.name == "votes" or _same(value, leaf.default)):
            value = studied[leaf.name]
        if leaf.name == "set":
            value = None  # its keys are the other options now
        if option.values and not option.others and isinstance(value, str):
            check_choice(leaf.shown, value, option.values)
        if isinstance(value, list | tuple) and leaf.type in (str, str | None):
            value = join_names(map(str, value))  # names with commas between them
        least = option.least
        if least is not None and isinstance(value, int | float) and value < least:
            raise JudgeBayesError(f"{leaf.shown} is {value}, but must be {least} or more.")
        values[leaf.name] = value
    seed = values.get("seed")
    if isinstance(seed, int) and not 0 <= seed < SEEDS:
        raise JudgeBayesError(f"A seed is a whole number from 0 to 2^63 - 1, not {str(seed)[:40]}.")
    return record(**values)


def _from_study(options: Mapping[str, object], known: Collection[str]) -> dict[str, Any]:
    """Return the options in the study file that is in place of the votes, and those of `--set`."""
    votes, pairs = options.get("votes"), options.get("set")
    study = isinstance(votes, str | Path) and str(votes).lower().endswith(".toml")
    if "set" not in known or not (study or pairs):
        return {}
    from judgebayes.workflow.study import read_study, set_values

    assert isinstance(pairs, list | tuple | None)
    given = set_values(pairs or ())
    for key in given.keys() - known:
        raise JudgeBayesError(f"--set {key}=...: {key} is not a key of this command.")
    return (read_study(Path(str(votes))) if study else {}) | given


def options_in(record: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the options of a record that have a default, each with its value and its default."""
    for leaf in leaves(type(record), {}):
        if leaf.default is not inspect.Parameter.empty:
            yield leaf.name, getattr(record, leaf.name), leaf.default


def changed(record: Any) -> Iterator[tuple[str, Any]]:
    """Yield the options whose value is not their default, with the value."""
    for name, value, default in options_in(record):
        if not _same(value, default):
            yield name, value


def _same(value: object, default: object) -> bool:
    # The type is compared first, because a table cannot be compared with a default.
    return type(value) is type(default) and bool(value == default)
