"""A command: a record of options, and the function that takes it; its parameters, words and help.

Help has the options under headings, in two columns that keep every word.
"""

import inspect
import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import get_annotations
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from judgebayes.io.options import key_of
from judgebayes.workflow.leaves import Leaf, leaves
from judgebayes.workflow.options import Columns, Option, ReadRequest

LEFT, WIDTH = 24, 78
"""The width of the column of names, and of the whole."""


class TwoColumns:
    """The formatter that Cyclopts calls."""

    def __call__(self, console: Any, options: Any, panel: Any) -> None:  # noqa: ARG002
        """Print the commands or options under one heading."""
        rows = []
        for entry in panel.entries:
            with console.capture() as captured:
                console.print(entry.description, soft_wrap=True, markup=False, highlight=False)
            says = [captured.get()]
            says += [] if entry.default is None else [f"[default: {entry.default}]"]
            says += ["[required]"] if entry.required else []
            rows.append((", ".join(entry.display_labels_with_metavar), " ".join(says)))
        if rows:
            _print(console, "\n".join([f"{panel.title}:", *definitions(rows), ""]))

    def render_usage(self, console: Any, options: Any, usage: Any) -> None:  # noqa: ARG002
        """Print how the command is called."""
        _print(console, f"Usage: {str(usage or '').strip()}\n")


def _print(console: Any, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def paragraphs(doc: str) -> str:
    """Return a docstring whose paragraphs are as wide as the help."""
    return "\n\n".join(textwrap.fill(" ".join(p.split()), WIDTH) for p in doc.split("\n\n"))


def definitions(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Return names with what they mean beside them, or below those that are long."""
    lines: list[str] = []
    for name, text in rows:
        wrapped = textwrap.wrap(" ".join(text.split()), WIDTH - LEFT, break_on_hyphens=False)
        beside = len(name) < LEFT - 3
        lines.append(f"  {name:<{LEFT - 2}}{wrapped.pop(0)}" if beside and wrapped else f"  {name}")
        lines += [" " * LEFT + line for line in wrapped]
    return lines


OUTPUTS = ("out", "html", "save", "summary", "plot", "labels_out", "json")
"""The names of options that name a file to write; all other files are read."""


@dataclass(frozen=True, kw_only=True)
class MachineOptions:
    """The options of every command for machines."""

    json: Annotated[
        Path | None,
        Option(
            "Where to write the results as JSON; - is standard output, and all sentences then go "
            "to standard error.",
            metavar="FILE|-",
        ),
    ] = None
    require: Annotated[
        list[str] | None,
        Option(
            "A number of the JSON that must be as stated, such as `held_out.accuracy.low>0.7` or "
            "`problems==0`; otherwise the exit code is 1. Repeat the option for more.",
            metavar="PATH>NUMBER",
        ),
    ] = None
    quiet: Annotated[bool, "Print no sentences, tables or progress; errors are still printed."] = (
        False
    )


HEADINGS: dict[str, type] = {
    "Columns": Columns,
    "Reading": ReadRequest,
    "For machines": MachineOptions,
}
"""The headings below a command's own options, each with the record that declares what is under it."""
_NAMES = ("Arguments", "Options", *HEADINGS)
GROUPS = {name: Group(name, sort_key=place) for place, name in enumerate(_NAMES)}
_OWN = {"collect": ("judge", "task")}
"""Options of a command that are not those of the same name in a record."""


@dataclass(frozen=True)
class Command:
    """A command with its options for machines."""

    name: str
    record: type
    place: str
    """`module:function`; of a module of the workflow, a question."""

    @property
    def leaves(self) -> dict[str, Leaf]:
        """Its options by name."""
        every = (*leaves(self.record, {}), *leaves(MachineOptions, {}))
        return {leaf.name: leaf for leaf in every}

    @property
    def keys(self) -> dict[str, str]:
        """The keys that it takes by `--set`, each with its help."""
        return {name: leaf.option.help for name, leaf in self.leaves.items() if leaf.option.key}

    def function(self) -> Callable[..., Any]:
        """Import the function only when the command runs."""
        module, _, name = self.place.partition(":")
        function: Callable[..., Any] = getattr(import_module(f"judgebayes.{module}"), name)
        return function

    def signature(self) -> inspect.Signature:
        """Return its parameters, from which Cyclopts reads the command line."""
        own = dict.fromkeys(_OWN.get(self.name, ()), "Options")
        made = [
            _parameter(leaf, own.get(name))
            for name, leaf in self.leaves.items()
            if not leaf.option.key
        ]
        return inspect.Signature(sorted(made, key=lambda each: each.kind))


def _parameter(leaf: Leaf, heading: str | None) -> inspect.Parameter:
    """Return a parameter that Cyclopts reads as this option; a bool is a flag."""
    own = leaf.option
    own_heading = (h for h, record in HEADINGS.items() if leaf.name in get_annotations(record))
    heading = heading or next(own_heading, "Options")
    empty = inspect.Parameter.empty
    shown = Parameter(
        name=own.names or None,
        help=own.help,
        group=GROUPS["Arguments" if own.positional else heading],
        negative=(),
        metavar=own.metavar,
        allow_leading_hyphen=leaf.type is not bool and not own.positional,
        allow_repeating=None if "list" in str(leaf.type) else True,
        completer=(lambda _: own.values) if own.values else None,
        show_default=leaf.type is not bool and leaf.default not in (None, empty),
    )
    kind = inspect.Parameter.POSITIONAL_ONLY if own.positional else inspect.Parameter.KEYWORD_ONLY
    hint: Any = leaf.type if own.type is None else own.type
    return inspect.Parameter(
        leaf.name, kind, default=leaf.default, annotation=Annotated[hint, shown]
    )


@dataclass(frozen=True)
class CommandLine:
    """The running command as words, to print it or a similar one."""

    command: Command
    given: Mapping[str, Any]
    """The values of the options that were typed."""
    commands: Mapping[str, Command]
    """All commands by name."""

    def words(self) -> list[str]:
        """Return the command with its arguments and options.

        The options for machines are left out: they do not change the results.
        """
        return ["judgebayes", *self.command.name.split(), *self._words({*self.command.leaves})]

    def other(self, name: str) -> str:
        """Return the line that runs another command on the same input, with the options they share.

        Options that name output files are left out.
        """
        shared = {*self.commands[name].leaves} - {*OUTPUTS}
        return shlex.join(["judgebayes", name, *self._words(shared)])

    def _words(self, names: set[str]) -> list[str]:
        """Return the words of the named options, arguments first."""
        machine = {leaf.name for leaf in leaves(MachineOptions, {})}
        known = {n: leaf for n, leaf in self.command.leaves.items() if n in names - machine}
        words: list[str] = []
        for name, leaf in sorted(known.items(), key=lambda pair: not pair[1].option.positional):
            value = self.given.get(name)
            values = value if isinstance(value, list | tuple) else [value]
            if name == "set":
                values = [pair for pair in value or () if key_of(pair) in names]
            option = [] if leaf.option.positional else [(*leaf.option.names, leaf.shown)[0]]
            for each in values if name in self.given else ():
                words += option if isinstance(each, bool) else [*option, str(each)]
        return words


def files_in(value: object) -> Iterator[Path]:
    """Yield the paths in an option that are files, or can become one."""
    for path in value if isinstance(value, list | tuple) else [value]:
        if isinstance(path, Path) and path != Path("-") and (path.is_file() or not path.exists()):
            yield path
