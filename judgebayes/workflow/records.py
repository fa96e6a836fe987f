"""Records of options made flat: a function that takes one becomes a function of its fields."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import wraps
from typing import Any, TypeVar, get_args, get_type_hints

from judgebayes.workflow.options import Fixed

__all__ = ["changed", "filled", "leaves", "record_of", "with_options"]

R = TypeVar("R")


@dataclass(frozen=True)
class Leaf:
    """An option: a field of a record, or of a record within it."""

    name: str
    type: Any
    option: Any
    """An `Option`, or what stands for one elsewhere."""
    default: Any


def with_options(function: Callable[..., R]) -> Callable[..., R]:
    """Return a function of the fields of the records that `function` takes, by keyword.

    A record is a dataclass. Its options are the fields annotated with an `Option`, with a text alone
    (its help), or with another record. Options that are `positional`, and `labels` beside `votes`, may
    be given without their names.
    """
    taken = inspect.signature(function, eval_str=True).parameters
    kinds = {name: record_of(each.annotation) for name, each in taken.items()}
    flat: list[inspect.Parameter] = []
    for name, kind in kinds.items():
        if kind is None:
            flat.append(taken[name].replace(kind=inspect.Parameter.KEYWORD_ONLY))
        else:
            flat += [_parameter(leaf) for leaf in leaves(*kind)]
    signature = inspect.Signature(
        flat, return_annotation=inspect.signature(function).return_annotation
    )

    @wraps(function)
    def run(*given: Any, **named: Any) -> R:
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        values = bound.arguments
        return function(
            **{
                name: values[name] if kind is None else filled(*kind, values)
                for name, kind in kinds.items()
            }
        )

    vars(run)["__signature__"] = signature
    run.__doc__ = f"{inspect.getdoc(function)}\n\n{_parameters_in_words(kinds)}"
    return run


def _parameter(leaf: Leaf) -> inspect.Parameter:
    first = leaf.name == "labels" or getattr(leaf.option, "positional", False)
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if first else inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(leaf.name, kind, default=leaf.default, annotation=leaf.type)


def _parameters_in_words(kinds: Mapping[str, Any]) -> str:
    lines = ["Parameters", "----------"]
    for kind in kinds.values():
        for leaf in () if kind is None else leaves(*kind):
            said = leaf.option if isinstance(leaf.option, str) else leaf.option.help
            lines += [leaf.name, f"    {said}"]
    return "\n".join(lines)


def record_of(hint: Any) -> tuple[type, Mapping[str, object]] | None:
    """Return the record that an annotation names, and what is fixed of it; None for anything else."""
    bare, marks = _parts(hint)
    if not (isinstance(bare, type) and is_dataclass(bare)):
        return None
    return bare, next((mark.values for mark in marks if isinstance(mark, Fixed)), {})


def leaves(record: type, fixed: Mapping[str, object]) -> Iterator[Leaf]:
    """Yield the options that a record stands for, in the order of its fields."""
    for own, hint, inner in _fields(record):
        if inner is not None:
            yield from leaves(*inner)
        elif own.name not in fixed and _parts(hint)[1]:
            bare, (mark, *_) = _parts(hint)
            default = inspect.Parameter.empty if own.default is MISSING else own.default
            yield Leaf(own.name, bare, mark, default)


def filled(record: type, fixed: Mapping[str, object], given: Mapping[str, object]) -> Any:
    """Return a record with the values that were given."""
    values = dict(fixed)
    for own, hint, inner in _fields(record):
        if inner is not None:
            values[own.name] = filled(*inner, given)
        elif own.name not in fixed and _parts(hint)[1]:
            values[own.name] = given[own.name]
    return record(**values)


def changed(record: Any, fixed: Mapping[str, object] | None = None) -> Iterator[str]:
    """Yield the names of the options of a record that have a default, and another value."""
    for own, hint, inner in _fields(type(record)):
        value = getattr(record, own.name)
        if inner is not None:
            yield from changed(value, inner[1])
        elif own.name in (fixed or {}) or not _parts(hint)[1] or own.default is MISSING:
            continue
        # Tables are not compared: none is a default.
        elif type(value) is not type(own.default) or value != own.default:
            yield own.name


def _fields(
    record: type,
) -> Iterator[tuple[Field[Any], Any, tuple[type, Mapping[str, object]] | None]]:
    hints = get_type_hints(record, include_extras=True)
    for own in fields(record):
        yield own, hints[own.name], record_of(hints[own.name])


def _parts(hint: Any) -> tuple[Any, list[Any]]:
    """Return what an annotation says of the type, and what beside it."""
    bare, *marks = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
    return bare, marks
