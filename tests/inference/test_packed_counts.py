"""Packed votes multiply like the matrix of vote counts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.aggregators import DawidSkene, dawid_skene
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.fast.agreement import FEW_COLUMNS, pack
from judgebayes.inference.fast.dawid_skene_em import counts
from judgebayes.votes import Votes


@pytest.mark.parametrize(("judges", "samples", "n_classes"), [(7, 1, 2), (3, 2, 3), (2, 3, 5)])
@pytest.mark.parametrize("columns", [4, FEW_COLUMNS + 1])
@in_float64
def test_words_multiply_like_the_matrix(
    judges: int, samples: int, n_classes: int, columns: int
) -> None:
    rng = np.random.default_rng(0)
    index = jnp.asarray(rng.integers(-1, n_classes, (20, judges, samples)), jnp.int8)
    words, matrix = pack(index, n_classes), counts(index, n_classes)
    assert words.shape == matrix.shape
    table, rows = rng.normal(size=(judges * n_classes, columns)), rng.normal(size=(columns, 20))
    np.testing.assert_allclose(words @ jnp.asarray(table), matrix @ table, atol=1e-12)
    np.testing.assert_allclose(jnp.asarray(rows) @ words, rows @ matrix, atol=1e-12)


def test_a_fit_does_not_depend_on_packing(
    votes: Votes, labels: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = DawidSkene().fit(votes, labels)
    monkeypatch.setattr(dawid_skene, "MANY_ITEMS", 10)
    packed = DawidSkene().fit(votes, labels)
    for a, b in zip(jax.tree.leaves(plain.draws), jax.tree.leaves(packed.draws), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
    assert int(packed.details["steps"]) == int(plain.details["steps"])
