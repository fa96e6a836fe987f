"""The page of an answer, `--html`: its blocks, what only a page has, and how to make it again."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from judgebayes.report.calibration import calibration_sections, first_blocks
from judgebayes.show.page import Block, Code, Facts, Page, Paragraph, Section, render
from judgebayes.show.versions import versions
from judgebayes.workflow.calibration import Calibration
from judgebayes.workflow.results import Result


def page_of(result: Result, command: str, read: Sequence[Path] = ()) -> str:
    """Return an answer as an HTML page; `command` made it, from the files that were `read`."""
    steps = [Paragraph(step) for step in result.next_steps if "--html" not in step]
    first: list[Block] = [*steps]
    sections = [Section("Results", result.blocks)]
    if isinstance(result, Calibration):
        first, sections = [*first_blocks(result), *steps], calibration_sections(result)
    sums = [(path.name, f"SHA-256 {_digest(path)}") for path in read]
    words = (
        "The same files, command and versions give the same numbers. The page has no date and loads "
        "nothing: it can be stored and mailed as it is."
    )
    again = Section(
        "To run it again",
        [Code(command), Paragraph(words), Facts([*sums, *versions()])],
        name="rerun",
    )
    return render(Page(command.partition(" --")[0], first, [*sections, again]))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
