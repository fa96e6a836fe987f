"""Models run one at a time: two on NumPyro's one stack of handlers would mix their sites."""

import inspect
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

import judgebayes
from judgebayes.inference.problem import Problem, log_density, numpyro_lock
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


def test_densities_in_several_threads_do_not_mix_sites() -> None:
    """As the methods of one comparison compute them, each in its own thread."""

    def density(name: str) -> float:
        def model() -> None:
            for n in range(5):
                numpyro.sample(f"{name} {n}", dist.Normal(0.0, 1.0))
                time.sleep(0.005)

        return float(log_density(model, {f"{name} {n}": jnp.zeros(()) for n in range(5)}))

    with ThreadPoolExecutor(4) as pool:
        computed = list(pool.map(density, "abcd"))
    np.testing.assert_allclose(computed, -2.5 * np.log(2 * np.pi), rtol=1e-6)


def test_the_library_computes_densities_under_the_lock_only() -> None:
    """NumPyro's own function takes no lock."""
    unlocked = re.compile(r"numpyro\.infer\.util import .*\blog_density|util\.log_density")
    library = Path(inspect.getfile(judgebayes)).parent
    users = [path for path in library.rglob("*.py") if unlocked.search(path.read_text())]
    assert [path.name for path in users] == ["problem.py"]


def test_a_model_may_run_another() -> None:
    assert numpyro_lock(lambda: numpyro_lock(sites)(["a"]))() == ["a"]
