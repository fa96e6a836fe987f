"""A self-contained HTML page from plain values: sections of paragraphs, tables and drawings.

The page loads nothing and runs no code: styles and drawings are inside the page, and its content
security policy forbids everything else. All text passes through `text.escaped`.

The style of a page: colours for light, dark and print, one column, scrolling wide tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from judgebayes.finding import Finding, Severity
from judgebayes.report.text import escaped

LIGHT = {
    "page": "#ffffff",
    "card": "#f4f6f8",
    "ink": "#1b1f24",
    "muted": "#57606a",
    "line": "#d0d7de",
    "link": "#0a58a8",
    "bad": "#b3261e",
    "note": "#8a4b00",
    "good": "#1a6b3c",
    "series": "#0072b2",
    "faint": "#b5d3e7",
    "rule": "#bbbbbb",
}
"""Colours by use. Text has the colours ink, muted, link, bad, note or good, on page or card; series,
faint and rule are colours of drawings."""

DARK = {
    "page": "#14181d",
    "card": "#1f252c",
    "ink": "#e8ebee",
    "muted": "#a8b1ba",
    "line": "#3a434d",
    "link": "#7fb8f5",
    "bad": "#ff9a91",
    "note": "#f2b766",
    "good": "#7ddba0",
    "series": "#4fa8e0",
    "faint": "#2f4d66",
    "rule": "#56606b",
}

_RULES = """\
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem 1.25rem 4rem; background: var(--page);
  color: var(--ink); font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue",
  "Noto Sans", sans-serif; overflow-wrap: anywhere; }
h1, h2, h3 { line-height: 1.25; text-wrap: balance; }
h1 { font-size: 1.7rem; margin: 0.8rem 0 0.4rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 0.6rem; border-top: 1px solid var(--line);
  padding-top: 1.4rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 0.4rem; }
p { margin: 0.5rem 0; max-width: 46rem; }
a { color: var(--link); }
a:focus-visible, summary:focus-visible, .wide:focus-visible { outline: 3px solid var(--link);
  outline-offset: 2px; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.3rem 1.1rem; list-style: none; padding: 0.7rem 0;
  margin: 1rem 0 0; border-top: 1px solid var(--line); }
nav a { display: inline-block; padding: 0.2rem 0; }
.findings { list-style: none; padding: 0; margin: 0.8rem 0; max-width: 50rem; }
.findings li { background: var(--card); border-left: 4px solid var(--line); padding: 0.6rem 0.9rem;
  margin: 0.5rem 0; border-radius: 0 6px 6px 0; }
.findings strong { display: inline-block; min-width: 4.6rem; }
.findings .bad { border-color: var(--bad); } .bad strong { color: var(--bad); }
.findings .note { border-color: var(--note); } .note strong { color: var(--note); }
.findings .good { border-color: var(--good); } .good strong { color: var(--good); }
dl { margin: 0.8rem 0; }
dt { color: var(--muted); font-size: 0.875rem; }
dd { margin: 0; }
.large { display: grid; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); gap: 0.7rem; }
.large div { background: var(--card); border-radius: 8px; padding: 0.7rem 0.9rem; }
.large dd { font-size: 1.05rem; font-weight: 600; line-height: 1.4; }
.facts div { display: grid; grid-template-columns: minmax(9rem, 14rem) 1fr; gap: 0.2rem 1rem;
  padding: 0.3rem 0; border-bottom: 1px solid var(--line); }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: 0.925rem; font-variant-numeric: tabular-nums;
  overflow-wrap: normal; min-width: min(20rem, 100%); }
caption { text-align: left; color: var(--muted); padding-bottom: 0.4rem; }
caption span { display: inline-block; position: sticky; left: 0;
  max-width: min(46rem, 100vw - 2rem); }
