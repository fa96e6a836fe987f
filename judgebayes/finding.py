"""One thing that a diagnostic says, in words."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "Severity"]

Severity = Literal["good", "note", "bad"]


@dataclass(frozen=True)
class Finding:
    """What a diagnostic found, how grave it is, and which judges it is about."""

    severity: Severity
    sentence: str
    topic: str = ""
    judges: tuple[str, ...] = ()
