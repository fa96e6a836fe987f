"""The chains of NUTS: their starts, their keys, threads, and the two ways to draw them."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from panels import judged

from judgebayes import BaseRate, Davidson
from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate.splits import random_splits
from judgebayes.evaluate.sweeps import evaluate_methods
from judgebayes.inference import DRPS, MAP, NUTS, Status, nuts
from judgebayes.inference.fit import Fit
from judgebayes.inference.problem import Problem
from judgebayes.models.base import Traits
from judgebayes.votes import Votes

SHORT = NUTS(draws=20, warmup=20, chains=2)


class TwoModes:
    """A parameter with a sharp mode at 0, and another at 2."""

    traits = Traits((), "labelled items")

    def __call__(
        self,
        data: object,  # noqa: ARG002
    ) -> None:
        modes = dist.Normal(jnp.array([0.0, 2.0]), 0.1)
        numpyro.sample("x", dist.MixtureSameFamily(dist.Categorical(jnp.full(2, 0.5)), modes))


@in_float64
def test_chains_with_a_given_start_see_another_mode() -> None:
    problem = Problem(TwoModes(), None, start={"x": jnp.zeros(())})
    sampler = NUTS(draws=100, warmup=100, chains=8)
    result = sampler.solve(problem, jax.random.key(0))
    assert result.chains is not None
    means = np.asarray(result.chains.draws["x"]).mean(1)
    assert means.min() < 0.5 < 1.5 < means.max()
    assert int(result.status) == Status.UNMIXED


class Spread:
    """Two normal parameters and the log of their standard deviation."""

    traits = Traits((), "labelled items")

    def __call__(
        self,
        data: object,  # noqa: ARG002
    ) -> None:
        log_sigma = numpyro.sample("log_sigma", dist.Normal(0.0, 0.5))
        numpyro.sample("x", dist.Normal(0.0, jnp.exp(log_sigma)).expand((2,)).to_event(1))


with jax.enable_x64(True):
    ZERO = jnp.zeros(())
PROBLEMS = {
    "uniform": Problem(TwoModes(), None),
    "given start": Problem(TwoModes(), None, start={"x": ZERO}),
    "in turns": Problem(Spread(), None, size=jnp.ones(()), in_turns=True),
}


@pytest.mark.parametrize("kind", PROBLEMS)
@in_float64
def test_draw_returns_what_solve_returns(kind: str) -> None:
    solved = SHORT.solve(PROBLEMS[kind], jax.random.key(1)).chains
    drawn = SHORT.draw(PROBLEMS[kind], jax.random.key(1))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-9), solved, drawn)


@in_float64
def test_chains_in_turns_have_the_exact_moments() -> None:
    sampler = NUTS(draws=1000, warmup=200, chains=4)
    solve = jax.jit(lambda key: sampler.solve(PROBLEMS["in turns"], key).draws)
    x, log_sigma = (np.asarray(solve(jax.random.key(0))[name]) for name in ("x", "log_sigma"))
    moments = [log_sigma.mean(), log_sigma.std(), x.mean(), np.cov(x.T)[0, 1]]
    np.testing.assert_allclose(moments, [0, 0.5, 0, 0], atol=0.1)
    np.testing.assert_allclose(x.std(), np.exp(0.25), rtol=0.1)


@pytest.mark.parametrize("kind", PROBLEMS)
def test_each_key_is_used_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPyro uses some of its own keys twice, so that stand-ins for its functions take ours."""

    def initial(keys: Any, *_: object, **__: object) -> Any:
        start = {"x": jax.vmap(jax.random.normal)(keys)}
        return SimpleNamespace(param_info=SimpleNamespace(z=start), potential_fn=None)

    class Kernel:
        def __init__(self, **_: object) -> None: ...

        def init(self, key: Any, _: int, position: Any, *__: object) -> Any:
            return position, jax.random.normal(key)

    monkeypatch.setattr(nuts, "initialize_model", initial)
    monkeypatch.setattr(nuts.infer, "NUTS", Kernel)
    with jax.debug_key_reuse(True):
        state = jax.jit(lambda key: SHORT._chains(PROBLEMS[kind], key)[0])(jax.random.key(0))
    noise = np.asarray(state[1])
    assert len(set(noise.ravel().tolist())) == SHORT.chains  # a key of its own for each chain

    def twice(self: NUTS, problem: Problem, positions: Any, key: Any) -> Any:
        return apart(
            self, problem, jax.tree.map(lambda z: z + jax.random.normal(key), positions), key
        )

    apart = NUTS._apart
    monkeypatch.setattr(NUTS, "_apart", twice)
    if kind == "given start":  # others need no key of ours
        with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError):
            jax.jit(lambda key: SHORT._chains(PROBLEMS[kind], key)[0])(jax.random.key(0))


def test_threads_may_fit_by_nuts() -> None:
    """Traced together on NumPyro's one stack of handlers, 11 of 12 fits raised."""

    def mean(seed: int) -> float:
        with jax.enable_x64(True):  # the setting is a thread's own
            result = SHORT.solve(PROBLEMS["uniform"], jax.random.key(seed))
            return float(result.draws["x"].mean())

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(mean, range(4)))
    assert together[3] == pytest.approx(mean(3), rel=1e-9)
    assert len(set(together)) == 4


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Sampled:
    """A method that samples the same posterior whatever the votes."""

    inference: NUTS

    def fit(
        self,
        votes: Votes,  # noqa: ARG002
        labels: object,  # noqa: ARG002
        *,
        weight: object = None,  # noqa: ARG002
        key: Any = None,
    ) -> Fit:
        share = jax.nn.sigmoid(self.inference.solve(PROBLEMS["uniform"], key).draws["x"].mean())
        return Fit(
            BaseRate(), {"log_rates": jnp.log(jnp.stack([share, 1 - share]))[None]}, jnp.asarray(0)
        )


def test_methods_fitted_by_nuts_are_compared() -> None:
    votes, labels = judged(np.array([0.9, 0.7]), 24)
    methods = {f"{n} draws": Sampled(NUTS(draws=n, warmup=4, chains=2)) for n in (4, 5, 6)}
    splits = random_splits(24, splits=2, calibration=12)
    fit_on = dict.fromkeys(methods, "calibration")
    with jax.enable_x64(True):
        results = evaluate_methods(methods, votes, labels, splits, fit_on=fit_on)  # type: ignore[arg-type]
    for result in results.values():
        assert np.isfinite(np.asarray(result.log_probs[:, :10])).all()


@pytest.mark.parametrize("inference", [DRPS(starts=1), MAP(starts=1)])
@in_float64
def test_a_problem_first_used_in_compiled_code_is_used_again(
    inference: Any, votes: Votes, labels: np.ndarray
) -> None:
    """What was cached there were tracers: the next use raised UnexpectedTracerError."""
    problem = Davidson().problem(votes, labels)
    compiled = jax.jit(lambda key: inference.solve(problem, key).draws)(jax.random.key(0))
    assert all(np.isfinite(np.asarray(x)).all() for x in problem.box()[2])
    assert {site["fn"].mean.shape for site in problem.latent.values()}
    again = inference.solve(problem, jax.random.key(0)).draws
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6), compiled, again)
