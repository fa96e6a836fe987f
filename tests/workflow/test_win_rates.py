"""Who wins, as a user sees it: words, numbers, pairs of systems, awkward input."""

import numpy as np
import pandas as pd
import pytest

import judgebayes as jb
from judgebayes.errors import JudgeBayesError


def table(
    seed: int = 0, n: int = 200, *, ties: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Return long votes of three judges, labels, and the truth of every item."""
    rng = np.random.default_rng(seed)
    names = np.array(["A", "tie", "B"] if ties else ["A", "B"])
    truth = names[rng.integers(0, len(names), n)]
    other = names[rng.integers(0, len(names), (n, 3))]
    vote = np.where(rng.random((n, 3)) < 0.7, truth[:, None], other)
    item, judge = (x.ravel() for x in np.indices((n, 3)))
    votes = pd.DataFrame(
        {"item": item, "judge": np.array(["x", "y", "z"])[judge], "vote": vote.ravel()}
    )
    return votes, pd.DataFrame({"item": np.arange(n), "label": truth}), truth


def test_the_answer_leads() -> None:
    votes, labels, truth = table()
    result = jb.win_rate(votes, labels.head(60), target="these")
    rate = result.rate
    assert rate["low"] <= rate["estimate"] <= rate["high"]
    assert (rate["of"], rate["over"], rate["target"], rate["ties"]) == ("A", "B", "these", "half")
    assert rate["naive"] == pytest.approx((votes["vote"] == "A").mean())
    assert rate["low"] - 0.05 < (truth == "A").mean() < rate["high"] + 0.05
    assert str(result).startswith("Win rate of A over B: ")
    assert "of these items (90 % interval; a tie is half a win)" in result.lead[0]
    assert "random sample of the items" in result.lead[1]
    assert result.to_dict()["win_rate"]["labels"] == 60
    calibrated = jb.calibrate(votes, labels.head(60), target="these", method="sc", splits=2)
    assert calibrated.sentences[:2] == result.lead
    assert calibrated.numbers["win_rate"] == rate


def test_without_labels_only_the_naive_rate() -> None:
    votes, _, _ = table()
    result = jb.win_rate(votes)
    assert result.fit is None
    assert np.isnan(result.rate["low"])
    assert result.rate["naive"] == pytest.approx((votes["vote"] == "A").mean())
    assert "not corrected" in result.lead[0]
    assert jb.calibrate(votes, method="sc", splits=2).sentences[0] == result.lead[0]


def test_all_labels_are_known() -> None:
    votes, labels, truth = table(n=60)
    result = jb.win_rate(votes, labels, target="these")
    assert result.rate["low"] == pytest.approx(result.rate["high"])
    assert result.rate["estimate"] == pytest.approx((truth == "A").mean())
    assert "every item is labelled" in result.lead[0]
    assert len(result.lead) == 1


@pytest.mark.parametrize("ties", ["half", "excluded", "separate"])
def test_rules_for_ties(ties: str) -> None:
    votes, labels, truth = table(ties=True)
    result = jb.win_rate(votes, labels, target="these", ties=ties)
    win, tie = (truth == "A").mean(), (truth == "tie").mean()
    expected = {"half": win + tie / 2, "excluded": win / (1 - tie), "separate": win}[ties]
    assert result.rate["estimate"] == pytest.approx(expected)
    some = jb.win_rate(votes, labels.head(80), target="these", ties=ties)
    assert some.rate["low"] <= expected + 0.03
    assert some.rate["high"] >= expected - 0.03
    assert ("The other items: tie " in " ".join(some.lead)) == (ties == "separate")


def test_repeated_votes_count() -> None:
    votes, labels, _ = table()
    twice = pd.concat([votes, votes], ignore_index=True)
    twice["sample"] = np.repeat([1, 2], len(votes))
    one = jb.win_rate(votes, labels.head(50)).rate
    other = jb.win_rate(twice, labels.head(50), sample="sample").rate
    for key in ("low", "high", "naive"):
        assert other[key] == pytest.approx(one[key])


def test_grades_have_no_win_rate() -> None:
    votes, labels, _ = table()
    good = {"A": "valid", "B": "invalid"}
    votes, labels = (
        votes.assign(vote=votes["vote"].map(good)),
        labels.head(50).assign(label=labels["label"].map(good)),
    )
    with pytest.raises(JudgeBayesError, match="do not compare two responses"):
        jb.win_rate(votes, labels)
    with pytest.raises(JudgeBayesError, match="--ties is for votes that compare two"):
        jb.calibrate(votes, labels, method="sc", ties="excluded")
    result = jb.calibrate(votes, labels, method="sc", splits=2)
    assert result.wins is None
    assert "win_rate" not in result.numbers
    assert jb.win_rate(votes, labels, pairwise=True).rate["of"] == "valid"


def games(seed: int = 0, n: int = 600) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return votes and labels of three systems of different strength, in either order."""
    rng = np.random.default_rng(seed)
    systems = np.array(["low", "mid", "top"])
    first = rng.integers(0, 3, n)
    second = (first + rng.integers(1, 3, n)) % 3
    won = rng.random(n) < 1 / (1 + np.exp(-1.3 * (first - second)))
    right = rng.random((n, 2)) < 0.8
    vote = np.where(right, won[:, None], ~won[:, None])
    item, judge = (x.ravel() for x in np.indices((n, 2)))
    votes = pd.DataFrame(
        {
            "item": item,
            "judge": np.array(["x", "y"])[judge],
            "vote": np.where(vote.ravel(), "A", "B"),
            "a": systems[first][item],
            "b": systems[second][item],
        }
    )
    return votes, pd.DataFrame({"item": np.arange(n), "label": np.where(won, "A", "B")})


def test_systems() -> None:
    votes, labels = games()
    result = jb.win_rate(votes, labels.head(120), systems="a,b")
    assert list(result.pairs["pair"]) == ["low over mid", "low over top", "mid over top"]
    assert result.systems is not None
    assert list(result.systems["system"]) == ["top", "mid", "low"]
    assert result.systems["P(best)"].sum() == pytest.approx(1)
    assert result.systems["P(best)"].iloc[0] > 0.9
    assert "Best: top" in result.lead[0]
    assert "win_rate" not in result.numbers
    calibrated = jb.calibrate(votes, labels.head(120), systems="a,b", method="sc", splits=2)
    assert calibrated.tables["systems"].equals(result.systems)
    bare = jb.win_rate(votes, systems="a,b")
    assert bare.systems is not None
    assert list(bare.systems["system"]) == ["top", "mid", "low"]
    with pytest.raises(JudgeBayesError, match="There is no column 'nope', in the votes or in the"):
        jb.win_rate(votes, systems="a,nope")
    assert "estimate" not in bare.pairs


def test_one_pair_of_systems_in_either_order_has_their_names() -> None:
    votes, labels = games()
    two = votes[(votes["a"] != "mid") & (votes["b"] != "mid")]
    known = labels[labels["item"].isin(two["item"])].head(40)
    result = jb.win_rate(two, known, systems="a,b")
    assert (result.rate["of"], result.rate["over"]) == ("low", "top")
    assert result.rate["high"] < 0.5
