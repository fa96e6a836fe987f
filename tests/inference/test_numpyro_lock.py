"""Models run one at a time: two on NumPyro's one stack of handlers would share their sites."""

import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from judgebayes.inference.numpyro_lock import alone
from judgebayes.inference.problem import Problem
from judgebayes.models.base import Traits


def sites(names: list[str]) -> list[str]:
    """The sites that a trace of a model sees, which takes its time over each."""

    def model() -> None:
        for name in names:
            numpyro.sample(name, dist.Normal(0.0, 1.0), obs=jnp.zeros(()))
            time.sleep(0.005)

    return list(numpyro.handlers.trace(model).get_trace())


def test_threads_that_run_models_at_the_same_time_do_not_meet() -> None:
    models = [[f"{k} {n}" for n in range(5)] for k in range(4)]
    with ThreadPoolExecutor(len(models)) as pool:
        assert list(pool.map(alone(sites), models)) == models


def test_threads_may_ask_for_the_sites_of_their_problems() -> None:
    """As every fit of a model does, whatever its inference."""

    class Slow:
        traits = Traits((), "labelled items")

        def __init__(self, name: str) -> None:
            self.name = name

        def __call__(
            self,
            data: object,  # noqa: ARG002
            *,
            observed: Collection[str] | None = None,  # noqa: ARG002
        ) -> None:
            for n in range(5):
                numpyro.sample(f"{self.name} {n}", dist.Normal(0.0, 1.0))
                time.sleep(0.005)

    def latent(name: str) -> list[str]:
        problem = Problem(Slow(name), None)

        def ask() -> list[str]:
            return list(problem.latent)

        return alone(ask)() if name in "ac" else ask()  # some within a fit that is alone itself

    names = ["a", "b", "c", "d"]
    with ThreadPoolExecutor(len(names)) as pool:
        found = list(pool.map(latent, names))
    assert found == [[f"{name} {n}" for n in range(5)] for name in names]


def test_a_model_may_run_another() -> None:
    assert alone(lambda: alone(sites)(["a"]))() == ["a"]
