"""A panel of six judges to diagnose, and helpers for its findings."""

import jax
import jax.numpy as jnp
import numpy as np

from judgebayes.finding import Finding
from judgebayes.votes import Votes

ITEMS = 240
ACCURACY = (0.9, 0.8, 0.75, 0.7, 0.65, 0.6)


def as_votes(index: np.ndarray, n_classes: int = 2, order: np.ndarray | None = None) -> Votes:
    with jax.enable_x64(True):
        given = None if order is None else jnp.asarray(order)
        index = index if index.ndim == 3 else index[..., None]
        return Votes(jnp.asarray(index), None, given, None, n_classes)


def topics(findings: list[Finding], severity: str | None = None) -> set[str]:
    return {f.topic for f in findings if severity in (None, f.severity)}


def about(findings: list[Finding], topic: str) -> Finding:
    return next(f for f in findings if f.topic == topic)


def with_judge(index: np.ndarray, votes: np.ndarray) -> np.ndarray:
    return np.concatenate([index, votes[:, None]], 1)
