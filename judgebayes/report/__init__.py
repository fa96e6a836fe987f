"""Self-contained HTML pages from plain values.

Nothing is fitted here.
This package may not import `judgebayes` or any package after it.
"""

from judgebayes.report.page import (
    Block,
    Code,
    Drawing,
    Facts,
    Findings,
    Folded,
    Link,
    Links,
    Page,
    Paragraph,
    Row,
    Section,
    Table,
    render,
)

__all__ = [
    "Block",
    "Code",
    "Drawing",
    "Facts",
    "Findings",
    "Folded",
    "Link",
    "Links",
    "Page",
    "Paragraph",
    "Row",
    "Section",
    "Table",
    "render",
]
