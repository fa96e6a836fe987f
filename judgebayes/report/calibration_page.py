"""The page on a calibration, `judgebayes calibrate --html`: all its sections."""

from judgebayes.report.decisions import decisions_section
from judgebayes.report.held_out import probabilities_section
from judgebayes.report.judges import diagnostics_section, judges_section
from judgebayes.report.labels import labels_section
from judgebayes.report.origin import data_section, method_section, rerun_section, summary_blocks
from judgebayes.show.page import Page, render
from judgebayes.workflow.calibration import Calibration
from judgebayes.workflow.comparing import grow


def calibration_page(result: Calibration, command: str) -> str:
    """Return the page as HTML; `command` is the one that made it."""
    curve = None  # without labels, or where all scores are the same
    if result.compared is not None and not result.hide_nll:
        curve = grow(result.compared, result.choice.name)
    sections = [
        data_section(result),
        diagnostics_section(result.findings),
        judges_section(result.judges),
        probabilities_section(result),
        decisions_section(result),
        labels_section(result, curve),
        method_section(result),
        rerun_section(command),
    ]
    name = result.request.votes.name
    return render(Page(f"Judge report: {name}", summary_blocks(result), sections))
