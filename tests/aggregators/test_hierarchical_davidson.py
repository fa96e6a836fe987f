import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.aggregators import Davidson, HierarchicalDavidson
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.distribution_calibrated.per_task import PerTask
from judgebayes.inference import MAP, NUTS, Status
from judgebayes.measures.scores import drps
from judgebayes.models.hierarchical_davidson import HierarchicalPrior
from judgebayes.votes import Votes

ONE_START = MAP(temperature=0.5, score=drps, starts=1)


def test_it_converges_and_gives_every_task_its_parameters(
    tasked: Votes, labels: np.ndarray
) -> None:
    fit = HierarchicalDavidson().fit(tasked, labels)
    assert int(fit.status) == Status.CONVERGED
    by_task = fit.by_task()
    assert by_task["beta"].shape == (3,)
    assert by_task["eta0"].shape == (3, 1)
    assert "log_beta" in repr(fit)


def test_one_start_gives_the_same_as_five(tasked: Votes, labels: np.ndarray) -> None:
    one = HierarchicalDavidson().fit(tasked, labels)
    five = HierarchicalDavidson(MAP(temperature=0.5, score=drps)).fit(tasked, labels)
    assert float(one.objective) == pytest.approx(float(five.objective), abs=1e-10)


def test_without_differences_tasks_share_parameters(tasked: Votes, labels: np.ndarray) -> None:
    fit = HierarchicalDavidson(ONE_START, prior=HierarchicalPrior(differ=1e-4)).fit(tasked, labels)
    assert np.ptp(fit.by_task()["beta"]) < 1e-5
    other = Votes(tasked.index, None, None, jnp.roll(tasked.task, 1), 3, 3)
    np.testing.assert_allclose(fit(other), fit(tasked), atol=1e-4)


def test_tasks_that_may_differ_freely_approach_separate_fits(
    tasked: Votes, labels: np.ndarray
) -> None:
    """With a wide prior, only a task's own labels matter: another task's labels change little."""
    wide = HierarchicalDavidson(ONE_START, prior=HierarchicalPrior(differ=30.0))
    close = HierarchicalDavidson(ONE_START, prior=HierarchicalPrior(differ=0.3))
    task = np.asarray(tasked.task)
    flipped = np.where((task == 1) & (labels >= 0), 2 - labels, labels)
    own = np.flatnonzero(task == 0)

    def moved(method: HierarchicalDavidson) -> float:
        before, after = (np.exp(method.fit(tasked, y)(tasked))[own] for y in (labels, flipped))
        return float(np.abs(before - after).max())

    assert moved(wide) < 0.5 * moved(close)


def test_an_unseen_task_is_predicted_from_the_centre(tasked: Votes, labels: np.ndarray) -> None:
    task = np.asarray(tasked.task)
    training_labels = np.where(task == 2, -1, labels)
    fit = HierarchicalDavidson().fit(tasked, training_labels)
    # No label of task 2: the mode of its deviation is zero, which is the centre.
    np.testing.assert_allclose(np.asarray(fit.draws["log_beta_by_task"])[0, 2], 0, atol=1e-7)
    unseen = Votes(tasked.index, None, None, jnp.full(60, -1, jnp.int32), 3, 3)
    np.testing.assert_allclose(fit(unseen)[task == 2], fit(tasked)[task == 2], atol=1e-6)


def test_permuting_the_tasks_permutes_the_parameters(tasked: Votes, labels: np.ndarray) -> None:
    renamed = Votes(tasked.index, None, None, (tasked.task + 1) % 3, 3, 3)
    one, other = (HierarchicalDavidson().fit(v, labels).by_task() for v in (tasked, renamed))
    np.testing.assert_allclose(np.roll(one["beta"], 1), other["beta"], atol=1e-6)


@pytest.mark.slow
def test_sampling_agrees_with_the_mode_roughly_and_mixes(tasked: Votes, labels: np.ndarray) -> None:
    sampled = HierarchicalDavidson(NUTS(draws=120, warmup=150, chains=2)).fit(tasked, labels)
    assert sampled.draws["tie_by_task"].shape == (240, 1, 3)
    mode = HierarchicalDavidson(MAP(starts=1)).fit(tasked, labels)
    assert np.abs(np.exp(sampled(tasked)) - np.exp(mode(tasked))).max() < 0.15


def test_votes_without_tasks_are_refused(votes: Votes, labels: np.ndarray) -> None:
    for method in (HierarchicalDavidson(), PerTask(Davidson())):
        with pytest.raises(JudgeBayesError, match=r"encode\(task=...\)"):
            method.fit(votes, labels)


def test_a_fit_per_task_equals_separate_fits(tasked: Votes, labels: np.ndarray) -> None:
    # Equally many labels of each task: the separate fits are one program.
    labels = np.where(np.arange(60) // 3 % 2 == 0, -1, labels)
    together = PerTask(Davidson()).fit(tasked, labels)(tasked)
    for k in range(3):
        own = np.flatnonzero(np.asarray(tasked.task) == k)
        separate = Davidson().fit(tasked.take(own), labels[own])(tasked.take(own))
        np.testing.assert_allclose(together[own], separate, atol=1e-5)
