import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judgebayes.errors import JudgeBayesError
from judgebayes.votes.classes import Classes, canonical, given_classes, infer_classes


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (" 1 ", 1),
        ("1.0", 1),
        (1.0, 1),
        (np.int8(-1), -1),
        (np.float32(0.5), 0.5),
        (True, 1),
        (np.bool_(False), 0),
        ("A>B", "A>B"),
        ("", None),
        ("NaN", None),
        ("n/a", None),
        (None, None),
        (float("nan"), None),
        (pd.NA, None),
        (pd.NaT, None),
        ("inf", "inf"),
    ],
)
def test_values_in_plain_form(value: object, plain: object) -> None:
    assert canonical(value) == plain


@given(st.one_of(st.text(), st.floats(), st.integers(), st.booleans(), st.none()))
@example(1e300)
@example("1" * 301)
def test_plain_form_is_stable(value: object) -> None:
    once = canonical(value)
    assert canonical(once) == once


@pytest.mark.parametrize(
    ("values", "expected", "pairwise"),
    [
        ([0, 1, None], (0, 1), False),
        ([True, False], (0, 1), False),
        (["1", "0", ""], (0, 1), False),
        ([1], (0, 1), False),
        ([-1, 0, 1], (-1, 0, 1), True),
        ([-1.0, 0.0], (-1, 0, 1), True),
        ([-1, 1], (-1, 1), True),
        (["A", "B", "tie"], ("B", "tie", "A"), True),
        (["A", "B"], ("B", "A"), True),
        (["A>B", "B>A", "A=B", "A>>B"], ("B>A", "A=B", "A>B"), True),
        (["[[A]]", "[[C]]"], ("B", "[[C]]", "[[A]]"), True),
        (["Valid", "invalid", None], ("invalid", "Valid"), False),
        (["incorrect"], ("incorrect", "correct"), False),
    ],
)
def test_binary_and_ternary_are_inferred(
    values: list[object], expected: tuple[object, ...], pairwise: bool
) -> None:
    classes = infer_classes(values, "here")
    assert classes == Classes(expected, pairwise)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([1, 2, 3, 4, 5], r"--set classes=LOW,...,HIGH at the command line"),
        (["yes", "perhaps"], "Name the classes in order, from the lowest"),
        (["valid", "bad"], r"classes=\(LOW, ..., HIGH\) in Python"),
        (["A", "B", "C"], "Name the classes"),
        ([0, 1, 2], "Name the classes"),
        ([None, ""], "every value is missing"),
        ([-1, 0, 1, "tie"], "Name the classes"),
    ],
)
def test_other_scales_raise_an_error(values: list[object], sentence: str) -> None:
    with pytest.raises(JudgeBayesError, match=sentence):
        infer_classes(values, "here")


def test_spellings_of_a_verdict_share_its_class() -> None:
    scale = infer_classes(["A", "tie", "B"], "here")
    spellings = ("a", "[[B]]", "A=B", "A>>B", "B>A", "A better", "model_b")
    assert [scale.index(v) for v in spellings] == [2, 0, 1, 2, 0, 2, 0]
    assert infer_classes(["B better", "Tie", "A better"], "here").values == (
        "B better",
        "Tie",
        "A better",
    )
    assert infer_classes(["yes", "no"], "here").values == ("no", "yes")
    assert scale.index("C") is None
    assert scale.index(1) is None  # the meaning of a number would be a guess
    assert scale.index("") == -1


def test_named_classes_keep_their_order_and_take_text_for_numbers() -> None:
    scale = given_classes(["1", "2", "3"], None)
    assert scale.index(2.0) == 1
    assert not scale.pairwise
    assert given_classes((-1, 0, 1), None).pairwise
    assert given_classes(("bad", "good"), True).pairwise
    assert scale.names == ("1", "2", "3")
    assert given_classes((-1, 0, 1), None).names == ("-1", "0", "+1")


@pytest.mark.parametrize("bad", [(1,), (1, 1), (1, ""), ()])
def test_bad_class_lists_are_refused(bad: tuple[object, ...]) -> None:
    with pytest.raises(JudgeBayesError, match="two or more different classes"):
        given_classes(bad, None)
