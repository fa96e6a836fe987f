import numpy as np
import pytest

from judgebayes import MAP, Davidson, HierarchicalDavidson, Status
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.distribution_calibrated.per_task import PerTask
from judgebayes.measures.scores import drps
from judgebayes.models.hierarchical_davidson import HierarchicalPrior
from judgebayes.votes import Votes

ONE_START = MAP(temperature=0.5, score=drps, starts=1)


def test_it_converges_and_gives_every_task_its_parameters(
    tasked: Votes, labels: np.ndarray
) -> None:
    fit = HierarchicalDavidson().fit(tasked, labels)
    assert int(fit.status) == Status.CONVERGED
    by_task = fit.method.by_task(fit)
    assert by_task["beta"].shape == (3,)
    assert by_task["eta0"].shape == (3, 1)
    assert "log_beta" in repr(fit)


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
