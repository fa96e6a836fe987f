"""A finding of a diagnostic."""

from dataclasses import dataclass
from typing import Literal

Severity = Literal["good", "note", "bad"]


@dataclass(frozen=True)
class Finding:
    """A sentence from a diagnostic, with its severity, its topic and the judges concerned."""

    severity: Severity
    sentence: str
    topic: str = ""
    judges: tuple[str, ...] = ()
