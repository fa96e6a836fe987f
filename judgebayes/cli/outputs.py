"""Refuse outputs that would replace an input of the same command, or each other."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError

__all__ = ["check_outputs", "check_slashes"]

SLASHES = "/\\" if os.name == "nt" else "/"
WITH_SLASH = re.compile(rf"\.\w+[{re.escape(SLASHES)}]+$")
OUTPUTS = ("out", "save", "table", "plot", "next_out", "labels_out", "answers", "json")
"""The names of options that name a file to write; all other files are read."""


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
            taken |= {_identity(path): f"the {name} that is read" for path in _files(value)}
    for name in OUTPUTS:
        option = f"--{name.replace('_', '-')}"
        for path in _files(values.get(name)):
            identity = _identity(path)
            if identity in taken:
                raise JudgeBayesError(
                    f"{option} is {str(path)!r}, which is also {taken[identity]}: it would be replaced. "
                    f"Name another file with {option}."
                )
            taken[identity] = f"the file of {option}"


def check_slashes(words: Sequence[str], parameters: Sequence[Any]) -> None:
    """Check that no file to write ends with a slash, as a folder does.

    Parameters
    ----------
    words
        The command line.
    parameters
        The options of the command, as Typer has them.

    Raises
    ------
    JudgeBayesError
        If one does.
    """
    written = [
        option
        for parameter in parameters
        if parameter.name in OUTPUTS and "folder" not in (parameter.help or "").casefold()
        for option in parameter.opts
    ]
    for place, word in enumerate(words):
        option, _, value = (
            word.partition("=") if word.startswith("--") else (word[:2], "", word[2:])
        )
        if option in written and WITH_SLASH.search(value or "".join(words[place + 1 : place + 2])):
            value = value or words[place + 1]
            raise JudgeBayesError(
                f"{option} {value!r} ends with a slash, as a folder does; name a file: "
                f"{value.rstrip(SLASHES)!r}."
            )


def _files(value: object) -> Iterator[Path]:
    """Yield the paths in an option that are files, or can become one."""
    for path in value if isinstance(value, list | tuple) else [value]:
        if isinstance(path, Path) and path != Path("-") and (path.is_file() or not path.exists()):
            yield path


def _identity(path: Path) -> object:
    """Return what two paths of the same file have in common, also through links."""
    try:
        status = path.stat()
    except OSError:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino
