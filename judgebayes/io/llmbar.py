"""LLMBar's evaluator results: a file per evaluator and subset, each pair judged in both orders."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of, read_list

SIDES = {"1": "A", "2": "B"}
ORDERS = {"swap = False": "AB", "swap = True": "BA"}
ONCE = "second order of a rating: the same two scores again"


def read_llmbar(given: Files) -> Iterator[Row]:
    """Return the votes of LLMBar's evaluators: A is output 1, B output 2.

    `winner` already names the outputs, whatever the order. If an evaluator has several steps, the last
    step counts. An evaluator that rates each output separately has one vote per pair, not two, and equal
    ratings are a tie. (LLMBar counts equal ratings, and ratings that are not numbers, for output 1 in
    one order and for output 2 in the other; here the latter are missing votes.)

    Raises
    ------
    JudgeBayesError
        If a file does not have this form.
    """
    for file in given.files:
        yield from _rows(file)


def _rows(file: Path) -> Iterator[Row]:
    parts = file.absolute().parent.parts
    if len(parts) < 3:
        raise JudgeBayesError(f"{str(file)!r} is not in a folder EVALUATORS/MODEL/PROMPT.")
    judge = "/".join(parts[-2:])
    folders = parts[:-3]
    inside = folders.index("Dataset") + 1 if "Dataset" in folders else len(folders) - 2
    name = "/".join(folders[max(inside, 0) :])
    for row_number, (where, record) in enumerate(read_list(file, "judged pairs")):
        label = SIDES.get(str(field_of(record, "label", where)))
        results = field_of(record, "results", where)
        if label is None or not isinstance(results, list) or not results:
            raise JudgeBayesError(
                f"{where} needs a label of 1 or 2 and a list of results; it has "
                f"{record['label']!r} and {type(results).__name__}."
            )
        last = results[-1]
        rated = isinstance(last, dict) and "score_1" in last and "score_2" in last
        for key, order in ORDERS.items():
            winner = field_of(field_of(last, key, where), "winner", where)
            item = f"{name}#{row_number}"
            if rated and order == "BA":
                yield Row(item, judge, dropped=ONCE)
            elif rated:
                vote, why = _rated(last)
                yield Row(item, judge, vote, why, order="AB", label=label)
            else:
                vote = None if winner is None else SIDES.get(str(winner))
                why = "no winner" if winner is None else f"winner {str(winner)[:20]!r}"
                yield Row(item, judge, vote, why, order=order, label=label)


def _rated(result: dict[str, Any]) -> tuple[str | None, str]:
    scores = []
    for name in ("score_1", "score_2"):
        value = result[name][0] if isinstance(result[name], list) and result[name] else None
        try:
            scores.append(int(str(value).strip()))
        except ValueError:
            return None, "rating is not a number"
    first, second = scores
    return "tie" if first == second else ("A" if first > second else "B"), ""
