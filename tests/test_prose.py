"""The pages that users read have no finding of a prose checker; `codespell` looks at the spelling."""

import re
from itertools import product
from pathlib import Path

import pytest

pytest.importorskip("proselint", reason="the prose checker is in the group `dev`: proselint")

from proselint.checks import __register__
from proselint.config import DEFAULT
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
    *sorted((ROOT / "docs" / "models").glob("*.md")),
]
SWITCHED_OFF = {
    "typography.symbols.curly_quotes": "straight quotes, as in the program's own sentences",
    "typography.symbols.multiplication": "sizes are written `100,000 x 38`, as in the tables of results",
    "typography.symbols.ellipsis": "three points stand for lines that are left out of an output",
}
"""Checks that are not used, with the reason."""
BLOCK = re.compile(r"^```.*?^```$|\A---\n.*?^---$|\$\$.*?\$\$|^\(model-.*\)=$", re.M | re.S)
INLINE = re.compile(r"\$[^$\n]+\$|`[^`\n]+`|<[^>]+>|\]\([^)]*\)")


def prose(text: str) -> str:
    """Return a page without code, formulas, tags and addresses, every line where it was.

    A word of its own stands for each piece of code, and headings end like sentences: nothing repeats.
    """
    letters = (f"code{''.join(each)}" for each in product("bcdfghjk", repeat=4))
    text = BLOCK.sub(lambda match: "\n" * match[0].count("\n"), text)
    text = INLINE.sub(lambda match: next(letters) + "\n" * match[0].count("\n"), text)
    return re.sub(r"^(#+ .*)$", r"\1.", text, flags=re.M)


@pytest.fixture(scope="module", autouse=True)
def _checks() -> None:
    CheckRegistry().register_many(__register__)


def findings(name: str, text: str) -> list[str]:
    """Return what proselint says of a page, a line each; the most specific switch decides."""
    config = {**DEFAULT, "checks": dict.fromkeys(SWITCHED_OFF, False) | DEFAULT["checks"]}
    results = LintFile(name, prose(text)).lint(config)
    return [f"{name}:{each.pos[0]}: {each.check_result.message}" for each in results]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_has_no_finding(path: Path) -> None:
    assert findings(path.name, path.read_text(encoding="utf-8")) == []


def test_a_cliche_and_a_repeated_word_would_be_seen() -> None:
    page = "At the end of the day, the the judge is very unique.\n"
    assert len(findings("page.md", page)) >= 2
    assert findings("page.md", f"A judge.\n\n```text\n{page}```\n") == []
