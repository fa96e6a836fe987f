"""A summed-out distribution agrees with NumPyro's enumeration of the explicit model."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import textbook
from numpyro.infer import Predictive
from numpyro.infer.util import log_density
from program_cases import CLASSES, JUDGES, counts, items, panel

from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.problem import Problem
from judgebayes.models.base import Model
from judgebayes.models.beta_binomial import BetaBinomialModel
from judgebayes.models.dawid_skene import DawidSkeneModel
from judgebayes.models.irt import ItemResponseModel
from judgebayes.models.item_validator import ItemModel
from judgebayes.models.one_coin import OneCoinModel
from judgebayes.models.pooled_dawid_skene import PooledDawidSkeneModel
from judgebayes.models.shared_difficulty import SharedDifficultyModel

pytest.importorskip("funsor")
from numpyro.contrib.funsor import config_enumerate, enum
from numpyro.contrib.funsor.infer_util import log_density as enumerated_log_density

NUMPYROS_BETA_BINOMIAL = 2e-5
"""The largest error of its log-probabilities, over ten items."""
CASES: dict[str, tuple[Callable[..., None], Model, Any, float]] = {
    f"{name}, noise {noise}": (partial(story, n_classes=CLASSES, noise=noise), model, panel, 1e-11)
    for noise in (0.0, 0.2)
    for name, story, model in (
        ("one coin", textbook.one_coin, OneCoinModel(CLASSES, noise=noise)),
        ("dawid-skene", textbook.dawid_skene, DawidSkeneModel(CLASSES, noise=noise)),
        (
            "shared difficulty",
            textbook.shared_difficulty,
            SharedDifficultyModel(CLASSES, symmetric=True, noise=noise),
        ),
        (
            "pooled dawid-skene",
            textbook.pooled_dawid_skene,
            PooledDawidSkeneModel(CLASSES, noise=noise),
        ),
        ("irt", textbook.irt, ItemResponseModel(CLASSES, noise=noise)),
    )
} | {
    "items": (
        partial(textbook.items_of_generators, n_generators=3),
        ItemModel(3, points=1),
        items,
        1e-11,
    ),
    "mixture": (textbook.beta_binomial, BetaBinomialModel(7), counts, NUMPYROS_BETA_BINOMIAL),
}


def enumerated(story: Callable[..., None], data: Any, at: dict[str, jax.Array]) -> jax.Array:
    """Return the log-density of the explicit model, with classes enumerated by NumPyro."""
    plates = -3  # the next free dimension to the left of all plates
    density, _ = enumerated_log_density(enum(config_enumerate(story), plates), (data,), {}, at)
    return density


def points(model: Model, data: Any, size: int) -> list[dict[str, jax.Array]]:
    """Return draws of the parameters from the prior."""
    names: list[str] = []

    @jax.jit
    def draw(key: jax.Array) -> dict[str, jax.Array]:
        names.extend(Problem(model, data).latent)
        return Predictive(model, num_samples=size)(key, data)

    prior = draw(jax.random.key(0))
    return [{n: prior[n][place] for n in names} for place in range(size)]


@pytest.mark.parametrize("name", CASES)
@in_float64
def test_the_density_is_that_of_the_enumerated_model(name: str) -> None:
    story, model, make, tolerance = CASES[name]
    data = make()._replace(weight=None)
    both = jax.jit(lambda at: (log_density(model, (data,), {}, at)[0], enumerated(story, data, at)))
    for at in points(model, data, 4):
        density, wanted = map(float, both(at))
        # The explicit model's votes do not include the uniform label of an unlabelled item.
        assert density == pytest.approx(wanted, abs=tolerance * max(1, abs(wanted)))


@pytest.mark.parametrize("noise", [0.0, 0.2])
@in_float64
def test_a_wrong_summation_is_detected(noise: float) -> None:
    """The same comparison fails for another noise, and for votes of one item moved to another."""
    story, model, make, tolerance = CASES[f"dawid-skene, noise {noise}"]
    data = make()._replace(weight=None)
    rolled = data._replace(votes=jnp.roll(data.votes, 1, axis=0))
    others = ((DawidSkeneModel(CLASSES, noise=0.1), data), (model, rolled))

    @jax.jit
    def every(at: dict[str, jax.Array]) -> tuple[jax.Array, list[jax.Array]]:
        wrong = [log_density(other, (changed,), {}, at)[0] for other, changed in others]
        return enumerated(story, data, at), wrong

    wanted, wrong = every(points(model, data, 1)[0])
    for density in wrong:
        assert abs(float(density) - float(wanted)) > 1e3 * tolerance
    assert np.shape(data.votes)[1] == JUDGES
