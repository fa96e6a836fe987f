"""The steps of a check, and what it says of what is read in the end."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.formats import format_of
from judgebayes.io.in_memory import InMemory
from judgebayes.io.tables import Layout, notes_of, read_table
from judgebayes.workflow.check_columns import find_long, find_wide, is_wide
from judgebayes.workflow.check_draft import Draft, Tables
from judgebayes.workflow.check_labels import find_items, find_label, find_merged
from judgebayes.workflow.check_scales import find_order, find_scale
from judgebayes.workflow.data import Data
from judgebayes.workflow.methods import FEW_LABELS
from judgebayes.workflow.reading import open_files

ENCODINGS = ("cp1252", "cp1250")
"""Encodings of files that are not UTF-8, tried in this order."""
FOUND_ALREADY = (
    *("Columns: ", "Judges: ", "--match-ids loosely: ", "Read as missing votes: "),
    *("identical to an earlier one", "is read as judgebayes import", "counts as another judge"),
)
"""What is read says these too, where a finding says it before."""


def steps(draft: Draft) -> Draft:
    """Return the draft after all steps, with their findings."""
    votes, labels = draft.request.votes, draft.request.labels
    if isinstance(votes, Path) and (form := format_of(votes)) is not None:
        draft = draft.with_finding(
            "note", "file", f"{votes.name!r} is read as judgebayes import {form} does."
        )
        return _labels_of_log(draft)
    table, draft = open_table(draft, votes, "votes")
    gold: pd.DataFrame | None = None
    if labels is not None:
        gold, draft = open_table(draft, labels, "labels")
    if table is None or (labels is not None and gold is None):
        return draft
    tables = Tables(table, gold)
    draft = find_wide(draft, tables) if is_wide(draft, tables) else find_long(draft, tables)
    for step in (find_label, find_merged, find_items, find_scale, find_order):
        draft = step(draft, tables)
    return draft


def finished(draft: Draft, data: Data) -> Draft:
    """Return the draft with what is read in the end."""
    for line in data.sentences:
        said = any(line in finding.sentence for finding in draft.findings)
        if not said and not any(words in line for words in FOUND_ALREADY):
            draft = draft.with_finding("good", "read", line)
    known = data.labels[data.labels >= 0]
    if data.labelled and len(np.unique(known)) == 1:
        name = data.read.coding.classes.names[int(known[0])]
        draft = draft.with_finding(
            "bad",
            "labels",
            f"All {len(known)} labels are {name!r}: nothing can be learnt from them.",
        )
    elif data.labelled and len(known) < FEW_LABELS:
        draft = draft.with_finding(
            "note", "labels", f"There are only {len(known)} labels: intervals will be wide."
        )
    return draft


def open_table(draft: Draft, path: Path | InMemory, what: str) -> tuple[pd.DataFrame | None, Draft]:
    """Return the table of a file; if its encoding is unknown, with the first that reads it."""
    reading = draft.reading
    skip = reading.skip_rows if what == "votes" else None
    try:
        table = read_table(path, Layout(skip, reading.encoding))
    except JudgeBayesError as error:
        if "use --encoding" not in str(error) or reading.encoding is not None:
            return None, draft.with_finding("bad", "file", str(error))
        for encoding in ENCODINGS:
            try:
                table = read_table(path, Layout(skip, encoding))
            except JudgeBayesError:
                continue
            text = f"{path.name!r} is not UTF-8; it can be read as {encoding}."
            draft = draft.with_finding("bad", "file", text, encoding=encoding)
            break
        else:
            return None, draft.with_finding("bad", "file", str(error))
    for note in notes_of(table):
        draft = draft.with_finding("note", "file", note)
    return table, draft


def _labels_of_log(draft: Draft) -> Draft:
    """Look at the items and the labels of the log of another tool."""
    labels = draft.request.labels
    try:
        opened = open_files(replace(draft.request, labels=None))
    except JudgeBayesError as error:
        return draft.with_finding("bad", "file", str(error))
    if labels is None:
        return draft
    gold, draft = open_table(draft, labels, "labels")
    if gold is None:
        return draft
    tables = Tables(opened.table, gold)
    for step in (find_label, find_merged, find_items):
        draft = step(draft, tables)
    return draft
