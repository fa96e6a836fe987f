"""Sentences on the console: in a terminal broken between words, in a file a line each."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from judgebayes.finding import Severity
from judgebayes.sentence import sentence

__all__ = ["MARKS", "WARNING", "numbers", "say", "say_commands", "say_plainly", "show"]

WARNING = "[yellow]![/]"
MARKS: dict[Severity, str] = {"bad": "[bold red]x[/]", "note": WARNING, "good": "[green]+[/]"}


def say(console: Console, lines: Sequence[str], mark: str = "") -> None:
    """Print sentences behind a mark, in rich's markup; what they quote is no markup."""
    for line in lines:
        said = escape(sentence(line))
        if not console.is_terminal:
            console.print(f"{mark} {said}" if mark else said, soft_wrap=True, highlight=False)
            continue
        hanging = Table.grid(padding=(0, 1, 0, 0))
        if mark:
            hanging.add_column()
        hanging.add_column(overflow="fold")
        hanging.add_row(*([mark] if mark else []), said)
        console.print(hanging, highlight=False)


def say_plainly(console: Console, *lines: str) -> None:
    """Print lines as they are: never broken, no markup."""
    for line in lines:
        console.print(escape(line), highlight=False, soft_wrap=True)


def show(console: Console, title: str, table: Table) -> None:
    """Print a table below its title, which may be wider."""
    console.print()
    say(console, [f"{title}:"])
    console.print(table, highlight=False)


def numbers(table: Table, *heads: str) -> None:
    """Add columns of numbers, which stand on the right and are never broken."""
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)


def say_commands(console: Console, commands: Sequence[tuple[str, str]]) -> None:
    """Print what can be run next, each command on a line that can be copied, behind what it is for."""
    for purpose, command in commands:
        say(console, [purpose])
        console.print(f"  {escape(sentence(command))}", soft_wrap=True, highlight=False)
