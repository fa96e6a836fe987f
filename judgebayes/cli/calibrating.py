"""`judgebayes calibrate` and `judgebayes apply`: print and write answers on a user's files."""

from pathlib import Path

import pandas as pd

from judgebayes.cli.console import WARNING, say, say_commands, say_next, say_plainly, show_rows
from judgebayes.cli.diagnosing import print_judges
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.store import atomically
from judgebayes.io.tables import check_writable, write_table
from judgebayes.progress import shown
from judgebayes.report.origin import wins_tables
from judgebayes.workflow import applying
from judgebayes.workflow.calibrating import answer, read_request
from judgebayes.workflow.calibration import read_words
from judgebayes.workflow.comparing import comparison_rows, grow
from judgebayes.workflow.comparison_plan import plan
from judgebayes.workflow.conformal_sets import STRATA_TITLE, strata_rows
from judgebayes.workflow.machine import CommandResult
from judgebayes.workflow.options import ApplyRequest, CalibrateRequest
from judgebayes.workflow.win_rates import WinRate, win_rate_of


def print_wins(wins: WinRate) -> None:
    """Print the answer, and the tables of pairs and systems if there are several pairs."""
    say(*wins.lead)
    tables = wins_tables(wins)
    for title, head, rows in tables:
        show_rows(title, head, rows)
    if tables:
        say_plainly("")


JUDGES = 6
"""The largest number of judges to print: the best and the worst."""
SHOWN = ("judge", "votes", "accuracy", "accuracy_low", "accuracy_high")
"""The printed columns of the table of judges."""


@in_float64
def calibrate_votes(request: CalibrateRequest, running: str, diagnosing: str) -> CommandResult:
    """Calibrate, print the summary, write the requested files, and return the results.

    `running` is this command, and `diagnosing` the one to run next on the same files.
    """
    check_writable(request.out)
    check_writable(request.html, table=False)
    check_writable(request.save, table=False)
    data = read_request(request)
    wins = win_rate_of(data, request)
    if wins is not None:
        print_wins(wins)
    say(*read_words(data), *plan(request, data)[1])
    with shown() as progress:
        result = answer(request, data, progress, wins=wins)
        curve = None  # without labels, or where all scores are the same
        if request.html is not None and result.compared is not None and not result.hide_nll:
            curve = grow(result.compared, result.choice.name, progress)
    if data.labelled:
        print_judges(result.judges[list(SHOWN)], JUDGES)
    say(*result.chosen)
    held_out = result.held_out
    if result.compared is not None and held_out is not None:
        rows = comparison_rows(held_out)
        show_rows(result.compared.title, result.compared.head, rows)
        say(*result.explained)
        say_plainly("")
    say(*[f.sentence for f in result.unsound], *result.warnings, mark=WARNING)
    if result.sets is not None:
        say(*result.sets.sentences)
        if result.sets.strata is not None:
            head_and_rows = strata_rows(result.sets.strata, no_empty=request.no_empty_sets)
            show_rows(STRATA_TITLE, *head_and_rows)
    say(*result.decided)
    if result.more is not None:
        say(result.more.sentence)
    _write(request.out, result.answers)
    if request.save is not None:
        applying.save(result, request.save)
        say(f"The fit is in {request.save}. Use it with: judgebayes apply {request.save} NEW_VOTES")
    if request.html is not None:
        from judgebayes.report.calibration_page import calibration_page  # imports Matplotlib

        with atomically(request.html) as temporary:
            temporary.write_text(calibration_page(result, curve, running), encoding="utf-8")
        say(f"The page is in {request.html}.")
    say_next(result.next_steps)
    say_plainly("")
    if request.html is None:
        say("For a page with all results, figures and the effect of more labels, add --html FILE.")
    say_commands((f"A check of all judges on the same files ({result.counted}):", diagnosing))
    return result.for_machines()


def apply_fit(request: ApplyRequest) -> CommandResult:
    """Apply a saved fit to new votes, print what has drifted, and write and return the answers."""
    check_writable(request.out)
    result = applying.apply(request)
    say(*result.said)
    say(*result.warnings, mark=WARNING)
    say(result.decided_words)
    _write(request.out, result.answers)
    say_next(result.next_steps)
    return result.for_machines()


def _write(out: Path | None, answers: pd.DataFrame) -> None:
    if out is not None:
        write_table(answers, out)
        say(f"Probabilities, decision and expected loss of every item are in {out}.")
        return
    say("The first items (use --out FILE for all):")
    say_plainly(answers.head(5).to_string(index=False))
