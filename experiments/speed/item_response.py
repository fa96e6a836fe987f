"""The 2PL item response model, compared with py-irt."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int
from numpy.typing import ArrayLike

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.calibrate_dont_curate.item_response import LearntResponse
from judgebayes.experiments.speed.measure import Row, Side, race
from judgebayes.models.irt import Parameters, link
from judgebayes.votes import Votes

ITEMS, JUDGES = 3000, 38
EPOCHS = 2000
"""py-irt's default."""


def item_response(rounds: int, smoke: bool = False) -> list[Row] | str:
    """Return the row, or a note why there is none. Goal: 20 times as fast, recovery not worse.

    Both learn the priors of the items. py-irt runs with its own trainer and its hierarchical priors
    (its vague priors shrink difficulties to within 0.1 of 0), on one thread, with other defaults.
    """
    try:
        import py_irt.training  # noqa: F401
    except ImportError as missing:
        return f"2PL: no row, {missing.name} is not installed."
    items, epochs = (200, 20) if smoke else (ITEMS, EPOCHS)
    truth, right = simulated(items, JUDGES)
    with jax.enable_x64(True):
        votes = Votes(jnp.asarray(right[..., None]), None, None, None, 2)
    labels = np.ones(items, int)  # a vote for 1 is right

    def ours() -> Parameters:
        fit = LearntResponse().fit(votes, labels)
        return Parameters(**{name: x[0] for name, x in fit.draws.items()})

    mine, theirs = Side(ours), Side(partial(by_py_irt, right, epochs))
    race([mine, theirs], rounds)
    recovery_text = "; ".join(
        f"{name} {recovery(side.answer, truth)}"
        for name, side in (("ours", mine), ("theirs", theirs))
    )
    what = f"2PL, {items:,} x {JUDGES} (theirs: {epochs:,} epochs)"
    return [Row(what, "py-irt", mine, theirs, 20.0, f"correlation, RMSE: {recovery_text}")]


@in_float64
def simulated(
    items: int, judges: int, seed: int = 0
) -> tuple[Parameters, Int[np.ndarray, "item judge"]]:
    """Return parameters and which votes are right: standard normal abilities and difficulties."""
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.standard_normal(judges), rng.standard_normal(items)
    truth = in_arrays(ability, difficulty, 0.3 * rng.standard_normal(items))
    chance = 1 / (1 + np.exp(-np.asarray(link(truth))))
    return truth, (rng.random(chance.shape) < chance).astype(np.int8)


def recovery(fitted: Parameters, truth: Parameters) -> str:
    """Return correlations and errors of abilities and difficulties, on the truth's scale.

    The model identifies abilities and difficulties up to a common shift and scale; the ones that fit
    the truth best (least squares) are applied.
    """
    estimates, truths = (
        np.concatenate([np.asarray(x) for x in (p.ability, p.difficulty)]) for p in (fitted, truth)
    )
    stretch, shift = np.polyfit(estimates, truths, 1)
    parts = []
    for name in ("ability", "difficulty"):
        estimate, true = (np.asarray(getattr(p, name)) for p in (fitted, truth))
        error = np.sqrt(np.mean((shift + stretch * estimate - true) ** 2))
        parts.append(f"{name} {np.corrcoef(estimate, true)[0, 1]:.3f}, {error:.3f}")
    return " and ".join(parts)


def by_py_irt(right: Int[np.ndarray, "item judge"], epochs: int) -> Parameters:
    """Return py-irt's estimates from its own trainer, with its data set built in memory."""
    import pyro
    import torch
    from py_irt.config import IrtConfig
    from py_irt.dataset import Dataset
    from py_irt.training import IrtModelTrainer

    torch.set_num_threads(1)
    pyro.set_rng_seed(0)
    n_items, n_judges = right.shape
    item, judge = (x.ravel().tolist() for x in np.indices(right.shape))
    names = [[str(k) for k in range(n)] for n in (n_items, n_judges)]
    (items, item_of, of_item), (judges, judge_of, of_judge) = (
        (set(each), dict(enumerate(each)), {k: i for i, k in enumerate(each)}) for each in names
    )
    data = Dataset(
        item_ids=items,
        subject_ids=judges,
        item_id_to_ix=of_item,
        ix_to_item_id=item_of,
        subject_id_to_ix=of_judge,
        ix_to_subject_id=judge_of,
        observation_subjects=judge,
        observation_items=item,
        observations=right.ravel().astype(float).tolist(),
        training_example=[True] * right.size,
    )
    config = IrtConfig(model_type="2pl", priors="hierarchical", epochs=epochs)
    trainer = IrtModelTrainer(config=config, data_path=None, dataset=data, verbose=False)
    trainer.train(epochs=epochs)
    exported = trainer.irt_model.export()
    return in_arrays(exported["ability"], exported["diff"], np.log(exported["disc"]))


@in_float64
def in_arrays(
    ability: ArrayLike, difficulty: ArrayLike, log_discrimination: ArrayLike
) -> Parameters:
    """Return parameters as JAX arrays in the model's container."""
    return Parameters(*(jnp.asarray(x) for x in (ability, difficulty, log_discrimination)))
