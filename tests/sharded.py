"""A script for test_devices: a sweep on one device and on all devices.

`sharded.py` alone uses the virtual devices of its environment; `sharded.py RANK COUNT PORT` is one
of several processes that share the work.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from panels import judged

from judgebayes import BaseRate, Identity, OneCoin
from judgebayes.evaluate import engine
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_splits, sweep
from judgebayes.votes import Votes


@contextmanager
def batches_of(size: int | None) -> Iterator[None]:
    """Give batches of splits a size; None leaves it to the memory."""
    with pytest.MonkeyPatch.context() as patch:
        if size is not None:
            patch.setattr(engine, "splits_in_memory", lambda *_: size)
        yield


def swept(devices: list[Any] | None) -> list[float]:
    """Splits that divide evenly or not, in batches with a short last one, with calibrators."""
    votes, labels = judged(np.array([0.9, 0.7, 0.6]), 24, missing=0.2, seed=1)
    values = []
    for n, maps in ((5, None), (8, None), (12, None), (5, {"none": Identity()})):
        splits = random_splits(24, splits=n, calibration=16, seed=0)
        with batches_of(1 if n == 12 else None):
            table = sweep(
                {"one-coin": OneCoin()},
                votes,
                labels,
                splits,
                fit_on="calibration",
                calibrators=maps,
                metrics=("nll", "mae"),
                devices=devices,
            )
            values += table["value"].tolist()
            if n == 12:
                whole = evaluate_splits(
                    OneCoin(), votes, labels, splits, fit_on="all", devices=devices
                )
                values += np.exp(whole.log_probs).ravel().tolist()
    return values


def counted() -> list[list[int]]:
    """For numbers of devices, splits and sizes of batches: results, and the results expected.

    On as many items, only two splits are fitted together on a device.
    """
    n_items = 100_000
    index = np.arange(n_items)[:, None, None] % 2
    votes = Votes(jnp.asarray(index, jnp.int8), None, None, None, 2)
    counts = []
    for n_devices, n_splits, batch_size in ((2, 20, 3), (3, 28, 3), (5, 13, None), (8, 80, 3)):
        first = np.arange(n_splits)[:, None]
        splits = Splits(first + np.arange(2), first + np.arange(50, 52))
        with batches_of(batch_size):
            result = evaluate_splits(
                BaseRate(),
                votes,
                np.arange(n_items) % 2,
                splits,
                fit_on="calibration",
                devices=jax.devices()[:n_devices],
            )
        same = np.array_equal(np.asarray(result.items)[:, :2], splits.evaluation)
        counts.append([len(result.status), n_splits, int(same)])
    return counts


def main() -> None:
    rank, count = 0, 1
    if len(sys.argv) > 1:
        rank, count, port = (int(x) for x in sys.argv[1:])
        jax.distributed.initialize(f"localhost:{port}", count, rank)
    answer = {
        "devices": len(jax.devices()),
        "sweep": [swept(None), swept(jax.devices())],
    }
    if count == 1 and len(jax.devices()) == 8:
        answer["counts"] = counted()
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
