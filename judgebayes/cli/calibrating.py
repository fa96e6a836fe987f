"""`judgebayes calibrate` and `judgebayes apply`: answers on a user's own files, printed and written."""

from pathlib import Path

import pandas as pd
from rich.console import Console

from judgebayes.cli.comparing import print_comparison
from judgebayes.cli.diagnosing import print_judges
from judgebayes.cli.saying import WARNING, say, say_commands
from judgebayes.compiled.float64 import in_float64
from judgebayes.io import check_writable, write_table
from judgebayes.progress import shown
from judgebayes.workflow import applying
from judgebayes.workflow.calibrating import answer, read_request, read_words
from judgebayes.workflow.options import ApplyRequest, CalibrateRequest

__all__ = ["apply_fit", "calibrate_votes"]

JUDGES = 6
"""How many judges are printed at most, from both ends."""
SHOWN = ("judge", "votes", "accuracy", "accuracy_low", "accuracy_high")
"""What is printed of them."""


@in_float64
def calibrate_votes(request: CalibrateRequest, diagnosing: str, reporting: str) -> None:
    """Calibrate, print the summary, write what was asked for.

    The two commands are what to run next on the same files.
    """
    console = Console()
    check_writable(request.out)
    check_writable(request.save, table=False)
    given = read_request(request)
    say(console, read_words(given))
    with shown() as progress:
        found = answer(request, given, progress)
    if given.labelled:
        print_judges(console, found.judges[list(SHOWN)], JUDGES)
    say(console, found.chosen)
    if found.compared is not None:
        print_comparison(
            console, found.compared, found.leads, found.losses, hide_nll=found.hide_nll
        )
    say(console, [f.sentence for f in found.unsound] + found.warnings, WARNING)
    say(console, [] if found.sets is None else found.sets.sentences)
    say(console, found.decided)
    _write(console, request.out, found.answers)
    if request.save is not None:
        applying.save(found, request.save)
        say(console, [f"The fit is in {request.save}: judgebayes apply {request.save} NEW_VOTES."])
    console.print()
    say_commands(
        console,
        [
            (f"Next, every judge, and what is wrong ({found.counted}):", diagnosing),
            ("All of this as a page, with figures and what more labels would buy:", reporting),
        ],
    )


def apply_fit(request: ApplyRequest) -> None:
    """Apply a kept fit to new votes, say what has drifted, and write the answers."""
    console = Console()
    check_writable(request.out)
    found = applying.apply_request(request)
    say(console, found.said)
    say(console, found.warnings, WARNING)
    say(console, [found.decided])
    _write(console, request.out, found.answers)


def _write(console: Console, out: Path | None, answers: pd.DataFrame) -> None:
    if out is not None:
        write_table(answers, out)
        say(console, [f"Probabilities, decision and expected loss of every item are in {out}."])
        return
    say(console, ["The first items (--out FILE writes all):"])
    console.print(answers.head(5).to_string(index=False), markup=False, highlight=False)
