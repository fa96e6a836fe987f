"""Interactive use in IPython: short reprs, versions, name completion, progress bars."""

import jax.numpy as jnp
import numpy as np
import pytest

import judgebayes as jb
from judgebayes.experiments.calibrate_dont_curate.weighted import AccuracyWeighted
from judgebayes.inference.status import Status, shortened, status_text
from judgebayes.votes import Votes

LONGEST = 4 * 99


@pytest.fixture(scope="module")
def panel() -> tuple[Votes, np.ndarray]:
    """Binary votes of 30 judges, so that full arrays would fill a screen."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 40)
    right = rng.random((40, 30)) < 0.8
    index = np.where(right, labels[:, None], 1 - labels[:, None])
    return Votes(jnp.asarray(index[:, :, None], jnp.int8), None, None, None, 2), labels


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (jb.MajorityVote(), "MajorityVote fit("),
        (jb.BaseRate(), "converged"),
        (jb.OneCoin(), "30"),
        (AccuracyWeighted(), "30"),
        (jb.DawidSkene(), "converged"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_fits_summarise(method: object, said: str, panel: tuple[Votes, np.ndarray]) -> None:
    votes, labels = panel
    shown = repr(method.fit(votes, labels))
    assert said in shown
    assert "Array(" not in shown
    assert len(shown) < LONGEST
    assert "converged" in shown


@pytest.mark.parametrize(
    "calibrator", [jb.Identity(), jb.Temperature(), jb.Isotonic()], ids=lambda c: type(c).__name__
)
def test_maps_summarise(calibrator: object) -> None:
    p = np.linspace(0.05, 0.95, 40)
    labels = (p + np.sin(20 * p) > 0.5).astype(int)
    shown = repr(calibrator.fit(np.log(np.stack([1 - p, p], 1)), labels))
    assert "Array(" not in shown
    assert "converged" in shown
    assert len(shown) < LONGEST


def test_records_inside_others_keep_their_own_words_and_arrays_take_one_line() -> None:
    splits = jb.random_splits(6, splits=2, calibration=3)
    assert shortened((splits, np.eye(2))) == f"({splits!r}, [[1. 0.] [0. 1.]])"


def test_a_status_is_named_and_a_batch_counted() -> None:
    assert status_text(jnp.asarray(int(Status.DEGENERATE))) == "degenerate"
    batch = jnp.asarray([0, 0, int(Status.MAX_STEPS), 0])
    assert status_text(batch) == "converged 3, max_steps 1"


def test_every_public_name_is_there_and_completes() -> None:
    names = dir(jb)
    for name in jb.__all__:
        assert name in names
        assert getattr(jb, name) is not None


def test_a_sweep_records_its_seed(panel: tuple[Votes, np.ndarray]) -> None:
    votes, labels = panel
    splits = jb.random_splits(40, splits=2, calibration=20)
    table = jb.sweep(
        {"sc": jb.MajorityVote()},
        votes,
        labels,
        splits,
        fit_on="calibration",
        seed=7,
        progress=True,
    )
    assert table.attrs == {"seed": 7, "splits": 2, "judgebayes": jb.__version__}
