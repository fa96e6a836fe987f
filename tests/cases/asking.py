"""Files in, reading and answers out: by the command line, or by `judgebayes.check` and what it reads."""

from pathlib import Path
from typing import Any

from documents import check_document
from runner import CliRunner

import judgebayes as jb
from judgebayes.cli import app
from judgebayes.errors import JudgeBayesError

FILES = Path(__file__).parent / "files"


def run(*args: object, code: int = 0) -> str:
    """Run a command; return what it prints, and the message of an error."""
    done = CliRunner().invoke(app, [*map(str, args)])
    error = done.exception
    expected = (SystemExit, JudgeBayesError)
    if error is not None and not isinstance(error, expected):
        raise error
    # `main` ends with 2 after an error of the input.
    status = 2 if isinstance(error, JudgeBayesError) else done.exit_code
    said = done.output + (f"\n{error}" if isinstance(error, JudgeBayesError) else "")
    assert status == code, (status, said)
    return " ".join(said.split())


def result_of(*args: object, out: Path) -> dict[str, Any]:
    """Run a command, and return its results as JSON, which the shipped schema describes."""
    run(*args, "--json", out)
    result: dict[str, Any] = check_document(out.read_text())["result"]
    return result


def checked(votes: str, labels: str | None = None) -> Any:
    """Return what `check` makes of two files, which it can read."""
    result = jb.check(FILES / votes, None if labels is None else FILES / labels)
    assert result.data is not None, result.sentences
    return result


def diagnosed(votes: str, labels: str | None = None) -> dict[str, float]:
    """Return the accuracy of each judge in %, with the options that `check` gives."""
    options = checked(votes, labels).options
    table = jb.diagnose(FILES / votes, None if labels is None else FILES / labels, **options).judges
    return {
        judge: round(100 * accuracy)
        for judge, accuracy in zip(table["judge"], table["accuracy"], strict=True)
    }
