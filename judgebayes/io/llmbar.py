"""LLMBar's evaluator results: a file per evaluator and subset, each pair judged in both orders."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of
from judgebayes.io.tools import plain, records_in

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
        data_set, judge = _names(file)
        for row_number, (where, record) in enumerate(records_in(file)):
            label = SIDES.get(str(field_of(record, "label", where)))
            results = field_of(record, "results", where)
            if label is None or not isinstance(results, list) or not results:
                raise JudgeBayesError(
                    f"{where} needs a label of 1 or 2 and a list of results; it has "
                    f"{record['label']!r} and {type(results).__name__}."
                )
            item, last = f"{data_set}#{row_number}", results[-1]
            for key, order in ORDERS.items():
                winner = field_of(field_of(last, key, where), "winner", where)
                vote = SIDES.get(str(winner))
                why = "no winner" if winner is None else f"winner {str(winner)[:20]!r}"
                if {"score_1", "score_2"} <= last.keys():
                    if order == "BA":
                        yield Row(item, judge, dropped=ONCE)
                        continue
                    vote, why = _rated(last["score_1"], last["score_2"])
                yield Row(item, judge, vote, why, order=order, label=label)


def _names(file: Path) -> tuple[str, str]:
    """Return the names of the data set and of the evaluator, from the folders of a file."""
    *folders, _, model, prompt = ("", "", *file.absolute().parent.parts)
    inside = folders.index("Dataset") + 1 if "Dataset" in folders else len(folders) - 2
    return "/".join(folders[max(inside, 0) :]), f"{model}/{prompt}"


def _rated(*ratings: Any) -> tuple[str | None, str]:
    one, two = (plain(each[0]) if isinstance(each, list) and each else None for each in ratings)
    if not isinstance(one, int) or not isinstance(two, int):
        return None, "rating is not a number"
    return ("tie" if one == two else "A" if one > two else "B"), ""
