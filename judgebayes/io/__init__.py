"""Files in and out."""

from judgebayes.io.columns import guess_columns
from judgebayes.io.tables import read_table, write_table

__all__ = ["guess_columns", "read_table", "write_table"]
