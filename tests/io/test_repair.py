import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from malformed import KINDS, count

from judgebayes.io.repair import EXACT, UNLABELLED, Shown, repair_verdicts

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
    assert not repaired.repairs + repaired.lost


@pytest.mark.parametrize(
    ("given", "step", "vote"),
    [
        (entry(2, ITEMS[0].text, "incorrect"), "other label", 0),
        (entry(2, ITEMS[0].text, "Partially Valid"), "other label", 0),
        (entry(2, ITEMS[0].text, "valid", key="line_num"), "other key", 1),
        (entry("line 2", ITEMS[0].text, "valid"), "other notation of the line", 1),
        (entry("2-3", ITEMS[0].text, "invalid"), "only the starting line is equal", 0),
        (entry(2, ITEMS[0].text.replace("Enclose", "enclose"), "valid"), "inexact text", 1),
        (entry(2, ITEMS[0].text[:36], "valid"), "clipped text", 1),
    ],
)
def test_each_step_repairs_and_is_counted(given: dict, step: str, vote: int) -> None:
    repaired = repair_verdicts(answer(given), ITEMS)
    assert repaired.votes == [vote, -1, -1]
    assert repaired.repairs == {step: 1}


def test_two_items_on_one_line_are_matched_by_text_and_a_verdict_is_used_once() -> None:
    second = entry(5, ITEMS[2].text, "invalid")
    assert repair_verdicts(answer(second), ITEMS).votes == [-1, -1, 0]
    repeated = repair_verdicts(answer(second, second), ITEMS)
    assert repeated.votes == [-1, -1, 0]
    assert repeated.lost == {"on no item, or repeated": 1}
    alike = repair_verdicts(answer(second), [ITEMS[2], ITEMS[2]])
    assert alike.votes == [-1, -1]
    assert alike.reasons.count("ambiguous") == 2


@pytest.mark.parametrize(
    ("given", "step"),
    [
        (entry(2, "Something else altogether.", "valid"), "on no item, or repeated"),
        (entry(3, ITEMS[0].text, "valid"), "on no item, or repeated"),
        (entry(2, ITEMS[0].text, "perhaps"), UNLABELLED),
        (entry(2, ITEMS[0].text, None), UNLABELLED),
        (entry(2, "The", "valid"), "on no item, or repeated"),
        (entry(2, "", "valid"), "on no item, or repeated"),
        (entry(2, ITEMS[0].text, "valid") | {"verdict": "invalid"}, UNLABELLED),
    ],
)
def test_no_vote_is_invented(given: dict, step: str) -> None:
    repaired = repair_verdicts(answer(given), ITEMS)
    assert repaired.votes == [-1, -1, -1]
    assert repaired.lost[step] == 1


@pytest.mark.parametrize("bad", ["", "{", "null", "3", '{"feedback_lines": 7}', None, 4.2, b"\xff"])
def test_malformed_answers_have_no_votes(bad: object) -> None:
    repaired = repair_verdicts(bad, ITEMS)
    assert repaired.votes == [-1, -1, -1]
    assert repaired.lost["not readable"] == 1


FIRST = answer(entry(2, ITEMS[0].text, "valid"))
OTHER = answer(entry(2, ITEMS[0].text, "invalid"))
BROKEN = FIRST.replace("}]", ",},]")


@pytest.mark.parametrize(
    ("response", "steps"),
    [
        (f"Here you are:\n```json\n{FIRST}\n```", ()),
        (f"```\n{FIRST}\n```", ()),
        (f"Items [1] {{both}}: {FIRST} Done.", ()),
        (BROKEN, ()),
        (f"<think>{OTHER}</think>{FIRST}", ("reasoning before the JSON",)),
        (f"{FIRST}\nAgain: {FIRST}", ()),
        (json.dumps(entry(2, ITEMS[0].text, "valid")), ("no list around the verdicts",)),
        (answer(entry(2, ITEMS[0].text, "valid"), {})[:-6], ("no list around the verdicts",)),
    ],
)
def test_json_in_an_answer_is_read_and_counted(response: str, steps: tuple[str, ...]) -> None:
    repaired = repair_verdicts(response, ITEMS)
    assert repaired.votes == [1, -1, -1]
    assert repaired.repairs == dict.fromkeys(steps, 1)


