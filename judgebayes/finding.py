"""A finding of a diagnostic."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

Severity = Literal["good", "note", "bad"]


@dataclass(frozen=True)
class Finding:
    """A sentence from a diagnostic, with its severity, its topic and the judges concerned."""

    severity: Severity
    sentence: str
    topic: str = ""
    judges: tuple[str, ...] = ()
    option: str = ""
    """The option that settles it, as at the command line; a bad one with an option is a question."""

    @property
    def text(self) -> str:
        """The sentence with its option."""
        return f"{self.sentence} Option: {self.option}" if self.option else self.sentence


class FindingCounts(TypedDict):
    """How many findings are bad, and how many are notes."""

    problems: int
    notes: int


def count_findings(findings: Sequence[Finding]) -> FindingCounts:
    """Return the numbers of bad findings and of notes by name."""
    bad, notes = (sum(each.severity == kind for each in findings) for kind in ("bad", "note"))
    return {"problems": bad, "notes": notes}
