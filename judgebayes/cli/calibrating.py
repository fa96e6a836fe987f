"""`judgebayes calibrate` and `judgebayes apply`: print and write answers on a user's files."""

from pathlib import Path

import pandas as pd

from judgebayes.cli.console import WARNING, Console, say, say_commands, say_next, show_rows
from judgebayes.cli.diagnosing import print_judges
from judgebayes.compiled.float64 import in_float64
from judgebayes.io.tables import check_writable, write_table
from judgebayes.progress import shown
from judgebayes.report.origin import wins_tables
from judgebayes.workflow import applying
from judgebayes.workflow.calibrating import answer, read_request
from judgebayes.workflow.calibration import read_words
from judgebayes.workflow.comparing import comparison_rows
from judgebayes.workflow.comparison_plan import plan
from judgebayes.workflow.conformal_sets import STRATA_TITLE, strata_rows
from judgebayes.workflow.machine import CommandResult
from judgebayes.workflow.options import ApplyRequest, CalibrateRequest
from judgebayes.workflow.win_rates import WinRate, win_rate_of


def print_wins(console: Console, wins: WinRate) -> None:
    """Print the answer, and the tables of pairs and systems if there are several pairs."""
    say(console, *wins.lead)
    tables = wins_tables(wins)
    for title, head, rows in tables:
        show_rows(console, title, head, rows)
    if tables:
        console.print()


JUDGES = 6
"""The largest number of judges to print: the best and the worst."""
SHOWN = ("judge", "votes", "accuracy", "accuracy_low", "accuracy_high")
"""The printed columns of the table of judges."""


@in_float64
def calibrate_votes(request: CalibrateRequest, diagnosing: str, reporting: str) -> CommandResult:
    """Calibrate, print the summary, write the requested files, and return the results.

    `diagnosing` and `reporting` are the commands to run next on the same files.
    """
    console = Console()
    check_writable(request.out)
    check_writable(request.save, table=False)
    data = read_request(request)
    wins = win_rate_of(data, request)
    if wins is not None:
        print_wins(console, wins)
    say(console, *read_words(data), *plan(request, data)[1])
    with shown() as progress:
        result = answer(request, data, progress, wins=wins)
    if data.labelled:
        print_judges(console, result.judges[list(SHOWN)], JUDGES)
    say(console, *result.chosen)
    held_out = result.held_out
    if result.compared is not None and held_out is not None:
        rows = comparison_rows(held_out)
        show_rows(console, result.compared.title, result.compared.head, rows)
        say(console, *result.explained)
        console.print()
    say(console, *[f.sentence for f in result.unsound], *result.warnings, mark=WARNING)
    if result.sets is not None:
        say(console, *result.sets.sentences)
        if result.sets.strata is not None:
            head_and_rows = strata_rows(result.sets.strata, no_empty=request.no_empty_sets)
            show_rows(console, STRATA_TITLE, *head_and_rows)
    say(console, *result.decided)
    if result.more is not None:
        say(console, result.more.sentence)
    _write(console, request.out, result.answers)
    if request.save is not None:
        applying.save(result, request.save)
        say(
            console,
            f"The fit is in {request.save}. Use it with: judgebayes apply {request.save} NEW_VOTES",
        )
    say_next(console, result.next_steps)
    console.print()
    say(console, "Commands on the same files:")
    say_commands(
        console,
        (f"A check of all judges ({result.counted}):", diagnosing),
        ("These results as an HTML page, with figures and the effect of more labels:", reporting),
    )
    return result.for_machines()


def apply_fit(request: ApplyRequest) -> CommandResult:
    """Apply a saved fit to new votes, print what has drifted, and write and return the answers."""
    console = Console()
    check_writable(request.out)
    result = applying.apply(request)
    say(console, *result.said)
    say(console, *result.warnings, mark=WARNING)
    say(console, result.decided_words)
    _write(console, request.out, result.answers)
    say_next(console, result.next_steps)
    return result.for_machines()


def _write(console: Console, out: Path | None, answers: pd.DataFrame) -> None:
    if out is not None:
        write_table(answers, out)
        say(console, f"Probabilities, decision and expected loss of every item are in {out}.")
        return
    say(console, "The first items (use --out FILE for all):")
    console.print(answers.head(5).to_string(index=False), markup=False, highlight=False)
