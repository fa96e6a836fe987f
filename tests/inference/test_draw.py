"""NUTS with progress reports: they change no draw, and an interrupt returns the draws so far."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

from judgebayes import Davidson
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference import NUTS, nuts
from judgebayes.inference.nuts import LEAST_KEPT, Sampling
from judgebayes.inference.problem import Chains
from judgebayes.votes import Votes

SAMPLER = NUTS(draws=64, warmup=50, chains=3)


class CompiledOnce:
    """JAX whose `jit` compiles a function of a name once: all draws here are of one problem and key."""

    def __init__(self) -> None:
        self.compiled: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(jax, name)

    def jit(self, function: Callable[..., Any]) -> Any:
        return self.compiled.setdefault(function.__qualname__, jax.jit(function))


@pytest.fixture(scope="module", autouse=True)
def _compiled_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nuts, "jax", CompiledOnce())
        yield


@pytest.fixture(scope="module")
def draw(votes: Votes, labels: np.ndarray) -> Callable[..., Chains]:
    @in_float64
    def of(callback: Callable[[Sampling], object] | None = None) -> Chains:
        return SAMPLER.draw(Davidson().problem(votes, labels), jax.random.key(3), callback)

    return of


@pytest.fixture(scope="module")
def whole(draw: Callable[..., Chains]) -> Chains:
    """The warm-up by one call of the compiled program, and the draws by one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nuts, "FIRST", 64)
        return draw()


@pytest.mark.parametrize("pause", [0.0, 0.01, 1e9])
def test_pauses_change_no_draw(
    draw: Callable[..., Chains], whole: Chains, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nuts, "PAUSE", pause)
    jax.tree.map(np.testing.assert_array_equal, draw(), whole)


def test_progress_reports_count_steps_and_divergences(
    draw: Callable[..., Chains], whole: Chains
) -> None:
    reports: list[Sampling] = []
    draw(reports.append)
    steps = [s.steps for s in reports]
    assert steps == sorted(steps)
    assert steps[-1] == 50 + 64
    assert all(s.per_second > 0 for s in reports)
    assert reports[-1].diverging == int(whole.diverging.sum())


@pytest.mark.parametrize("after", [10, 50, 50 + LEAST_KEPT - 1, 50 + LEAST_KEPT, 50 + 40])
def test_an_interrupt_returns_the_draws_if_there_are_enough(
    draw: Callable[..., Chains], whole: Chains, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nuts, "PAUSE", 0.0)

    def interrupted(so_far: Sampling) -> None:
        if so_far.steps == after:
            raise KeyboardInterrupt

    if after < 50 + LEAST_KEPT:
        with pytest.raises(KeyboardInterrupt):
            draw(interrupted)
        return
    interrupted_chains = draw(interrupted)
    assert interrupted_chains.diverging.shape == (3, after - 50)
    jax.tree.map(
        lambda x, y: np.testing.assert_array_equal(x, y[:, : after - 50]), interrupted_chains, whole
    )
