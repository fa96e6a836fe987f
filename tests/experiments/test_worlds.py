"""The simulated worlds of P4's audit: their rates, the oracle's intervals, and the bars."""

import numpy as np
import pytest
from scipy.stats import binom

from judgebayes.experiments.beyond_consensus.audit_reversed import labelled
from judgebayes.experiments.beyond_consensus.audit_worlds import SIZES, YOUDEN, settings
from judgebayes.experiments.beyond_consensus.oracle import QUALITIES, Law, interval, law
from judgebayes.experiments.beyond_consensus.world_bars import ratios, shares
from judgebayes.experiments.beyond_consensus.worlds import (
    GENERATORS,
    ITEMS,
    SHIFT,
    Judges,
    Setting,
    draw,
    grid,
    judges,
)
from judgebayes.experiments.core import Run
from judgebayes.generators import judge_youden

HARD = Setting("strong", saturated=1, missing=True, copied=True, shift="cell")
FOLLOWING = Setting("weak", shift="common")


def test_the_grid_has_every_combination_once_and_every_kind_of_useless_panel() -> None:
    assert len(set(grid())) == len(grid()) == 2 * 4 * 2 * 2 * 3
    assert {s.youden for s in settings(Run())} == {None, *YOUDEN}
    assert len({s.name for s in settings(Run())}) == len(settings(Run()))
    assert max(SIZES) < GENERATORS


def test_a_turned_judge_votes_the_opposite_and_its_youden_index_changes_sign() -> None:
    rng = np.random.default_rng(5)
    world = draw(judges(Setting("strong", missing=True), rng), rng)
    plain, turned = (labelled(world, turned=turned) for turned in (False, True))
    each, opposite = (judge_youden(counts).estimate for counts in (plain, turned))
    assert opposite[0] == pytest.approx(-each[0])
    np.testing.assert_array_equal(opposite[1:], each[1:])
    rejected = np.asarray(plain.valid_judged - plain.true_accepted)
    np.testing.assert_array_equal(np.asarray(turned.true_accepted)[:, 0], rejected[:, 0])
    assert judge_youden(plain).below(0.0)[0] < 0.01 < 0.99 < judge_youden(turned).below(0.0)[0]


@pytest.mark.parametrize("shift", ["none", "cell", "common"])
def test_rates_of_a_world_have_the_means_and_spreads_of_its_law(shift: str) -> None:
    setting = Setting("strong", saturated=1, missing=True, copied=True, shift=shift)  # type: ignore[arg-type]
    rng = np.random.default_rng(1)
    panel = judges(setting, rng)
    world = draw(panel, rng, generators=600)
    assert (world.valid + world.invalid == ITEMS).all()
    cast = (world.valid_judged + world.invalid_judged) / ITEMS
    assert abs(cast.mean() - 2 / 3) < 0.01
    rates_law = law(panel)
    rates = np.stack(
        [world.true_accepted / world.valid_judged, world.false_accepted / world.invalid_judged]
    )
    for label in (0, 1):
        error = rates[label].std(0) / np.sqrt(600)
        assert (np.abs(rates[label].mean(0) - rates_law.mean[label, 0]) < 4.5 * error + 1e-4).all()
    # Pairs without common votes: a strong judge and another that is no copy of it.
    ours, theirs = 2, 4
    product = rates[0][:, ours] - rates[0][:, ours].mean()
    product = product * (rates[0][:, theirs] - rates[0][:, theirs].mean())
    items = world.valid.mean()
    expected = rates_law.between[0, 0, 0] + rates_law.within[0, 0] / items
    assert abs(product.mean() - expected[ours, theirs]) < 4 * product.std() / np.sqrt(600)
    # A judge's own spread beyond that of its votes is about SHIFT p (1 - p).
    p = rates_law.mean[0, 0, ours]
    spread = np.sqrt(rates_law.between[0, 0, 0, ours, ours])
    assert spread == pytest.approx(
        0 if shift == "none" else SHIFT * p * (1 - p), rel=0.15, abs=1e-9
    )
    assert rates_law.mean[0, 0, 0] > 0.99
    assert rates_law.mean[1, 0, 0] > 0.99


def test_copies_have_one_voice_and_weak_judges_follow_quality() -> None:
    rng = np.random.default_rng(2)
    dense = draw(judges(Setting("strong", copied=True), rng), rng)
    assert (dense.true_accepted[:, -3:] == dense.true_accepted[:, -2:-1]).all()
    rates_law = law(judges(FOLLOWING, rng))
    assert (np.diff(rates_law.mean[:, QUALITIES > 0.5], axis=1) > 0).all()
    youden = rates_law.mean[0] - rates_law.mean[1]
    assert (youden > 0.03).all()
    assert (youden < 0.4).all()


def covered(setting: Setting, worlds: int, told: str = "its law") -> np.ndarray:
    """Return the share of each world's generators whose share the oracle's interval contains."""
    shares_covered = []
    for seed in range(worlds):
        rng = np.random.default_rng(seed)
        panel = judges(setting, rng)
        world = draw(panel, rng)
        judged = world.valid_judged + world.invalid_judged
        share = (world.true_accepted + world.false_accepted) / judged
        known: Law = law(panel)
        if told == "no shifts":
            known = law(Judges(Setting(setting.kind, setting.saturated), panel.first, panel.second))
        low, high = interval(share, judged, ITEMS, known)
        truth = world.valid / ITEMS
        shares_covered.append(((low <= truth) & (truth <= high)).mean())
    return np.array(shares_covered)


@pytest.mark.parametrize("setting", [HARD, FOLLOWING], ids=lambda s: str(s.name))
def test_the_oracle_covers_nominally_in_worlds_of_its_law(setting: Setting) -> None:
    each = covered(setting, 100)
    assert abs(each.mean() - 0.9) < 3.3 * each.std(ddof=1) / np.sqrt(len(each))


def test_an_oracle_told_of_no_shifts_and_no_copies_covers_too_little() -> None:
    assert covered(HARD, 40, "no shifts").mean() < 0.8


def test_a_ratio_s_intervals_hold_for_all_cells_at_once() -> None:
    rng = np.random.default_rng(3)
    truth, held = 1.2, 0
    for seed in range(60):
        rival = rng.gamma(4, 0.25, (60, 24))
        own = truth * rng.gamma(4, 0.25, (60, 24)) * 0.5 + truth * 0.5 * rival
        ends = ratios(own, np.stack([rival, 2 * rival]), seed=seed)
        held += bool(((ends.low <= truth) & (truth <= ends.high)).all())
    assert binom.cdf(held, 60, 0.95) > 1e-3


def test_the_best_rival_is_the_one_with_the_smallest_mean() -> None:
    own = np.full((10, 2), 3.0)
    rivals = np.stack([np.full((10, 2), 2.0), np.tile([4.0, 1.0], (10, 1))])
    assert ratios(own, rivals).value == pytest.approx([1.5, 3.0])


def test_shares_count_worlds_as_trials_and_are_simultaneous() -> None:
    same = np.repeat(np.random.default_rng(4).random((1, 200, 1)) < 0.9, 5, axis=2).astype(float)
    one, five = shares(same[..., :1]), shares(same)
    assert one.value == five.value[0] == same.mean()
    assert five.high[0] - five.low[0] > one.high[0] - one.low[0]
    error = np.sqrt(one.value * (1 - one.value) / 200)
    assert one.high[0] - one.low[0] == pytest.approx(2 * 1.96 * error, rel=0.1)
    full = shares(np.ones((3, 200, 1)))
    assert full.high[0] == 1
    assert 0.99 < full.low[0] < 1
