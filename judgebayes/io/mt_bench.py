"""MT-bench judgments (FastChat): pairs in both orders, single scores, human votes."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of
from judgebayes.io.tools import OTHER, records_of

PEOPLE = re.compile(r"(?:author|expert|human|annotator)s?[_ ]?\d*", re.IGNORECASE)
TIE = re.compile(r"tie.*|both.*", re.IGNORECASE)
"""A tie, with (bothbad), (inconsistent) or without, in the forms of the two tools."""


def read_mt_bench(given: Files) -> list[Row]:
    """Return the votes in MT-bench judgments.

    An item is `question|turn|model|model`, with the models in alphabetical order: A is the first of
    them, whatever the order shown. `g1_winner` and `g2_winner`, one judge's votes in the two orders,
    name models, so they are not swapped. `tie (inconsistent)`, the merger of the two, and `tie
    (bothbad)` are ties; `error` is a missing vote. In files of single scores an item is
    `question|turn|model`, and -1 is a missing vote. Where both people and models judged, the votes of
    people are labels.

    Raises
    ------
    JudgeBayesError
        If a line is not a judgment, or the files mix pairs and single scores.
    """
    pairs, scores = list[Row](), list[Row]()
    for where, record in records_of(given):
        question, judge = (field_of(record, name, where) for name in ("question_id", "judge"))
        judge = "/".join(map(str, judge)) if isinstance(judge, list) else str(judge)
        prefix = f"{question}|t{record.get('turn', 1)}"
        if "score" in record and "model" in record:
            value = record["score"]
            score = value if isinstance(value, int | float) and value >= 0 else None
            scores.append(Row(f"{prefix}|{record['model']}", judge, score, "score -1 (unreadable)"))
        else:
            pairs += _verdicts(record, prefix, judge, where)
    if pairs and scores:
        raise JudgeBayesError(
            f"{str(given.path)!r} mixes verdicts on pairs and single scores; use a file of one kind."
        )
    return scores or pairs


def _verdicts(record: dict[str, Any], prefix: str, judge: str, where: str) -> Iterator[Row]:
    in_orders = "g1_winner" in record
    names = ("model_1", "model_2") if in_orders or "model_1" in record else ("model_a", "model_b")
    models = [str(field_of(record, name, where)) for name in names]
    item, swapped = "|".join((prefix, *sorted(models))), models[0] > models[1]
    orders = {"g1_winner": "AB", "g2_winner": "BA"} if in_orders else {"winner": None}
    for key, order in orders.items():
        if key == "g2_winner" and key not in record:
            continue
        winner = field_of(record, key, where)
        vote = winning_side(winner, names, models, where)
        if swapped:
            vote, order = OTHER.get(str(vote), vote), order and order[::-1]
        person = judge if PEOPLE.fullmatch(judge) else None
        why = f"winner is {winner or 'null'}"
        yield Row(item, "winner" if person else judge, vote, why, order=order, person=person)


def winning_side(
    winner: Any, names: Sequence[str], models: Sequence[str], where: str
) -> str | None:
    """Return A, B or tie for a winner by the name of its field or its own, None without a winner.

    Raises
    ------
    JudgeBayesError
        If it is another word.
    """
    sides = dict(zip((*models, *names), "ABAB", strict=False))
    vote = "tie" if TIE.fullmatch(str(winner)) else sides.get(str(winner))
    if vote is None and winner not in (None, "error"):
        raise JudgeBayesError(
            f"{where} has the winner {str(winner)[:40]!r}; it must be {names[0]}, {names[1]}, tie or "
            "error."
        )
    return vote
