"""The verdict parser: a table of real answers, and properties of all answers."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from judgebayes.io.verdict import LEVELS, Kind, parse_verdict, strip_reasoning

TABLE: list[tuple[str, Kind, object, str | None]] = [
    # P2 H.1, level by level.
    ("A is longer. [[A]]", "pair", "A", "brackets"),
    ("My choice is **B** here", "pair", "B", "bold"),
    ("Both help, and so the final choice: Output A", "pair", "A", "phrase"),
    ("I weighed them. Solution B.", "pair", "B", "phrase"),
    ("Therefore, Assistant A is better.", "pair", "A", "phrase"),
    ("Reasons...\n\nB.", "pair", "B", "bare"),
    ("The answer is A", "pair", "A", "bare"),
    # The stricter level is the one that counts.
    ("**A** looks good at first.\n[[B]]", "pair", "B", "brackets"),
    ("**A**\nOutput B", "pair", "A", "bold"),
    # Reasoning: closed, never closed, never opened.
    ("<think>[[A]]</think>[[B]]", "pair", "B", "brackets"),
    ("<think>so [[A]] it is", "pair", None, None),
    ("it must be [[A]]</think>\n\n[[B]]", "pair", "B", "brackets"),
    ("First [[A]].<think>x</think> Wait.</think>[[B]]", "pair", "B", "brackets"),
    ("<Thinking>x</thinking>**A**", "pair", "A", "bold"),
    # Several verdicts: the last line decides, where it names one.
    ("Answer with [[A]] or [[B]].\nVerdict: [[B]]", "pair", "B", "brackets"),
    ("[[A]] on style, [[B]] on facts", "pair", None, "brackets"),
    ("**A**: clear.\n**B**: wrong.", "pair", None, None),
    ("**A**: clear. **B**: wrong.\nSo: **A**.", "pair", "A", "bold"),
    ("[[A]] or [[B]]?\n[[B]] would be too hard on it.", "pair", None, "brackets"),
    ("**Assistant A** is worse here.", "pair", None, None),
    ("Final verdict: **Assistant A**", "pair", "A", "phrase"),
    # Ties and strengths.
    ("[[C]]", "pair", "tie", "brackets"),
    ("[[A=B]]", "pair", "tie", "brackets"),
    ("[[B>>A]]", "pair", "B", "brackets"),
    ("[[Tie]]", "pair", "tie", "brackets"),
    ("In the end it is a tie.", "pair", "tie", "phrase"),
    ("Therefore, both are equally good.", "pair", "tie", "phrase"),
    # JSON.
    ('{"reason": "[[A]] was my first thought", "winner": "B"}', "pair", "B", "json"),
    ('Sure!\n```json\n{"verdict": "tie"}\n```', "pair", "tie", "json"),
    ('Result: {"preference": "response_a"}', "pair", "A", "json"),
    ('{"winner": "B", "loser": "A"}', "pair", "B", "json"),
    ('{"loser": "A", "winner": "B"}\nLoser: A', "pair", "B", "json"),
    ('{"max_score": 10, "score": 7}', "score", 7.0, "json"),
    ('{"winner": "neither of these"}', "pair", None, None),
    # LLMBar's judges: the verdict first or last, and reports of what others said.
    ("Output (b) is better.\n\nOutput (a) does not answer.", "pair", "B", "phrase"),
    ("Output (a) is better because it is shorter than Output (b).", "pair", "A", "phrase"),
    (
        "Assistant (b) claims that Output (b) is better.\nTherefore, Output (a) is better.",
        "pair",
        "A",
        "phrase",
    ),
    # Answers without a verdict.
    ("Output A is not better.", "pair", None, None),
    ("It is unclear whether or not Output A is better.", "pair", None, None),
    ("Output (b) is more detailed, but longer than Output (a).", "pair", None, None),
    ("Assistant A and B are much alike.", "pair", None, None),
    ("Assistant A's tone is kind.", "pair", None, None),
    ("This is about vitamin A", "pair", None, None),
    ("I cannot help with that.", "pair", None, None),
    ("", "pair", None, None),
    ("Score: 7", "pair", None, None),
    # Scores.
    ("Rating: [[7]]", "score", 7.0, "brackets"),
    ("**8/10**", "score", 8.0, "bold"),
    ("I give it a score of 6.5.", "score", 6.5, "phrase"),
    ("That makes 4 out of 5.", "score", 4.0, "phrase"),
    ("Score: -1", "score", -1.0, "phrase"),
    ("Good work.\n9", "score", 9.0, "bare"),
    ('{"score": 7.5, "why": "3 errors"}', "score", 7.5, "json"),
    ('{"score": true}', "score", None, None),
    ('{"score": NaN}', "score", None, None),
    ('{"score": ' + "9" * 400 + "}", "score", None, None),
    ("There are 3 errors in it.", "score", None, None),
    ("Score: 7 for style, score: 4 for facts.", "score", None, "phrase"),
    # Validity.
    ('{"valid": true}', "valid", "valid", "json"),
    ('{"classification": "Partially Valid"}', "valid", "invalid", "json"),
    ("[[incorrect]]", "valid", "invalid", "brackets"),
    ("So: **Yes**", "valid", "valid", "bold"),
    ("Final verdict: valid.", "valid", "valid", "phrase"),
    ("My verdict is not: valid", "valid", None, None),
    ("Looks fine\nno", "valid", "invalid", "bare"),
    ("No problem was found in the code.", "valid", None, None),
]


@pytest.mark.parametrize(("text", "kind", "value", "level"), TABLE)
def test_verdicts(text: str, kind: Kind, value: object, level: str | None) -> None:
    verdict = parse_verdict(text, kind)
    assert (verdict.value, verdict.level) == (value, level)


@pytest.mark.parametrize("text", [None, 7, float("nan"), b"[[A]]", ["[[A]]"]])
def test_other_types_than_text_have_no_verdict(text: object) -> None:
    assert parse_verdict(text).value is None


MARKS = st.sampled_from(
    [
        *(
            "[[A]]",
            "[[B]]",
            "**A**",
            "**B**",
            "[[",
            "]]",
            "**",
            "Output (a)",
            "Output (b)",
            "[[C]]",
        ),
        *(
            "Assistant A",
            "Assistant B",
            "A",
            "B",
            "A.",
            " is better",
            " is better than ",
            "not",
            "\n",
        ),
        *(
            ". ",
            " ",
            "<think>",
            "</think>",
            '{"winner": "A"}',
            '{"winner": "B"}',
            "{",
            "}",
            "```",
            "7",
        ),
        *(
            "Score: ",
            "/10",
            "-",
            "verdict: ",
            "valid",
            "invalid",
            "it is a tie",
            "a",
            "b",
            "\r",
            "é",
        ),
    ]
)
CONFUSED = st.lists(MARKS, max_size=12).map("".join) | st.text(max_size=60)
KINDS = st.sampled_from(["pair", "score", "valid"])


@settings(max_examples=200, deadline=None)
@given(CONFUSED, KINDS)
@example("<think>" * 50 + "[[A]]", "pair")
def test_any_text_gives_a_verdict_or_none(text: str, kind: Kind) -> None:
    verdict = parse_verdict(text, kind)
    assert verdict.level in (None, *LEVELS)
    assert verdict.value is None or verdict.level is not None
    if kind == "score":
        assert verdict.value is None or isinstance(verdict.value, float)
    else:
        words = {"pair": {"A", "B", "tie"}, "valid": {"valid", "invalid"}}[kind]
        assert verdict.value is None or verdict.value in words


@settings(max_examples=200, deadline=None)
@given(st.lists(MARKS, max_size=12))
def test_swapping_the_responses_swaps_the_verdict(tokens: list[str]) -> None:
    """Law: swapping A and B in an answer swaps them in its verdict and changes nothing else."""
    letters = str.maketrans({"A": "B", "B": "A"})
    words = {"Output (a)": "Output (b)", "Output (b)": "Output (a)", "a": "b", "b": "a"}
    words |= {"Assistant A": "Assistant B", "Assistant B": "Assistant A"}
    swapped = [words.get(token, token.translate(letters)) for token in tokens]
    plain, other = parse_verdict("".join(tokens)), parse_verdict("".join(swapped))
    assert other.level == plain.level
    assert other.value == {"A": "B", "B": "A"}.get(str(plain.value), plain.value)


NEUTRAL = st.text(alphabet="cdefgh jklmn\n.,;", max_size=80)


@settings(max_examples=100, deadline=None)
@given(NEUTRAL, KINDS)
def test_a_text_that_names_no_response_holds_no_verdict(text: str, kind: Kind) -> None:
    assert parse_verdict(text, kind).value is None


@settings(max_examples=100, deadline=None)
@given(CONFUSED.filter(lambda t: "think" not in t), KINDS, NEUTRAL)
def test_text_in_reasoning_does_not_count(inside: str, kind: Kind, after: str) -> None:
    assert parse_verdict(f"<think>{inside}</think>{after}", kind).value is None
    assert parse_verdict(f"{after}<think>{inside}", kind).value is None


def test_reasoning_is_stripped_in_one_pass() -> None:
    """The time for a long answer of unclosed tags is linear in its length."""
    assert strip_reasoning("<think>" * 50_000 + "[[A]]") == ""
    assert strip_reasoning("a<think>b<think>c</think>d</think>e") == "a e"
    assert parse_verdict("[[" * 50_000 + " " * 50_000).value is None
    assert parse_verdict("**" + " " * 50_000 + "{" * 50_000).value is None
