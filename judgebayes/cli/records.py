"""Groups of options as records: declared once, taken whole by the commands."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_args, get_type_hints

import typer
from typer.models import ParameterInfo

from judgebayes.workflow.options import Fixed, Option

__all__ = ["completing", "taking_records"]


def taking_records(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of its records in their place, for Typer.

    A record is a dataclass. Its fields are annotated as parameters of commands are, or with a text
    alone, the help of an option (a flag, if it is a bool), or are records themselves. Any other field
    is no option.
    """
    taken = inspect.signature(command, eval_str=True).parameters
    kinds = {name: _record(each.annotation) for name, each in taken.items()}
    flat: list[inspect.Parameter] = []
    for name, kind in kinds.items():
        own = [taken[name].replace(kind=inspect.Parameter.KEYWORD_ONLY)]
        flat += own if kind is None else _parameters(*kind)

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


def _parts(hint: Any) -> tuple[Any, list[Any]]:
    """Return what an annotation says of the type, and what beside it."""
    bare, *marks = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
    return bare, marks


def _record(hint: Any) -> tuple[type, Mapping[str, object]] | None:
    """Return the record that an annotation names, and what is fixed of it; None for anything else."""
    bare, marks = _parts(hint)
    if not (isinstance(bare, type) and is_dataclass(bare)):
        return None
    return bare, next((mark.values for mark in marks if isinstance(mark, Fixed)), {})


def _parameters(record: type, fixed: Mapping[str, object]) -> list[inspect.Parameter]:
    """Return the options that a record stands for, in the order of its fields."""
    found = []
    hints = get_type_hints(record, include_extras=True)
    for each in fields(record):
        hint = hints[each.name]
        inner = _record(hint)
        if inner is not None:
            found += _parameters(*inner)
        elif each.name not in fixed and _is_option(hint):
            default = inspect.Parameter.empty if each.default is MISSING else each.default
            bare, (mark, *_) = _parts(hint)
            if isinstance(mark, str | Option):
                default, hint = _for_typer(mark, each.name, bare, default), bare
            kind = inspect.Parameter.KEYWORD_ONLY
            found.append(inspect.Parameter(each.name, kind, default=default, annotation=hint))
    return found


def _for_typer(mark: str | Option, name: str, bare: Any, default: Any) -> Any:
    """Return what Typer takes for the option's default: the default with its help and its names."""
    own = Option(mark) if isinstance(mark, str) else mark
    given = ... if default is inspect.Parameter.empty else default
    if own.positional:
        return typer.Argument(given, help=own.help)
    names = own.names or ((f"--{name.replace('_', '-')}",) if bare is bool else ())
    complete = completing(own.values) if own.values else None
    return typer.Option(given, *names, help=own.help, min=own.least, autocompletion=complete)


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
    return any(isinstance(mark, ParameterInfo | Option | str) for mark in _parts(hint)[1])


def completing(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what the shell asks for the names that a word may become."""
    known = list(names)

    def complete(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return complete
