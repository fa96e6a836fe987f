"""Pages that live elsewhere in the repository: the results, the notebooks."""

import re
import shutil
from pathlib import Path

from sphinx.application import Sphinx

FOLDERS = {
    "experiments": (".md", ".png", ".py", ".csv"),
    "notebooks": (".ipynb",),
    "tests": (".md", ".py"),
}
"""What is copied into the folder of the site: pages, and what they link to."""
FILES = ("CITATION.cff",)
MOVED = {r"((?:\.\./)+)docs/images/": r"\1images/", r"((?:\.\./)+models)/\w+\.py": r"\1.md"}
"""Links of copied pages that are different on the site, as patterns."""


def copy_pages(app: Sphinx) -> None:
    """Copy what has changed, and remove what is gone."""
    source = Path(app.srcdir)
    root = source.parent
    for name in FILES:
        shutil.copy2(root / name, source / name)
    for name, kinds in FOLDERS.items():
        wanted = {p.relative_to(root) for p in (root / name).rglob("*") if p.suffix in kinds}
        for path in wanted:
            new, old = root / path, source / path
            if not old.exists() or new.stat().st_mtime > old.stat().st_mtime:
                old.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(new, old)
        for old in (source / name).rglob("*.*"):
            if old.is_file() and old.relative_to(source) not in wanted:
                old.unlink()


def fit_links(app: Sphinx, name: str, source: list[str]) -> None:
    """Point the links of copied pages at the site."""
    if name.startswith("experiments/"):
        for old, new in MOVED.items():
            source[0] = re.sub(rf"\]\({old}", f"]({new}", source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Copy before anything is read."""
    app.connect("builder-inited", copy_pages)
    app.connect("source-read", fit_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
