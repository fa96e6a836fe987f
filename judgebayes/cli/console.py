r"""The terminal: text of files and servers never acts on it.

A name in a file may contain escape sequences, which would clear the screen, set the title, or forge
output. Every command prints through this console, which shows such characters as `\x1b`. Sentences are
wrapped between words on a terminal, and one per line in a file.
"""

import os
from collections.abc import Iterable, Sequence
from typing import IO

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table

from judgebayes.finding import Finding, Severity
from judgebayes.sentence import sentence, sentences

LAYOUT = "\n\t"


def visible(text: str) -> str:
    r"""Return the text with characters that cannot be printed as escapes; lines and tabs remain.

    >>> visible("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in LAYOUT else repr(c)[1:-1] for c in text)


def send_nowhere(file: IO[str]) -> None:
    """Send what is still written to a file nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, file.fileno())
    os.close(nowhere)


class Console(RichConsole):
    """Rich's console; characters that cannot be printed are shown as escapes.

    Rich adds its own sequences for colours after this step. If the reader of a pipe has ended, as
    `head` does, the command goes on without it: its files are written, and its exit code is its own.
    """

    def on_broken_pipe(self) -> None:
        """Send what is still printed nowhere."""
        send_nowhere(self.file)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the segments of an object, with every text visible."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style, segment.control)


WARNING = "[yellow]![/]"
MARKS: dict[Severity, str] = {"bad": "[bold red]x[/]", "note": WARNING, "good": "[green]+[/]"}


def say(console: Console, *lines: str, mark: str = "") -> None:
    """Print sentences behind a mark. The mark is rich markup; the sentences are escaped."""
    for text in map(escape, sentences(lines)):
        if not console.is_terminal:
            console.print(f"{mark} {text}" if mark else text, soft_wrap=True, highlight=False)
            continue
        hanging = Table.grid(padding=(0, 1, 0, 0))
        if mark:
            hanging.add_column()
        hanging.add_column(overflow="fold")
        hanging.add_row(*([mark] if mark else []), text)
        console.print(hanging, highlight=False)


def say_findings(console: Console, findings: Iterable[Finding]) -> None:
    """Print findings behind the marks of their severity."""
    for finding in findings:
        say(console, finding.sentence, mark=MARKS[finding.severity])


def say_plainly(console: Console, *lines: str) -> None:
    """Print lines unchanged: not wrapped, without markup."""
    for line in lines:
        console.print(escape(line), highlight=False, soft_wrap=True)


def show(console: Console, title: str, table: Table) -> None:
    """Print a title and, below it, a table; the title may be wider than the table."""
    console.print()
    say(console, f"{title}:")
    console.print(table, highlight=False)


def show_rows(
    console: Console,
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    texts: int = 1,
) -> None:
    """Print a title and a table: first columns of `texts`, which are wrapped, then of numbers."""
    table = Table(box=None, pad_edge=False)
    for name in head[:texts]:
        table.add_column(escape(name), overflow="fold")
    numbers(table, *head[texts:])
    for row in rows:
        table.add_row(*map(escape, row))
    show(console, title, table)


def numbers(table: Table, *heads: str) -> None:
    """Add columns of numbers: right-aligned and not wrapped."""
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)


def say_next(console: Console, steps: Sequence[str]) -> None:
    """Print what to do next, if there is anything, below a title."""
    if steps:
        console.print()
        say(console, "What to do next:")
        say(console, *steps, mark="-")


def say_commands(console: Console, *commands: tuple[str, str]) -> None:
    """Print commands to run next, each below its purpose, on a line of its own to copy."""
    for purpose, command in commands:
        say(console, purpose)
        say_plainly(console, f"  {sentence(command)}")
