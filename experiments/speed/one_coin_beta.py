"""P2's one-coin model and beta map on 100 splits of RewardBench, against NumPy and betacal."""

import jax
import numpy as np
from jaxtyping import Float, Int

from judgebayes import Beta, Calibrated, OneCoin
from judgebayes.arrays import AnyArray
from judgebayes.evaluate.splits import random_splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.experiments.core import Run
from judgebayes.experiments.panels import rewardbench_panel
from judgebayes.experiments.speed.measure import Row, Side, race


def one_coin_beta(run: Run, rounds: int, sample: int = 5) -> list[Row]:
    """Return the row; the peer is timed on `sample` splits."""
    panel = rewardbench_panel(run, broken=True)
    votes, labels = panel.votes, panel.labels
    splits = random_splits(votes.n_items, splits=run.splits, calibration=0.5, seed=0)

    def ours() -> AnyArray:
        beta = Beta(penalty=None, free_slopes=True, clip=float(np.finfo(float).eps))
        method = Calibrated(OneCoin(), beta, share=None)
        evaluation = evaluate_splits(
            method, votes, labels, splits, fit_on="calibration", devices=jax.devices()
        )
        return evaluation.log_probs

    index = np.asarray(votes.index)[..., 0]
    chosen = range(min(sample, len(splits)))
    peer = Side(
        lambda: np.array(
            [by_numpy(index, labels, splits.calibration[s], splits.evaluation[s]) for s in chosen]
        ),
        len(chosen) / len(splits),
    )
    sides = [Side(ours), peer]
    race(sides, rounds)
    size = splits.evaluation.shape[1]
    mine = np.exp(np.asarray(sides[0].answer))[: len(chosen), :size, 1]
    truth = labels[splits.evaluation[: len(chosen)]]
    losses = [nll(p, truth) for p in (mine, peer.answer)]
    what = f"one-coin + beta, {len(splits)} splits of {index.shape[0]:,} x {index.shape[1]}"
    same = f"held-out NLL {losses[0]:.5f} and {losses[1]:.5f}"
    return [Row(what, "NumPy + betacal, a loop", sides[0], peer, 50.0, same)]


def by_numpy(
    index: Int[np.ndarray, "item judge"],
    labels: Int[np.ndarray, " item"],
    calibration: Int[np.ndarray, " calibration"],
    evaluation: Int[np.ndarray, " evaluation"],
) -> Float[np.ndarray, " evaluation"]:
    """Return the probability of class 1 of one split's evaluation items."""
    from betacal import BetaCalibration

    here, truth = index[calibration], labels[calibration]
    right = ((here == truth[:, None]) & (here >= 0)).sum(0)
    weight = np.log(right + 1) - np.log((here >= 0).sum(0) - right + 1)

    def answer(votes: np.ndarray) -> np.ndarray:
        log_odds = np.where(votes == 1, weight, 0).sum(1) - np.where(votes == 0, weight, 0).sum(1)
        return 1 / (1 + np.exp(-log_odds))

    calibrator = BetaCalibration("abm").fit(answer(here).reshape(-1, 1), truth)
    return calibrator.predict(answer(index[evaluation]).reshape(-1, 1))


def nll(p: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean negative log-likelihood from probabilities of class 1."""
    sure = np.clip(np.where(truth == 1, p, 1 - p), 1e-12, None)
    return float(-np.log(sure).mean())
