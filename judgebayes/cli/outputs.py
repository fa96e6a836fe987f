"""Refuse outputs that would replace an input of the same command, or each other."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from judgebayes.errors import JudgeBayesError

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
