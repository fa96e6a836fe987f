"""The report's sections without figures: who wins, the data, the method, and how to run it again."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Int

from judgebayes.report.page import Block, Code, Facts, Paragraph, Section, Table
from judgebayes.report.text import percent_of
from judgebayes.sentence import percent
from judgebayes.workflow.win_rates import LEVEL, WinRate

HEADS = {"naive": "naive rate", "low": f"{percent(LEVEL)} interval"}


def wins_blocks(wins: WinRate) -> list[Block]:
    """Return who wins in sentences, with the tables of pairs and systems if there are several."""
    return [Paragraph(" ".join(wins.lead)), *(Table(*each) for each in wins_tables(wins))]


def wins_tables(wins: WinRate) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return title, head and rows of the tables of pairs and systems, if there are several pairs."""
    if len(wins.pairs) == 1:
        return []
    systems = [] if wins.systems is None else [("Systems", *_rows(wins.systems))]
    return [("Win rates", *_rows(wins.pairs)), *systems]


def _rows(frame: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    names = [str(name) for name in frame.columns]
    shown = [name for name in names if not name.endswith(("low", "high"))]
    if "low" in names:
        shown.insert(2, "low")
    rows = [
        [str(row.iloc[0]), *(_cell(row, name) for name in shown[1:])] for _, row in frame.iterrows()
    ]
    return [HEADS.get(name, name) for name in shown], rows


def _cell(row: pd.Series, name: str) -> str:
    value = row[name]
    if np.isnan(value):
        return "-"
    if name == "low":
        return f"{100 * value:.1f} to {100 * row['high']:.1f}"
    if name in ("labelled", "items"):
        return f"{value:.0f}"
    return f"{value:.2f}" if name.startswith("P(") else f"{100 * value:.1f} %"


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
