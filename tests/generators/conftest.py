"""Votes of six judges on the items of five generators, drawn from the impression model."""

from collections.abc import Iterator

import jax
import numpy as np
import pandas as pd
import pytest

from judgebayes.generators import PrecisionCounts, count_votes
from judgebayes.votes import Votes, encode_wide

GENERATORS, JUDGES, ITEMS = 5, 6, 300


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    """Tests compute with the counts, which are 64-bit."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def drawn() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Votes (item, judge) with -1 where missing, labels and generators of the items."""
    rng = np.random.default_rng(5)
    eta = rng.normal(2.0, 0.5, GENERATORS)
    know, base = rng.uniform(0.1, 0.4, JUDGES), rng.normal(0.4, 0.3, JUDGES)
    accept = 1 / (1 + np.exp(-(base + (eta + rng.normal(0, 0.2, GENERATORS))[:, None])))
    generator = np.repeat(np.arange(GENERATORS), ITEMS)
    label = (rng.random(len(generator)) < (1 / (1 + np.exp(-eta)))[generator]).astype(int)
    p = know * label[:, None] + (1 - know) * accept[generator]
    vote = (rng.random(p.shape) < p).astype(int)
    vote[rng.random(p.shape) < 0.05] = -1
    return vote, label, generator


@pytest.fixture(scope="session")
def item_votes(drawn: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Votes:
    frame = pd.DataFrame(drawn[0], columns=[f"judge {j}" for j in range(JUDGES)])
    votes, _ = encode_wide(frame.astype(float).where(frame >= 0), classes=(0, 1))
    return votes


@pytest.fixture(scope="session")
def tallied(item_votes: Votes, drawn: tuple[np.ndarray, np.ndarray, np.ndarray]) -> PrecisionCounts:
    """Counts with every item labelled."""
    return count_votes(item_votes, drawn[1], drawn[2], GENERATORS)
