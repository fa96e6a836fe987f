from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebayes.measures.scores import (
    TIE_TOLERANCE,
    absolute_loss,
    bayes_action,
    middle_most,
    risk,
    zero_one_loss,
)


def test_risks_are_those_of_eq_6() -> None:
    minus, tie, plus = 0.2, 0.5, 0.3
    risks = risk(jnp.log(jnp.array([minus, tie, plus])), absolute_loss(3))
    np.testing.assert_allclose(risks, [tie + 2 * plus, plus + minus, 2 * minus + tie], atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(weights=st.lists(st.floats(0.01, 1), min_size=2, max_size=6))
def test_bayes_action_is_the_median_for_absolute_loss_and_the_mode_for_zero_one(
    weights: list[float],
) -> None:
    p = np.array(weights) / sum(weights)
    k = len(p)
    log_probs = jnp.log(jnp.asarray(p))
    median = int(bayes_action(log_probs, absolute_loss(k)))
    below, above = p[: median + 1].sum(), p[median:].sum()
    assert min(below, above) >= 0.5 - 1e-6
    assert p[int(bayes_action(log_probs, zero_one_loss(k)))] == pytest.approx(p.max(), abs=1e-6)


@pytest.mark.parametrize(
    ("tied", "taken"),
    [
        (
            [True, False, True],
            0,
        ),  # no middle class among them: both are equally near, so the lower wins
        ([True, True, True], 1),
        ([False, True, True], 1),
        ([True, True, False], 1),
        ([True, True], 0),
        ([False, True, True, True, False], 2),
        ([True, False, False, True, True], 3),
    ],
)
def test_ties_go_to_the_middle(tied: list[bool], taken: int) -> None:
    assert int(middle_most(jnp.array(tied))) == taken


@settings(max_examples=60, deadline=None)
@given(tied=st.lists(st.booleans(), min_size=3, max_size=7).filter(any))
def test_mirroring_the_classes_mirrors_the_tie_rule(tied: list[bool]) -> None:
    k = len(tied)
    here, there = (int(middle_most(jnp.array(t))) for t in (tied, tied[::-1]))
    centred = tied.index(True) + k - 1 - tied[::-1].index(True) == k - 1
    if not ((centred and not tied[(k - 1) // 2]) or (centred and k % 2 == 0)):
        assert there == k - 1 - here


def test_rounding_does_not_decide_a_tie_in_risk() -> None:
    # p(+1) is 1/2 up to rounding: -1 + 1e-17 must not matter.
    for noise in (-1e-16, 0.0, 1e-16):
        p = jnp.array([0.25, 0.25 - noise, 0.5 + noise])
        assert int(bayes_action(jnp.log(p), absolute_loss(3))) == 1


def naive_middle(tied: tuple[bool, ...]) -> int:
    """The documented rule: nearest to the centre of the tied classes, then to the middle, then lower."""
    k = len(tied)
    classes = [c for c in range(k) if tied[c]]
    centre, middle = (classes[0] + classes[-1]) / 2, (k - 1) / 2
    return min(classes, key=lambda c: (abs(c - centre), abs(c - middle), c))


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
def test_every_set_of_tied_classes_follows_the_rule(k: int) -> None:
    sets = [tied for tied in product([False, True], repeat=k) if any(tied)]
    assert middle_most(jnp.array(sets)).tolist() == [naive_middle(tied) for tied in sets]


@pytest.mark.parametrize("k", [1, 2, 4])
def test_losses_are_those_of_two_loops(k: int) -> None:
    assert absolute_loss(k).tolist() == [[abs(a - y) for y in range(k)] for a in range(k)]
    assert zero_one_loss(k).tolist() == [[a != y for y in range(k)] for a in range(k)]


def test_a_loss_of_any_shape_is_averaged_over_the_classes_of_every_item() -> None:
    rng = np.random.default_rng(0)
    p, loss = rng.dirichlet(np.ones(3), (2, 4)), rng.normal(size=(5, 3))
    risks = risk(np.log(p), loss)
    actions = bayes_action(np.log(p), loss)
    for i, j in product(range(2), range(4)):
        naive = [sum(loss[a, y] * p[i, j, y] for y in range(3)) for a in range(5)]
        np.testing.assert_allclose(risks[i, j], naive, rtol=1e-12)
        assert int(actions[i, j]) == int(np.argmin(naive))


@pytest.mark.parametrize(("gap", "taken"), [(1e-11, 1), (1e-8, 0)])
def test_risks_are_tied_up_to_a_billionth(gap: float, taken: int) -> None:
    # Three actions, the first better by the gap: if tied, the middle one is chosen.
    loss = np.array([[0.0, 0.0], [gap, gap], [gap, gap]])
    assert int(bayes_action(np.log([0.5, 0.5]), loss)) == taken


def test_two_actions_agree_with_the_general_case() -> None:
    rng = np.random.default_rng(1)
    p, losses = rng.dirichlet(np.ones(2), (50, 2)), rng.normal(size=(20, 2, 2))
    p[0, 0] = 0.0, 1.0
    with np.errstate(divide="ignore"):
        log_probs = np.log(p)
    for loss in losses:
        risks = np.asarray(risk(log_probs, loss))
        assert (np.asarray(bayes_action(log_probs, loss)) == risks.argmin(-1)).all()


@pytest.mark.parametrize(("gap", "taken"), [(1e-11, 0), (1e-8, 1)])
def test_of_two_tied_actions_the_first_is_chosen(gap: float, taken: int) -> None:
    assert int(bayes_action(np.log([0.5, 0.5]), np.array([[gap, gap], [0.0, 0.0]]))) == taken


def test_two_actions_are_decided_by_their_risks() -> None:
    rng = np.random.default_rng(0)
    margin = np.concatenate([[0.0, np.inf, -np.inf, 800.0, -800.0], rng.normal(size=300) * 5])
    log_probs = np.stack([-np.logaddexp(0, margin), -np.logaddexp(0, -margin)], axis=1)
    ahead = np.array([[2.0, 100.0], [0.0, 0.0]])  # the second action is better, whatever the class
    losses = [rng.choice([-1, 0, 1e-8, 0.5, 2.0], size=(2, 2)) for _ in range(60)]
    for loss in [ahead, -ahead, ahead.T, -ahead.T, *losses]:
        risks = np.exp(log_probs) @ loss.T
        gained = risks[:, 0] - risks[:, 1]
        clear = np.abs(gained - TIE_TOLERANCE) > 1e-12
        actions = np.asarray(bayes_action(log_probs, loss))
        np.testing.assert_array_equal(actions[clear], (gained > TIE_TOLERANCE)[clear])
