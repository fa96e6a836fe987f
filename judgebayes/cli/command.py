"""The running command as words, to print it or a similar one.

Help of a command with its options under headings.
"""

import shlex
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from judgebayes.cli.machine import MACHINE_OPTIONS
from judgebayes.errors import JudgeBayesError
from judgebayes.workflow.records import key_of

HEADINGS = {
    "Files": "labels data twins cache local verdicts votes_from items set",
    "Columns": "item judge vote label by group text prompt response response_a response_b",
    "Method": "method calibrator inference plugin splits smoke seed k target_width "
    "level judges site target ties decision forecast",
    "Model": "model variant prior draws warmup chains target_accept",
    "Decisions": "loss losses abstain_cost conformal conformal_by no_empty_sets",
    "Requests": "n task key_env template temperature max_tokens body concurrency timeout retries "
    "budget_calls budget_tokens dry_run",
    "Stopping early": "until_settled fit give_up",
    "Output": "out save answers labels_out table plot plots_as overwrite next_labels between "
    "next_out listed costs",
    "For machines": "json require fail_on quiet",
}
"""The headings in order, with the options under each. Options without a heading are under "Other"."""

_IN_COLLECT = {"judge": "Requests"}  # it names no column there


class CommandWithHeadings(TyperCommand):
    """A command whose help lists options by `HEADINGS`, and the keys of `--set`."""

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
        headings = {name: heading for heading, names in HEADINGS.items() for name in names.split()}
        if self.name == "collect":
            headings |= _IN_COLLECT
        rows: dict[str, list[tuple[str, str]]] = {
            heading: [] for heading in ("Arguments", *HEADINGS, "Other")
        }
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if row is not None:
                argument = parameter.param_type_name == "argument"
                name = parameter.name or ""
                rows["Arguments" if argument else headings.get(name, "Other")].append(row)
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


def other_command(context: Any, name: str, without: Collection[str] = ()) -> str:
    """Return the line that runs another command on the same input, with the options they share.

    Options that name output files are left out, and those named in `without`.
    """
    other = context.parent.command.get_command(context.parent, name)
    names = {*keys_of(other), *(parameter.name for parameter in other.params)}
    shared = names - {"out", "save", "plot", *without}
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
