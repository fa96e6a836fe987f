"""Items of labels and votes that differ in spelling."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

import judgebayes as jb
from judgebayes.errors import JudgeBayesError
from judgebayes.workflow.item_ids import hint, match_items


@pytest.mark.parametrize(
    ("labels", "votes", "folded"),
    [
        (["a1", "b2"], ["a1", "b2", "c3"], ()),
        (["Q1", "Q2"], ["q1", "q2"], ("case",)),
        (["q 1", "q 2"], ["q_1", "q_2"], ("spaces",)),
        (["q-1", "q-2"], ["Q-0001", "Q-0002"], ("case", "zero padding")),
        (["one.json", "two.json"], ["one", "two"], ("file extension",)),
        (["out/one", "out/two"], ["one", "two"], ("prefix",)),
        (["1", "2"], ["item1", "item2"], ("prefix",)),
        (["00001", "00010"], [1, 10], ("zero padding",)),
    ],
)
def test_the_least_folding_that_matches(
    labels: list[str], votes: list[object], folded: tuple[str, ...]
) -> None:
    matching = match_items(labels, votes)
    assert matching.folded == folded
    assert list(matching.item_of.values()) == [str(each) for each in votes[: len(labels)]]
    assert not matching.unmatched
    assert not matching.collisions


def test_a_near_miss_is_named() -> None:
    matching = match_items(["alpha", "betta"], ["alpha", "beta", "gamma"])
    assert matching.near == {"betta": "beta"}
    assert hint(matching) == "For 'betta', did you mean 'beta'?"


VOTES = pd.DataFrame(
    {"item": ["Q-01", "Q-02", "Q-03", "Q-04"] * 2, "judge": list("aaaabbbb"), "vote": [0, 1] * 4}
)
GOLD = pd.DataFrame({"item": ["q-1", "q-2", "q-3"], "label": [0, 1, 1]})


def test_labels_are_matched_loosely_on_request_only() -> None:
    with pytest.raises(
        JudgeBayesError, match=r"'q-1' ~ 'Q-01', 3 of 3\): use --set match_ids=loosely"
    ):
        jb.read(VOTES, GOLD)
    data = jb.read(VOTES, GOLD, match_ids="loosely")
    assert data.labels.tolist() == [0, 1, 1, -1]
    assert any("'q-1' ~ 'Q-01', 3 of 3" in line for line in data.sentences)


def test_items_that_collide_after_folding_are_refused_in_one_sentence() -> None:
    votes = VOTES.assign(item=["Q-1", "q-01", "x", "y"] * 2)
    gold = pd.DataFrame({"item": ["Q-001", "x"], "label": [0, 1]})
    with pytest.raises(
        JudgeBayesError, match="'Q-1' and 'q-01' are the same after folding"
    ) as error:
        jb.read(votes, gold, match_ids="loosely")
    assert "\n" not in str(error.value)
    checked = jb.check(votes, gold)
    assert checked.command is None
    assert any("are the same after folding" in each.sentence for each in checked.problems)


@pytest.mark.parametrize(
    ("run", "options"),
    [
        (jb.diagnose, {}),
        (jb.calibrate, {"method": "sc", "splits": 2}),
        pytest.param(jb.ensemble, {}, marks=pytest.mark.slow),
        pytest.param(jb.precision, {"generator": "from"}, marks=pytest.mark.slow),
    ],
    ids=["diagnose", "calibrate", "ensemble", "precision"],
)
def test_every_command_takes_loosely_matching_labels(
    run: Callable[..., Any], options: dict[str, object]
) -> None:
    n = 16
    names = [f"Q-{i:02d}" for i in range(n)] * 2
    votes = pd.DataFrame(
        {"item": names, "judge": ["a"] * n + ["b"] * n, "vote": [0, 1, 1, 0] * (n // 2)}
    ).assign(**{"from": "g"})
    gold = pd.DataFrame({"item": [f"q{i}" for i in range(12)], "label": [0, 1, 1] * 4})
    with pytest.raises(JudgeBayesError, match="--set match_ids=loosely"):
        run(votes, gold.assign(item=[f"q_{i}" for i in range(12)]), **options)
    run(votes, gold.assign(item=[f"q_{i}" for i in range(12)]), match_ids="loosely", **options)
