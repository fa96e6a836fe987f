"""Run a command line in this process, and keep what it printed."""

import contextlib
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from judgebayes import cli


@dataclass(frozen=True)
class Result:
    """What a command line printed, and how it ended."""

    stdout: str
    stderr: str
    output: str
    """Both, in the order in which they were written."""
    exit_code: int
    exception: BaseException | None


class _Both(io.StringIO):
    """A stream whose words go to another one too."""

    def __init__(self, other: io.StringIO) -> None:
        super().__init__()
        self.other = other

    def write(self, text: str) -> int:
        """Write a text to both."""
        self.other.write(text)
        return super().write(text)


class CliRunner:
    """Runs command lines."""

    def invoke(
        self,
        _: object,
        words: Sequence[str],
        *,
        input: str = "",
        env: Mapping[str, str] | None = None,
        catch_exceptions: bool = True,
    ) -> Result:
        """Run a command line; an error that is not an exit code is in the result."""
        whole = io.StringIO()
        out, err = _Both(whole), _Both(whole)
        code, error = 0, None
        with _streams(input, env), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                cli.run([str(word) for word in words])
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
            except Exception as raised:
                if not catch_exceptions:
                    raise
                code, error = 1, raised
        return Result(out.getvalue(), err.getvalue(), whole.getvalue(), code, error)


@contextlib.contextmanager
def _streams(typed: str, env: Mapping[str, str] | None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(typed))
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        yield
