"""Laws of methods: what must not matter does not matter, and answers are probabilities.

A law is tried on simulated votes of four judges, some of them missing, on forty items, some without a
label. `tests/laws` holds the methods of this package to more of them.
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
from judgebayes.evaluate.by_loop import answers_of, is_jax
from judgebayes.inference.registry import Traits
from judgebayes.votes.array import MISSING, Votes

__all__ = ["check_aggregator", "check_calibrator"]

ITEMS, SAMPLES, SILENT = 40, 2, 3
"""How many items and votes of a judge there are, and the item that has no vote."""
ACCURACY = (0.9, 0.75, 0.65, 0.55)
APART = 1e-6
"""What two answers of the same may differ by, in probability."""
Probs = np.ndarray
Law = Callable[[], None]


class _BrokenLawError(AssertionError):
    """A law does not hold."""


@in_float64
def check_aggregator(
    method: Any, *, n_classes: int = 2, exempt: Mapping[str, str] | None = None, seed: int = 0
) -> pd.DataFrame:
    """Try the laws of aggregators on a method, and return a row per law.

    Parameters
    ----------
    method
        What has `fit(votes, labels, weight=..., key=...)`.
    n_classes
        Of the simulated votes.
    exempt
        Laws that the method need not obey, and why. Its declared traits exempt it too: a method that
        learns from unlabelled items is changed by them.
    seed
        Of the votes.

    Returns
    -------
    pandas.DataFrame
        Columns `law` and `outcome`: "holds", or why the law was not tried.

    Raises
    ------
    AssertionError
        If a law is broken: all that are, a line each.
    """
    data = _simulated(n_classes, seed)
    votes, labels = data
    weight = np.ones(ITEMS)
    key = jax.random.key(0)

    def answers(votes: Votes, labels: np.ndarray, weight: np.ndarray, new: Votes) -> Probs:
        given = {} if (weight == 1).all() else {"weight": weight}
        return np.exp(np.asarray(answers_of(method.fit(votes, labels, key=key, **given), new)))

    def base() -> Probs:
        return answers(votes, labels, weight, votes)

    known = np.flatnonzero(labels >= 0)
    order = np.random.default_rng(1).permutation(ITEMS)
    some = known[:6]
    inside = np.isin(np.arange(ITEMS), some)

    def probabilities() -> None:
        base()

    def weight_0() -> None:
        left = np.flatnonzero(~inside)
        dropped = answers(votes.take(left), labels[left], weight[left], votes)
        _alike(answers(votes, labels, np.where(inside, 0.0, 1.0), votes), dropped)

    def weight_2() -> None:
        twice = np.append(np.arange(ITEMS), some)
        repeated = answers(votes.take(twice), labels[twice], np.ones(len(twice)), votes)
        _alike(answers(votes, labels, np.where(inside, 2.0, 1.0), votes), repeated)

    def unlabelled() -> None:
        _alike(answers(votes.take(known), labels[known], weight[known], votes), base())

    def items() -> None:
        found = answers(votes.take(order), labels[order], weight, votes.take(order))
        _alike(found, base()[order])

    def judges() -> None:
        turned = replace(votes, index=votes.index[:, ::-1])
        _alike(answers(turned, labels, weight, turned), base())

    def alone() -> None:
        _alike(answers(votes, labels, weight, votes.take(order[:5])), base()[order[:5]])

    def constant() -> None:
        answers(votes, np.where(labels >= 0, 0, MISSING), weight, votes)

    def one_label() -> None:
        answers(votes, np.where(np.arange(ITEMS) == known[0], labels, MISSING), weight, votes)

    def sparse() -> None:
        gone = np.random.default_rng(2).random(votes.index.shape) < 0.8
        thin = replace(votes, index=jnp.where(gone, MISSING, votes.index))
        answers(thin, labels, weight, thin)

    def unchanged() -> None:
        before = copy.deepcopy(vars(method)) if hasattr(method, "__dict__") else {}
        base()
        after = vars(method) if hasattr(method, "__dict__") else {}
        if str(before) != str(after):
            raise _BrokenLawError("fit changes the method; it should return a fitted object")

    def compiled() -> None:
        def both(votes: Votes, labels: Any) -> Any:
            return method.fit(votes, labels, key=key)(votes)

        _alike(np.exp(np.asarray(jax.jit(both)(votes, jnp.asarray(labels)))), base())

    laws: dict[str, Law] = {
        "answers are probabilities": probabilities,
        "weight 0 = dropped row": weight_0,
        "weight 2 = row twice": weight_2,
        "unlabelled rows": unlabelled,
        "permuting items": items,
        "permuting judges": judges,
        "one item alone": alone,
        "constant labels": constant,
        "one label": one_label,
        "most votes missing": sparse,
        "fit changes nothing": unchanged,
        "compiled = not compiled": compiled,
    }
    reasons = dict(exempt or {})
    traits = getattr(method, "traits", Traits(""))
    if traits.learns_from_unlabelled:
        reasons["unlabelled rows"] = "it learns from unlabelled items, as its traits say"
    if not is_jax(method):
        reasons["compiled = not compiled"] = "it is no JAX code"
    return _tried(laws, reasons, type(method).__name__)


@in_float64
def check_calibrator(
    method: Any, *, n_classes: int = 2, exempt: Mapping[str, str] | None = None, seed: int = 0
) -> pd.DataFrame:
    """Try the laws of calibration maps on a method, as `check_aggregator` does.

    Raises
    ------
    AssertionError
        If a law is broken: all that are, a line each.
    """
    rng = np.random.default_rng([seed, n_classes])
    truth = rng.integers(0, n_classes, ITEMS)
    logits = 2.0 * (np.eye(n_classes)[truth] + rng.normal(size=(ITEMS, n_classes)))
    log_probs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    labels = np.where(np.arange(ITEMS) % 5 == 0, MISSING, truth)
    known = np.flatnonzero(labels >= 0)
    order, some = rng.permutation(ITEMS), known[:6]
    inside = np.isin(np.arange(ITEMS), some)

    def answers(
        given: np.ndarray, labels: np.ndarray, weight: np.ndarray, new: np.ndarray
    ) -> Probs:
        found = np.exp(np.asarray(method.fit(given, labels, weight=weight)(new), float))
        if found.shape != new.shape or not np.allclose(found.sum(1), 1, atol=APART):
            raise _BrokenLawError(f"the answers, of shape {found.shape}, are no probabilities")
        return found

    def base() -> Probs:
        return answers(log_probs, labels, np.ones(ITEMS), log_probs)

    def probabilities() -> None:
        base()

    def weight_0() -> None:
        left = answers(log_probs[~inside], labels[~inside], np.ones((~inside).sum()), log_probs)
        _alike(answers(log_probs, labels, np.where(inside, 0.0, 1.0), log_probs), left)

    def weight_2() -> None:
        twice = np.append(np.arange(ITEMS), some)
        repeated = answers(log_probs[twice], labels[twice], np.ones(len(twice)), log_probs)
        _alike(answers(log_probs, labels, np.where(inside, 2.0, 1.0), log_probs), repeated)

    def unlabelled() -> None:
        own = answers(log_probs[known], labels[known], np.ones(len(known)), log_probs)
        _alike(own, base())

    def items() -> None:
        found = answers(log_probs[order], labels[order], np.ones(ITEMS), log_probs[order])
        _alike(found, base()[order])

    def constant() -> None:
        answers(log_probs, np.where(labels >= 0, 0, MISSING), np.ones(ITEMS), log_probs)

    laws: dict[str, Law] = {
        "answers are probabilities": probabilities,
        "weight 0 = dropped row": weight_0,
        "weight 2 = row twice": weight_2,
        "unlabelled rows": unlabelled,
        "permuting items": items,
        "constant labels": constant,
    }
    return _tried(laws, dict(exempt or {}), type(method).__name__)


def _tried(laws: Mapping[str, Law], reasons: Mapping[str, str], name: str) -> pd.DataFrame:
    strange = [law for law in reasons if law not in laws]
    if strange:
        raise AssertionError(f"There is no law {strange[0]!r}; there are {', '.join(laws)}.")
    outcomes, broken = {}, []
    for law, holds in laws.items():
        outcomes[law] = reasons.get(law, "holds")
        if law in reasons:
            continue
        try:
            holds()
        except Exception as error:  # what a user's class raises is part of the answer
            broken.append(f"  {law}: {_what(error)}")
    if broken:
        raise AssertionError(f"{name} breaks {len(broken)} law(s):\n" + "\n".join(broken))
    return pd.DataFrame({"law": list(outcomes), "outcome": list(outcomes.values())})


def _what(error: Exception) -> str:
    own = isinstance(error, _BrokenLawError | JudgeBayesError)
    return str(error) if own else f"{type(error).__name__}: {error}"


def _alike(one: Probs, other: Probs) -> None:
    apart = float(np.abs(one - other).max())
    if not apart <= APART:
        raise _BrokenLawError(f"probabilities differ by up to {apart:.3g}")


def _simulated(n_classes: int, seed: int) -> tuple[Votes, np.ndarray]:
    """Return votes of judges of different accuracy, a tenth missing, and labels, a fifth unknown."""
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
