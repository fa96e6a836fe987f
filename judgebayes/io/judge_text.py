"""A table with a judge's raw answers, put through the verdict parser."""

from collections import Counter
from pathlib import Path

from judgebayes.errors import JudgeBayesError
from judgebayes.io.imported import Imported, Row, gather
from judgebayes.io.options import Options
from judgebayes.io.records import find_files
from judgebayes.io.tables import notes_of, read_table
from judgebayes.io.tidy import TABLES, cell, told_columns
from judgebayes.io.verdict import LEVELS, parse_verdict
from judgebayes.votes.classes import written

__all__ = ["read_judge_text"]

TEXTS = (
    *("text", "response", "output", "completion", "generation"),
    *("raw", "raw_output", "raw_response", "judgment", "judgement", "answer", "content", "message"),
)
"""Names of the column of raw answers, the likeliest first."""


def read_judge_text(path: Path, options: Options = Options()) -> Imported:  # noqa: B008
    """Return the verdicts in raw answers, as votes; an answer without one is a missing vote.

    A verdict names what was shown: with a column of orders, `votes_as` is `shown`.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, or the column of the answers cannot be told.
    """
    files = find_files(path, TABLES, "table")
    kind = options.verdicts or "pair"
    levels: Counter[str] = Counter()
    rows: list[Row] = []
    notes: dict[str, None] = {}
    for file in files:
        table = read_table(file, options.layout())
        notes |= dict.fromkeys(notes_of(table))
        names = list(table.columns)
        text = options.text or next((n for n in TEXTS if n in names), None)
        if text is None or text not in names:
            raise JudgeBayesError(
                f"Which column of {str(file)!r} holds the raw answers? It has "
                f"{', '.join(map(repr, names[:20]))}; say --text NAME."
            )
        given = {r: getattr(options, r) for r in ("item", "judge", "sample", "order", "label")}
        columns, told = told_columns(table.drop(columns=text), given)
        notes |= dict.fromkeys(told)
        alone = file.name.split(".")[0] if len(files) > 1 else "judge"
        for place, record in zip(table.index, table.to_dict("records"), strict=True):
            item = written(record[columns["item"]])
            judge = None if columns["judge"] is None else written(record[columns["judge"]])
            if item is None:
                raise JudgeBayesError(f"Row {place} of {str(file)!r} has no item.")
            answer = record[text]
            verdict = parse_verdict(answer, kind)
            silent = not isinstance(answer, str) or not answer.strip()
            if verdict.level is not None and verdict.value is not None:
                levels[verdict.level] += 1
            rows.append(
                Row(
                    item,
                    alone if judge is None else judge,
                    verdict.value,
                    "no answer" if silent else verdict.why,
                    sample=cell(record, columns["sample"]),
                    order=cell(record, columns["order"]),
                    label=cell(record, columns["label"]),
                )
            )
    used = Counter({level: levels[level] for level in LEVELS if levels[level]})
    return gather(
        rows, str(path), missing=options.missing, votes_as="shown", levels=used, notes=list(notes)
    )
