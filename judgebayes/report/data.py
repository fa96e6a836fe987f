"""The report's section on the data: what was read, from which files, and the classes."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from judgebayes.report.page import Facts, Paragraph, Section, Table
from judgebayes.report.shares import percent_of


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
