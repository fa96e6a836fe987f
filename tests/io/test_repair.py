import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebayes.io.repair import Shown, repair_verdicts

ITEMS = [
    Shown("2", "The input prompt should be a string. Enclose it in quotes."),
    Shown("5", "Use str(age) instead of str.(age)."),
    Shown("5", "The variable total is never initialised before the loop."),
]


def answer(*entries: dict) -> str:
    return json.dumps({"feedback_lines": list(entries)})


def entry(line: object, text: str, label: object, key: str = "line_number") -> dict:
    return {key: line, "feedback": text, "classification": label}


def test_a_clean_answer_needs_no_repair() -> None:
    repaired = repair_verdicts(
        answer(*(entry(i.line, i.text, "valid") for i in ITEMS[::-1])), ITEMS
    )
    assert repaired.votes == [1, 1, 1]
    assert not repaired.steps


@pytest.mark.parametrize(
    ("given", "step", "vote"),
    [
        (entry(2, ITEMS[0].text, "incorrect"), "label", 0),
        (entry(2, ITEMS[0].text, "Partially Valid"), "label", 0),
        (entry(2, ITEMS[0].text, "valid", key="line_num"), "key", 1),
        (entry("line 2", ITEMS[0].text, "valid"), "line", 1),
        (entry("2-3", ITEMS[0].text, "invalid"), "range", 0),
        (entry(2, ITEMS[0].text.replace("Enclose", "enclose"), "valid"), "fuzzy", 1),
        (entry(2, ITEMS[0].text[:36], "valid"), "clipped", 1),
    ],
)
def test_each_step_repairs_and_is_counted(given: dict, step: str, vote: int) -> None:
    repaired = repair_verdicts(answer(given), ITEMS)
    assert repaired.votes == [vote, -1, -1]
    assert repaired.steps == {step: 1, "missing": 2}


def test_two_items_on_one_line_are_matched_by_text_and_a_verdict_is_used_once() -> None:
    second = entry(5, ITEMS[2].text, "invalid")
    assert repair_verdicts(answer(second), ITEMS).votes == [-1, -1, 0]
    twice = repair_verdicts(answer(second), [ITEMS[2], ITEMS[2]])
    assert twice.votes == [0, -1]


@pytest.mark.parametrize(
    ("given", "step"),
    [
        (entry(2, "Something else altogether.", "valid"), "unmatched"),
        (entry(3, ITEMS[0].text, "valid"), "unmatched"),
        (entry(2, ITEMS[0].text, "perhaps"), "unlabelled"),
        (entry(2, ITEMS[0].text, None), "unlabelled"),
        (entry(2, "The", "valid"), "unmatched"),
        (entry(2, "", "valid"), "unmatched"),
    ],
)
def test_no_vote_is_invented(given: dict, step: str) -> None:
    repaired = repair_verdicts(answer(given), ITEMS)
    assert repaired.votes == [-1, -1, -1]
    assert repaired.steps[step] == 1


@pytest.mark.parametrize("bad", ["", "{", "null", "3", '{"feedback_lines": 7}', None, 4.2, b"\xff"])
def test_malformed_answers_have_no_votes(bad: object) -> None:
    repaired = repair_verdicts(bad, ITEMS)
    assert repaired.votes == [-1, -1, -1]
    assert repaired.steps["malformed"] == 1


def test_a_code_fence_is_opened() -> None:
    fenced = f"Here you are:\n```json\n{answer(entry(2, ITEMS[0].text, 'valid'))}\n```"
    assert repair_verdicts(fenced, ITEMS).votes == [1, -1, -1]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["feedback_lines", "feedback", "line_number", "classification", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_it_never_raises_and_never_votes_without_a_label(response: object) -> None:
    repaired = repair_verdicts(response, ITEMS)
    assert len(repaired.votes) == 3
    assert set(repaired.votes) <= {-1, 0, 1}
    labels = json.dumps(response, default=str).casefold()
    if not any(word in labels for word in ("valid", "correct")):
        assert repaired.votes == [-1, -1, -1]
    assert repair_verdicts(json.dumps(response), ITEMS).votes == repaired.votes
