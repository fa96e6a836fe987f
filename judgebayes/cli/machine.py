"""Run a command: its JSON for machines, its requirements, its exit code.

Outputs that would replace an input of the same command, or each other, are refused.
"""

import contextlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rich.prompt import IntPrompt

from judgebayes import __version__
from judgebayes.cli.command import OUTPUTS, CommandLine, MachineOptions, files_in
from judgebayes.errors import AmbiguousStudy, Candidate, JudgeBayesError
from judgebayes.io.options import as_pair
from judgebayes.sentence import sentence
from judgebayes.show.console import Console, send_nowhere
from judgebayes.workflow import machine
from judgebayes.workflow.machine import (
    BAD_INPUT,
    INTERRUPTED,
    NOT_ALL_HOLDS,
    TERMINATED,
    CommandResult,
)
from judgebayes.workflow.records import make_record


def check_outputs(values: Mapping[str, object]) -> None:
    """Check that no file to write is a file to read, or another file to write.

    Parameters
    ----------
    values
        The options of a command by name. Those that are no paths do not count, and neither do devices.

    Raises
    ------
    JudgeBayesError
        If two options name the same file, of which one is written.
    """
    taken: dict[object, str] = {}
    for name, value in values.items():
        if name not in OUTPUTS:
            taken |= {_identity(path): f"the {name} that is read" for path in files_in(value)}
    for name in OUTPUTS:
        option = f"--{name.replace('_', '-')}"
        for path in files_in(values.get(name)):
            identity = _identity(path)
            if identity in taken:
                raise JudgeBayesError(
                    f"{option} is {str(path)!r}, which is also {taken[identity]}: it would be replaced. "
                    f"Name another file with {option}."
                )
            taken[identity] = f"the file of {option}"


def _identity(path: Path) -> object:
    """Return what two paths of the same file have in common, also through links."""
    try:
        status = path.stat()
    except OSError:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


STDOUT = Path("-")
KEPT = "Every file is complete, or as it was before."
"""What is said of files when a signal ends a command: they are written under temporary names."""


def run_command(line: CommandLine) -> None:
    """Run a command with its options, write its JSON, and end with the exit code.

    Raises
    ------
    JudgeBayesError
        For bad input, or if an output would replace a file that is read.
    """
    command = line.command
    defaults = {name: leaf.default for name, leaf in command.leaves.items()}
    values = defaults | dict(line.given)
    check_outputs(values)
    options = make_record(MachineOptions, {}, line.given)

    def asked(values: Mapping[str, Any]) -> CommandResult:
        request, function = make_record(command.record, {}, values), command.function()
        if command.place.startswith("workflow"):
            from judgebayes.cli.answering import answered

            return answered(line, function, request)
        with_words = "words" in inspect.signature(function).parameters
        result: CommandResult = function(request, **({"words": line.words()} if with_words else {}))
        return result

    def answered_or_asked() -> CommandResult:
        try:
            return asked(line.given)
        except AmbiguousStudy as question:
            chosen = None if options.json or options.quiet else _choice(question)
            if chosen is None:
                raise
            again = dict(chosen.options)
            typed = {n for n, leaf in command.leaves.items() if not leaf.option.key}
            keys = [as_pair(n, again.pop(n)) for n in [*again] if n not in typed]
            return asked({**line.given, **again, "set": [*line.given.get("set", ()), *keys]})

    _run(command.name, options, answered_or_asked)


def _run(name: str, options: MachineOptions, command: Callable[[], CommandResult]) -> None:
    """Run a command, write its JSON, and end with the exit code.

    Raises
    ------
    JudgeBayesError
        For bad input, a requirement on a number that the JSON lacks, or JSON that cannot be written.
    SystemExit
        With the exit code, if it is not 0.
    """
    required = [machine.read_requirement(text) for text in options.require or ()]
    if options.json not in (None, STDOUT):
        from judgebayes.io.tables import check_writable

        check_writable(options.json, table=False)
    make = partial(machine.document, name, __version__)
    try:
        with _prose(options):
            result = command()
    except BaseException as error:
        if not isinstance(error, KeyboardInterrupt | SystemExit | JudgeBayesError):
            raise
        code, words = _ended_by(error)
        with contextlib.suppress(JudgeBayesError):  # the first error is the one to tell
            _write(options.json, make(None, exit_code=code, error=words))
        if isinstance(error, JudgeBayesError):
            raise
        _complain(words)
        raise SystemExit(code) from None
    content = make(result, exit_code=result.exit_code)
    try:
        checks = [each.check(content) for each in required]
    except JudgeBayesError as error:
        _write(options.json, make(result, exit_code=BAD_INPUT, error=str(error)))
        raise
    code = result.exit_code or (0 if all(each["holds"] for each in checks) else NOT_ALL_HOLDS)
    _write(options.json, make(result, exit_code=code, required=checks))
    for each in checks:
        if not each["holds"]:
            value = "not known" if each["value"] is None else f"{each['value']:.6g}"
            _complain(f"Not met: {each['requirement']}; the value is {value}.")
    if code:
        raise SystemExit(code)


def _ended_by(error: BaseException) -> tuple[int, str]:
    if isinstance(error, JudgeBayesError):
        return BAD_INPUT, str(error)
    terminated = isinstance(error, SystemExit)
    code, words = (TERMINATED, "Ended by SIGTERM") if terminated else (INTERRUPTED, "Interrupted")
    return code, f"{words}. {KEPT}"


@contextlib.contextmanager
def _prose(options: MachineOptions) -> Iterator[None]:
    """Send what a command prints to standard error if standard output is JSON, or nowhere."""
    with contextlib.ExitStack() as stack:
        if options.quiet:
            nowhere = stack.enter_context(Path(os.devnull).open("w", encoding="utf-8"))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
            stack.enter_context(contextlib.redirect_stderr(nowhere))
        elif options.json == STDOUT:
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield


def _write(path: Path | None, content: dict[str, Any]) -> None:
    """Write a document to a file, which is then whole or as it was, or to standard output."""
    if path is None:
        return
    text = machine.to_json(content)
    if path != STDOUT:
        from judgebayes.compiled.store import atomically

        with atomically(path) as temporary:
            temporary.write_text(text, encoding="ascii")
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        with contextlib.suppress(OSError, ValueError):
            # Python would write again at its end what standard output still buffers.
            send_nowhere(sys.stdout)
        raise JudgeBayesError(
            f"The JSON cannot be written to standard output: {error.strerror or error}."
        ) from error


def _choice(question: AmbiguousStudy) -> Candidate | None:
    """Return the candidate that the user chooses at a terminal; elsewhere None."""
    if not _at_terminal():
        return None
    _complain(question.question)
    show_candidates(question)
    candidates = question.candidates
    words = f"Which one? 1 to {len(candidates)}, or 0 for none"
    choices = [str(number) for number in range(len(candidates) + 1)]
    number = IntPrompt.ask(
        words, choices=choices, show_choices=False, default=1, console=Console(stderr=True)
    )
    return candidates[number - 1] if number else None


def _at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def show_candidates(question: AmbiguousStudy) -> None:
    """Print the ways in which files can be read, with their first items and what selects each."""
    for number, each in enumerate(question.candidates, start=1):
        _complain(f"{number}. {each.words}")
        for line in each.preview:
            _complain(f"     {line}")
        _complain(f"     To read it so: {each.command}")


def _complain(words: str) -> None:
    sys.stderr.write(f"{sentence(words)}\n")
