"""P4's audits of a new generator and of differences: their worlds, draws of labels and posteriors."""

import numpy as np
import pytest

from judgebayes.experiments.beyond_consensus.audit_differences import (
    BINS,
    PAIRS,
    binned,
    from_labels,
    shown,
)
from judgebayes.experiments.beyond_consensus.audit_leave_out import (
    ENDS,
    LABELS,
    answer,
    nested,
    prior,
)
from judgebayes.experiments.beyond_consensus.audit_next import settings
from judgebayes.experiments.beyond_consensus.program_worlds import Items, resampled, simulated
from judgebayes.experiments.core import Run
from judgebayes.generators import shares


@pytest.fixture(scope="module")
def items() -> Items:
    return simulated("weak", 3, 60)


@pytest.mark.parametrize("kind", ["weak", "strong"])
def test_many_programs_have_the_share_of_new_programs(kind: str) -> None:
    many = simulated(kind, 1, 4000)  # type: ignore[arg-type]
    # Programs are independent: the standard error of a generator's share is below .008.
    np.testing.assert_allclose(many.these, many.truth, atol=0.03)


def test_a_program_that_is_drawn_twice_counts_as_two(items: Items) -> None:
    drawn = resampled(items, np.array([5, 2, 5]))
    for new, old in enumerate((5, 2, 5)):
        np.testing.assert_array_equal(
            drawn.labels[drawn.program == new], items.labels[items.program == old]
        )
    assert len(drawn.labels) == drawn.votes.n_items
    np.testing.assert_array_equal(drawn.truth, items.truth)


@pytest.mark.parametrize("what", ["items", "programs"])
def test_more_labels_contain_fewer(items: Items, what: str) -> None:
    drawn = nested(items, 2, what, np.random.default_rng(0))
    for k, fewer, more in zip(LABELS, drawn, drawn[1:], strict=False):
        assert set(fewer) <= set(more)
        assert len(set(fewer)) == len(fewer) >= min(k, (items.generator == 2).sum())
        assert (items.generator[more] == 2).all()
        if what == "programs":
            whole = np.isin(items.program, items.program[fewer]) & (items.generator == 2)
            assert set(np.flatnonzero(whole)) == set(fewer)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_posterior_is_that_of_shares(items: Items, grouped: bool) -> None:
    place = 4
    shown = np.flatnonzero(items.generator == place)[:25]
    labels = np.where(items.generator == place, -1, items.labels)
    labels[shown] = items.labels[shown]
    groups = items.program if grouped else None
    whole = shares(items.votes, labels, items.generator, 6, groups=groups)
    one = answer(items, place, prior(items, place), shown, grouped=grouped)
    theirs = [whole.quantile(level)[place] for level in ENDS]
    np.testing.assert_allclose(one.quantiles[0], theirs, atol=2e-4)  # `shares` interpolates
    np.testing.assert_allclose(one.tail_probability, whole.tail_probability[place], rtol=1e-6)
    width = one.quantiles[:, 2] - one.quantiles[:, 0]
    assert (np.diff(width) > 0).all()  # a wider prior, a wider posterior


# --- differences on new programs ------------------------------------------------------------------


def test_designs_show_what_they_say(items: Items) -> None:
    rng = np.random.default_rng(1)
    np.testing.assert_array_equal(shown(items, "all labels", rng), items.labels)
    half = shown(items, "half of the programs", rng) >= 0
    assert len(np.unique(items.program[half])) == 30
    assert not np.isin(items.program[~half], items.program[half]).any()
    mixed = shown(items, "mixed", rng) >= 0
    part = np.array([mixed[items.generator == place].mean() for place in range(6)])
    assert ((part == 1).sum(), (part == 0).sum()) == (2, 2)


def test_the_more_probable_order_is_put_into_the_bin_of_its_probability() -> None:
    better = np.array([0.5, 0.1, 0.62, 0.95, 1.0])
    sure, right, place = binned(better, np.array([1.0, -1.0, -1.0, 1.0, 1.0]))
    np.testing.assert_allclose(sure, [0.5, 0.9, 0.62, 0.95, 1.0])
    np.testing.assert_array_equal(right, [True, True, False, True, True])
    np.testing.assert_array_equal(place, [0, 4, 1, 5, 5])
    assert (BINS[place] <= sure).all()


def test_pairs_without_labels_have_no_interval_from_labels(items: Items) -> None:
    labels = np.where(items.generator < 2, items.labels, -1)
    ends = from_labels(items, labels, grouped=True)
    assert np.isfinite(ends.low).sum() == 1
    place = PAIRS.index((0, 1))
    gap = items.these[0] - items.these[1]
    np.testing.assert_allclose((ends.low[place] + ends.high[place]) / 2, gap)


def test_next_is_asked_for_every_target_and_pair() -> None:
    chosen = settings(Run())
    assert len(chosen) == 18
    for target, setting in chosen:
        assert setting.between == target.startswith("two")
        assert setting.more == target.endswith("more outputs")
        assert setting.contrasts.shape == (1, 6)
        assert setting.contrasts.sum() == (0 if setting.between else 1)
        own = setting.targets[setting.generator]
        np.testing.assert_array_equal(own, ~setting.already_labelled)
