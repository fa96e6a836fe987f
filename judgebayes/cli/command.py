"""The running command as words, to print it or a similar one."""

import shlex
from typing import TYPE_CHECKING, Any

import typer

from judgebayes.cli.machine import MACHINE_OPTIONS

if TYPE_CHECKING:
    from typer import Context as Context
else:
    Context = typer.Context.__base__  # Typer passes an instance of the base class


def command_line(context: Any) -> list[str]:
    """Return the running command with its arguments and options, as a list of words.

    The options for machines are left out: they do not change the results.
    """
    return ["judgebayes", context.info_name, *_words_of(context, {*context.params})]


def other_command(context: Any, name: str) -> str:
    """Return the line that runs another command on the same input, with the options they share.

    Options that name output files are left out.
    """
    other = context.parent.command.get_command(context.parent, name)
    shared = {parameter.name for parameter in other.params} - {"out", "save", "plot"}
    return shlex.join(["judgebayes", name, *_words_of(context, shared)])


def _words_of(context: Any, names: set[str]) -> list[str]:
    """Return the words of those parameters that were set on the command line, if named."""
    words = []
    for parameter in context.command.params:
        if parameter.name in MACHINE_OPTIONS:
            continue
        source = context.get_parameter_source(parameter.name)
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            words += _as_words(parameter, context.params[parameter.name])
    return words


def _as_words(parameter: Any, value: object) -> list[str]:
    if parameter.param_type_name == "argument":
        return [str(each) for each in value] if isinstance(value, list | tuple) else [str(value)]
    if isinstance(value, bool):
        return [parameter.opts[0] if value else parameter.secondary_opts[0]]
    values = value if isinstance(value, list | tuple) else [value]
    return [word for each in values for word in (parameter.opts[0], str(each))]