th, td { padding: 0.32rem 0.8rem 0.32rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
thead th { border-bottom-width: 2px; vertical-align: bottom; white-space: normal; }
tbody th { font-weight: 500; min-width: 7rem; max-width: 20rem; overflow-wrap: anywhere;
  position: sticky; left: 0; background: var(--page); }
.long { min-width: 17rem; }
.links { display: flex; flex-wrap: wrap; gap: 0 1.2rem; list-style: none; padding: 0;
  margin: 0.5rem 0; }
.n { text-align: right; }
td.n { white-space: nowrap; }
.row { display: flex; flex-wrap: wrap; gap: 0 1.5rem; }
figure { margin: 1rem 0; max-width: 100%; }
figure svg { display: block; max-width: 100%; height: auto; overflow: visible; }
figure svg text { fill: currentColor; font-family: inherit !important; }
figure:not(.paper) svg text { paint-order: stroke; stroke: var(--page); stroke-width: 2px;
  stroke-opacity: 0.55; stroke-linejoin: round; }
figure.paper { background: #ffffff; color: #000000; padding: 0.6rem; border-radius: 6px;
  border: 1px solid var(--line); }
figure.paper figcaption { color: #57606a; }
figcaption { color: var(--muted); font-size: 0.9rem; max-width: 42rem; }
.row figure { flex: 0 1 auto; } .row figcaption { max-width: 20rem; }
pre { background: var(--card); border-radius: 6px; padding: 0.8rem 1rem; overflow-x: auto;
  white-space: pre-wrap; margin: 0.8rem 0; }
code { font: 0.9rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
details { margin: 1rem 0; }
summary { cursor: pointer; color: var(--link); padding: 0.3rem 0; }
@media (max-width: 40rem) {
  body { padding: 0.6rem 0.9rem 3rem; }
  h1 { font-size: 1.4rem; }
  .facts div { grid-template-columns: 1fr; }
  th, td { padding-right: 0.6rem; }
  tbody th { max-width: 11rem; }
}
@media print {
  @page { margin: 16mm 14mm; }
  html { font-size: 10pt; }
  body { max-width: none; padding: 0; }
  nav { display: none; }
  a { color: inherit; text-decoration: none; }
  .wide { overflow: visible; }
  tbody th { position: static; }
  caption span { max-width: 100%; }
  table { font-size: 8.5pt; }
  thead { display: table-header-group; }
  tr, figure, .findings li, pre, .large div { break-inside: avoid; }
  h2, h3, caption { break-after: avoid; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
"""


def css() -> str:
    """Return the style sheet of a page; print is always light."""
    return (
        f":root {{ color-scheme: light dark; {_variables(LIGHT)} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}\n"
        f"{_RULES}"
    )


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


SEVERITIES: dict[Severity, str] = {"bad": "Problem", "note": "Note", "good": "Good"}
LONG_CELL = 60
"""A text column with a cell longer than this stays wide, even on a narrow page."""
MAX_HEADING = 6
"""The lowest heading level of HTML."""


@dataclass(frozen=True)
class Link:
    """A link to a file beside the page, or to a position in it (`#...`)."""

    text: str
    target: str


Cell = str | Link


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


@dataclass(frozen=True)
class Drawing:
    """A figure from `figures.inline_svg`; the markup is not escaped."""

    svg: str
    caption: str
    themed: bool = True
    """Whether its colours follow the page's; otherwise its background is white."""


@dataclass(frozen=True)
class Row:
    """Drawings side by side, if there is space."""

    drawings: Sequence[Drawing]


@dataclass(frozen=True)
class Code:
    """A command or a file, shown literally."""

    text: str


@dataclass(frozen=True)
class Links:
    """A list of links."""

    links: Sequence[Link]


@dataclass(frozen=True)
class Folded:
    """Collapsed blocks, shown on request and in print."""

    title: str
    blocks: "Sequence[Block]"


Block = Paragraph | Findings | Facts | Table | Drawing | Row | Code | Links | Folded


@dataclass(frozen=True)
class Section:
    """A heading and its content."""

    title: str
    blocks: Sequence[Block]
    sections: "Sequence[Section]" = ()
    name: str = ""
    """The target name for links: letters, digits and hyphens; by default a number."""


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
        f"<header>\n<h1>{escaped(page.title)}</h1>\n{_blocks(page.blocks)}</header>\n"
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav>\n'
        f"<main>\n{body}</main>\n</body>\n</html>\n"
    )


def _section(section: Section, level: int, name: str) -> str:
    heading = min(level, MAX_HEADING)
    inner = "".join(
        _section(each, level + 1, each.name or f"{name}-{n}")
        for n, each in enumerate(section.sections, start=1)
    )
    return (
        f'<section id="{escaped(name)}">\n<h{heading}>{escaped(section.title)}</h{heading}>\n'
        f"{_blocks(section.blocks)}{inner}</section>\n"
    )


def _blocks(blocks: Sequence[Block]) -> str:
    return "".join(_block(block) for block in blocks)


def _block(block: Block) -> str:
    match block:
        case Paragraph(text):
            return f"<p>{escaped(text)}</p>\n"
        case Findings(findings):
            items = "".join(
                f'<li class="{f.severity}"><strong>{SEVERITIES[f.severity]}</strong> '
                f"<span>{escaped(f.sentence)}</span></li>\n"
                for f in findings
            )
            return f'<ul class="findings">\n{items}</ul>\n'
        case Facts(facts, large):
            items = "".join(
                f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>\n"
                for name, value in facts
            )
            return f'<dl class="{"large" if large else "facts"}">\n{items}</dl>\n'
        case Table():
            return _table(block)
        case Drawing():
            return _drawing(block)
        case Row(drawings):
            return f'<div class="row">\n{"".join(map(_drawing, drawings))}</div>\n'
        case Code(text):
            return f"<pre><code>{escaped(text)}</code></pre>\n"
        case Links(links):
            return (
                f'<ul class="links">{"".join(f"<li>{_cell(link)}</li>" for link in links)}</ul>\n'
            )
        case Folded(title, blocks):
            return f"<details>\n<summary>{escaped(title)}</summary>\n{_blocks(blocks)}</details>\n"


def _table(table: Table) -> str:
    words = {0, *table.words}
    long = {n for n in words for row in table.rows if n and len(_cell_text(row[n])) > LONG_CELL}

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


def _cell_text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell.text


def _breakable(markup: str) -> str:
    """Return a cell in which a long name may be broken after slashes and underscores."""
    if "<" in markup:
        return markup
    return markup.replace("/", "/<wbr>").replace("_", "_<wbr>")


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return escaped(cell)
    is_internal = cell.target.startswith("#")
    target = "#" * is_internal + quote(cell.target[is_internal:], safe="/-._~")
    # A colon is quoted too, so that no target is an address with a scheme.
    return f'<a href="{target}">{escaped(cell.text)}</a>'


def _drawing(drawing: Drawing) -> str:
    ground = "" if drawing.themed else ' class="paper"'
    return (
        f"<figure{ground}>\n{drawing.svg}\n"
        f"<figcaption>{escaped(drawing.caption)}</figcaption>\n</figure>\n"
    )
