import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.io.columns import guess_columns

NOTHING = dict.fromkeys(("item", "judge", "vote", "sample", "order", "label"))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            ["Question ID", "Judge Model", "Verdict", "gold-label", "rep"],
            {
                "item": "Question ID",
                "judge": "Judge Model",
                "vote": "Verdict",
                "label": "gold-label",
                "sample": "rep",
                "order": None,
            },
        ),
        (["id", "vote"], {"item": "id", "vote": "vote", "judge": None, "label": None}),
        (["item", "id", "vote", "model", "judge"], {"item": "item", "judge": "judge"}),
    ],
)
def test_columns_are_recognised_by_their_names(
    columns: list[str], expected: dict[str, str | None]
) -> None:
    columns_by_role = guess_columns(columns, NOTHING)
    assert {role: columns_by_role[role] for role in expected} == expected


def test_named_columns_come_first_and_have_one_role() -> None:
    columns_by_role = guess_columns(
        ["item", "vote", "verdict"], NOTHING | {"vote": "verdict", "label": "vote"}
    )
    assert (columns_by_role["vote"], columns_by_role["label"]) == ("verdict", "vote")


def test_none_means_no_such_column() -> None:
    assert guess_columns(["item", "vote", "judge"], NOTHING | {"judge": "none"})["judge"] is None


def test_a_required_column_that_is_not_recognised_is_an_error() -> None:
    with pytest.raises(JudgeBayesError, match=r"Which column is the vote.*use --vote NAME"):
        guess_columns(["item", "x"], NOTHING, needed=("item", "vote"))
    with pytest.raises(JudgeBayesError, match="There is no column 'v' for the vote"):
        guess_columns(["item", "x"], NOTHING | {"vote": "v"})


def test_a_similar_name_counts_if_only_one_column_has_one() -> None:
    columns_by_role = guess_columns(
        ["Item No.", "LLM Judge", "Their Verdict", "judge reason"],
        {"item": None, "judge": None, "vote": None},
    )
    assert columns_by_role == {"item": "Item No.", "judge": "LLM Judge", "vote": "Their Verdict"}
    twice = guess_columns(
        ["id", "first judge", "second judge", "vote"], {"item": None, "judge": None}
    )
    assert twice["judge"] is None
    exact = guess_columns(["id", "vote", "final vote"], {"item": None, "vote": None})
    assert exact["vote"] == "vote"
