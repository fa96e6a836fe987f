"""Dawid-Skene by EM, compared with crowd-kit and NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from judgebayes import DawidSkene
from judgebayes.experiments.speed.measure import Row, Side, race
from judgebayes.experiments.speed.panels import dense_panel
from judgebayes.inference import EM
from judgebayes.models.dawid_skene import DawidSkenePrior
from judgebayes.votes import Votes

ITEMS, JUDGES = 100_000, 38
TOLERANCE = 1e-9
FLAT = DawidSkenePrior(0.0, 0.0, 0.0)


def against_peers(rounds: int, share: float = 1.0) -> list[Row]:
    """Return the rows for 100,000 items and 38 judges; a trial run uses a share of the items."""
    votes, labels = dense_panel(int(ITEMS * share), JUDGES)
    with jax.enable_x64(True):
        panel_votes = Votes(jnp.asarray(votes[..., None]), None, None, None, 2)
    unknown = np.full(len(labels), -1)
    method = DawidSkene(EM(tolerance=TOLERANCE), prior=FLAT)

    def ours() -> jax.Array:
        return method.fit(panel_votes, unknown)(panel_votes)

    sides = [Side(ours), Side(lambda: numpy_em(votes, TOLERANCE))]
    names = ["NumPy EM"]
    table = crowd_kit_table(votes)
    if table is not None:
        sides.append(Side(lambda: crowd_kit(table)))
        names.append("crowd-kit DawidSkene")
    race(sides, rounds)
    mine = np.exp(np.asarray(sides[0].answer))
    rows = []
    for name, side, bar in zip(names, sides[1:], (3.0, 40.0), strict=False):
        apart = np.abs(mine - side.answer).max()
        same = f"largest difference of a posterior {apart:.1e}"
        what = f"Dawid-Skene, {len(votes):,} x {JUDGES}, 5 % missing"
        rows.append(Row(what, name, sides[0], side, bar, same))
    return rows


def numpy_em(
    votes: Int[np.ndarray, "item judge"], tolerance: float
) -> Float[np.ndarray, "item class"]:
    """Return class probabilities at the maximum likelihood: EM from vote shares, in matrix products."""
    vote_indicators = np.concatenate([votes == k for k in range(2)], axis=1).astype(float)
    count = np.stack([(votes == k).sum(1) for k in range(2)], axis=1) + 0.5
    responsibilities, last = count / count.sum(1, keepdims=True), -np.inf
    while True:
        share = responsibilities.mean(0)
        cast = (responsibilities.T @ vote_indicators).reshape(2, 2, -1)
        log_confusion = np.log(cast / cast.sum(1, keepdims=True))
        joint = vote_indicators @ log_confusion.reshape(2, -1).T + np.log(share)
        most = joint.max(1, keepdims=True)
        mass = np.exp(joint - most)
        total = mass.sum(1, keepdims=True)
        value, responsibilities = (most + np.log(total)).sum(), mass / total
        if value - last < tolerance * len(votes):
            return responsibilities
        last = value


def crowd_kit_table(votes: Int[np.ndarray, "item judge"]) -> pd.DataFrame | None:
    """Return the votes as a table for crowd-kit; None if it is not installed."""
    try:
        import crowdkit.aggregation  # noqa: F401
    except ImportError:
        return None
    item, judge = np.nonzero(votes >= 0)
    return pd.DataFrame({"task": item, "worker": judge, "label": votes[item, judge]})


def crowd_kit(table: pd.DataFrame) -> Float[np.ndarray, "item class"]:
    """Return crowd-kit's class probabilities; it stops by the change of its mean loss per item."""
    from crowdkit.aggregation import DawidSkene as Peer

    probabilities = Peer(n_iter=100, tol=TOLERANCE).fit_predict_proba(table)
    return probabilities.sort_index()[[0, 1]].to_numpy()
