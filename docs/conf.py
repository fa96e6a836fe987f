"""The site of the documentation: `make docs`. `DOCS_VERSION` names a release in its titles."""

import logging
import os
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

import reference

import judgebayes

# Kernels log that they use TCP, and that a notebook begins. A build prints nothing but its warnings.
PROFILE = HERE.parent / "build" / "docs" / "ipython" / "profile_default"
PROFILE.mkdir(parents=True, exist_ok=True)
(PROFILE / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 'ERROR'\n")
os.environ["IPYTHONDIR"] = str(PROFILE.parent)
for name in ("traitlets", "jax._src.xla_bridge"):
    logging.getLogger(name).setLevel(logging.WARNING)

project = "judgebayes"
author = "The judgebayes developers"
copyright = "the judgebayes developers, MIT licence"
version = release = os.environ.get("DOCS_VERSION") or judgebayes.__version__

extensions = [
    "copies",
    "literals",
    "mathml",
    "myst_nb",
    "offline",
    "plate_directive",
    "records",
    "reference",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = [
    "extensions",
    "models",
    "experiments/expected",
    "tests/cases",
    "tests/golden",
    "**.ipynb_checkpoints",
]
default_role = "py:obj"
nitpicky = False

html_theme = "furo"
html_title = f"judgebayes {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
smartquotes_action = "qe"  # two hyphens begin an option, and are no dash
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_output_stderr = "remove"
nb_render_markdown_format = "myst"

napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True


def without_tuple_aliases(
    app: Sphinx, what: str, name: str, thing: object, skip: bool, options: object
) -> bool | None:
    """Leave out what a named tuple says of its fields by itself, and Matplotlib of its figures."""
    words = getattr(thing, "__doc__", None) or ""
    return True if words.startswith(("Alias for field number", "Set multiple properties")) else None


def without_module_story(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Leave out the models' stories where their pages tell them."""
    if what == "module" and name.startswith("judgebayes.models."):
        lines.clear()


ATTRIBUTES = ("attribute", "data", "property")
original_lines: dict[str, list[str]] = {}
"""Docstrings of attributes as they are written."""


def before_napoleon(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Remember an attribute's docstring: Napoleon takes what is before a colon for its type."""
    if what in ATTRIBUTES:
        original_lines[name] = list(lines)


def after_napoleon(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Restore an attribute's docstring."""
    if what in ATTRIBUTES:
        lines[:] = original_lines.pop(name)


def without_array_kinds(
    app: Sphinx,
    what: str,
    name: str,
    thing: object,
    options: object,
    given: str | None,
    returned: str | None,
) -> tuple[str, str | None] | None:
    """Write array types as the source does, where NumPy's and JAX's arrays are one name."""

    def short(words: str) -> str:
        words = words.replace("jaxlib._jax.Array", "Array").replace("numpy.ndarray", "ndarray")
        words = re.sub(r"~(?:\w+\.)*", "", words)
        words = re.sub(
            r"(\w+)\[Array, '([^']*)'\] \| \1\[ndarray, '\2'\]", r"\1[AnyArray, '\2']", words
        )
        key = r"Key\[Array, ''\]( \| UInt32\[Array, '\d'\])*"
        return re.sub(r"'(\[?) +", r"'\1", re.sub(key, "PRNGKeyArray", words))

    if given is None:  # a module
        return None
    if given == "(*args, **kwargs)" and what == "class":  # a protocol, which nobody calls
        return "", None
    return short(given), returned and short(returned)


def with_short_array(app: Sphinx, domain: str, kind: str, content: addnodes.desc_content) -> None:
    """Write JAX's array in the types of attributes and parameters as everywhere else: `Array`."""
    for words in [node for node in content.parent.findall(nodes.Text) if "jaxlib._jax" in node]:
        words.parent.replace(words, nodes.Text(words.replace("jaxlib._jax.Array", "Array")))


def with_signatures_of_their_own(app: Sphinx) -> None:
    """Let functions made from records be documented by their signature, not by the source behind it.

    A package whose names are looked up on first use gets them now, because only then autodoc sees them.
    """
    for module in reference.modules():
        for name in reference.offered(module):
            setattr(module, name, getattr(module, name))
        for thing in vars(module).values():
            if callable(thing) and "__signature__" in getattr(thing, "__dict__", {}):
                vars(thing).pop("__wrapped__", None)


def setup(app: Sphinx) -> None:
    """Connect it."""
    app.connect("builder-inited", with_signatures_of_their_own)
    app.connect("autodoc-process-docstring", without_module_story)
    app.connect("autodoc-process-docstring", before_napoleon, priority=400)
    app.connect("autodoc-process-docstring", after_napoleon, priority=600)
    app.connect("autodoc-process-signature", without_array_kinds)
    app.connect("autodoc-skip-member", without_tuple_aliases)
    app.connect("object-description-transform", with_short_array)
