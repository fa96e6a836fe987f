"""Compiled programs are forgotten before the process has too many memory maps."""

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from judgebayes.compiled import float64
from judgebayes.compiled.float64 import in_float64


@pytest.fixture
def cleared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[None]:
    """A process with 60 of 100 maps; the list grows with every clearing."""
    calls: list[None] = []
    maps, most = tmp_path / "maps", tmp_path / "most"
    maps.write_text("a map\n" * 60)
    most.write_text("100\n")
    monkeypatch.setattr(float64, "MAPS", maps)
    monkeypatch.setattr(float64, "MOST", most)
    monkeypatch.setattr(float64, "_last_count", [-float64.INTERVAL])
    monkeypatch.setattr(jax, "clear_caches", lambda: calls.append(None))
    return calls


@in_float64
def entry_point() -> None:
    """Do nothing."""


def test_an_entry_point_makes_room_and_the_next_second_counts_nothing(cleared: list[None]) -> None:
    entry_point()
    entry_point()
    assert len(cleared) == 1


def test_a_process_with_few_maps_keeps_its_programs(cleared: list[None]) -> None:
    float64.MAPS.write_text("a map\n" * 40)
    entry_point()
    assert not cleared


def test_a_system_without_a_limit_keeps_its_programs(cleared: list[None]) -> None:
    float64.MOST.unlink()
    entry_point()
    assert not cleared


def test_programs_may_be_forgotten_while_another_is_traced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    few = tmp_path / "few"
    few.write_text("1")
    monkeypatch.setattr(float64, "MOST", few)
    monkeypatch.setattr(float64, "INTERVAL", 0.0)
    inner = jax.jit(lambda x: x + 1)

    @jax.jit
    def outer(x: jax.Array) -> jax.Array:
        x = inner(x)
        entry_point()
        return inner(x) * jax.lax.fori_loop(0, 2, lambda _, y: inner(y), x)

    assert [float(outer(jnp.asarray(x))) for x in (1.0, 2.0)] == [12.0, 20.0]


@pytest.mark.skipif(not float64.MAPS.exists(), reason="no /proc")
def test_forgetting_programs_returns_their_maps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def count() -> int:
        return len(float64.MAPS.read_bytes().splitlines())

    for n in range(30):
        jax.jit(lambda x, n=n: jnp.sin(x) + n)(jnp.ones(2 + n))
    used = count()
    few = tmp_path / "few"
    few.write_text("1")
    monkeypatch.setattr(float64, "MOST", few)
    monkeypatch.setattr(float64, "_last_count", [-float64.INTERVAL])
    entry_point()
    assert count() < used - 30
