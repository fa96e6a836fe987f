"""The report's section of diagnostics: the findings on judges and labels."""

from collections.abc import Sequence

from judgebayes.finding import Finding
from judgebayes.report.page import Findings, Paragraph, Section


def diagnostics_section(findings: Sequence[Finding]) -> Section:
    """Return the section of the diagnostics, the most serious first."""
    counts = {kind: sum(f.severity == kind for f in findings) for kind in ("bad", "note")}
    return Section(
        "Diagnostics",
        [
            Paragraph(
                f"{counts['bad']} problem(s) and {counts['note']} note(s), from the votes and the "
                "labels only, before any method was fitted."
            ),
            Findings(findings),
        ],
        name="diagnostics",
    )
