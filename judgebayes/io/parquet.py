"""The size of a Parquet file in memory, found before it is read.

A few bytes can stand for a billion equal cells: columns are packed, and a text that is repeated is
stored once. So the number of rows and the sizes of columns come from the metadata, and the lengths of
repeated texts from the dictionaries, which are read without their repetitions.
"""

from pathlib import Path

from judgebayes.errors import JudgeBayesError
from judgebayes.io.lengths import MAX_TEXT

__all__ = ["check_parquet"]

CELL_BYTES = 8
SMALL_BYTES = 256 * 2**20
MAX_MEAN_TEXT = 1_000_000
"""Bytes of the texts of a column, on average over a group of rows."""
MAX_RATIO = 200
"""A table of more than `SMALL_BYTES` is refused above this ratio to its file."""


def check_parquet(path: Path, most: int) -> None:
    """Refuse a file whose table would need more memory than `most` bytes, or than its file suggests.

    Raises
    ------
    JudgeBayesError
        If the table is too large.
    Exception
        Of any kind, for a damaged file.
    """
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    meta = file.metadata
    suggested = max(SMALL_BYTES, MAX_RATIO * path.stat().st_size)
    limit = min(most, suggested)
    size = meta.num_rows * meta.num_columns * CELL_BYTES
    size += sum(meta.row_group(n).total_byte_size for n in range(meta.num_row_groups))
    if size <= limit:
        _check_texts(path)
        size += _repeated_text(path, limit - size)
    if size > limit:
        why = "its size suggests" if limit == suggested else "one table may have"
        raise JudgeBayesError(
            f"{str(path)!r} has {meta.num_rows:,} rows and needs {size / 2**30:,.1f} GiB of memory or "
            f"more; {why} at most {limit / 2**30:,.1f} GiB. Save it in parts."
        )


def _check_texts(path: Path) -> None:
    """Refuse a text that is too long, before Python's own copy of it."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    kinds = pa.types
    texts = (kinds.is_string, kinds.is_large_string, kinds.is_binary, kinds.is_large_binary)
    meta = pq.read_metadata(path)
    large = {
        (number, column.path_in_schema)
        for number in range(meta.num_row_groups)
        for column in map(meta.row_group(number).column, range(meta.num_columns))
        if column.physical_type == "BYTE_ARRAY" and column.total_uncompressed_size > MAX_TEXT
    }
    for number, name in sorted(large):
        group = meta.row_group(number)
        size = sum(
            column.total_uncompressed_size
            for column in map(group.column, range(group.num_columns))
            if column.path_in_schema == name
        )
        if size > MAX_MEAN_TEXT * max(group.num_rows, 1):
            raise JudgeBayesError(
                f"Column {name[:100]!r} of {str(path)!r} has texts of "
                f"{size // max(group.num_rows, 1):,} bytes on average: texts of votes have at most "
                f"{MAX_MEAN_TEXT:,}."
            )
    for number, name in sorted(large):
        batches = pq.ParquetFile(path).iter_batches(row_groups=[number], columns=[name])
        for batch in batches:
            column = batch.column(0)
            if not any(is_kind(column.type) for is_kind in texts):
                break
            longest = pc.max(pc.binary_length(column)).as_py() or 0
            if longest > MAX_TEXT:
                raise JudgeBayesError(
                    f"Column {name[:100]!r} of {str(path)!r} has a text of {longest:,} bytes: a cell "
                    f"may have at most {MAX_TEXT:,}."
                )


def _repeated_text(path: Path, most: int) -> int:
    """Return the bytes of all texts that are stored once and repeated; reading ends above `most`."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    meta = pq.read_metadata(path)
    names = {
        column.path_in_schema
        for group in map(meta.row_group, range(meta.num_row_groups))
        for column in map(group.column, range(group.num_columns))
        if column.physical_type == "BYTE_ARRAY" and any("DICT" in e for e in column.encodings)
    }
    size = 0
    for name in sorted(names):
        for batch in pq.ParquetFile(path, read_dictionary=[name]).iter_batches(columns=[name]):
            column = batch.column(0)
            if hasattr(column, "dictionary"):
                lengths = pc.binary_length(column.dictionary).fill_null(0)
                used = column.indices.drop_null()
                counts = pc.value_counts(used)
                of_value = lengths.take(counts.field("values")).cast("int64")
                size += pc.sum(pc.multiply(of_value, counts.field("counts"))).as_py() or 0
            if size > most:
                return size
    return size
