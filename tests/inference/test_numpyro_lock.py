"""Models run one at a time: two on NumPyro's one stack of handlers would mix their sites."""

import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from judgebayes.inference.numpyro_lock import numpyro_lock
from judgebayes.inference.problem import Problem
from judgebayes.models.base import Traits


def sites(names: list[str]) -> list[str]:
    """The sites in the trace of a model that sleeps at each of them."""

    def model() -> None:
        for name in names:
            numpyro.sample(name, dist.Normal(0.0, 1.0), obs=jnp.zeros(()))
            time.sleep(0.005)

    return list(numpyro.handlers.trace(model).get_trace())


def test_threads_that_run_models_at_the_same_time_do_not_mix_sites() -> None:
    models = [[f"{k} {n}" for n in range(5)] for k in range(4)]
    with ThreadPoolExecutor(len(models)) as pool:
        assert list(pool.map(numpyro_lock(sites), models)) == models


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

        return (
            numpyro_lock(ask)() if name in "ac" else ask()
        )  # for some, the thread already holds the lock

    names = ["a", "b", "c", "d"]
    with ThreadPoolExecutor(len(names)) as pool:
        traced = list(pool.map(latent, names))
    assert traced == [[f"{name} {n}" for n in range(5)] for name in names]


def test_a_model_may_run_another() -> None:
    assert numpyro_lock(lambda: numpyro_lock(sites)(["a"]))() == ["a"]
