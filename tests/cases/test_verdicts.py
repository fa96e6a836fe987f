"""Verdicts in raw answers: read, or missing; never the opposite."""

import time

import pytest
from cases.asking import FILES, run
from rows import rows_of

from judgebayes.io.verdict import Kind, parse_verdict
from judgebayes.workflow.asking import decided
from judgebayes.workflow.options import ReadRequest


def votes(file: str, kind: Kind) -> dict[str, object]:
    """Read raw answers; return the vote on each item, None if it is missing."""
    rows = rows_of(
        decided(ReadRequest(votes=FILES / file, vote="text", verdicts=kind)).open_votes()
    )
    return dict(zip(rows["item"], rows["vote"], strict=True))


def test_pairs() -> None:
    assert votes("verdict.csv", "pair") == {
        "q1": "A",
        "q2": "A",
        "q3": "tie",
        "q4": None,
        "q5": "A",
        "q6": "B",
    }


def test_validity() -> None:
    assert votes("verdict_valid.csv", "valid") == {
        "q1": "invalid",
        "q2": "invalid",
        "q3": "valid",
        "q4": "valid",
        "q5": "invalid",
    }


def test_scores() -> None:
    assert votes("verdict_score.csv", "score") == {
        "q1": 0.5,
        "q2": -3.0,
        "q3": 7.5,
        "q4": None,
        "q5": 4.0,
        "q6": None,
    }


def test_prose() -> None:
    """Of 400 answers 386 have a verdict, ten of them "Overall a tie."; 14 refuse."""
    said = run("check", FILES / "prose.csv", "--set", "verdicts=pair")
    assert "386 votes of 2 judge(s) on 200 items" in said
    assert "386 of 400" in said


PAIR = [
    ("Winner: A, Loser: B", "A"),
    ("**Winner: B**\n**Loser: A**", "B"),
    ("Rejected: A\nChosen: B", "B"),
    ("Preferred: B; dispreferred: A", "B"),
    ("Better: A. Worse: B.", "A"),
    ("Worse response: A", None),
    ("The loser: Response A", None),
    ("A = B", "tie"),
    ("Verdict: A == B", "tie"),
    ("Final verdict: B >> A", "B"),
    ("Verdict: A < B", "B"),
    ("A > B or B > A? I cannot say.", None),
    ("<answer>B</answer>", "B"),
    ("<verdict>tie</verdict>", "tie"),
    (r"So the winner is \boxed{A}.", "A"),
    (r"$\boxed{\text{B}}$", "B"),
    ("Response 1", "A"),
    ("The winner is Response 2.", "B"),
    ("Response 1: good.\nResponse 2: bad.", None),
    ("B wins.", "B"),
    ("Response A wins.", "A"),
    ("A does not win.", None),
    ("Overall a tie.", "tie"),
    ("Score A: 7, score B: 8", None),
    ("1st: A, 2nd: B", "A"),
    ("First place: B\nSecond place: A", "B"),
    ("Accepted: A\nDeclined: B", "A"),
    ("Preferred response: A; other: B", "A"),
    ("Up: A\nDown: B", None),
    ("Poorer: A", None),
    ("Poorer: Response A", None),
    ("Less helpful response: A", None),
    ("Wrong answer: B", None),
    ("Unacceptable output: Response B", None),
    ("Better response: A\nLess helpful response: B", None),
    ("Grade: A", None),
    ("**A**: weak.", None),
    ("**Winner:** A", "A"),
    ("**Verdict**: B", "B"),
    ("Verdict (A or B): A", "A"),
    ("Reason: longer.\nB", "B"),
]
VALID = [
    ('{"invalid": false}', "valid"),
    ('{"has_errors": "yes"}', "invalid"),
    ('{"valid": true, "errors": true}', "valid"),
    ("GRADE: C", "valid"),
    ("GRADE: I", "invalid"),
    ("Reasons.\nGRADE: P", "invalid"),
    ("Mistakes: no", "valid"),
    ("Invalid: yes", "invalid"),
    ("Valid: no", "invalid"),
    ("Verdict: yes", "valid"),
    ("yes", "valid"),
    ("Harmful: no", None),
    ("Needs work: yes", None),
    ("Hallucinations: no", None),
    ("**Valid:** no", "invalid"),
    ("**Valid**: no", "invalid"),
    ("**Invalid**: no", "valid"),
    (r"\boxed{valid}", "valid"),
]
SCORE = [
    (".5", 0.5),
    ("Score: -3", -3.0),
    ("\u22123", -3.0),
    ("7,5", 7.5),
    ("1,000", None),
    ("Rating: [[10]]", 10.0),
    ("Max score: 10\nScore: 4", 4.0),
    ("Score: 4 (maximum score: 10)", 4.0),
    ("Score: 8\u20139", None),
    ("8 - 9", None),
    ("Score: 8 to 9", None),
    ("Score: 8/10", 8.0),
    ("Score: 8 out of 10", 8.0),
    ("<score>6</score>", 6.0),
    ("Score: 1.2.3", None),
    ("Score (1-10): 7", 7.0),
    ("Score: >7", None),
    ("**Score:** 7", 7.0),
]
ROWS: list[tuple[str, Kind, object]] = [
    *((text, "pair", right) for text, right in PAIR),
    *((text, "valid", right) for text, right in VALID),
    *((text, "score", right) for text, right in SCORE),
]


@pytest.mark.parametrize(("text", "kind", "right"), ROWS)
def test_a_verdict_is_read_or_missing(text: str, kind: Kind, right: object) -> None:
    assert parse_verdict(text, kind).value == right


@pytest.mark.parametrize(
    "part",
    [".", "A", "1.", "Score: ", "**", "[[", "<answer>", "<think>", "worse ", "A>", "1-", "-"],
)
def test_the_parser_is_linear(part: str) -> None:
    """A million characters of anything: where it was quadratic, this took minutes."""
    for kind in ("pair", "valid", "score"):
        start = time.process_time()
        parse_verdict(part * (1_000_000 // len(part)), kind)  # type: ignore[arg-type]
        assert time.process_time() - start < 5
