"""The size of the house never grows: a ratchet. `python tests/house/test_size.py` prints the counts."""

import ast
import io
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
BARS = tomllib.loads((ROOT / "tests" / "house" / "size.toml").read_text())["most"]
UNCOUNTED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def sources(*tops: str) -> Iterator[str]:
    """The text of every module of some packages."""
    return (path.read_text() for top in tops for path in sorted((ROOT / top).rglob("*.py")))


def code_lines(text: str) -> int:
    """Count lines of code: without blank lines, comments and docstrings."""
    strings = (
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
    prose = {line for s in strings for line in range(s.lineno, (s.end_lineno or s.lineno) + 1)}
    lines = enumerate((line.strip() for line in text.splitlines()), 1)
    return sum(bool(line) and line[0] != "#" and i not in prose for i, line in lines)


def tokens(text: str) -> int:
    """Count tokens, so that denser lines win nothing."""
    return sum(
        t.type not in UNCOUNTED for t in tokenize.generate_tokens(io.StringIO(text).readline)
    )


def counted() -> dict[str, int]:
    """Return everything that has a bar."""
    library = list(sources("judgebayes", "models"))
    classes = [
        {
            n.name
            for n in ast.walk(ast.parse(text))
            if isinstance(n, ast.ClassDef) and n.name[0] != "_"
        }
        for text in library
    ]
    times = Counter(name for names in classes for name in names)
    return {
        "library_lines": sum(map(code_lines, library)),
        "library_tokens": sum(map(tokens, library)),
        "library_files": len(library),
        "public_classes": sum(times.values()),
        "class_names_in_two_files": sum(n > 1 for n in times.values()),
        "experiments_lines": sum(map(code_lines, sources("experiments"))),
        "tests_lines": sum(map(code_lines, sources("tests"))),
    }


def test_the_house_does_not_grow() -> None:
    now = counted()
    grown = {what: (now[what], most) for what, most in BARS.items() if now[what] > most}
    assert not grown, "more than the bar: take something away, or say in size.toml why it grows"


if __name__ == "__main__":
    print("\n".join(f"{name} = {n}" for name, n in counted().items()))  # noqa: T201
