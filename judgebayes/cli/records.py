"""Turn records of options (dataclasses) into the options of Typer commands."""

import inspect
import operator
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

import typer

from judgebayes.workflow.options import Option
from judgebayes.workflow.records import Leaf, leaves, taking_fields

R = TypeVar("R")


def taking_records(command: Callable[..., R]) -> Callable[..., R]:
    """Return the command with its record parameters replaced by their fields, for Typer.

    A field is annotated with an `Option`, with its help text alone (a bool is then a flag), or like a
    parameter of a Typer command.
    """
    return taking_fields(command, _parameter)


def options_of(record: type) -> list[inspect.Parameter]:
    """Return the options of a record as parameters that Typer reads."""
    return [_parameter(leaf) for leaf in leaves(record, {})]


def _parameter(leaf: Leaf) -> inspect.Parameter:
    """Return a parameter that Typer reads as this option."""
    kind, own = inspect.Parameter.KEYWORD_ONLY, leaf.option
    if not isinstance(own, str | Option):
        typed: Any = operator.getitem(Annotated, (leaf.type, own))
        return inspect.Parameter(leaf.name, kind, default=leaf.default, annotation=typed)
    own = Option(own) if isinstance(own, str) else own
    default = ... if leaf.default is inspect.Parameter.empty else leaf.default
    if own.positional:
        made = typer.Argument(default, help=own.help)
    else:
        names = own.names or ((f"--{leaf.name.replace('_', '-')}",) if leaf.type is bool else ())
        complete = completing(own.values) if own.values else None
        made = typer.Option(default, *names, help=own.help, min=own.least, autocompletion=complete)
    hint = leaf.type if own.type is None else own.type
    return inspect.Parameter(leaf.name, kind, default=made, annotation=hint)


def completing(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a function that completes the beginning of a word to these names."""
    candidates = list(names)

    def complete(incomplete: str) -> list[str]:
        return [name for name in candidates if name.startswith(incomplete)]

    return complete
