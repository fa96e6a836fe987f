import jax
import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.votes import MISSING, Votes, array, from_counts


def test_missing_votes_are_ignored() -> None:
    index = jnp.array([[[0, MISSING, 2, 2]]], jnp.int8)
    assert Votes(index, None, None, None, 3).counts().tolist() == [[[1, 0, 2]]]


def test_first_keeps_the_shape_and_drops_the_later_votes(votes: Votes) -> None:
    first = votes.first(2)
    assert first.index.shape == votes.index.shape
    np.testing.assert_array_equal(first.index[..., :2], votes.index[..., :2])
    assert (first.index[..., 2:] == MISSING).all()


def test_votes_pass_through_vmap_and_jit(votes: Votes) -> None:
    items = jnp.array([[0, 5], [7, 3]])
    counts = jax.jit(jax.vmap(lambda i: votes.take(i).pooled_counts()))(items)
    np.testing.assert_array_equal(counts, votes.pooled_counts()[items])


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (np.array([[1, -2, 0]]), "Row 0, class 1 contains the count -2"),
        (np.array([[1.0, 0.5, 0.0]]), "Row 0, class 1 contains the count 0.5"),
        (np.array([[1.0, np.nan, 0.0]]), "contains the count nan"),
        (np.array([1, 2, 3]), "shape"),
    ],
)
def test_bad_counts_are_refused(bad: np.ndarray, sentence: str) -> None:
    with pytest.raises(JudgeBayesError, match=sentence):
        from_counts(bad)


@pytest.mark.parametrize("samples", [0, 5])
def test_more_samples_than_there_are_is_refused(votes: Votes, samples: int) -> None:
    with pytest.raises(JudgeBayesError, match="at most 4 times"):
        votes.first(samples)


def test_votes_of_all_judges_are_counted_alike_class_by_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = np.random.default_rng(1).integers(-2, 4, (7, 5, 3))
    votes = Votes(jnp.asarray(index, jnp.int8), None, None, None, 4)
    expected = (index[..., None] == np.arange(4)).sum((1, 2))
    for most in (10**8, 0):
        monkeypatch.setattr(array, "MOST_CELLS", most)
        jax.clear_caches()
        np.testing.assert_array_equal(votes.pooled_counts(), expected)
