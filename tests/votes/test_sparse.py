"""Votes as a list: the same results as from the array, at every slab size, and input from files."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from panels import judged

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.votes import SparseVotes, Votes, encode, encode_sparse, from_dense
from judgebayes.votes import sparse as module


@pytest.fixture(scope="module")
def panel() -> Votes:
    """Three classes, five judges, up to two samples, many missing votes, items without votes."""
    votes, _ = judged(
        np.array([0.9, 0.7, 0.6, 0.5, 0.8]), 50, n_classes=3, samples=2, missing=0.6, seed=4
    )
    return replace(votes, index=votes.index.at[jnp.array([0, 7, 48, 49])].set(-1))


def test_a_list_becomes_the_same_array_up_to_sample_positions(panel: Votes) -> None:
    again = from_dense(panel).dense()
    np.testing.assert_array_equal(again.counts(), panel.counts())
    assert again.index.shape == panel.index.shape


@pytest.mark.parametrize("rows", [1, 12, 40, 1000])
def test_slabs_contain_every_vote_and_item_once(panel: Votes, rows: int) -> None:
    votes = from_dense(panel)
    shape = votes.slab_shape(rows)
    slabs = list(votes.slabs(shape))
    assert [s.items.start for s in slabs] == [0, *(s.items.stop for s in slabs[:-1])]
    assert slabs[-1].items.stop == 50
    assert {(len(s.votes), s.votes.n_items) for s in slabs} == {shape}
    counts = [np.asarray(s.votes.pooled_counts())[: s.items.stop - s.items.start] for s in slabs]
    np.testing.assert_array_equal(np.concatenate(counts), panel.pooled_counts())


@in_float64
def test_sums_by_item_and_by_cell_are_transposes_of_each_other(panel: Votes) -> None:
    votes = from_dense(panel)
    rng = np.random.default_rng(0)
    table, by_item = jnp.asarray(rng.normal(size=(15, 2))), jnp.asarray(rng.normal(size=(50, 2)))
    one = (votes.item_sums(table) * by_item).sum()
    two = (table * votes.cell_sums(by_item)).sum()
    assert float(one) == pytest.approx(float(two))
    counts = np.asarray(panel.counts()).reshape(50, 15)
    np.testing.assert_allclose(votes.item_sums(table), counts @ table, atol=1e-12)


def test_an_item_larger_than_a_slab_makes_slabs_larger() -> None:
    item = np.repeat(np.arange(3, dtype=np.int32), [2, 30, 1])
    votes = SparseVotes(item, np.arange(33) % 31, np.zeros(33, np.int8), 3, 31, 2)
    assert votes.slab_shape(4).rows == 30
    with pytest.raises(
        JudgeBayesError, match="Item 1 has more than 4 votes, the maximum of a slab"
    ):
        list(votes.slabs(module.SlabShape(4, 4)))


def test_unsupported_votes_raise_an_error(panel: Votes) -> None:
    with pytest.raises(JudgeBayesError, match="have orders"):
        from_dense(replace(panel, order=jnp.zeros_like(panel.index)))


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


def assert_the_same(actual: tuple, expected: tuple) -> None:
    votes, coding = actual
    np.testing.assert_array_equal(votes.dense().counts(), expected[0].counts())
    pd.testing.assert_index_equal(coding.items, expected[1].items, exact="equiv")
    pd.testing.assert_index_equal(coding.judges, expected[1].judges, exact="equiv")
    assert coding.classes == expected[1].classes
    assert coding.missing.to_dict() == expected[1].missing.to_dict()
    order = np.lexsort((votes.judge, votes.item))
    np.testing.assert_array_equal(order, np.arange(len(votes)))


@pytest.mark.parametrize("rows", [7, 1000])
def test_a_table_is_coded_as_by_encode(frame: pd.DataFrame, rows: int) -> None:
    assert_the_same(encode_sparse(frame, rows=rows), encode(frame))


@pytest.mark.parametrize("numbers", [False, True])
def test_a_parquet_file_is_coded_as_by_encode(
    frame: pd.DataFrame, tmp_path: Path, numbers: bool
) -> None:
    if numbers:
        frame = frame.assign(
            item=frame["item"].str[1:].astype(int), vote=frame["vote"].eq("A").astype(int)
        )
    frame.to_parquet(tmp_path / "votes.parquet", index=False)
    encoded = encode_sparse(tmp_path / "votes.parquet", rows=16, store=tmp_path / "store")
    assert_the_same(encoded, encode(frame))
    assert isinstance(encoded[0].item, np.memmap)
    assert not list((tmp_path / "store").glob("raw_*"))


def test_repeated_votes_are_refused_or_counted(frame: pd.DataFrame) -> None:
    twice = pd.concat([frame, frame[:20]])
    with pytest.raises(JudgeBayesError, match="more than once"):
        encode_sparse(twice)
    votes, _ = encode_sparse(twice, repeats=True)
    assert votes.n_samples == 2
    assert len(votes) == int(twice["vote"].notna().sum())


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


def test_bad_sources_are_named(frame: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(JudgeBayesError, match="There is no file"):
        encode_sparse(tmp_path / "none.parquet")
    (tmp_path / "bad.parquet").write_text("no")
    with pytest.raises(JudgeBayesError, match="cannot be read as parquet"):
        encode_sparse(tmp_path / "bad.parquet")
    with pytest.raises(JudgeBayesError, match="no column 'vote'"):
        encode_sparse(frame.drop(columns="vote"))
    with pytest.raises(JudgeBayesError, match="not one of the classes"):
        encode_sparse(frame, classes=("B", "A"))
    with pytest.raises(JudgeBayesError, match="no row"):
        encode_sparse(frame[:0])


def test_a_list_passes_through_compiled_code(panel: Votes) -> None:
    votes = from_dense(panel)
    counts = jax.jit(lambda v: v.pooled_counts())(votes)
    np.testing.assert_array_equal(counts, panel.pooled_counts())
    assert "items, 5 judges" in repr(votes)
