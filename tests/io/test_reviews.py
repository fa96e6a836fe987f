"""`import reviews`: answers on several items, with what was repaired."""

import json
from pathlib import Path

import pandas as pd
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.io.formats import import_votes
from judgebayes.io.options import Options

ITEMS = pd.DataFrame(
    {
        "item": ["p1", "p2", "q1"],
        "group": ["p", "p", "q"],
        "line_number": ["2-3", 7, 1],
        "feedback": ["Close the file.", "Return the sum.", "Add a test."],
        "label": [1, 0, 1],
    }
)


def answer(*rows: tuple[object, str, str]) -> str:
    names = ("line_number", "feedback", "classification")
    return json.dumps({"feedback_lines": [dict(zip(names, row, strict=True)) for row in rows]})


ANSWERS = pd.DataFrame(
    {
        "group": ["p", "q", "p", "q"],
        "judge": ["a", "a", "b", "b"],
        "text": [
            "```\n"
            + answer(("2-3", "Close the file.", "valid"), (7, "Return a sum.", "incorrect"))
            + "\n```",
            answer((1, "Add a test.", "valid"))[:-2] + ",]}",
            answer((2, "Close the file.", "valid"), (7, "Something else.", "valid")),
            "I cannot review this.",
        ],
    }
)


def put(folder: Path, items: pd.DataFrame = ITEMS, answers: pd.DataFrame = ANSWERS) -> Path:
    items.to_csv(folder / "items.csv", index=False)
    answers.to_json(folder / "answers.jsonl", orient="records", lines=True)
    return folder / "answers.jsonl"


def test_verdicts_are_matched_and_each_repair_is_counted(tmp_path: Path) -> None:
    imported = import_votes("reviews", put(tmp_path), Options(items=tmp_path / "items.csv"))
    votes = imported.votes.set_index(["item", "judge"])["vote"]
    assert votes[:, "a"].to_dict() == {"p1": "valid", "p2": "invalid", "q1": "valid"}
    assert votes["p1", "b"] == "valid"
    assert votes[:, "b"].isna().sum() == 2
    repaired = next(note for note in imported.notes if note.startswith("Repaired: "))
    assert set(repaired.removeprefix("Repaired: ")[:-1].split(", ")) == {
        "other label 1",
        "only the starting line is equal 1",
        "inexact text 1",
    }
    assert imported.missing == {"no verdict on the item": 2}
    assert (
        "Verdicts and answers that are not votes: on no item, or repeated 1, not readable 1."
        in (imported.notes)
    )
    assert imported.labels is not None
    assert imported.labels["label"].tolist() == [1, 0, 1]


def test_without_groups_every_answer_is_on_all_items(tmp_path: Path) -> None:
    answers = ANSWERS.drop(columns="group").head(1)
    path = put(tmp_path, ITEMS.drop(columns="group"), answers)
    imported = import_votes("reviews", path, Options(items=tmp_path / "items.csv"))
    assert imported.votes["vote"].tolist() == ["valid", "invalid", None]


@pytest.mark.parametrize(
    ("items", "answers", "sentence"),
    [
        (ITEMS.head(2), ANSWERS, "Row 2 of .* is on the group 'q', of which .* has no items"),
        (ITEMS.drop(columns="feedback"), ANSWERS, "Which column of .*items.csv' is the text"),
        (ITEMS, ANSWERS.drop(columns="text"), "Which column of .*answers.jsonl' is the text"),
        (ITEMS, ANSWERS.drop(columns="group"), "Which column of .*answers.jsonl' is the group"),
        (ITEMS.assign(item="p1"), ANSWERS, "Rows 2 and 3 of .* have the same item 'p1'"),
        (ITEMS.assign(feedback=""), ANSWERS, "Row 2 of .* has no text in 'feedback'"),
        (ITEMS.assign(line_number=None), ANSWERS, "Row 2 of .* has no line"),
    ],
)
def test_bad_input_is_named(
    items: pd.DataFrame, answers: pd.DataFrame, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(JudgeBayesError, match=sentence):
        import_votes(
            "reviews", put(tmp_path, items, answers), Options(items=tmp_path / "items.csv")
        )


def test_the_items_are_required(tmp_path: Path) -> None:
    with pytest.raises(JudgeBayesError, match="needs the items"):
        import_votes("reviews", put(tmp_path))
