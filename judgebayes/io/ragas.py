"""Results of Ragas as a table: a row per question, a column per metric."""

from collections.abc import Iterator

from judgebayes.io.columns import ROLES
from judgebayes.io.formats import RAGAS
from judgebayes.io.gathering import Row
from judgebayes.io.options import Files
from judgebayes.io.tools import answer_in, is_by_a_person, names_of, records_of, score_rows
from judgebayes.votes.classes import listing

QUESTIONS = ("user_input", "question")
FIELDS = (
    *("response", "answer", "retrieved_contexts", "contexts", "reference", "reference_contexts"),
    *("ground_truth", "ground_truths", "multi_responses", "rubrics"),
)
"""What is judged, beside the questions; no metrics."""


def read_ragas(given: Files) -> Iterator[Row | str]:
    """Return the votes in results of Ragas.

    A row is an item, named by a usual column of items such as `id`, else by its question, if these are
    different, else by its place from 0. A metric of Ragas, and another column of numbers from 0 to 1,
    is a judge; a column whose name says that a person filled it (`human_ok`), and the one that `label`
    names, is the label. A metric without a value failed, and is missing.

    The shape is that of explodinggradients/ragas, `src/ragas/dataset_schema.py` (EvaluationResult's
    `to_pandas`), and of its field names since 0.2 and before.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read, or a record is not an object.
    """
    records = [record for _, record in records_of(given)]
    names = names_of(records, (*ROLES["item"], *QUESTIONS))
    scores, others = list[str](), list[str]()
    for name in dict.fromkeys(n for record in records for n in record):
        if name in (*QUESTIONS, *FIELDS):
            continue
        answers = [answer_in(record.get(name))[0] for record in records]
        values = [value for value in answers if value is not None]
        shares = all(not isinstance(value, str) and 0 <= value <= 1 for value in values)
        if RAGAS.fullmatch(name) or is_by_a_person(name, given) or (values and shares):
            scores.append(name)
        elif values and not any(isinstance(value, str) for value in values):
            others.append(name)
    for place, record in enumerate(records):
        item = names[place] if names else str(place)
        yield from score_rows(item, {name: record.get(name) for name in scores}, given)
    if others:
        yield f"Columns of numbers that are no metric are left out: {listing(others)}."
