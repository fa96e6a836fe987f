"""The running command as words, to print it or a similar one.

Help of a command with its options under headings.
"""

import shlex
from inspect import get_annotations
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from judgebayes.cli.machine import MACHINE_OPTIONS, OUTPUTS, MachineOptions
from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import key_of
from judgebayes.workflow.options import Columns, ReadRequest

HEADINGS: dict[str, type] = {
    "Columns": Columns,
    "Reading": ReadRequest,
    "For machines": MachineOptions,
}
"""The headings below a command's own options, each with the record that declares what is under it."""

_OWN = {"collect": ("judge", "task")}
"""Options of a command that are not those of the same name in a record."""


class CommandWithHeadings(TyperCommand):
    """A command whose help lists its own options, those of each record of `HEADINGS`, and its keys."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line; a key among them is told how it is given."""
        for word in args:
            name = word.partition("=")[0]
            key = name.removeprefix("--").removeprefix("no-").replace("-", "_")
            if name.startswith("--") and key in keys_of(self):
                raise JudgeBayesError(f"{name} is a key of the study: --set {key}=VALUE.")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options under their headings."""
        headings = {
            name: heading
            for heading, record in HEADINGS.items()
            for name in get_annotations(record)
        }
        headings |= dict.fromkeys(_OWN.get(self.name or "", ()), "Options")
        rows: dict[str, list[tuple[str, str]]] = {
            heading: [] for heading in ("Arguments", "Options", *HEADINGS)
        }
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is not None:
                argument = parameter.param_type_name == "argument"
                own = headings.get(parameter.name or "", "Options")
                rows["Arguments" if argument else own].append(row)
        for heading, listed in rows.items():
            if listed:
                with formatter.section(heading):
                    formatter.write_dl(listed)
        if keys_of(self):
            with formatter.section("Keys of --set"):
                formatter.write_dl(list(keys_of(self).items()))


def keys_of(command: Any) -> dict[str, str]:
    """Return the keys that a command takes by `--set`, each with its help."""
    keys: dict[str, str] = vars(command.callback).get("keys", {})
    return keys


if TYPE_CHECKING:
    from typer import Context as Context
else:
    Context = typer.Context.__base__  # Typer passes an instance of the base class


def command_line(context: Any) -> list[str]:
    """Return the running command with its arguments and options, as a list of words.

    The options for machines are left out: they do not change the results.
    """
    names = {*context.params, *keys_of(context.command)}
    return ["judgebayes", context.info_name, *_words_of(context, names)]


def other_command(context: Any, name: str) -> str:
    """Return the line that runs another command on the same input, with the options they share.

    Options that name output files are left out.
    """
    other = context.parent.command.get_command(context.parent, name)
    names = {*keys_of(other), *(parameter.name for parameter in other.params)}
    shared = names - {*OUTPUTS}
    return shlex.join(["judgebayes", name, *_words_of(context, shared)])


def _words_of(context: Any, names: set[str]) -> list[str]:
    """Return the words of the named parameters that were set on the command line, arguments first."""
    words = []
    for parameter in sorted(context.command.params, key=lambda each: each.param_type_name):
        if parameter.name in MACHINE_OPTIONS:
            continue
        source = context.get_parameter_source(parameter.name)
        if parameter.name in names and source is not None and source.name == "COMMANDLINE":
            value = context.params[parameter.name]
            if parameter.name == "set":
                value = [pair for pair in value if key_of(pair) in names]
            words += _as_words(parameter, value)
    return words


def _as_words(parameter: Any, value: object) -> list[str]:
    if parameter.param_type_name == "argument":
        return [str(each) for each in value] if isinstance(value, list | tuple) else [str(value)]
    if isinstance(value, bool):
        return [parameter.opts[0] if value else parameter.secondary_opts[0]]
    values = value if isinstance(value, list | tuple) else [value]
    return [word for each in values for word in (parameter.opts[0], str(each))]
