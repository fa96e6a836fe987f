"""Matplotlib figures as markup inside a page."""

import io
import re
import warnings
from typing import TYPE_CHECKING

from judgebayes.show.text import clean, escaped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SALT = "judgebayes"
"""Salt of Matplotlib's names of clips and markers, so that equal figures have equal bytes."""
THEME = {
    "#000000": "currentColor",
    "#dddddd": "var(--line)",
    "#0072b2": "var(--series)",
}
"""Colours of `judgebayes.plots`, with the page's variables for them."""
_TAG = re.compile(r"<[^<>]*>")
_NAME = re.compile(r'(\bid="|url\(#|href="#)')
_INVISIBLE = re.compile(r"<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)


def inline_svg(
    figure: "Figure", name: str, title: str, description: str, *, themed: bool = True
) -> str:
    """Return a figure as an SVG element with a title and a description for screen readers.

    Parameters
    ----------
    figure
        The figure; its texts remain text, which the browser draws.
    name
        Letters, digits and hyphens, unique on the page; it prefixes the names inside the drawing, which
        would clash otherwise.
    title, description
        The title, and a description of the content.
    themed
        Whether black and the greys follow the colours of the page.
    """
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": SALT}), warnings.catch_warnings():
        # The browser has the glyphs that Matplotlib's font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(buffer, format="svg", transparent=themed, metadata={"Date": None})
    markup = clean(buffer.getvalue())
    markup = _INVISIBLE.sub("", markup[markup.index("<svg") :]).strip()
    markup = _TAG.sub(lambda tag: _prefixed(tag[0], name, THEME if themed else {}), markup)
    description_markup = (
        f'<title id="{name}-title">{escaped(title)}</title>'
        f'<desc id="{name}-desc">{escaped(description)}</desc>'
    )
    opening, remainder = markup.split(">", 1)
    labelled = f' role="img" aria-labelledby="{name}-title {name}-desc">'
    return re.sub(r"\n\s*", "\n", f"{opening}{labelled}{description_markup}{remainder}")


def _prefixed(tag: str, name: str, theme: dict[str, str]) -> str:
    tag = _NAME.sub(rf"\g<1>{name}-", tag)
    for colour, variable in theme.items():
        tag = tag.replace(colour, variable)
    return tag
