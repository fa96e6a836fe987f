"""Read and write files of votes, labels and tables.

Importing this package imports nothing else: names are looked up on first use.
This package may not import `inference` or any package after it.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judgebayes.io.columns import guess_columns
    from judgebayes.io.formats import FORMATS, import_votes
    from judgebayes.io.imported import Imported
    from judgebayes.io.options import Options
    from judgebayes.io.tables import Layout, check_writable, notes_of, read_table, write_table
    from judgebayes.io.verdict import parse_verdict

__all__ = [
    "FORMATS",
    "Imported",
    "Layout",
    "Options",
    "check_writable",
    "guess_columns",
    "import_votes",
    "notes_of",
    "parse_verdict",
    "read_table",
    "write_table",
]

_NAMES_OF = {
    "columns": ("guess_columns",),
    "formats": ("FORMATS", "import_votes"),
    "imported": ("Imported",),
    "options": ("Options",),
    "tables": ("Layout", "check_writable", "notes_of", "read_table", "write_table"),
    "verdict": ("parse_verdict",),
}
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
