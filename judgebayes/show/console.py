r"""The terminal: text of files and servers never acts on it.

A name in a file may contain escape sequences, which would clear the screen, set the title, or forge
output. Every command prints by the functions below, through a console that shows such characters as
`\x1b`. Sentences are wrapped between words on a terminal, and one per line in a file.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import IO

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table as RichTable

from judgebayes.finding import Finding, Severity
from judgebayes.sentence import sentence, sentences
from judgebayes.show.page import Block, Code, Findings, Paragraph, Table

LAYOUT = "\n\t"
ROOM = 22
"""The room for a text of a table; longer ones are broken."""


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
QUESTION = "[cyan]?[/]"
"""The mark of a guess that needs its option."""
MARKS: dict[Severity, str] = {"bad": "[bold red]x[/]", "note": WARNING, "good": "[green]+[/]"}


def say(*lines: str, mark: str = "") -> None:
    """Print sentences behind a mark. The mark is rich markup; the sentences are escaped."""
    console = Console()
    for text in map(escape, sentences(lines)):
        if not console.is_terminal:
            console.print(f"{mark} {text}" if mark else text, soft_wrap=True, highlight=False)
            continue
        hanging = RichTable.grid(padding=(0, 1, 0, 0))
        if mark:
            hanging.add_column()
        hanging.add_column(overflow="fold")
        hanging.add_row(*([mark] if mark else []), text)
        console.print(hanging, highlight=False)


def say_findings(findings: Iterable[Finding], marks: Mapping[Severity, str] = MARKS) -> None:
    """Print findings behind the marks of their severity; of questions, a question mark."""
    for finding in findings:
        asked = finding.severity == "bad" and finding.option
        say(finding.text, mark=QUESTION if asked else marks[finding.severity])


def say_plainly(*lines: str) -> None:
    """Print lines unchanged: not wrapped, without markup."""
    for line in lines:
        Console().print(escape(line), highlight=False, soft_wrap=True)


def show_blocks(blocks: Sequence[Block]) -> None:
    """Print the paragraphs, findings, tables and commands of an answer; a page has figures, too."""
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        match block:
            case Paragraph(text):
                say(text)
            case Findings(findings):
                say_findings(findings)
            case Code(text):
                say_plainly(f"  {text}")
            case Table():
                show_rows(block.caption, block.head, block.rows, block.words, block.least_needed)
                if after is not None and not isinstance(after, Table):
                    say_plainly("")


def show_rows(
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    words: Iterable[int] = (),
    least_needed: Iterable[str] = (),
) -> None:
    """Print a title and, below it, a table; the first column and those of `words` are texts.

    Texts are wrapped; the others, numbers, are not, and are aligned right. The title may be wider. On a
    narrow console, columns of `least_needed` are left out and named.
    """
    shown, texts, cells = list(head), {0, *words}, [list(map(str, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *cells, strict=True)]
    left_out = []
    for name in least_needed:
        used = sum(min(width, ROOM) + 2 for n, width in enumerate(widths) if head[n] in shown)
        if name in shown and used > Console().width:
            shown.remove(name)
            left_out.append(name)
    table = RichTable(box=None, pad_edge=False)
    places = [n for n, name in enumerate(head) if name in shown]
    for place in places:
        if place in texts:
            table.add_column(escape(head[place]), overflow="fold")
        else:
            table.add_column(escape(head[place]), justify="right", no_wrap=True)
    for row in cells:
        table.add_row(*(escape(row[place]) for place in places))
    say_plainly("")
    say(f"{title}:")
    Console().print(table, highlight=False)
    if left_out:
        columns = ", ".join(left_out)
        say(
            f"Not shown, because the terminal is too narrow: {columns}; --out FILE has all columns."
        )


def say_next(steps: Sequence[str]) -> None:
    """Print what to do next, if there is anything, below a title."""
    if steps:
        say_plainly("")
        say("What to do next:")
        say(*steps, mark="-")


def say_commands(*commands: tuple[str, str]) -> None:
    """Print commands to run next, each below its purpose, on a line of its own to copy."""
    for purpose, command in commands:
        say(purpose)
        say_plainly(f"  {sentence(command)}")
