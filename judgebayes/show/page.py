"""What answers and pages are made of, and a self-contained HTML page of it.

The console prints paragraphs, findings, tables and commands; a page has figures and the rest too.

The page loads nothing and runs no code: styles and drawings are inside the page, and its content
security policy forbids everything else. All text passes through `text.escaped`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from judgebayes.finding import Finding, Severity
from judgebayes.show.text import escaped

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture


def css() -> str:
    """Return the style sheet of a page, `page.css` in this package."""
    return resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")


SEVERITIES: dict[Severity, str] = {"bad": "Problem", "note": "Note", "good": "Good"}
LONG_CELL = 60
"""A text column with a cell longer than this stays wide, even on a narrow page."""
MAX_HEADING = 6
"""The lowest heading level of HTML."""


@dataclass(frozen=True)
class Markup:
    """HTML that is shown as it is: its maker has escaped all text."""

    html: str


Cell = str | Markup


@dataclass(frozen=True)
class Paragraph:
    """A few sentences."""

    text: str


@dataclass(frozen=True)
class Findings:
    """Findings of diagnostics, each with its severity."""

    findings: Sequence[Finding]


@dataclass(frozen=True)
class Facts:
    """Names and their values."""

    facts: Sequence[tuple[str, str]]
    large: bool = False
    """Whether they are displayed prominently."""


@dataclass(frozen=True)
class Table:
    """A table; the first cell of a row is its heading, and numbers are aligned right."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    words: Sequence[int] = ()
    """Text columns, beside the first."""
    least_needed: Sequence[str] = ()
    """Columns that a narrow console leaves out, in this order."""


@dataclass(frozen=True)
class Plot:
    """A figure that is drawn where it is shown; `name`, `title` and `description` as in `inline_svg`."""

    draw: "Callable[[], Picture]"
    name: str
    title: str
    description: str
    caption: str


@dataclass(frozen=True)
class SideBySide:
    """Figures side by side, if there is space."""

    figures: Sequence[Plot]


@dataclass(frozen=True)
class Code:
    """A command or a file, shown literally."""

    text: str


Block = Paragraph | Findings | Facts | Table | Plot | SideBySide | Code | Markup


@dataclass(frozen=True)
class Section:
    """A heading and its content."""

    title: str
    blocks: Sequence[Block]
    sections: "Sequence[Section]" = ()
    name: str = ""
    """The target name for links: letters, digits and hyphens; by default a number."""
    folded: bool = False
    """Whether only its heading is seen until it is opened; in print, it is open."""


@dataclass(frozen=True)
class Page:
    """A title, introductory blocks, and sections."""

    title: str
    blocks: Sequence[Block]
    sections: Sequence[Section]


def render(page: Page) -> str:
    """Return the page as an HTML document."""
    names = [section.name or f"section-{n}" for n, section in enumerate(page.sections, start=1)]
    contents = "".join(
        f'<li><a href="#{escaped(name)}">{escaped(section.title)}</a></li>'
        for name, section in zip(names, page.sections, strict=True)
    )
    body = "".join(
        _section(section, 2, name) for name, section in zip(names, page.sections, strict=True)
    )
    policy = (  # a heat map inside a drawing is an embedded image
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escaped(page.title)}</title>\n<style>\n{css()}</style>\n</head>\n<body>\n"
        f"<header>\n<h1>{escaped(page.title)}</h1>\n{markup(page.blocks)}</header>\n"
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav>\n'
        f"<main>\n{body}</main>\n</body>\n</html>\n"
    )


def _section(section: Section, level: int, name: str) -> str:
    heading = min(level, MAX_HEADING)
    inner = "".join(
        _section(each, level + 1, each.name or f"{name}-{n}")
        for n, each in enumerate(section.sections, start=1)
    )
    title = f"<h{heading}>{escaped(section.title)}</h{heading}>\n"
    content = f"{title}{markup(section.blocks)}{inner}"
    if section.folded:
        content = (
            f"<details><summary>{title}</summary>\n{markup(section.blocks)}{inner}</details>\n"
        )
    return f'<section id="{escaped(name)}">\n{content}</section>\n'


def markup(blocks: Sequence[Block]) -> str:
    """Return blocks as HTML."""
    return "".join(_block(block) for block in blocks)


def _block(block: Block) -> str:
    match block:
        case Paragraph(text):
            return f"<p>{_whole(text)}</p>\n"
        case Findings(findings):
            items = "".join(
                f'<li class="{f.severity}"><strong>{SEVERITIES[f.severity]}</strong> '
                f"<span>{escaped(f.text)}</span></li>\n"
                for f in findings
            )
            return f'<ul class="findings">\n{items}</ul>\n' if items else ""
        case Facts(facts, large):
            items = "".join(
                f"<div><dt>{escaped(name)}</dt><dd>{_whole(value)}</dd></div>\n"
                for name, value in facts
            )
            return f'<dl class="{"large" if large else "facts"}">\n{items}</dl>\n'
        case Table():
            return _table(block)
        case Plot():
            return _drawn(block)
        case SideBySide(figures):
            return f'<div class="row">\n{markup(figures)}</div>\n'
        case Code(text):
            return f"<pre><code>{escaped(text)}</code></pre>\n"
        case Markup(html):
            return html


def _whole(text: str) -> str:
    """Return a text in which a number and its per cent sign stay on one line."""
    return escaped(text).replace(" %", "\u00a0%")


def _table(table: Table) -> str:
    words = {0, *table.words}
    long = {n for n in words for row in table.rows if n and len(str(row[n])) > LONG_CELL}

    def tag(n: int) -> str:
        return ' class="long"' if n in long else "" if n in words else ' class="n"'

    head = "".join(
        f'<th scope="col"{tag(n)}>{escaped(name)}</th>' for n, name in enumerate(table.head)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{_breakable(_cell(cell))}</th>'
            if n == 0
            else f"<td{tag(n)}>{_cell(cell)}</td>"
            for n, cell in enumerate(row)
        )
        + "</tr>\n"
        for row in table.rows
    )
    # A table wider than the page scrolls separately, also by keyboard.
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{escaped(table.caption)}">\n'
        f"<table>\n<caption><span>{escaped(table.caption)}</span></caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{rows}</tbody>\n</table>\n</div>\n"
    )


def _breakable(markup: str) -> str:
    """Return a cell in which a long name may be broken after slashes and underscores."""
    if "<" in markup:
        return markup
    return markup.replace("/", "/<wbr>").replace("_", "_<wbr>")


def _cell(cell: Cell) -> str:
    return escaped(cell) if isinstance(cell, str) else cell.html


def _drawn(figure: Plot) -> str:
    """Return a figure as drawn; texts are literal, so that a name with dollar signs is no formula."""
    from matplotlib import rc_context

    from judgebayes.show.figures import inline_svg

    with rc_context({"text.parse_math": False, "axes.formatter.use_mathtext": False}):
        svg = inline_svg(figure.draw(), figure.name, figure.title, figure.description)
    return with_caption(svg, figure.caption)


def with_caption(svg: str, caption: str, *, themed: bool = True) -> str:
    """Return a figure from `figures.inline_svg` with a caption; on white if it is not `themed`."""
    ground = "" if themed else ' class="paper"'
    return f"<figure{ground}>\n{svg}\n<figcaption>{escaped(caption)}</figcaption>\n</figure>\n"
