"""The text of a page or of a notebook, to read and to write anew.

A notebook's text is that of its Markdown cells. Everything else in it stays as it is.
"""

import json
from pathlib import Path
from typing import Any

from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError

__all__ = ["read_prose", "write_prose"]

BETWEEN = "\n\n\f\n\n"
"""Between two cells: a form feed is in no cell."""


def read_prose(path: Path) -> str:
    """Return the text of a page, or of a notebook's Markdown cells."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    return BETWEEN.join("".join(cell["source"]) for cell in _cells(json.loads(text)))


def write_prose(path: Path, text: str) -> None:
    """Write the text that `read_prose` returned, changed or not, in the place of the old one.

    Raises
    ------
    JudgeBayesError
        If a notebook has not as many cells as the text.
    """
    if path.suffix == ".ipynb":
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells, texts = _cells(notebook), text.split(BETWEEN)
        if len(cells) != len(texts):
            raise JudgeBayesError(f"{path}: {len(texts)} texts for {len(cells)} Markdown cells.")
        for cell, words in zip(cells, texts, strict=True):
            cell["source"] = words.splitlines(keepends=True)
        text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    with atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
