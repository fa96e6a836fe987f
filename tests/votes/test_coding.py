from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebayes.errors import JudgeBayesError
from judgebayes.votes import encode, encode_wide

LONG = pd.DataFrame(
    {
        "item": ["x", "x", "y", "y", "z"],
        "judge": ["j1", "j2", "j1", "j2", "j1"],
        "vote": [1, 0, -1, None, 1],
        "label": [1, 1, -1, -1, None],
    }
)


def test_long_table_becomes_indices_and_missing_stays_missing() -> None:
    votes, coding = encode(LONG)
    assert votes.index[..., 0].tolist() == [[2, 1], [0, -1], [2, -1]]
    assert list(coding.items) == ["x", "y", "z"]
    assert coding.missing.to_dict() == {"j1": 0, "j2": 1}
    assert coding.labels(LONG).tolist() == [2, 0, -1]


def test_decode_returns_names_and_values() -> None:
    _, coding = encode(LONG)
    log_probs = np.log([[0.2, 0.3, 0.5]] * 3)
    table = coding.decode(log_probs, np.array([2, 1, -1]))
    assert list(table.columns) == ["item", "p(-1)", "p(0)", "p(+1)", "decision"]
    assert table["decision"].tolist()[:2] == [1, 0]
    assert pd.isna(table["decision"].iloc[2])
    np.testing.assert_allclose(table["p(+1)"], 0.5)


def test_a_vote_may_be_text_or_a_number() -> None:
    text = LONG.astype({"vote": object}).assign(vote=["1", " 0", "-1.0", "NaN", "1"])
    assert encode(text)[0].index.tolist() == encode(LONG)[0].index.tolist()


def test_samples_are_sorted_and_orders_alternate() -> None:
    table = pd.DataFrame(
        [("i", "j", s, o, 10 * s + (o == "BA")) for s in (2, 1) for o in ("BA", "AB")],
        columns=["item", "judge", "sample", "order", "vote"],
    )
    classes = sorted(table["vote"])
    votes, _ = encode(table, sample="sample", order="order", votes_as="original", classes=classes)
    assert votes.index[0, 0].tolist() == [0, 1, 2, 3]
    assert votes.order[0, 0].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(("votes_as", "expected"), [("shown", [2, 0]), ("original", [2, 2])])
def test_swapped_votes_are_reversed_once_and_reported(votes_as: str, expected: list[int]) -> None:
    table = pd.DataFrame(
        {"item": "i", "judge": "j", "order": ["AB", "BA"], "vote": ["A", "A"], "x": 0}
    )
    table.loc[2] = ["k", "j", "AB", "tie", 0]
    votes, coding = encode(table, order="order", votes_as=votes_as)
    assert votes.index[0, 0].tolist() == expected
    assert coding.flipped == (1 if votes_as == "shown" else 0)
    assert "1 of 3 votes were given with the responses swapped" in coding.words(votes)[-1]


def test_scores_and_tasks_are_encoded() -> None:
    table = LONG.assign(confidence=[0.9, 0.8, 0.7, 0.6, 0.5], task=list("ppqqp"))
    votes, coding = encode(table, score="confidence", task="task")
    np.testing.assert_allclose(votes.score[0, :, 0], [0.9, 0.8])
    assert np.isnan(votes.score[1, 1, 0])  # its vote is missing
    assert votes.task.tolist() == [0, 1, 0]
    assert (votes.n_tasks, list(coding.tasks)) == (2, ["p", "q"])


def test_wide_and_long_agree() -> None:
    wide = pd.DataFrame({"j1": [1, -1, 1], "j2": [0, None, None]}, index=["x", "y", "z"])
    long, _ = encode(LONG)
    assert encode_wide(wide)[0].index.tolist() == long.index.tolist()
    _, coding = encode_wide(wide.rename_axis("Nr"))
    assert coding.decode(np.zeros((len(wide), len(coding.classes)))).columns[0] == "Nr"
    array = wide.to_numpy(float)
    assert encode_wide(array)[0].index.tolist() == long.index.tolist()


