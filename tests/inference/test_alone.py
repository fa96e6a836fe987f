"""Models run one at a time: two on NumPyro's one stack of handlers would share their sites."""

import time
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from judgebayes.inference.alone import alone


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


def test_a_model_may_run_another() -> None:
    assert alone(lambda: alone(sites)(["a"]))() == ["a"]
