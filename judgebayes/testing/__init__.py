"""Checks of a user's own methods against laws: `check_aggregator`, `check_calibrator`.

This package may not import `report` or any package after it.

Laws are invariances (for example to the order of items), and outputs that are probabilities. They are
tested on simulated votes of four judges, some of them missing, on forty items, some of them unlabelled.
`tests/laws` tests the methods of this package against more laws.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.one_split import is_jax, predict_checked
from judgebayes.inference.registry import Traits
from judgebayes.votes.array import MISSING, Votes

ITEMS, SAMPLES, SILENT = 40, 2, 3
"""The numbers of items and of votes per judge, and the item without votes."""
ACCURACY = (0.9, 0.75, 0.65, 0.55)
TOLERANCE = 1e-6
"""The largest accepted difference of two probabilities that must be equal."""
Probs = np.ndarray
Law = Callable[[], object]


class _BrokenLawError(AssertionError):
    """A law does not hold."""


@in_float64
def check_aggregator(
    method: Any, *, n_classes: int = 2, exempt: Mapping[str, str] | None = None, seed: int = 0
) -> pd.DataFrame:
    """Test the laws of aggregators on a method, and return a row per law.

    Parameters
    ----------
    method
        An object with `fit(votes, labels, weight=..., key=...)`.
    n_classes
        Number of classes of the simulated votes.
    exempt
        Laws that the method need not obey, with reasons. Its declared traits exempt it too (unlabelled
        items change a method that learns from them).
    seed
        Seed of the votes.

    Returns
    -------
    pandas.DataFrame
        Columns `law` and `outcome`: "holds", or the reason why the law was not tested.

    Raises
    ------
    AssertionError
        If laws are broken; the message has a line per broken law.
    """
    votes, labels = _simulated(n_classes, seed)
    key = jax.random.key(0)

    def on(votes: Votes, labels: np.ndarray, weight: np.ndarray, new: Votes) -> Probs:
        weights = {} if (weight == 1).all() else {"weight": weight}
        return np.exp(
            np.asarray(predict_checked(method.fit(votes, labels, key=key, **weights), new))
        )

    def predict(rows: np.ndarray, labels: np.ndarray, weight: np.ndarray, new: np.ndarray) -> Probs:
        return on(votes.take(rows), labels, weight, votes.take(new))

    every, weight = np.arange(ITEMS), np.ones(ITEMS)
    labelled, order = np.flatnonzero(labels >= 0), np.random.default_rng(1).permutation(ITEMS)
    common = _common_laws(predict, labels, order)

    def base() -> Probs:
        return predict(every, labels, weight, every)

    def judges() -> None:
        reversed_judges = replace(votes, index=votes.index[:, ::-1])
        _assert_close(on(reversed_judges, labels, weight, reversed_judges), base())

    def one_item() -> None:
        _assert_close(predict(every, labels, weight, order[:5]), base()[order[:5]])

    def one_label() -> None:
        predict(every, np.where(every == labelled[0], labels, MISSING), weight, every)

    def sparse() -> None:
        gone = np.random.default_rng(2).random(votes.index.shape) < 0.8
        sparse_votes = replace(votes, index=jnp.where(gone, MISSING, votes.index))
        on(sparse_votes, labels, weight, sparse_votes)

    def unchanged() -> None:
        before = copy.deepcopy(vars(method)) if hasattr(method, "__dict__") else {}
        base()
        after = vars(method) if hasattr(method, "__dict__") else {}
        if str(before) != str(after):
            raise _BrokenLawError("fit changes the method; it should return a fitted object")

    def compiled() -> None:
        def fit_and_predict(votes: Votes, labels: Any) -> Any:
            return method.fit(votes, labels, key=key)(votes)

        _assert_close(
            np.exp(np.asarray(jax.jit(fit_and_predict)(votes, jnp.asarray(labels)))), base()
        )

    laws: dict[str, Law] = {
        **common,
        "permuting judges": judges,
        "one item alone": one_item,
        "one label": one_label,
        "most votes missing": sparse,
        "fit changes nothing": unchanged,
        "compiled = not compiled": compiled,
    }
    reasons = dict(exempt or {})
    traits = getattr(method, "traits", Traits(""))
    if traits.learns_from_unlabelled:
        reasons["unlabelled rows"] = "its traits declare that it learns from unlabelled items"
    if not is_jax(method):
        reasons["compiled = not compiled"] = "it is not JAX code"
    return _run_laws(laws, reasons, type(method).__name__)


@in_float64
def check_calibrator(
    method: Any, *, n_classes: int = 2, exempt: Mapping[str, str] | None = None, seed: int = 0
) -> pd.DataFrame:
    """Test the laws of calibration maps on a method, like `check_aggregator`.

    Raises
    ------
    AssertionError
        If laws are broken; the message has a line per broken law.
    """
    rng = np.random.default_rng([seed, n_classes])
    truth = rng.integers(0, n_classes, ITEMS)
    logits = 2.0 * (np.eye(n_classes)[truth] + rng.normal(size=(ITEMS, n_classes)))
    log_probs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    labels = np.where(np.arange(ITEMS) % 5 == 0, MISSING, truth)
    order = rng.permutation(ITEMS)

    def predict(rows: np.ndarray, labels: np.ndarray, weight: np.ndarray, new: np.ndarray) -> Probs:
        outputs = method.fit(log_probs[rows], labels, weight=weight)(log_probs[new])
        probs = np.exp(np.asarray(outputs, float))
        if probs.shape != log_probs[new].shape or not np.allclose(probs.sum(1), 1, atol=TOLERANCE):
            raise _BrokenLawError(f"the outputs, of shape {probs.shape}, are not probabilities")
        return probs

    laws = _common_laws(predict, labels, order)
    return _run_laws(laws, dict(exempt or {}), type(method).__name__)


def _common_laws(
    predict: Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], Probs],
    labels: np.ndarray,
    order: np.ndarray,
) -> dict[str, Law]:
    """Return the laws of every method that learns from labelled rows.

    `predict` fits to some rows, with labels and weights, and returns the answers on some rows.
    """
    every, one = np.arange(ITEMS), np.ones(ITEMS)
    labelled = np.flatnonzero(labels >= 0)
    subset = labelled[:6]
    in_some = np.isin(every, subset)
    others = every[~in_some]

    def base() -> Probs:
        return predict(every, labels, one, every)

    def weight_0() -> None:
        weighted = predict(every, labels, np.where(in_some, 0.0, 1.0), every)
        _assert_close(weighted, predict(others, labels[others], one[others], every))

    def weight_2() -> None:
        rows = np.append(every, subset)
        weighted = predict(every, labels, np.where(in_some, 2.0, 1.0), every)
        _assert_close(weighted, predict(rows, labels[rows], np.ones(len(rows)), every))

    def unlabelled() -> None:
        _assert_close(predict(labelled, labels[labelled], one[labelled], every), base())

    def items() -> None:
        _assert_close(predict(order, labels[order], one, order), base()[order])

    def constant() -> None:
        predict(every, np.where(labels >= 0, 0, MISSING), one, every)

    return {
        "answers are probabilities": base,
        "weight 0 = dropped row": weight_0,
        "weight 2 = row twice": weight_2,
        "unlabelled rows": unlabelled,
        "permuting items": items,
        "constant labels": constant,
    }


def _run_laws(laws: Mapping[str, Law], reasons: Mapping[str, str], name: str) -> pd.DataFrame:
    unknown = [law for law in reasons if law not in laws]
    if unknown:
        raise AssertionError(f"There is no law {unknown[0]!r}; choose one of: {', '.join(laws)}.")
    outcomes, broken = {}, []
    for law, holds in laws.items():
        outcomes[law] = reasons.get(law, "holds")
        if law in reasons:
            continue
        try:
            holds()
        except Exception as error:  # an exception of the user's class is a broken law
            broken.append(f"  {law}: {_describe(error)}")
    if broken:
        raise AssertionError(f"{name} breaks {len(broken)} law(s):\n" + "\n".join(broken))
    return pd.DataFrame({"law": list(outcomes), "outcome": list(outcomes.values())})


def _describe(error: Exception) -> str:
    is_expected = isinstance(error, _BrokenLawError | JudgeBayesError)
    return str(error) if is_expected else f"{type(error).__name__}: {error}"


def _assert_close(one: Probs, other: Probs) -> None:
    difference = float(np.abs(one - other).max())
    if not difference <= TOLERANCE:
        raise _BrokenLawError(f"probabilities differ by up to {difference:.3g}")


def _simulated(n_classes: int, seed: int) -> tuple[Votes, np.ndarray]:
    """Return votes of judges with different accuracy, a tenth missing, and labels, a fifth unknown."""
    rng = np.random.default_rng([seed, n_classes])
    truth = rng.integers(0, n_classes, ITEMS)
    shape = (ITEMS, len(ACCURACY), SAMPLES)
    other = (truth[:, None, None] + rng.integers(1, n_classes, shape)) % n_classes
    right = rng.random(shape) < np.array(ACCURACY)[:, None]
    index = np.where(right, truth[:, None, None], other)
    index[rng.random(shape) < 0.1] = MISSING
    index[SILENT] = MISSING
    labels = np.where(np.arange(ITEMS) % 5 == 0, MISSING, truth)
    return Votes(jnp.asarray(index, jnp.int8), None, None, None, n_classes), labels


__all__ = ["check_aggregator", "check_calibrator"]
