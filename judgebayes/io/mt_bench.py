"""MT-bench judgments (FastChat): pairs in both orders, single scores, human votes."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import Name, Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of, read_lines

PEOPLE = re.compile(r"(?:author|expert|human|annotator)s?[_ ]?\d*", re.IGNORECASE)
COUNTED = "human vote: counted in the label"
UNJUDGED = "human vote on a pair that no model judged"


def read_mt_bench(given: Files) -> list[Row]:
    """Return the votes in MT-bench judgments.

    An item is `question|turn|model|model`, with the models in alphabetical order: A is the first of
    them, whatever the order shown. `g1_winner` and `g2_winner`, one judge's votes in the two orders,
    name models, so they are not swapped. `tie (inconsistent)`, the merger of the two, and `tie
    (bothbad)` are ties; `error` is a missing vote. In files of single scores an item is
    `question|turn|model`, and -1 is a missing vote. Where both people and models judged, the plurality
    of the human votes (a tie if there is none) is the label, and the human votes are left out.

    Raises
    ------
    JudgeBayesError
        If a line is not a judgment, the files mix pairs and single scores, or people and models have
        no judged pair in common.
    """
    kinds_and_rows = [
        (kind, row)
        for file in given.files
        for number, record in read_lines(file)
        for kind, row in _rows(record, f"Line {number} of {str(file)!r}")
    ]
    kinds = {kind for kind, _ in kinds_and_rows}
    if len(kinds) > 1:
        raise JudgeBayesError(
            f"{str(given.path)!r} mixes verdicts on pairs and single scores; use a file of one kind."
        )
    rows = [row for _, row in kinds_and_rows]
    return rows if kinds == {"single"} else _with_labels(rows, str(given.path))


def _rows(record: dict[str, Any], where: str) -> Iterator[tuple[Literal["pair", "single"], Row]]:
    question = field_of(record, "question_id", where)
    judge = _judge(field_of(record, "judge", where))
    prefix = f"{question}|t{record.get('turn', 1)}"
    if "score" in record and "model" in record:
        value = record["score"]
        score = value if isinstance(value, int | float) and value >= 0 else None
        yield "single", Row(f"{prefix}|{record['model']}", judge, score, "score -1 (unreadable)")
        return
    one, two = (
        ("model_1", "model_2")
        if "g1_winner" in record or "model_1" in record
        else ("model_a", "model_b")
    )
    models = str(field_of(record, one, where)), str(field_of(record, two, where))
    item = "|".join((prefix, *sorted(models)))
    in_order = models[0] <= models[1]
    if "g1_winner" in record:
        for key, order in (("g1_winner", "AB"), ("g2_winner", "BA")):
            if key not in record:
                continue
            shown = order if in_order else {"AB": "BA", "BA": "AB"}[order]
            vote, why = _vote(record[key], (one, two), in_order, where)
            yield "pair", Row(item, judge, vote, why, order=shown)
    else:
        vote, why = _vote(field_of(record, "winner", where), (one, two), in_order, where)
        yield "pair", Row(item, judge, vote, why)


def _judge(value: Any) -> str:
    return "/".join(map(str, value)) if isinstance(value, list) else str(value)


def _vote(
    winner: Any, names: tuple[str, str], in_order: bool, where: str
) -> tuple[str | None, str]:
    if winner in names:
        return "A" if (winner == names[0]) == in_order else "B", ""
    if isinstance(winner, str) and re.fullmatch(r"tie( \(\w+\))?", winner):
        return "tie", ""
    if winner is None or winner == "error":
        return None, "winner is " + ("null" if winner is None else "error")
    raise JudgeBayesError(
        f"{where} has the winner {str(winner)[:40]!r}; it must be {', '.join(names)}, tie or error."
    )


def _with_labels(rows: list[Row], what: str) -> list[Row]:
    """Return the models' votes with the plurality of the human votes as labels, if both judged."""
    human = [row for row in rows if PEOPLE.fullmatch(str(row.judge))]
    if not human or len(human) == len(rows):
        return rows
    counts: dict[Name, Counter[str]] = {}
    for row in human:
        if row.vote is not None:
            counts.setdefault(row.item, Counter())[str(row.vote)] += 1
    judged = {row.item for row in rows if not PEOPLE.fullmatch(str(row.judge))}
    if not judged & set(counts):
        raise JudgeBayesError(
            f"No pair in {what} was judged by both people and models; check that the files are "
            "about the same questions and models."
        )
    labels = {item: _plurality(count) for item, count in counts.items()}
    return [
        replace(row, dropped=COUNTED if row.item in judged else UNJUDGED)
        if PEOPLE.fullmatch(str(row.judge))
        else replace(row, label=labels.get(row.item))
        for row in rows
    ]


def _plurality(counts: Counter[str]) -> str:
    (first, most), *rest = counts.most_common()
    return "tie" if rest and rest[0][1] == most else first
