"""The guide to priors, posteriors and ArviZ: its code blocks run and print the documented output."""

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
from runner import CliRunner

from judgebayes.cli import app
from judgebayes.inference import posterior

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "posteriors.md"
REAL = "## The same on real votes"
BLOCK = re.compile(
    r"^```(python|console|{code-cell} ipython3)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?",
    re.M | re.S,
)
NUMBER = re.compile(r"(?<![\w.-])[+-]?\d+(?:\.\d+)?(?:e[+-]\d+)?(?![\w-])")
ABSOLUTE, RELATIVE, LAST = 0.05, 0.1, 1.5
"""Tolerances of a number, of which the largest counts, the last in units of its last decimal: draws are
random, and differ between versions and machines."""
COUNT, OF_COUNTS = 200, 3
"""Larger whole numbers are effective sample sizes, with this factor as tolerance.

These tolerances are for pages whose numbers are drawn. Where none is, only the last decimal may differ.
"""


def blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the kind of each block, its code, and its expected output."""
    for kind, code, output in BLOCK.findall(text):
        if kind == "console":
            for each in re.split(r"^\$ ", code, flags=re.M)[1:]:
                command, _, output = each.partition("\n")
                yield kind, command, output
        else:
            yield "python", re.sub(r"^:tags:.*$", "", code, flags=re.M), output


def printed(kind: str, code: str, names: dict[str, Any]) -> str:
    if kind == "console":
        result = CliRunner().invoke(
            app, shlex.split(code, comments=True)[1:], env={"COLUMNS": "110"}
        )
        assert result.exit_code == 0, result.output
        return result.output
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, GUIDE.name, "exec"), names)
    return out.getvalue()


def agree(expected: str, actual: str, *, drawn: bool = False) -> bool:
    """Return whether the words are equal and the numbers close; `...` matches any words.

    Line breaks are ignored. `drawn` numbers have wider tolerances.
    """

    def alike(expected: list[str], actual: list[str]) -> bool:
        pairs = zip(expected, actual, strict=False)
        return len(expected) == len(actual) and all(near(*pair, drawn=drawn) for pair in pairs)

    first, *rest = (piece.split() for piece in re.split(r"(?<!\S)\.\.\.(?!\S)", expected))
    words, place = actual.split(), len(first)
    if not alike(first, words[:place]):
        return False
    for piece in rest[:-1]:
        ends = range(place + len(piece), len(words) + 1)
        place = next((i for i in ends if alike(piece, words[i - len(piece) : i])), -1)
        if place < 0:
            return False
    last = rest[-1] if rest else []
    after = words[place:]
    return alike(last, after[len(after) - len(last) :]) if rest else not after


def near(expected: str, actual: str, *, drawn: bool) -> bool:
    """Return whether two words are equal, up to the digits of close numbers."""
    if expected == actual:
        return True
    if NUMBER.sub("#", expected) != NUMBER.sub("#", actual):
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(actual), strict=True)
    return all(close(*pair, drawn=drawn) for pair in pairs)


def close(expected: str, actual: str, *, drawn: bool) -> bool:
    a, b = float(expected), float(actual)
    if drawn and "." not in expected and a >= COUNT:
        return a / OF_COUNTS <= b <= a * OF_COUNTS
    decimals = len(expected.partition(".")[2])
    last = LAST * 10**-decimals * (decimals > 0)
    return abs(a - b) <= (max(ABSOLUTE, RELATIVE * abs(a), last) if drawn else last)


def disagreements(text: str, *, drawn: bool = False) -> list[str]:
    """Run the blocks of a page, and return those that print something else than the page says.

    Commands of other programs are left out; of a command without a quoted output only that it
    succeeds counts.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    wrong = []
    for kind, code, expected in blocks(text):
        if kind == "console" and not code.startswith("judgebayes "):
            continue
        output = printed(kind, code, names)
        if (kind == "python" or expected) and not agree(expected, output, drawn=drawn):
            wrong.append(f"{code}\nshould print\n{expected}\nand prints\n{output}")
    plt.close("all")
    return wrong


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of matplotlib and ArviZ while plotting
def test_the_guide_prints_the_documented_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    simulated, _, _ = GUIDE.read_text(encoding="utf-8").partition(REAL)
    assert disagreements(simulated, drawn=True) == []
    assert all(
        (tmp_path / f"{name}.png").stat().st_size > 1000 for name in ("forest", "predictive")
    )


@pytest.mark.filterwarnings("ignore")
def test_its_last_section_runs_on_real_votes(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGEBAYES_DATA", str(data))
    _, _, real = GUIDE.read_text(encoding="utf-8").partition(REAL)
    assert list(blocks(real))
    assert disagreements(real, drawn=True) == []


def test_its_table_quotes_the_findings_on_chains() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    quotes = re.findall(r"^\| .*?`([a-z ]+)`.*\| ", text[text.index("| the sentence says") :], re.M)
    source = Path(posterior.__file__).read_text(encoding="utf-8")
    assert len(quotes) == 4
    for quote in quotes:
        assert quote in source, quote
