"""Import votes: tables as every command reads them, and the logs of other tools."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io import formats
from judgebayes.io.cells import plain_cells
from judgebayes.io.columns import COPY, guess_columns, listed_roles, most_likely, names_of_items
from judgebayes.io.gathering import Imported
from judgebayes.io.in_memory import InMemory
from judgebayes.io.options import Files, Options, Verdicts
from judgebayes.io.vote_tables import TEXTS, read_votes, verdicts_in, why_none
from judgebayes.votes.classes import canonical, listing, mapped, written
from judgebayes.workflow.check_columns import find_long, find_wide
from judgebayes.workflow.check_draft import Draft
from judgebayes.workflow.options import ReadRequest

OF_TABLES = ("tidy", "wide", "text")
"""The formats of tables that every command reads."""
COLUMNS = ("item", "judge", "vote", "sample", "order", "label")


def import_votes(name: str, path: Path | str, options: Options = Options()) -> Imported:  # noqa: B008
    """Return the votes in a file or folder of one format, as `judgebayes.io.formats.import_votes` does.

    Raises
    ------
    JudgeBayesError
        If the format is unknown or does not take an option, or if the files are not in this format.
    """
    read = partial(read_tables, name) if name in OF_TABLES else None
    return formats.import_votes(name, path, options, read)


def read_tables(name: str, given: Files) -> list[pd.DataFrame | str]:
    """Return the records of a table of votes, and sentences on how it is read.

    Columns are found as for every command, and repeated votes need no number. A copy of a record is
    left out. An answer without a verdict is a missing vote.

    Raises
    ------
    JudgeBayesError
        If a table cannot be read, or it is unclear how.
    """
    options, source = given.options, str(given.path)
    named = {role: getattr(options, role) for role in COLUMNS}
    if name == "wide":
        named["judge"] = "none"
    table = read_votes(given.path, options.layout(), named)
    kind: Verdicts | None = options.verdicts
    if name == "wide":
        named["item"] = options.item or most_likely(table.columns, "item")
    elif name == "text":
        kind = kind or "pair"
        named["vote"] = guess_columns(
            table.columns, {"text": options.text}, {"text": TEXTS}, needed=("text",)
        )["text"]
    request = ReadRequest(
        votes=InMemory(table, source), wide=name == "wide", verdicts=kind, **named
    )
    draft = Draft(request, how=request)
    draft = find_wide(draft) if request.wide else find_long(draft)
    asked = [each.question or each.text for each in draft.problems if each.topic != "repeats"]
    if asked:
        raise JudgeBayesError(" ".join(asked))
    if draft.problems:  # repeated votes are numbered in the order of the file
        columns = {**draft.columns, "sample": None}
        draft = replace(draft, request=request, how=request, columns=columns)
    opened = draft.open_votes()
    columns = opened.columns
    if opened.labels is not None and columns["label"] is None:
        raise JudgeBayesError("--label names several columns; an import writes the labels of one.")
    roles = columns | {"judge": opened.judge, "vote": str(opened.votes.name)}
    label = [*filter(None, [columns["label"]])]
    plain, commas = plain_cells(opened.table, label, None, "label")
    cells = pd.DataFrame(
        {"judge": "judge"} | {role: plain[n] for role in COLUMNS if (n := roles[role]) is not None}
    )
    records = pd.DataFrame(
        {
            role: mapped(cells[role], written if role in ("item", "judge") else canonical)
            for role in cells
        }
    )
    nameless = records[["item", "judge"]].isna()
    if nameless.to_numpy().any():
        at = nameless.any(axis=1).argmax()
        raise JudgeBayesError(
            f"Row {records.index[at]} of {source!r} has no {nameless.iloc[at].idxmax()}; every vote "
            "needs both an item and a judge."
        )
    records["missing"] = mapped(cells["vote"], why_none)
    if kind is not None:
        verdicts, _ = verdicts_in(table.loc[records.index, columns["vote"]], kind)
        records = records.assign(**verdicts)
    if opened.rows is not None:
        advice = " (for repeated votes, use the format tidy, with a row per vote)"
        names_of_items(opened.rows, str(columns["item"]), source, advice)
        votes, labels = {*records["vote"].unique()}, {*records.get("label", ())}
        if options.missing is None and -1 in votes - labels and votes <= {-1, 0, 1}:
            raise JudgeBayesError(
                f"{source!r} contains -1, 0 and 1, but no empty cell. If -1 means no vote, use "
                "--set missing=-1; if it is a vote, leave one cell empty or use the format tidy."
            )
    else:
        copies = ~table.index.isin(records.index)
        records = records.reindex(table.index)
        records.loc[copies, "dropped"] = COPY
    notes = [f"Columns: {listed_roles(columns)}.", *opened.notes, *commas]
    if request.wide:
        notes.append(f"Judges: {listing(records['judge'].unique())}.")
    return [records, *notes]
