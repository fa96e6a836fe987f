"""The running command as words, to print it or a similar one.

Help of a command with its options under headings.
"""

import shlex
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from judgebayes.cli.machine import MACHINE_OPTIONS

HEADINGS = {
    "Files": "labels labels_merge adjudicator data twins cache local wide only_judge ignore "
    "missing undecided encoding skip_rows match_ids drop_unknown_labels allow_degenerate "
    "items set",
    "Columns": "item judge vote sample repeats order votes_as label annotator by task group "
    "generator systems text prompt response response_a response_b",
    "Classes": "classes pairwise bins verdicts votes_from",
    "Method": "method calibrator inference plugin label_noise splits smoke seed k target_width "
    "level judges site target ties decision forecast",
    "Model": "model variant prior draws warmup chains target_accept",
    "Decisions": "loss losses abstain_cost conformal conformal_by no_empty_sets",
    "Requests": "n key_env template temperature max_tokens body concurrency timeout retries "
    "budget_calls budget_tokens dry_run",
    "Stopping early": "until_settled fit give_up",
    "Output": "out html save answers labels_out table plot overwrite next_labels between "
    "next_out listed costs",
    "For machines": "json require quiet",
}
"""The headings in order, with the options under each. Options without a heading are under "Other"."""

_IN_COLLECT = {"judge": "Requests", "task": "Requests"}  # they name no columns there


class CommandWithHeadings(TyperCommand):
    """A command whose help lists options by `HEADINGS`."""

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
    shared = {parameter.name for parameter in other.params} - {"out"}
    return shlex.join(["judgebayes", name, *_words_of(context, shared)])


def _words_of(context: Any, names: set[str]) -> list[str]:
    """Return the words of the named parameters that were set on the command line, arguments first."""
    words = []
    for parameter in sorted(context.command.params, key=lambda each: each.param_type_name):
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
