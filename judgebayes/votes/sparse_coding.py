"""Encoding of many votes: a long table, or a Parquet file in pieces, as a list of votes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Int

from judgebayes.arrays import AnyArray
from judgebayes.errors import JudgeBayesError
from judgebayes.votes.array import MISSING, UNDECIDED
from judgebayes.votes.classes import Classes, canonical, given_classes, infer_classes, listing
from judgebayes.votes.coding import Coding
from judgebayes.votes.columns import require_columns
from judgebayes.votes.keys import keys
from judgebayes.votes.sparse import SparseVotes, index_type, longest_run

__all__ = ["encode_sparse"]

ROWS = 2**20
"""The number of rows read at a time."""

Piece = dict[str, tuple[np.ndarray, pd.Series]]
"""For every column, the codes of some rows, -1 where there is no value, and the coded values."""


def encode_sparse(
    source: pd.DataFrame | Path | str,
    *,
    item: str = "item",
    judge: str = "judge",
    vote: str = "vote",
    repeats: bool = False,
    classes: Sequence[object] | Classes | None = None,
    pairwise: bool | None = None,
    store: Path | str | None = None,
    rows: int = ROWS,
) -> tuple[SparseVotes, Coding]:
    """Encode a long table, with one vote per row, as a list of votes.

    The result agrees with that of `encode`, with items and judges in order of appearance, but takes
    less memory: at most 17 bytes per vote, 7 when done, and the names of the items.

    Parameters
    ----------
    source
        The table (error messages name its rows by their index), or a Parquet file, which is read in
        pieces of `rows` rows; its first row is row 1.
    item, judge, vote
        Its columns; a vote that is empty, NaN or None is missing and not stored.
    repeats
        Whether a judge may have voted several times on an item.
    classes, pairwise
        As in `encode`.
    store
        A folder for the arrays, which are then memory maps: for more votes than fit into memory.
    rows
        The number of rows processed at a time.

    Raises
    ------
    JudgeBayesError
        For a missing column or file, an unknown class, a row without item or judge, a repeated
        vote, or a judge without votes.
    """
    names = {"item": item, "judge": judge, "vote": vote}
    if isinstance(source, pd.DataFrame):
        require_columns(source, dict(names))
        total, pieces = len(source), _of_frame(source, names, rows)
        numbers = source.index
    else:
        total, pieces = _of_parquet(Path(source), names, rows)
        numbers = pd.RangeIndex(1, total + 1)
    if total == 0:
        raise JudgeBayesError("The table of votes has no row.")
    folder = None if store is None else Path(store)
    item_of, judge_of = (_array(folder, f"raw_{k}", total, np.int32) for k in ("item", "judge"))
    vote_of = _array(folder, "raw_vote", total, np.int16)
    items, judges, values = _Names(item, numbers), _Names(judge, numbers), _Names(None)
    start = 0
    for piece in pieces:
        end = start + len(piece["vote"][0])
        item_of[start:end] = items.codes(*piece["item"], start)
        judge_of[start:end] = judges.codes(*piece["judge"], start)
        vote_of[start:end] = values.codes(*piece["vote"], start)
        start = end
    scale, table = _classes(values, vote_of, classes, pairwise, vote, numbers)
    n_missing, n_undecided = np.zeros((2, len(judges.index)), np.int64)
    for part in _parts(total, rows):
        vote_of[part] = table[vote_of[part]]
        for count, index in ((n_missing, MISSING), (n_undecided, UNDECIDED)):
            count += np.bincount(judge_of[part][vote_of[part] == index], minlength=len(count))
    votes = _sorted(
        (item_of, judge_of, vote_of), len(items.index), len(judges.index), len(scale), folder, rows
    )
    del item_of, judge_of, vote_of
    for path in () if folder is None else folder.glob("raw_*.npy"):
        path.unlink()
    cast = _counts(votes.judge, len(n_missing), rows)
    given = cast + n_undecided
    if (given == 0).any():
        raise JudgeBayesError(
            f"Judge {listing(judges.index[given == 0])} has no votes in column {vote!r}: all are "
            "missing. Remove such a judge from the table."
        )
    coding = Coding(
        items.index,
        judges.index,
        scale,
        missing=pd.Series(n_missing, judges.index, name="missing"),
        recorded=pd.Series(given + n_missing, judges.index, name="recorded"),
        undecided=pd.Series(n_undecided, judges.index, name="undecided"),
    )
    return _counted(votes, coding, repeats, rows), coding


@dataclass
class _Names:
    """The names so far, in order of appearance; `column` is None where a row may have no value."""

    column: str | None
    numbers: pd.Index = field(default_factory=lambda: pd.Index([]))
    """The names of the rows in error messages."""
    index: pd.Index = field(default_factory=lambda: pd.Index([]))

    def codes(
        self, code: Int[np.ndarray, " row"], values: pd.Series, first_row: int
    ) -> Int[np.ndarray, " row"]:
        """Return the position of each row's value among the names, after adding new ones."""
        if self.column is None:
            names = pd.Index([canonical(v) for v in values], dtype=object)
        else:
            if (code < 0).any():
                row = self.numbers[first_row + int(np.argmax(code < 0))]
                raise JudgeBayesError(f"Row {row} has no value in column {self.column!r}.")
            names = keys(values, self.column)
        position = self.index.get_indexer(names)
        if (position < 0).any():
            new = names[position < 0].unique()
            self.index = (self.index.append(new) if len(self.index) else new).rename(self.column)
            position = self.index.get_indexer(names)
        if len(position) == 0:
            return code
        return np.where(code >= 0, position[np.maximum(code, 0)], -1)