@pytest.mark.parametrize(
    "response",
    [
        f"First: {FIRST} Corrected: {OTHER}",
        FIRST.replace('"valid"', '"valid", "classification": "invalid"'),
        FIRST[:-25],
    ],
    ids=["two lists", "two labels", "cut off"],
)
def test_json_that_can_be_read_in_two_ways_gives_no_vote(response: str) -> None:
    assert repair_verdicts(response, ITEMS).votes == [-1, -1, -1]


NEAR = [
    Shown("4", "The loop should end at 10, not at 12, because the list is empty then."),
    Shown("4", "The loop should end at 11, not at 14, because the list is empty then."),
]


def test_the_verdict_of_a_near_duplicate_never_goes_to_its_neighbour() -> None:
    own = entry(4, NEAR[1].text.replace("list", "lst"), "invalid")
    assert repair_verdicts(answer(own), NEAR).votes == [-1, 0]
    both = answer(own, entry(4, NEAR[0].text.replace("because", "as"), "valid"))
    assert repair_verdicts(both, NEAR).votes == [1, 0]
    between = entry(4, NEAR[1].text.replace("11", "10"), "invalid")
    for more in ((), (entry(4, NEAR[0].text, "valid"),)):
        repaired = repair_verdicts(answer(between, *more), NEAR)
        assert repaired.votes == [1 if more else -1, -1]
        assert repaired.reasons.count("ambiguous") == 2 - len(more)
    clipped = entry(4, NEAR[1].text[:22], "invalid")
    assert repair_verdicts(answer(clipped), [Shown(n.line, n.text[:40]) for n in NEAR]).votes == [
        -1,
        -1,
    ]


def test_ranges_come_before_starting_lines() -> None:
    shown = [Shown("2", NEAR[0].text), Shown("2-3", NEAR[0].text), Shown("7-9", ITEMS[0].text)]
    whole = answer(*(entry(i.line, i.text, v) for i, v in zip(shown, [*EXACT] * 2, strict=False)))
    assert repair_verdicts(whole, shown).votes == [1, 0, 1]
    starts = repair_verdicts(answer(entry(7, ITEMS[0].text, "valid")), shown)
    assert starts.votes == [-1, -1, 1]
    assert starts.repairs == {"only the starting line is equal": 1}
    # Either of two items with one text may be meant by its starting line.
    assert repair_verdicts(answer(entry(2, NEAR[0].text, "valid")), shown).votes == [-1, -1, -1]
    assert repair_verdicts(answer(entry("2-5", NEAR[0].text, "valid")), shown).votes == [-1, -1, -1]


def test_different_verdicts_on_one_item_are_no_vote() -> None:
    repaired = repair_verdicts(
        answer(*(entry(2, ITEMS[0].text, label) for label in EXACT)), ITEMS[:1]
    )
    assert (repaired.votes, repaired.reasons) == ([-1], ["contradictory"])


def test_twins_count_only_if_each_is_named_exactly() -> None:
    """A judge that writes other quotes, or clips a text, turns an item's name into its twin's."""
    shown = [
        Shown("1", 'Print "yes" here.'),
        Shown("1", "Print 'yes' here."),
        Shown("1", "Print yes"),
    ]
    entries = [entry(1, item.text, "invalid") for item in shown]
    assert repair_verdicts(answer(*entries), shown).votes == [0, 0, 0]
    for missing in range(3):
        rest = [each for place, each in enumerate(entries) if place != missing]
        repaired = repair_verdicts(answer(*rest), shown)
        assert repaired.votes == [-1, -1, -1]
        assert repaired.reasons.count("ambiguous") == 2


def test_a_line_with_too_many_texts_to_compare_is_refused() -> None:
    shown = [Shown("1", f"Item {n} of many.") for n in range(250)]
    entries = [entry(1, f"Itm {n} of many.", "valid") for n in range(250)]
    repaired = repair_verdicts(answer(*entries), shown)
    assert set(repaired.votes) == {-1}
    assert repaired.reasons.count("ambiguous") == 250


@pytest.mark.parametrize("near", [False, True], ids=["distinct", "near-duplicates"])
@pytest.mark.parametrize("kind", KINDS)
def test_constructed_answers_are_right_or_refused(kind: str, near: bool) -> None:
    """`python tests/malformed.py` has the table of 1,000 answers of each kind."""
    counts = count(kind, 25, seed=2, near=near)
    assert counts["wrong"] == 0
    assert counts["right"] > 0


def test_without_a_margin_verdicts_go_to_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judgebayes.io.matching.MARGIN", -9)
    assert sum(count("typing errors", 60, seed=s, near=True)["wrong"] for s in range(3)) > 0


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
