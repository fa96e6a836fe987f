"""Files in and out."""

from judgebayes.io.columns import guess_columns
from judgebayes.io.tables import check_writable, read_table, write_table

__all__ = ["check_writable", "guess_columns", "read_table", "write_table"]
