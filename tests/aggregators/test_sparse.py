"""Votes as a list: Dawid-Skene's answers are those for the table, and a table becomes the same list."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from panels import judged

from judgebayes import EM, NUTS, DawidSkene, Status
from judgebayes.aggregators import dawid_skene
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.models.dawid_skene import DawidSkenePrior
from judgebayes.models.pooled_dawid_skene import PooledPrior
from judgebayes.votes import MISSING, SparseVotes, Votes, encode, encode_sparse, from_dense

METHODS = {
    "usual": DawidSkene(),
    "flat": DawidSkene(EM(max_steps=60), prior=DawidSkenePrior(0.0, 0.0, 0.0)),
    "noisy": DawidSkene(label_noise=0.1),
    "pooled": DawidSkene(prior=PooledPrior()),
}
Panel = tuple[Votes, np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def panel() -> Panel:
    """Three classes, five judges, up to two samples, missing votes, items without votes; weights."""
    accuracy = np.array([0.9, 0.7, 0.6, 0.5, 0.8])
    votes, labels = judged(accuracy, 60, n_classes=3, samples=2, missing=0.4, seed=4)
    with jax.enable_x64(True):
        index = votes.index.at[jnp.array([7, 59])].set(-1)
    some = np.where(np.arange(60) % 4 == 0, labels, -1)
    weight = np.random.default_rng(1).integers(0, 3, 60) / 2
    return Votes(index, None, None, None, 3), some, weight


@pytest.mark.parametrize("name", list(METHODS))
def test_a_list_has_the_fit_of_the_table(name: str, panel: Panel) -> None:
    votes, labels, weight = panel
    thin, method = from_dense(votes), METHODS[name]
    dense, fit = (method.fit(v, labels, weight=weight) for v in (votes, thin))
    assert int(fit.status) == int(dense.status)
    np.testing.assert_allclose(
        fit.details["log_posterior"], dense.details["log_posterior"], rtol=0, atol=1e-9
    )
    # They stop where a step gains 1e-12 an item: parameters may differ by the root of that.
    for a, b in zip(jax.tree.leaves(fit.draws), jax.tree.leaves(dense.draws), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    np.testing.assert_allclose(np.exp(fit(thin)), np.exp(dense(votes)), atol=1e-5)
    np.testing.assert_allclose(fit.reliability().low, dense.reliability().low, atol=1e-5)


def test_a_run_that_is_cut_short_has_the_status_max_steps(panel: Panel) -> None:
    votes, labels, _ = panel
    fit = DawidSkene(EM(max_steps=3)).fit(from_dense(votes), labels)
    assert int(fit.status) == Status.MAX_STEPS
    assert int(fit.details["steps"]) == 3


@in_float64
def test_a_list_multiplies_like_the_matrix_of_counts(panel: Panel) -> None:
    votes, _, _ = panel
    thin, matrix = from_dense(votes), np.asarray(votes.counts()).reshape(60, 15)
    last = np.array([59], np.int32)  # a row without a vote is ignored
    padded = replace(
        thin,
        item=np.append(thin.item, last),
        judge=np.append(thin.judge, last * 0),
        index=np.append(thin.index, last * 0 + MISSING),
    )
    rng = np.random.default_rng(0)
    table, rows = jnp.asarray(rng.normal(size=(15, 4))), jnp.asarray(rng.normal(size=(5, 60)))
    for each in (thin, padded):
        assert each.shape == matrix.shape
        np.testing.assert_allclose(each @ table, matrix @ table, atol=1e-12)
        np.testing.assert_allclose(rows @ each, rows @ matrix, atol=1e-12)
        np.testing.assert_array_equal(each.pooled_counts(), votes.pooled_counts())
    assert "items, 5 judges" in repr(thin)


@pytest.mark.parametrize("items", [400, 12_000])
def test_a_large_table_that_is_mostly_empty_is_fitted_as_a_list(items: int) -> None:
    rng = np.random.default_rng(0)
    workers = 180
    few, many = (np.full((items, workers, 1), -1, np.int8) for _ in range(2))
    few[np.arange(items), rng.integers(0, workers, items), 0] = 1
    many[:, : workers // 2] = 1
    for index, listed in ((few, True), (many, False)):
        count = dawid_skene._counted(Votes(jnp.asarray(index), None, None, None, 3))
        assert isinstance(count, SparseVotes) == listed


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    cells = [(i, j) for i in range(40) for j in range(6) if rng.random() < 0.5]
    rng.shuffle(cells)
    table = pd.DataFrame(
        {
            "item": [f"q{i}" for i, _ in cells],
            "judge": [f"judge {j}" for _, j in cells],
            "vote": rng.choice(["A", "tie", "B", None], len(cells)),
        }
    )
    return table.astype({"vote": object})


def test_a_table_is_coded_as_by_encode(frame: pd.DataFrame) -> None:
    frame = frame.assign(sample=0)
    frame = pd.concat([frame, frame[:20].assign(sample=1)], ignore_index=True)
    thin, coding = encode_sparse(frame, sample="sample")
    votes, expected = encode(frame, sample="sample")
    (one, other) = (from_dense(votes), thin)
    for count in (one, other):
        assert (np.diff(count.item) >= 0).all()
    table = jnp.eye(18)
    np.testing.assert_array_equal(one @ table, other @ table)
    assert list(coding.items) == list(expected.items)
    assert list(coding.judges) == list(expected.judges)
    assert coding.classes == expected.classes
    for name in ("missing", "undecided"):
        assert getattr(coding, name).to_dict() == getattr(expected, name).to_dict()
    assert coding.asked is None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"vote": "perhaps"}, "neither binary"),
        ({"item": None}, "Row 0 has no value in column 'item'"),
        ({"judge": "silent", "vote": None}, "Judge 'silent' has no vote"),
    ],
)
def test_bad_rows_are_named(frame: pd.DataFrame, change: dict, sentence: str) -> None:
    bad = frame.copy()
    for column, value in change.items():
        bad.loc[0, column] = value
    with pytest.raises(JudgeBayesError, match=sentence):
        encode_sparse(bad)


def test_bad_tables_are_named(frame: pd.DataFrame) -> None:
    with pytest.raises(JudgeBayesError, match="are the same vote"):
        encode_sparse(pd.concat([frame, frame[:20]], ignore_index=True))
    with pytest.raises(JudgeBayesError, match="no column 'vote'"):
        encode_sparse(frame.drop(columns="vote"))
    with pytest.raises(JudgeBayesError, match="not one of the classes"):
        encode_sparse(frame, classes=("B", "A"))
    with pytest.raises(JudgeBayesError, match="no row"):
        encode_sparse(frame[:0])


def test_unsupported_uses_of_a_list_raise_errors(panel: Panel) -> None:
    votes, labels, _ = panel
    thin = from_dense(votes)
    with pytest.raises(JudgeBayesError, match="NUTS needs the array of encode"):
        DawidSkene(NUTS()).fit(thin, labels)
    with pytest.raises(JudgeBayesError, match="The labels have the shape"):
        DawidSkene().fit(thin, labels[:5])
