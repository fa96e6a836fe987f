"""Files that several steps of one command need are read once."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import pandas as pd

_TABLES: ContextVar[dict[Hashable, pd.DataFrame] | None] = ContextVar("tables", default=None)


@contextmanager
def files_read_once() -> Iterator[None]:
    """Keep the tables that are read meanwhile; a file that is read again is not read from the disk."""
    token = _TABLES.set({})
    try:
        yield
    finally:
        _TABLES.reset(token)


def remembered(key: Hashable, read: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """Return the table that was read before with this key, else the one that `read` returns.

    Whoever changes the table must change a copy.
    """
    tables = _TABLES.get()
    if tables is None:
        return read()
    if key not in tables:
        tables[key] = read()
    return tables[key]
