"""The command that is running, as it would be typed again."""

import shlex
from typing import TYPE_CHECKING, Any

import typer

__all__ = ["Context", "command_line", "other_command"]

if TYPE_CHECKING:
    from typer import Context
else:
    Context = typer.Context.__base__  # what Typer passes is of its base class


def command_line(context: Any) -> list[str]:
    """Return the command with the arguments and options that were given, word by word."""
    return ["judgebayes", context.info_name, *_given(context, {*context.params})]


def other_command(context: Any, name: str) -> str:
    """Return the line that runs another command on the same input, with the options that it knows.

    What the running command writes is not repeated.
    """
    other = context.parent.command.get_command(context.parent, name)
    shared = {parameter.name for parameter in other.params} - {"out", "save", "plot"}
    return shlex.join(["judgebayes", name, *_given(context, shared)])


def _given(context: Any, names: set[str]) -> list[str]:
    """Return the words of what was given on the command line, as far as it is among the names."""
    words = []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name)
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            words += _spelled(parameter, context.params[parameter.name])
    return words


def _spelled(parameter: Any, value: object) -> list[str]:
    if parameter.param_type_name == "argument":
        return [str(each) for each in value] if isinstance(value, list | tuple) else [str(value)]
    if isinstance(value, bool):
        return [parameter.opts[0] if value else parameter.secondary_opts[0]]
    values = value if isinstance(value, list | tuple) else [value]
    return [word for each in values for word in (parameter.opts[0], str(each))]
