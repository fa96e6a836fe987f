"""A JSONL file that grows by a line at a time, with the settings that all lines share beside it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError
from judgebayes.io.growing import GrowingFile
from judgebayes.io.records import read_json, read_lines


@dataclass(frozen=True)
class AppendedWords:
    """What errors say about a kind of file."""

    contents: str
    """What its lines are: `answers`."""
    same: str
    """Why settings must not change: `All votes in a file must have the same settings.`"""
    other: str
    """How another file is chosen: `choose another file with -o`."""


def settings_path(path: Path) -> Path:
    """Return the path of the settings of a file."""
    return path.with_name(path.name + ".settings.json")


class Appended:
    """The file, open for appending. Only one process may have it open.

    Parameters
    ----------
    path
        The JSONL file; it is created if it does not exist.
    settings
        Values by name that must not change between two runs into the same file, without secrets.
    words
        What errors say.

    Raises
    ------
    JudgeBayesError
        If another process has the file open, a line is not a JSON object, or the file was written with
        other settings.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], words: AppendedWords) -> None:
        self.path = path
        self.words = words
        self._file = GrowingFile(path, words.contents)
        self.torn = self._file.torn
        """Number of bytes removed with a cut last line."""
        try:
            self.records = list(read_lines(path))
            """The lines so far, each with its number."""
            self._check_settings(settings)
        except BaseException:
            self._file.close(quietly=True)
            raise

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a line.

        Raises
        ------
        JudgeBayesError
            If it cannot be written, for example on a full disk.
        """
        # Lone surrogates, which some models produce, are not valid UTF-8; ASCII escapes them.
        self._file.append(json.dumps(dict(record)))

    def close(self, *, quietly: bool = False) -> None:
        """Write everything to the disk, and release the file; `quietly` as in `GrowingFile`."""
        self._file.close(quietly=quietly)

    def _check_settings(self, settings: Mapping[str, Any]) -> None:
        """Check that the settings equal those of the file, or write them beside a new file."""
        path, words = self.path, self.words
        settings_file = settings_path(path)
        if not self.records:
            _write(settings_file, settings)
            return
        if not settings_file.is_file():
            raise JudgeBayesError(
                f"{str(path)!r} contains {words.contents}, but their settings file "
                f"{str(settings_file)!r} is missing; {words.other}."
            )
        before = read_json(settings_file)
        if not isinstance(before, dict):
            raise JudgeBayesError(
                f"{str(settings_file)!r} has no settings by name; restore the file, or {words.other}."
            )
        for name, now in settings.items():
            was = before.get(name, now)  # a new judge has no earlier settings
            if _plain(was) != _plain(now):
                raise JudgeBayesError(
                    f"{str(path)!r} was started with another {name}: {excerpt(was)}, now "
                    f"{excerpt(now)}. {words.same} Use the earlier {name}, or {words.other}."
                )
        if settings.keys() - before.keys():
            _write(settings_file, before | dict(settings))


def _plain(value: object) -> str:
    """Return a setting as text: true, 1 and 1.0 are equal as values, but not the same setting."""
    return json.dumps(value, sort_keys=True)


def excerpt(value: object) -> str:
    """Return a value of a file for a sentence, cut if it is long."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:40]}... of {len(text)} characters"


def _write(path: Path, settings: Mapping[str, Any]) -> None:
    with atomically(path) as part:
        part.write_text(json.dumps(dict(settings), indent=1) + "\n", encoding="utf-8")
