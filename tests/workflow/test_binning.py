"""Classes made of scores: quantiles and learnt cut points, against brute force."""

from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import judgebayes as jb
from judgebayes.errors import JudgeBayesError
from judgebayes.workflow.binning import Bins, bins_from, learn_cuts, quantile_bins


def _loss(cuts: tuple[float, ...], scores: np.ndarray, labels: np.ndarray) -> int:
    return int(
        sum(abs(sum(s >= cut for cut in cuts) - y) for s, y in zip(scores, labels, strict=True))
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [2, 3, 4])
def test_learnt_cuts_are_the_best_of_all(seed: int, n: int) -> None:
    draws = np.random.default_rng(seed)
    scores = draws.integers(0, 9, 25).astype(float)
    labels = np.clip(np.round(scores / 9 * n - 0.5 + draws.normal(0, 0.8, 25)), 0, n - 1).astype(
        int
    )
    places = [-1.0, *(np.unique(scores) - 0.5), 100.0]
    best = min(_loss(cuts, scores, labels) for cuts in combinations_with_replacement(places, n - 1))
    cuts = learn_cuts(scores, labels, n)
    assert list(cuts) == sorted(cuts)
    assert _loss(cuts, scores, labels) == best


def test_quantiles_give_equal_shares_and_do_not_depend_on_the_scale() -> None:
    scores = np.random.default_rng(1).normal(size=1000)
    bins = quantile_bins(scores, 4)
    counts = pd.Series(bins.of(scores)).value_counts()
    assert set(counts.index) == {1, 2, 3, 4}
    assert counts.between(249, 251).all()
    scaled = quantile_bins(np.exp(scores), 4).of(np.exp(scores))
    assert (scaled == bins.of(scores)).all()


def test_saved_cut_points_are_checked() -> None:
    bins = Bins((0, 1), {"": (2.0,), "j": (3.5,)}, 10)
    again = bins_from(bins.to_json())
    assert again is not None
    assert again.cuts == bins.cuts
    assert again.names == bins.names
    for broken in (
        None,
        {},
        {"names": [0, 1], "cuts": {"": [1.0, 2.0]}},
        {"names": [0], "cuts": {}},
    ):
        assert bins_from(broken) is None
    assert bins_from({"names": [0, 1], "cuts": {"": [float("nan")]}}) is None


def _scored(n: int = 60) -> tuple[pd.DataFrame, pd.DataFrame]:
    draws = np.random.default_rng(3)
    truth = draws.integers(0, 2, n)
    votes = pd.concat(
        pd.DataFrame(
            {
                "item": range(n),
                "judge": judge,
                "vote": np.round(10 * truth + shift + draws.normal(0, 4, n), 2),
            }
        )
        for judge, shift in (("strict", 0), ("lenient", 8))
    )
    return votes, pd.DataFrame({"item": range(40), "label": truth[:40]})


def test_scores_need_bins_and_get_them() -> None:
    votes, gold = _scored()
    with pytest.raises(JudgeBayesError, match=r"scores with .* --set bins=5"):
        jb.read(votes)
    with pytest.raises(
        JudgeBayesError, match=r"labels have 2 .*: use --set bins=2 or --set bins=learnt"
    ):
        jb.read(votes, gold, bins="5")
    with pytest.raises(JudgeBayesError, match="neither a number of classes"):
        jb.read(votes, bins="many")
    with pytest.raises(JudgeBayesError, match="there are none"):
        jb.read(votes, bins="learnt")
    assert jb.read(votes, bins="5").coding.classes.values == (1, 2, 3, 4, 5)
    learnt = jb.read(votes, gold, bins="learnt")
    assert learnt.opened.bins is not None
    cuts = learnt.opened.bins.cuts
    assert cuts["lenient"][0] > cuts["strict"][0]
    index = np.asarray(learnt.votes.index)[:40, :, 0]
    right = (index == gold["label"].to_numpy()[:, None]).mean(0)
    assert (right > 0.75).all()


def test_a_wide_table_of_scores_may_have_a_judge_called_vote() -> None:
    votes, gold = _scored()
    wide = votes.pivot(index="item", columns="judge", values="vote").reset_index()
    wide = wide.rename(columns={"strict": "vote"})
    assert jb.read(wide, gold, wide=True, bins="learnt").votes.n_judges == 2
    wide["lenient"] = wide["lenient"].astype(object)
    wide.loc[2, "lenient"] = "oops"
    with pytest.raises(JudgeBayesError, match=r"Row 3 .* contains 'oops' \(judge 'lenient'\)"):
        jb.read(wide, gold, wide=True, bins="learnt")


def test_a_saved_fit_cuts_new_scores_at_the_same_points(tmp_path: Path) -> None:
    votes, gold = _scored()
    calibration = jb.calibrate(votes, gold, bins="2", method="vote-share", splits=2)
    jb.save(calibration, tmp_path / "fit.json")
    low = votes.assign(vote=votes["vote"].clip(upper=float(votes["vote"].median()) - 1))
    applied = jb.apply(tmp_path / "fit.json", low)
    assert (np.asarray(applied.given.votes.index) == 0).all()
