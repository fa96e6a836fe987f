"""`judgebayes report`: an HTML page on a user's votes."""

import shlex
from dataclasses import replace

from judgebayes.cli.calibrating import print_wins
from judgebayes.cli.console import say, say_next
from judgebayes.cli.requests import ReportRequest
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.store import atomically
from judgebayes.io.tables import check_writable
from judgebayes.progress import shown
from judgebayes.report.decisions import decisions_section
from judgebayes.report.held_out import probabilities_section
from judgebayes.report.judges import diagnostics_section, judges_section
from judgebayes.report.labels import labels_section
from judgebayes.report.origin import data_section, method_section, rerun_section, summary_blocks
from judgebayes.report.page import Page, render
from judgebayes.workflow.calibrating import answer, read_request
from judgebayes.workflow.calibration import read_words
from judgebayes.workflow.comparing import grow
from judgebayes.workflow.comparison_plan import LEAST_FOR_SPLITS
from judgebayes.workflow.machine import CommandResult
from judgebayes.workflow.win_rates import win_rate_of


@in_float64
def write_report(request: ReportRequest, command: str, calibrating: str) -> CommandResult:
    """Calibrate, measure the learning curve over numbers of labels, write the page, return the results.

    `command` is the running command, and `calibrating` that which writes the same answers as a table,
    without its options for conformal sets.

    Raises
    ------
    JudgeBayesError
        For bad input, as in `judgebayes calibrate`, or if the page cannot be written.
    """
    check_writable(request.out, table=False)
    data = read_request(request)
    if (data.labels >= 0).sum() < LEAST_FOR_SPLITS:
        request = replace(request, conformal=None, conformal_by=None, no_empty_sets=False)
    wins = win_rate_of(data, request)
    if wins is not None:
        print_wins(wins)
    say(*read_words(data))
    with shown() as progress:
        result = answer(request, data, progress, wins=wins)
        curve = None  # without labels, or where all scores are the same
        if result.compared is not None and not result.hide_nll:
            curve = grow(result.compared, result.choice.name, progress)
    sets = "" if request.conformal is None else f" --conformal {request.conformal:g}"
    if request.conformal_by is not None:
        sets += f" --conformal-by {shlex.quote(request.conformal_by)}"
    sets += " --no-empty-sets" if request.no_empty_sets else ""
    page = Page(
        f"Judge report: {request.votes.name}",
        summary_blocks(result),
        [
            data_section(result),
            diagnostics_section(result.findings),
            judges_section(result.judges),
            probabilities_section(result),
            decisions_section(result),
            labels_section(result, curve),
            method_section(result),
            rerun_section(command, f"{calibrating}{sets} --out answers.csv"),
        ],
    )
    with atomically(request.out) as temporary:
        temporary.write_text(render(page), encoding="utf-8")
    say(f"The report is in {request.out}: method {result.choice.name}, {result.counted}.")
    say_next(result.next_steps)
    done = result.for_machines()
    return replace(done, values={**done.values, "page": request.out})
