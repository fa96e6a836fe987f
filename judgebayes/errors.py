"""The error classes for users: one sentence on what is wrong, where, and what to do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgebayes.sentence import sentence


class JudgeBayesError(ValueError):
    """Bad input or an impossible request, in one clear sentence."""

    def __init__(self, message: str) -> None:
        super().__init__(sentence(message))


@dataclass(frozen=True)
class Candidate:
    """A way in which files can be read."""

    words: str
    """What it takes the files for, in sentences."""
    options: Mapping[str, Any]
    """The options that select it, as keywords."""
    command: str
    """The same as words of a command line."""
    preview: tuple[str, ...]
    """The first items, with their votes and labels."""


class AmbiguousStudy(JudgeBayesError):  # noqa: N818 (a question, not an error of the program)
    """Files that are not read without a word: the ways in which they can be, the likeliest first."""

    def __init__(self, message: str, candidates: Sequence[Candidate]) -> None:
        ways = "; or ".join(f"{each.words} Use {each.command}" for each in candidates)
        super().__init__(f"{message} It can be read in {len(candidates)} way(s): {ways}")
        self.question = sentence(message)
        self.candidates = tuple(candidates)
