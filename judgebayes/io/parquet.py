"""The size of a Parquet file in memory, before it is read: a few bytes can stand for many cells."""

from pathlib import Path

from judgebayes.errors import JudgeBayesError

CELL_BYTES = 8
SMALL_BYTES = 256 * 2**20
MAX_RATIO = 200
"""A table of more than `SMALL_BYTES` is refused above this ratio to its file."""


def check_parquet(path: Path) -> None:
    """Refuse a file whose table would need more memory than its size suggests, by its metadata.

    Raises
    ------
    JudgeBayesError
        If the table is too large.
    Exception
        Of any kind, for a damaged file.
    """
    import pyarrow.parquet as pq

    meta = pq.read_metadata(path)
    most = max(SMALL_BYTES, MAX_RATIO * path.stat().st_size)
    size = meta.num_rows * meta.num_columns * CELL_BYTES
    size += sum(meta.row_group(n).total_byte_size for n in range(meta.num_row_groups))
    if size > most:
        raise JudgeBayesError(
            f"{str(path)!r} has {meta.num_rows:,} rows and needs {size / 2**30:,.1f} GiB of memory or "
            f"more; its size suggests at most {most / 2**30:,.1f} GiB. Save it in parts."
        )
