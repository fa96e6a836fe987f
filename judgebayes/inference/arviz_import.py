"""The import of ArviZ, which is done when it is needed: it takes a second."""

import warnings
from types import ModuleType


def arviz() -> ModuleType:
    """Return ArviZ.

    Version 0.23 announces 1.0 at its import, once a day, and keeps the day in a file. Of two processes
    that do so at the same time, one does not find its temporary file any more, and tries again.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            import arviz
        except FileNotFoundError:
            import arviz

    return arviz
