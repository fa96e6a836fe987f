"""The page of an answer, `--html`: its blocks, and how to make it again."""

from judgebayes.report.calibration_page import calibration_page
from judgebayes.report.origin import rerun_section
from judgebayes.show.page import Page, Paragraph, Section, render
from judgebayes.workflow.calibration import Calibration
from judgebayes.workflow.results import Result


def page_of(result: Result, command: str) -> str:
    """Return an answer as an HTML page; `command` is the one that made it."""
    if isinstance(result, Calibration):
        return calibration_page(result, command)
    title = command.partition(" --")[0]
    steps = [Paragraph(step) for step in result.next_steps]
    sections = [Section("Results", result.blocks), rerun_section(command)]
    return render(Page(title, steps, sections))
