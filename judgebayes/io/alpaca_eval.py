"""AlpacaEval's annotations: preferences between a reference's output and a model's."""

import hashlib
from collections.abc import Iterator
from typing import Any

from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of
from judgebayes.io.tools import plain, records_in

LONGEST = 120
"""The length of an item's name."""


def read_alpaca_eval(given: Files) -> Iterator[Row | str]:
    """Return the votes of AlpacaEval's annotators: A is output 1, B output 2.

    `preference` is 1 for output 1, 2 for output 2, and between them if it is weighted by probabilities:
    below 1.5 is a vote for A, above 1.5 for B, and `score` is preference - 1, the annotator's
    probability of B. 1.5 is a tie, as is 0 (in old files); null is a missing vote. Where AlpacaEval
    showed the outputs in random order, it has mapped the preference back itself.

    Raises
    ------
    JudgeBayesError
        If a file is not a list of annotations.
    """
    read, between = 0, list[float]()
    for file in given.files:
        for where, record in records_in(file):
            vote, why, score = _vote(field_of(record, "preference", where))
            item = _item(record, field_of(record, "instruction", where))
            judge = record.get("annotator")
            name = f"annotator {judge}" if isinstance(judge, int) else judge or file.parent.name
            yield Row(item, str(name), vote, why, score=score)
            read += 1
            between += [score] if score not in (None, 0.0, 0.5, 1.0) else []
    if between:
        yield (
            f"{len(between)} of {read} preferences are between two responses, such as "
            f"{1 + between[0]:.4g}: their vote is the nearer response, and the column score "
            "has the probability of B. To use the probabilities, add --vote score --set bins=5."
        )


def _item(record: dict[str, Any], instruction: Any) -> tuple[str, str]:
    """Return a name for a pair of outputs, the same in every annotator's file: models, instruction.

    Labels are joined by the instruction, so it is in the name; of a long one its beginning and a digest.
    """
    models = [str(record[g]) for g in ("generator_1", "generator_2") if record.get(g) is not None]
    text = " ".join(str(instruction).split())
    if len(text) > LONGEST:
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        text = f"{text[: LONGEST - 14]} #{digest}"
    return " vs ".join(models), text


def _vote(preference: Any) -> tuple[str | None, str, float | None]:
    number = plain(preference) if type(preference) in (int, float) else None
    if number in (0, 1.5):
        return "tie", "", 0.5
    if isinstance(number, int | float) and 1 <= number <= 2:
        return ("A" if number < 1.5 else "B"), "", float(number) - 1
    if preference is None or preference != preference:
        return None, "preference is null", None
    return None, f"preference {str(preference)[:20]} is not from 1 to 2", None
