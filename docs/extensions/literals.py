"""Names in docstrings that several things have, such as `votes`, are code and no link.

Sphinx would warn of each, and link to the first.
"""

from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.domains.python import PythonDomain
from sphinx.transforms.post_transforms import SphinxPostTransform


class Ambiguous(SphinxPostTransform):
    """Replace references to an ambiguous name by their text, before they are resolved."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:  # noqa: ARG002 (its signature)
        """Look at every reference to a Python object that has no dot."""
        domain = self.env.get_domain("py")
        assert isinstance(domain, PythonDomain)
        for node in list(self.document.findall(pending_xref)):
            if node.get("refdomain") != "py" or "." in node["reftarget"]:
                continue
            module, owner = node.get("py:module"), node.get("py:class")
            # An exact match beside the text is one; else all names that end so.
            if len(domain.find_obj(self.env, module, owner, node["reftarget"], "obj", 1)) > 1:
                text = node.astext()
                node.replace_self(nodes.literal(text, text))


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the transform."""
    app.add_post_transform(Ambiguous)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
