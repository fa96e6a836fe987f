"""Groups of options as records: declared once, taken whole by the commands."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import Any, get_args, get_type_hints

from typer.models import ParameterInfo

__all__ = ["Fixed", "taking_records"]

EMPTY = inspect.Parameter.empty


@dataclass(frozen=True)
class Fixed:
    """Marks a record within a record: these of its fields are no options here, but have a value."""

    values: Mapping[str, object]


def taking_records(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of its records in their place, for Typer.

    A record is a dataclass whose fields are annotated as parameters of commands are, or are records
    themselves. A field without such an annotation is no option.
    """
    taken = list(inspect.signature(command, eval_str=True).parameters.values())
    kinds = {each.name: _record(each.annotation) for each in taken}
    flat: list[inspect.Parameter] = []
    for each in taken:
        kind = kinds[each.name]
        flat += [each.replace(kind=each.KEYWORD_ONLY)] if kind is None else _parameters(*kind)

    @wraps(command)
    def run(**given: object) -> None:
        command(
            **{
                name: given[name] if kind is None else _filled(*kind, given)
                for name, kind in kinds.items()
            }
        )

    vars(run)["__signature__"] = inspect.Signature(flat)
    return run


def _record(hint: Any) -> tuple[type, Mapping[str, object]] | None:
    """Return the record that an annotation names, and what is fixed of it; None for anything else."""
    bare, *marks = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
    if not (isinstance(bare, type) and is_dataclass(bare)):
        return None
    return bare, next((mark.values for mark in marks if isinstance(mark, Fixed)), {})


def _parameters(record: type, fixed: Mapping[str, object]) -> list[inspect.Parameter]:
    """Return the options that a record stands for, in the order of its fields."""
    found = []
    hints = get_type_hints(record, include_extras=True)
    for each in fields(record):
        inner, hint = _record(hints[each.name]), hints[each.name]
        if inner is not None:
            found += _parameters(*inner)
        elif each.name not in fixed and _is_option(hint):
            default = EMPTY if each.default is MISSING else each.default
            kind = inspect.Parameter.KEYWORD_ONLY
            found.append(inspect.Parameter(each.name, kind, default=default, annotation=hint))
    return found


def _filled(record: type, fixed: Mapping[str, object], given: Mapping[str, object]) -> Any:
    """Return a record with the values that were given."""
    values = dict(fixed)
    for name, hint in get_type_hints(record, include_extras=True).items():
        inner = _record(hint)
        if inner is not None:
            values[name] = _filled(*inner, given)
        elif name not in fixed and _is_option(hint):
            values[name] = given[name]
    return record(**values)


def _is_option(hint: Any) -> bool:
    return any(isinstance(mark, ParameterInfo) for mark in getattr(hint, "__metadata__", ()))
