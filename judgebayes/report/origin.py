"""The report's sections on the method and on rerunning it.

The report's section on the data: what was read, from which files, and the classes.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from judgebayes.report.page import Block, Code, Facts, Paragraph, Section, Table
from judgebayes.report.text import percent_of


def data_section(
    words: Sequence[str],
    files: Sequence[tuple[str, str]],
    classes: Sequence[str],
    votes: Int[np.ndarray, " class"],
    labels: Int[np.ndarray, " class"],
) -> Section:
    """Return the section on the data: sentences, files with checksums, votes and labels by class."""
    rows = [
        (
            name,
            f"{n:,}",
            percent_of(int(n), int(votes.sum())),
            f"{k:,}",
            percent_of(int(k), int(labels.sum())),
        )
        for name, n, k in zip(classes, votes, labels, strict=True)
    ]
    head = ("class", "votes", "share", "labels", "share")
    return Section(
        "The data",
        [
            *map(Paragraph, words),
            Table("Votes and labels by class, from the lowest to the highest", head, rows),
            Facts(files),
        ],
        name="data",
    )


def method_section(
    chosen: Sequence[str],
    compared: Table | None,
    compared_words: Sequence[str],
    settings: Sequence[tuple[str, str]],
) -> Section:
    """Return the section on the method, the comparison with other methods, and the settings."""
    blocks: list[Block] = [*map(Paragraph, chosen)]
    if compared is not None:
        blocks += [compared, *map(Paragraph, compared_words)]
    return Section(
        "Method and settings",
        blocks,
        [Section("Settings", [Facts(settings)], name="settings")],
        name="method",
    )


def rerun_section(
    command: str, answers_command: str, versions: Sequence[tuple[str, str]]
) -> Section:
    """Return the section with the commands that recreate this page and the table of all results."""
    return Section(
        "To run it again",
        [
            Paragraph("This page, from the same files:"),
            Code(command),
            Paragraph("All results as a table, from the same fit:"),
            Code(answers_command),
            Paragraph(
                "The same files, command and versions give the same numbers. The page has no date "
                "and loads nothing: it can be stored and mailed as it is."
            ),
            Facts(versions),
        ],
        name="rerun",
    )
