"""Print who wins: the win rate of a pair, or the tables of pairs and systems."""

from judgebayes.cli.console import Console
from judgebayes.cli.saying import say, show_rows
from judgebayes.report.winning import wins_tables
from judgebayes.workflow.win_rates import WinRate


def print_wins(console: Console, wins: WinRate) -> None:
    """Print the answer, and the tables of pairs and systems if there are several pairs."""
    say(console, wins.lead)
    tables = wins_tables(wins)
    for title, head, rows in tables:
        show_rows(console, title, head, rows)
    if tables:
        console.print()