def test_minus_1_can_mean_missing_in_a_binary_matrix() -> None:
    votes, coding = encode_wide(np.array([[1, -1], [0, 1]]), missing=-1)
    assert votes.index[..., 0].tolist() == [[1, -1], [0, 1]]
    assert coding.classes.values == (0, 1)


def test_labels_from_a_series_and_from_another_file() -> None:
    _, coding = encode(LONG)
    assert coding.labels(pd.Series({"z": 0, "x": 1})).tolist() == [2, -1, 1]
    other = pd.DataFrame({"id": ["y", "x"], "gold": [-1, 1]})
    assert coding.labels(other, item="id", label="gold").tolist() == [2, 0, -1]


def test_item_numbers_match_their_text() -> None:
    votes = pd.DataFrame({"item": [1, 2, 3], "judge": "j", "vote": [1, 0, -1]})
    gold = pd.DataFrame({"item": ["1", "3"], "label": [1, -1]})
    assert encode(votes)[1].labels(gold).tolist() == [2, -1, 0]


BAD: list[tuple[str, Callable[[], object], str]] = [
    ("no such column", lambda: encode(LONG, vote="verdict"), "no column 'verdict' for the vote"),
    ("no rows", lambda: encode(LONG.iloc[:0]), "has no row"),
    (
        "unknown class",
        lambda: encode(LONG.assign(vote=[1, 0, -1, 0, 7]), classes=(-1, 0, 1)),
        "Row 4 of column 'vote' contains 7.*not one of the classes -1, 0, 1",
    ),
    (
        "a scale to be named",
        lambda: encode(LONG.assign(vote=[1, 2, 3, 4, 5])),
        "Name the classes in order",
    ),
    (
        "duplicate vote",
        lambda: encode(pd.concat([LONG, LONG.iloc[[1]]], ignore_index=True)),
        "Rows 1 and 5 are the same vote.*item 'x', judge 'j2'.*--set sample=COLUMN, or --set "
        "repeats=true",
    ),
    (
        "duplicate sample",
        lambda: encode(pd.concat([LONG] * 2, ignore_index=True).assign(s=0), sample="s"),
        "Rows 0 and 5 are the same vote.*different samples",
    ),
    (
        "label for an unknown item",
        lambda: encode(LONG)[1].labels(pd.DataFrame({"item": ["w"], "label": [1]})),
        "labels 1 item\\(s\\) that have no votes: 'w'.*with votes are named 'x', 'y', 'z'\\.",
    ),
    (
        "label of an unknown class",
        lambda: encode(LONG)[1].labels(pd.DataFrame({"item": ["x"], "label": [2]})),
        "Row 0 of column 'label' contains 2, which is not one of the classes",
    ),
    (
        "two labels of an item",
        lambda: encode(LONG)[1].labels(pd.DataFrame({"item": ["x", "x"], "label": [1, 0]})),
        "'x' has more than one label.*row 0 says 1|row 1 says 0",
    ),
    (
        "a judge with no votes",
        lambda: encode(LONG.assign(vote=[1, None, -1, None, 1])),
        "Judge 'j2' has no vote",
    ),
    (
        "constant labels",
        lambda: encode(LONG)[1].labels(pd.DataFrame({"item": ["x", "y"], "label": [1, 1]})),
        "Every label in column 'label' is 1.*allow_degenerate",
    ),
    (
        "no label at all",
        lambda: encode(LONG)[1].labels(pd.DataFrame({"item": ["x"], "label": [None]})),
        "No item with votes has a label",
    ),
    (
        "mixed binary and ternary: labels",
        lambda: encode(LONG.assign(vote=[1, 0, 1, None, 1]))[1].labels(LONG),
        "contains -1.*looks binary.*classes=\\(-1, 0, 1\\)",
    ),
    (
        "mixed binary and ternary: judges",
        lambda: encode(
            pd.DataFrame(
                {
                    "item": list(range(30)) * 2,
                    "judge": ["a"] * 30 + ["b"] * 30,
                    "vote": [0, 1] * 15 + [-1, 0, 1] * 10,
                }
            )
        ),
        "All 30 votes of judge 'a' are 0 or 1",
    ),
    (
        "NaN score",
        lambda: encode(LONG.assign(s=[0.1, np.nan, 0.3, 0.4, 0.5]), score="s"),
        "Row 1 of column 's' contains None for a vote",
    ),
    (
        "score that is no number",
        lambda: encode(LONG.assign(s=["0.1", "high", "0.3", "0.4", "0.5"]), score="s"),
        "Row 1 of column 's' contains 'high'",
    ),
    (
        "unknown order",
        lambda: encode(LONG.assign(o="left"), order="o", votes_as="shown"),
        "Row 0 of column 'o' contains 'left'; use AB or BA",
    ),
    (
        "missing order",
        lambda: encode(LONG.assign(o=["AB", None, "AB", "AB", "AB"]), order="o", votes_as="shown"),
        "Row 1 has no value in column 'o'",
    ),
    ("order without its meaning", lambda: encode(LONG.assign(o="AB"), order="o"), "votes_as="),
    ("meaning without order", lambda: encode(LONG, votes_as="shown"), "order=COLUMN"),
    (
        "item without a name",
        lambda: encode(LONG.assign(item=["x", None, "y", "y", "z"])),
        "Row 1 has no value in column 'item'",
    ),
    (
        "judge with a blank name",
        lambda: encode(LONG.assign(judge=["j1", " ", "j1", "j2", "j1"])),
        "Row 1 has no value in column 'judge'",
    ),
    (
        "item in two tasks",
        lambda: encode(LONG.assign(t=list("pqppp")), task="t"),
        "Item 'x' is in more than one task",
    ),
    (
        "-1 of unknown meaning",
        lambda: encode_wide(np.array([[1, -1], [0, 1]])),
        "If -1 means no vote, pass missing=-1",
    ),
    (
        "two columns of a judge",
        lambda: encode_wide(pd.DataFrame([[1, 0]], columns=["j", "j"])),
        "Judge 'j' has more than one column",
    ),
    (
        "two rows of an item",
        lambda: encode_wide(pd.DataFrame({"j": [1, 0]}, index=["x", "x"])),
        "are the same vote \\(item 'x', judge 'j'\\)",
    ),
    (
        "wrong shape to decode",
        lambda: encode(LONG)[1].decode(np.zeros((2, 3))),
        "this coding has 3 items and 3 classes",
    ),
]


