"""The report's section of diagnostics: the findings on judges and labels."""

from collections.abc import Sequence

from judgebayes.finding import Finding
from judgebayes.report.page import Findings, Paragraph, Section


def diagnostics_section(findings: Sequence[Finding]) -> Section:
    """Return the section of the diagnostics, the most serious first."""
    counts = {kind: sum(f.severity == kind for f in findings) for kind in ("bad", "note")}
    problems = "No problem" if not counts["bad"] else _count_words(counts["bad"], "problem")
    return Section(
        "Diagnostics",
        [
            Paragraph(
                f"{problems} and {_count_words(counts['note'], 'note')}, from the votes and the labels "
                "only, before any method was fitted."
            ),
            Findings(findings),
        ],
        name="diagnostics",
    )


def _count_words(n: int, what: str) -> str:
    return f"{n or 'no'} {what}{'' if n == 1 else 's'}"
