"""`judgebayes/__init__.pyi` has the signature of every question, so that an editor shows its options.

Written from the records of options by `python tests/house/test_signatures.py`.
"""

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import judgebayes as jb
from judgebayes.workflow.leaves import leaves
from judgebayes.workflow.options import Option
from judgebayes.workflow.records import records_of

STUB = Path(jb.__file__).with_suffix(".pyi")
MARK = "\n# The questions, as tests/house/test_signatures.py writes them.\n"
QUESTIONS = ("read", "check", "calibrate", "win_rate", "diagnose", "ensemble", "precision")
QUESTIONS += ("posterior", "compare", "apply")
OTHER = {
    "fit": "Calibration | pathlib.Path | str",
    "files": "collections.abc.Sequence[pathlib.Path | str]",
    "votes": "typing.Any",
    "labels": "typing.Any",
}
"""Types that are wider in Python than at the command line."""


def annotation(name: str, kind: Any, option: Option) -> str:
    """Return the type of an option, as an editor should show it."""
    optional = " | None" if "None" in str(kind) else ""
    text = kind.__name__ if isinstance(kind, type) else str(kind)
    text = "typing.Any" if kind is Any else text
    if name in OTHER:
        return OTHER[name]
    if option.values and not option.others:
        return f"typing.Literal[{', '.join(map(repr, option.values))}]{optional}"
    if kind in (str, str | None):
        return f"str | collections.abc.Sequence[str]{optional}"
    return text.replace("pathlib.Path", "Path").replace("Path", "pathlib.Path | str")


def definition(name: str) -> str:
    """Return the signature of a question as a line of a stub."""
    function = getattr(jb, name)
    records = [kind for kind in records_of(function.__wrapped__).values() if kind is not None]
    kinds = {leaf.name: leaf for kind in records for leaf in leaves(*kind)}
    given, named = [], []
    for each in inspect.signature(function).parameters.values():
        if each.name == "set":  # its keys are keywords
            continue
        leaf = kinds.get(each.name)
        kind = "typing.Any" if leaf is None else annotation(each.name, leaf.type, leaf.option)
        plain = isinstance(each.default, str | int | float | None)
        default = (
            "" if each.default is each.empty else f" = {each.default!r}" if plain else " = ..."
        )
        text = f"{each.name}: {kind}{default}"
        (given if each.kind is each.POSITIONAL_OR_KEYWORD else named).append(text)
    result = inspect.signature(function).return_annotation
    parameters = ", ".join([*given, *(["*"] if named else []), *named])
    return f"def {name}({parameters}) -> {result.__name__}: ...\n"


def written() -> str:
    """Return the definitions of all questions."""
    return MARK + "".join(map(definition, QUESTIONS))


def test_the_stub_has_the_signatures_of_all_questions() -> None:
    kept = STUB.read_text(encoding="utf-8").partition(MARK)[2]
    assert ast.dump(ast.parse(kept)) == ast.dump(ast.parse(written())), "run this file"


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        ('jb.calibrate("v.csv", "l.csv", method="davidson", splits=20)', ""),
        ('jb.calibrate("v.csv", missing=["n/a", "-"]).plot()', ""),
        ('jb.calibrate("v.csv", metodd="davidson")', "metodd"),
        ('jb.calibrate("v.csv", ties="haf")', "haf"),
        ('jb.diagnose("v.csv", splits=20)', "splits"),
    ],
)
def test_a_type_checker_finds_a_misspelt_option(call: str, wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(f"import judgebayes as jb\n\n{call}\n")
    command = [sys.executable, "-m", "mypy", "--config-file=", "--ignore-missing-imports"]
    command += ["--follow-imports=silent", "--cache-dir", str(STUB.parents[1] / ".mypy_cache")]
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (not wrong), done.stdout
    assert wrong in done.stdout


if __name__ == "__main__":
    text = STUB.read_text(encoding="utf-8").partition(MARK)[0]
    STUB.write_text(text + written(), encoding="utf-8")
    subprocess.run(["ruff", "format", "-q", str(STUB)], check=True)
