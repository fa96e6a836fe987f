"""Groups of options as records: declared once, taken whole by the commands."""

import inspect
import operator
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Annotated, Any

import typer

from judgebayes.workflow.options import Option
from judgebayes.workflow.records import Leaf, filled, leaves, record_of

__all__ = ["completing", "taking_records"]


def taking_records(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of its records in their place, for Typer.

    Fields of records are annotated with an `Option`, with a text alone, the help of an option (a flag,
    if it is a bool), or as parameters of Typer's commands are.
    """
    taken = inspect.signature(command, eval_str=True).parameters
    kinds = {name: record_of(each.annotation) for name, each in taken.items()}
    flat: list[inspect.Parameter] = []
    for name, kind in kinds.items():
        own = [taken[name].replace(kind=inspect.Parameter.KEYWORD_ONLY)]
        flat += own if kind is None else [_parameter(leaf) for leaf in leaves(*kind)]

    @wraps(command)
    def run(**given: object) -> None:
        command(
            **{
                name: given[name] if kind is None else filled(*kind, given)
                for name, kind in kinds.items()
            }
        )

    vars(run)["__signature__"] = inspect.Signature(flat)
    return run


def _parameter(leaf: Leaf) -> inspect.Parameter:
    """Return what Typer takes for an option: its default with its help and its names."""
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
    """Return what the shell asks for the names that a word may become."""
    known = list(names)

    def complete(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return complete
