"""Tables of votes: a row per vote, a row per item with a column per judge, a row per raw answer."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from judgebayes.io.columns import ROLES, guess_columns
from judgebayes.io.formats import TABLES
from judgebayes.io.gathering import reasons
from judgebayes.io.in_memory import InMemory
from judgebayes.io.options import Layout
from judgebayes.io.records import find_files
from judgebayes.io.tables import noted, notes_of, read_table
from judgebayes.io.verdict import LEVELS, Kind, parse_verdict
from judgebayes.votes.classes import canonical, mapped, written

TEXTS = (
    *("text", "response", "output", "completion", "generation"),
    *("raw", "raw_output", "raw_response", "judgment", "judgement", "answer", "content", "message"),
)
"""Names of the column of raw answers, the most likely first."""
SHORT, MOST_TRIED = 20, 200
"""The length from which texts are answers and not votes, and how many are looked at."""


def read_votes(
    path: Path | InMemory, layout: Layout, named: Mapping[str, str | None]
) -> pd.DataFrame:
    """Return the table of votes in a file, or in the files of a folder, in memory.

    Parameters
    ----------
    path
        A file, or a folder of tables with the votes of a judge each, or of several.
    layout
        The layout of the files.
    named
        The columns that the user names, by role.

    Raises
    ------
    JudgeBayesError
        As `read_table` does, or if a folder has no tables.
    """
    if isinstance(path, InMemory) or not path.is_dir():
        return read_table(path, layout)
    files = find_files(path, TABLES, "table")
    tables = [read_table(file, layout) for file in files]
    if len(files) == 1:
        return tables[0]
    stems = [file.name.split(".")[0] for file in files]
    parts, roles = [], dict[str, str | None]()
    for stem, part in zip(stems, tables, strict=True):
        given = {
            role: name if name in (*part.columns, "none") else None  # a file may lack what is named
            for role, name in named.items()
            if role in ROLES
        }
        columns = guess_columns(map(str, part.columns), given)
        if columns["judge"] is None and named.get("judge") != "none":
            part, columns["judge"] = part.assign(judge=stem), "judge"
        roles = roles or columns
        names = {
            name: roles[role]
            for role, name in columns.items()
            if name and roles[role] not in (None, *part.columns)
        }
        parts.append(part.rename(columns=names).astype(object))  # a missing cell makes no floats
    table = pd.concat(parts, ignore_index=True)
    table.index += 1
    file = np.repeat(np.array(stems, object), list(map(len, parts)))
    table, notes = _judges_of_files(table, file, roles)
    return noted(table, *(note for part in tables for note in notes_of(part)), *notes)


def _judges_of_files(
    table: pd.DataFrame, file: np.ndarray, columns: Mapping[str, str | None]
) -> tuple[pd.DataFrame, list[str]]:
    """Return the table of several files, and a note if a judge votes on an item in several of them.

    Files whose names differ in a number only contain repeated votes; the names of others say by which
    rubric or prompt a judge voted, so that it is another judge in each.
    """
    item, judge, order = columns["item"], columns["judge"], columns["order"]
    if item is None or judge is None:
        return table, []
    names = pd.DataFrame({"item": mapped(table[item], written), "judge": table[judge].map(written)})
    if not names.assign(file=file).drop_duplicates().duplicated(["item", "judge"]).any():
        return table, []
    if len({re.sub(r"\d+", "", stem) for stem in file}) == 1:
        place = names if order is None else names.assign(order=mapped(table[order], canonical))
        number = place.groupby([*place], dropna=False).cumcount() + 1
        return table.assign(**{columns["sample"] or "sample": number}), [
            "Judges vote on the same items in several files, whose names differ in a number only: these "
            "are repeated votes."
        ]
    named = names["judge"] + " / " + file
    return table.assign(**{judge: named}), [
        "Judges vote on the same items in several files: a judge counts as another judge in each, such "
        f"as {named.iloc[0]!r}. For repeated votes, name the files RUN1, RUN2, ... or number the votes "
        "in a column."
    ]


def verdicts_in(texts: pd.Series, kind: Kind) -> tuple[pd.Series, str]:
    """Return the vote in each raw answer, None without one, and a sentence on how they were read."""
    verdicts = [parse_verdict(text, kind) for text in texts]
    n = sum(isinstance(text, str) and bool(text.strip()) for text in texts)
    read = [each for each in verdicts if each.value is not None]
    levels = Counter(sorted((str(each.level) for each in read), key=LEVELS.index))
    votes = pd.Series([each.value for each in verdicts], texts.index, dtype=object)
    return votes, (
        f"Verdicts are read from the texts in column {str(texts.name)!r}: {len(read)} of "
        f"{n} ({reasons(levels)}); the others are missing votes."
    )


def kind_of_answers(texts: Iterable[object]) -> Kind | None:
    """Return the kind of verdict that most texts have, if they are answers and not votes."""
    filled = (text for text in texts if isinstance(text, str) and text.strip())
    answers = list(islice(filled, MOST_TRIED))
    if not any(isinstance(canonical(each), str) for each in answers):
        return None
    if sum(map(len, answers)) <= SHORT * len(answers) and "\n" not in "".join(answers):
        return None
    kinds: tuple[Kind, ...] = ("pair", "valid", "score")
    shares = {
        kind: sum(parse_verdict(each, kind).value is not None for each in answers) for kind in kinds
    }
    best = max(kinds, key=lambda kind: shares[kind])
    return best if 2 * shares[best] > len(answers) else None
