"""The style of a page: colours for light, dark and print, one column, scrolling wide tables."""

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