def _of_frame(frame: pd.DataFrame, names: dict[str, str], rows: int) -> Iterator[Piece]:
    for part in _parts(len(frame), rows):
        piece = {}
        for role, name in names.items():
            code, values = pd.factorize(frame[name].iloc[part], use_na_sentinel=True)
            piece[role] = (code, pd.Series(values))
        yield piece


def _of_parquet(path: Path, names: dict[str, str], rows: int) -> tuple[int, Iterator[Piece]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise JudgeBayesError(f"There is no file {str(path)!r}.")
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise JudgeBayesError(f"{str(path)!r} cannot be read as parquet: {error}.") from error
    empty = file.schema_arrow.empty_table().to_pandas()
    require_columns(empty, dict(names))

    def pieces() -> Iterator[Piece]:
        for batch in file.iter_batches(
            batch_size=rows, columns=list(dict.fromkeys(names.values()))
        ):
            piece = {}
            for role, name in names.items():
                column = batch.column(name)
                if not pa.types.is_dictionary(column.type):
                    column = column.dictionary_encode()
                code = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
                piece[role] = (code.astype(np.int64), column.dictionary.to_pandas())
            yield piece

    return file.metadata.num_rows, pieces()


def _classes(
    values: _Names,
    vote_of: Int[np.ndarray, " row"],
    classes: Sequence[object] | Classes | None,
    pairwise: bool | None,
    vote: str,
    numbers: pd.Index,
) -> tuple[Classes, Int[np.ndarray, " value"]]:
    """Return the classes, and the class of each value, with missing last so that index -1 gives it."""
    if isinstance(classes, Classes):
        scale = classes
    elif classes is not None:
        scale = given_classes(classes, pairwise)
    else:
        scale = infer_classes(values.index, f"column {vote!r}")
        scale = scale if pairwise is None else Classes(scale.values, pairwise)
    indices = scale.indices(values.index)
    if None in indices:
        unknown = indices.index(None)
        row = numbers[int(np.argmax(vote_of == unknown))]
        raise JudgeBayesError(
            f"Row {row} of column {vote!r} contains {values.index[unknown]!r}, which is not one of the "
            f"classes {listing(scale.values)}."
        )
    return scale, np.array([*indices, MISSING], np.int16)


def _sorted(
    raw: tuple[np.ndarray, np.ndarray, np.ndarray],
    n_items: int,
    n_judges: int,
    n_classes: int,
    folder: Path | None,
    rows: int,
) -> SparseVotes:
    """Return the votes sorted by item and judge: a counting sort, then slab by slab."""
    item_of, judge_of, vote_of = raw
    total = np.zeros(n_items, np.int64)
    for part in _parts(len(item_of), rows):
        total += np.bincount(item_of[part][vote_of[part] >= 0], minlength=n_items)
    next_free = np.cumsum(total) - total
    size = int(total.sum())
    item = _array(folder, "item", size, np.int32)
    judge = _array(folder, "judge", size, index_type(n_judges))
    index = _array(folder, "vote", size, index_type(n_classes))
    for part in _parts(len(item_of), rows):
        present = np.flatnonzero(vote_of[part] >= 0)
        present = present[np.argsort(item_of[part][present], kind="stable")]
        item_of_present = item_of[part][present]
        first = np.searchsorted(item_of_present, item_of_present)
        target = next_free[item_of_present] + np.arange(len(item_of_present)) - first
        item[target], judge[target], index[target] = (
            item_of_present,
            judge_of[part][present],
            vote_of[part][present],
        )
        next_free += np.bincount(item_of_present, minlength=n_items)
    ends = next_free
    start = 0
    while start < size:
        last = int(item[min(start + rows, size) - 1])
        end = int(ends[last])
        order = np.lexsort((judge[start:end], item[start:end]))
        judge[start:end], index[start:end] = judge[start:end][order], index[start:end][order]
        start = end
    return SparseVotes(item, judge, index, n_items, n_judges, n_classes)


def _counted(votes: SparseVotes, coding: Coding, repeats: bool, rows: int) -> SparseVotes:
    """Return the votes with the number of samples, checked."""
    most = longest_run(rows, votes.item, votes.judge)
    if most > 1 and not repeats:
        item, judge = np.asarray(votes.item), np.asarray(votes.judge)
        row = int(np.argmax((np.diff(item) == 0) & (np.diff(judge) == 0)))
        raise JudgeBayesError(
            f"Judge {canonical(coding.judges[judge[row]])!r} voted on item "
            f"{canonical(coding.items[item[row]])!r} more than once; if it was asked several times, "
            "pass repeats=True."
        )
    return replace(votes, n_samples=most)


def _counts(codes: AnyArray, size: int, rows: int) -> Int[np.ndarray, " name"]:
    counts = np.zeros(size, np.int64)
    for part in _parts(len(codes), rows):
        counts += np.bincount(codes[part], minlength=size)
    return counts


def _parts(total: int, rows: int) -> Iterator[slice]:
    for start in range(0, total, rows):
        yield slice(start, min(start + rows, total))


def _array(folder: Path | None, name: str, size: int, dtype: type[np.generic]) -> np.ndarray:
    if folder is None or size == 0:
        return np.empty(size, dtype)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.npy"
    return np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=(size,))