@pytest.mark.parametrize(("make", "sentence"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_input_raises_an_error(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(JudgeBayesError, match=sentence) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_labels_of_items_without_votes_can_be_dropped() -> None:
    gold = pd.DataFrame({"item": ["w", "x", "y"], "label": [1, 1, -1]})
    assert encode(LONG)[1].labels(gold, unknown_items="drop").tolist() == [2, 0, -1]


def test_constant_labels_can_be_allowed() -> None:
    gold = pd.DataFrame({"item": ["x", "y"], "label": [1, 1]})
    assert encode(LONG)[1].labels(gold, allow_degenerate=True).tolist() == [2, 2, -1]


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 3)),
        st.sampled_from([-1, 0, 1, None]),
        min_size=1,
    ),
    st.randoms(use_true_random=False),
)
def test_no_vote_is_lost_whatever_the_order_of_rows(
    cells: dict[tuple[int, int, int], int | None], shuffle: object
) -> None:
    rows = [(i, f"j{j}", s, v) for (i, j, s), v in cells.items()]
    shuffle.shuffle(rows)
    table = pd.DataFrame(rows, columns=["item", "judge", "sample", "vote"])
    cast = table.dropna(subset="vote")
    if set(table["judge"]) != set(cast["judge"]):
        with pytest.raises(JudgeBayesError, match="has no vote"):
            encode(table, sample="sample", classes=(-1, 0, 1))
        return
    votes, coding = encode(table, sample="sample", classes=(-1, 0, 1))
    counts = np.asarray(votes.counts())
    for (item, judge, vote), n in cast.groupby(["item", "judge", "vote"]).size().items():
        place = coding.items.get_loc(item), coding.judges.get_loc(judge), int(vote) + 1
        assert counts[place] == n
    assert counts.sum() == len(cast)
    assert coding.missing.sum() == len(table) - len(cast)
