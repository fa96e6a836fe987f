"""The directive `plate`: the diagram of the program that it names."""

import sys

from docutils import nodes
from plates import diagram, drawable
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

MISSING = "Diagrams are drawn by Graphviz, whose program `dot` is not installed here."


class Plate(SphinxDirective):
    """A program's diagram, drawn when the page is read."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the diagram, or where Graphviz is missing a sentence that says so."""
        if not drawable():
            return [nodes.paragraph(text=MISSING)]
        svg = f'<div class="plate-frame">{diagram(self.arguments[0])}</div>'
        return [nodes.raw("", svg, format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("plate", Plate)
    if not drawable():
        sys.stderr.write(f"{MISSING} The pages of the models are built without them.\n")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
