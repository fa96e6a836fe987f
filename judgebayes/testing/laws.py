"""Laws of methods: invariances (for example to the order of items), and outputs that are probabilities.

The laws are tested on simulated votes of four judges, some of them missing, on forty items, some of them
unlabelled. `tests/laws` tests the methods of this package against more laws.
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
from judgebayes.evaluate.by_loop import predict_checked
from judgebayes.evaluate.plans import is_jax
from judgebayes.inference.registry import Traits
from judgebayes.votes.array import MISSING, Votes

__all__ = ["check_aggregator", "check_calibrator"]

ITEMS, SAMPLES, SILENT = 40, 2, 3
"""The numbers of items and of votes per judge, and the item without votes."""
ACCURACY = (0.9, 0.75, 0.65, 0.55)
TOLERANCE = 1e-6
"""The largest accepted difference of two probabilities that must be equal."""
Probs = np.ndarray
Law = Callable[[], None]


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
    data = _simulated(n_classes, seed)
    votes, labels = data
    weight = np.ones(ITEMS)
    key = jax.random.key(0)

    def predict(votes: Votes, labels: np.ndarray, weight: np.ndarray, new: Votes) -> Probs:
        weights = {} if (weight == 1).all() else {"weight": weight}
        return np.exp(
            np.asarray(predict_checked(method.fit(votes, labels, key=key, **weights), new))
        )

    def base() -> Probs:
        return predict(votes, labels, weight, votes)

    labelled = np.flatnonzero(labels >= 0)
    order = np.random.default_rng(1).permutation(ITEMS)
    subset = labelled[:6]
    in_some = np.isin(np.arange(ITEMS), subset)

    def probabilities() -> None:
        base()

    def weight_0() -> None:
        others = np.flatnonzero(~in_some)
        dropped = predict(votes.take(others), labels[others], weight[others], votes)
        _assert_close(predict(votes, labels, np.where(in_some, 0.0, 1.0), votes), dropped)

    def weight_2() -> None:
        rows = np.append(np.arange(ITEMS), subset)
        repeated = predict(votes.take(rows), labels[rows], np.ones(len(rows)), votes)
        _assert_close(predict(votes, labels, np.where(in_some, 2.0, 1.0), votes), repeated)

    def unlabelled() -> None:
        _assert_close(
            predict(votes.take(labelled), labels[labelled], weight[labelled], votes), base()
        )

    def items() -> None:
        permuted = predict(votes.take(order), labels[order], weight, votes.take(order))
        _assert_close(permuted, base()[order])

    def judges() -> None:
        reversed_judges = replace(votes, index=votes.index[:, ::-1])
        _assert_close(predict(reversed_judges, labels, weight, reversed_judges), base())

    def one_item() -> None:
        _assert_close(predict(votes, labels, weight, votes.take(order[:5])), base()[order[:5]])

    def constant() -> None:
        predict(votes, np.where(labels >= 0, 0, MISSING), weight, votes)

    def one_label() -> None:
        predict(votes, np.where(np.arange(ITEMS) == labelled[0], labels, MISSING), weight, votes)

    def sparse() -> None:
        gone = np.random.default_rng(2).random(votes.index.shape) < 0.8
        sparse_votes = replace(votes, index=jnp.where(gone, MISSING, votes.index))
        predict(sparse_votes, labels, weight, sparse_votes)

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
        "answers are probabilities": probabilities,
        "weight 0 = dropped row": weight_0,
        "weight 2 = row twice": weight_2,
        "unlabelled rows": unlabelled,
        "permuting items": items,
        "permuting judges": judges,
        "one item alone": one_item,
        "constant labels": constant,
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
    labelled = np.flatnonzero(labels >= 0)
    order, subset = rng.permutation(ITEMS), labelled[:6]
    in_some = np.isin(np.arange(ITEMS), subset)

    def predict(
        inputs: np.ndarray, labels: np.ndarray, weight: np.ndarray, new: np.ndarray
    ) -> Probs:
        probs = np.exp(np.asarray(method.fit(inputs, labels, weight=weight)(new), float))
        if probs.shape != new.shape or not np.allclose(probs.sum(1), 1, atol=TOLERANCE):
            raise _BrokenLawError(f"the outputs, of shape {probs.shape}, are not probabilities")
        return probs

    def base() -> Probs:
        return predict(log_probs, labels, np.ones(ITEMS), log_probs)

    def probabilities() -> None:
        base()

    def weight_0() -> None:
        dropped = predict(
            log_probs[~in_some], labels[~in_some], np.ones((~in_some).sum()), log_probs
        )
        _assert_close(predict(log_probs, labels, np.where(in_some, 0.0, 1.0), log_probs), dropped)

    def weight_2() -> None:
        rows = np.append(np.arange(ITEMS), subset)
        repeated = predict(log_probs[rows], labels[rows], np.ones(len(rows)), log_probs)
        _assert_close(predict(log_probs, labels, np.where(in_some, 2.0, 1.0), log_probs), repeated)

    def unlabelled() -> None:
        labelled_only = predict(
            log_probs[labelled], labels[labelled], np.ones(len(labelled)), log_probs
        )
        _assert_close(labelled_only, base())

    def items() -> None:
        probs = predict(log_probs[order], labels[order], np.ones(ITEMS), log_probs[order])
        _assert_close(probs, base()[order])

    def constant() -> None:
        predict(log_probs, np.where(labels >= 0, 0, MISSING), np.ones(ITEMS), log_probs)

    laws: dict[str, Law] = {
        "answers are probabilities": probabilities,
        "weight 0 = dropped row": weight_0,
        "weight 2 = row twice": weight_2,
        "unlabelled rows": unlabelled,
        "permuting items": items,
        "constant labels": constant,
    }
    return _run_laws(laws, dict(exempt or {}), type(method).__name__)


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
