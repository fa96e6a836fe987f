"""The simulated worlds of P4's audit: their rates, the oracle's intervals, and the bars."""

import numpy as np
import pytest
from scipy.stats import binom

from judgebayes.experiments.beyond_consensus.oracle import Law, interval, law
from judgebayes.experiments.beyond_consensus.world_bars import ratios
from judgebayes.experiments.beyond_consensus.worlds import ITEMS, Judges, Setting, draw, judges

HARD = Setting("strong", saturated=1, missing=True, copied=True, shift="cell")
FOLLOWING = Setting("weak", shift="common")


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


def test_a_ratio_s_intervals_hold_for_all_cells_at_once() -> None:
    rng = np.random.default_rng(3)
    truth, held = 1.2, 0
    for seed in range(60):
        rival = rng.gamma(4, 0.25, (60, 24))
        own = truth * rng.gamma(4, 0.25, (60, 24)) * 0.5 + truth * 0.5 * rival
        ends = ratios(own, np.stack([rival, 2 * rival]), seed=seed)
        held += bool(((ends.low <= truth) & (truth <= ends.high)).all())
    assert binom.cdf(held, 60, 0.95) > 1e-3
