"""The page of an answer, `--html`: its blocks, what only a page has, and how to make it again."""

from judgebayes.report.calibration import calibration_sections
from judgebayes.show.page import Code, Facts, Page, Paragraph, Section, render
from judgebayes.show.versions import versions
from judgebayes.workflow.calibration import Calibration
from judgebayes.workflow.results import Result


def page_of(result: Result, command: str) -> str:
    """Return an answer as an HTML page; `command` is the one that made it."""
    steps = [Paragraph(step) for step in result.next_steps]
    more = calibration_sections(result) if isinstance(result, Calibration) else []
    words = (
        "The same files, command and versions give the same numbers. The page has no date and loads "
        "nothing: it can be stored and mailed as it is."
    )
    again = Section(
        "To run it again", [Code(command), Paragraph(words), Facts(versions())], name="rerun"
    )
    sections = [Section("Results", result.blocks), *more, again]
    return render(Page(command.partition(" --")[0], steps, sections))
