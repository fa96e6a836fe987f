"""AlpacaEval's annotations: preferences between a reference's output and a model's."""

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.records import field_of, read_list

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
    rows = [row for file in given.files for row in _rows(file)]
    yield from rows
    between = [row.score for row in rows if row.score not in (None, 0.0, 0.5, 1.0)]
    if between:
        yield (
            f"{len(between)} of {len(rows)} preferences are between two responses, such as "
            f"{1 + float(between[0] or 0):.4g}: their vote is the nearer response, and the column score "
            "has the probability of B. To use the probabilities, add --vote score --bins 5."
        )


def _rows(file: Path) -> Iterator[Row]:
    for where, record in read_list(file, "annotations"):
        preference = field_of(record, "preference", where)
        instruction = field_of(record, "instruction", where)
        judge = record.get("annotator")
        vote, why, score = _vote(preference)
        yield Row(
            _item(record, instruction),
            f"annotator {judge}" if isinstance(judge, int) else str(judge or file.parent.name),
            vote,
            why,
            score=score,
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
    if preference is None or (isinstance(preference, float) and math.isnan(preference)):
        return None, "preference is null", None
    if isinstance(preference, bool) or not isinstance(preference, int | float):
        return None, f"preference {str(preference)[:20]!r}", None
    if preference in (0, 1.5):
        return "tie", "", 0.5
    if not 1 <= preference <= 2:
        return None, f"preference {preference:g} is not from 1 to 2", None
    return ("A" if preference < 1.5 else "B"), "", float(preference) - 1
