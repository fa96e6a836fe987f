"""A table of judges' raw answers, read by the verdict parser."""

from collections import Counter
from pathlib import Path

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import Imported, Row, gather
from judgebayes.io.options import Options
from judgebayes.io.records import find_files
from judgebayes.io.tables import notes_of, read_table
from judgebayes.io.tidy import TABLES, cell, columns_by_role
from judgebayes.io.verdict import LEVELS, parse_verdict
from judgebayes.votes.classes import written

TEXTS = (
    *("text", "response", "output", "completion", "generation"),
    *("raw", "raw_output", "raw_response", "judgment", "judgement", "answer", "content", "message"),
)
"""Names of the column of raw answers, the most likely first."""


def read_judge_text(path: Path, options: Options = Options()) -> Imported:  # noqa: B008
    """Return the verdicts in raw answers as votes; an answer without a verdict is a missing vote.

    A verdict names the response as shown, so `votes_as` is `shown` (with a column of orders, the votes
    still have to be mapped back).

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, or the column of the answers is not recognised.
    """
    files = find_files(path, TABLES, "table")
    verdict_kind = options.verdicts or "pair"
    levels: Counter[str] = Counter()
    repairs: Counter[str] = Counter()
    rows: list[Row] = []
    notes: dict[str, None] = {}
    for file in files:
        table = read_table(file, options.layout())
        notes |= dict.fromkeys(notes_of(table))
        names = list(table.columns)
        text = options.text or next((n for n in TEXTS if n in names), None)
        if text is None or text not in names:
            raise JudgeBayesError(
                f"Which column of {str(file)!r} contains the raw answers? It has "
                f"{', '.join(map(repr, names[:20]))}; use --text NAME."
            )
        named_columns = {
            r: getattr(options, r) for r in ("item", "judge", "sample", "order", "label")
        }
        columns, column_notes = columns_by_role(table.drop(columns=text), named_columns)
        notes |= dict.fromkeys(column_notes)
        judge_of_file = file.name.split(".")[0] if len(files) > 1 else "judge"
        for row_number, record in zip(table.index, table.to_dict("records"), strict=True):
            item = written(record[columns["item"]])
            judge = None if columns["judge"] is None else written(record[columns["judge"]])
            if item is None:
                raise JudgeBayesError(f"Row {row_number} of {str(file)!r} has no item.")
            answer = record[text]
            verdict = parse_verdict(answer, verdict_kind)
            is_blank = not isinstance(answer, str) or not answer.strip()
            if verdict.level is not None and verdict.value is not None:
                levels[verdict.level] += 1
                repairs.update(verdict.repairs)
            rows.append(
                Row(
                    item,
                    judge_of_file if judge is None else judge,
                    verdict.value,
                    "no answer" if is_blank else verdict.why,
                    sample=cell(record, columns["sample"]),
                    order=cell(record, columns["order"]),
                    label=cell(record, columns["label"]),
                )
            )
    used = Counter({level: levels[level] for level in LEVELS if levels[level]})
    return gather(
        rows,
        str(path),
        missing=options.missing,
        votes_as="shown",
        levels=used,
        repairs=repairs,
        notes=list(notes),
    )
