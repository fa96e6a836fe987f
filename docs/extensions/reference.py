"""The reference pages, written before every build from the package and its command line.

A module or command that is added appears by itself: there is no list to keep.
"""

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import typer
from typer.cli import get_docs_for_click

import judgebayes
from judgebayes.cli import app as command_line
from judgebayes.inference.registry import AGGREGATORS, CALIBRATORS
from judgebayes.workflow.methods import known_methods, traits_of
from judgebayes.workflow.names import TOP

if TYPE_CHECKING:
    from sphinx.application import Sphinx

NOT_LIBRARY = ("judgebayes.cli", "judgebayes.experiments", "judgebayes.models")
"""Parts with pages of their own, or none."""


def modules() -> list[ModuleType]:
    """Return the public modules: rooms that say what they offer, and what stands in others."""
    rooms = [child for child in children(judgebayes) if child.__name__ not in NOT_LIBRARY]
    each = [m for room in rooms for m in ([room] if offers(room) else children(room))]
    return [module for module in each if offers(module)]


def children(package: ModuleType) -> list[ModuleType]:
    """Return the modules of a package, none of a module."""
    names = [found.name for found in pkgutil.iter_modules(getattr(package, "__path__", []))]
    return [
        importlib.import_module(f"{package.__name__}.{name}")
        for name in names
        if not name.startswith("_")
    ]


def offers(module: ModuleType) -> bool:
    """Return whether a module says what it offers."""
    return bool(getattr(module, "__all__", []))


def summary(thing: object) -> str:
    """Return the first line of a docstring, empty for values."""
    described = inspect.isclass(thing) or inspect.isroutine(thing) or inspect.ismodule(thing)
    words = (inspect.getdoc(thing) or "") if described else ""
    return words.partition("\n\n")[0].replace("\n", " ")


ELSEWHERE = "set_fit_request, set_score_request"
"""Methods that scikit-learn gives its estimators, in words that point into its own documentation."""


def module_page(module: ModuleType) -> str:
    """Return the page of a module: what its docstring says, and every public name."""
    name = module.__name__
    title = name.removeprefix("judgebayes.")
    head = f"{title}\n{'=' * len(title)}\n\n.. automodule:: {name}\n   :members:\n"
    return f"{head}   :exclude-members: {ELSEWHERE}\n"


def homes() -> dict[str, str]:
    """Return the modules of the package's own names, as its stub lists them."""
    stub = Path(judgebayes.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    lists = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    return {
        x.name: ".".join(filter(None, ["judgebayes", node.module]))
        for node in lists
        for x in node.names
    }


def index_page() -> str:
    """Return the page of modules, and of the names that `judgebayes` itself offers."""
    found = modules()
    rows = "".join(
        f"   * - :doc:`{module.__name__.removeprefix('judgebayes.')}`\n     - {summary(module)}\n"
        for module in found
    )
    names = "".join(
        f"   * - :py:obj:`{name} <{home}.{name}>`\n     - {summary(getattr(judgebayes, name))}\n"
        for name, home in homes().items()
    )
    head = (
        "Python\n======\n\n``import judgebayes as jb`` offers the names of the second table; all "
        "else is imported from its module. The generative models, ``judgebayes.models``, have pages "
        "of their own.\n\n"
    )
    table = ".. list-table::\n   :widths: 25 75\n\n"
    pages = "".join(f"   {m.__name__.removeprefix('judgebayes.')}\n" for m in found)
    return (
        f"{head}Modules\n-------\n\n{table}{rows}\nNames of the package\n--------------------\n\n"
        f"{table}{names}\n.. toctree::\n   :hidden:\n\n{pages}"
    )


def command_page() -> str:
    """Return the reference of every command, from the command line's own help."""
    command = typer.main.get_command(command_line)
    context = typer.Context(command, info_name="judgebayes")
    page = get_docs_for_click(obj=command, ctx=context, name="judgebayes", title="Command line")
    return page.replace("\b\n", "")  # what keeps a terminal's lists as they are


def cell(text: str) -> str:
    """Return a docstring's line as a cell of a Markdown table: its formulas between dollars."""
    return re.sub(r":math:`(.*?)`", lambda m: f"${m[1]}$".replace("|", r"\vert "), text)


def methods_page() -> str:
    """Return the table of the methods of `calibrate`, from what each declares of itself."""
    yes = {True: "yes", False: ""}
    when = {"always": "yes", "panel": "of several judges", "tasks": "of several tasks"}
    head = ("`--method`", "what it is", "compared by `auto`", "tells judges apart")
    head += ("learns from unlabelled items", "`--calibrator auto`", "`--inference`")
    lines = [head, ("---",) * len(head)]
    for name in known_methods():
        method = AGGREGATORS.get(name)
        if method is None:
            continue
        traits = traits_of(name)
        link = f"{{py:obj}}`{method.__name__} <{method.__module__}.{method.__name__}>`"
        known = (
            yes[traits.knows_judges],
            yes[traits.learns_from_unlabelled],
            "beta" if traits.needs_map else "none",
            ", ".join(traits.inferences),
        )
        compared = "as what to beat" if traits.compared == "baseline" else when.get(traits.compared)
        lines.append((f"`{name}`", f"{link}: {cell(summary(method))}", compared or "", *known))
    top = ", ".join(f"`{name}`" for name in TOP)
    maps = "".join(
        f"| `{name}` | {{py:obj}}`{made.__name__} <{made.__module__}.{made.__name__}>`: "
        f"{cell(summary(made))} |\n"
        for name, made in CALIBRATORS.items()
    )
    rows = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return (
        f"# Methods\n\nEvery method that `calibrate` knows, as it declares itself.\n\n{rows}\n"
        f"{top}: the one-coin model on the most accurate judges alone, with a beta map. `auto` compares "
        "the first of them where there are six judges or more.\n\n## Calibration maps\n\n"
        f"| `--calibrator` | what it is |\n| --- | --- |\n{maps}"
    )


def write_pages(app: "Sphinx") -> None:
    """Write the pages that changed, and remove those whose module is gone."""
    folder = Path(app.srcdir) / "reference"
    pages = {f"api/{m.__name__.removeprefix('judgebayes.')}.rst": module_page(m) for m in modules()}
    pages |= {"api/index.rst": index_page(), "commands.md": command_page()}
    pages |= {"methods.md": methods_page()}
    (folder / "api").mkdir(parents=True, exist_ok=True)
    for name, words in pages.items():
        page = folder / name
        if not page.exists() or page.read_text(encoding="utf-8") != words:
            page.write_text(words, encoding="utf-8")
    for page in (folder / "api").glob("*.rst"):
        if f"api/{page.name}" not in pages:
            page.unlink()


def setup(app: "Sphinx") -> dict[str, bool]:
    """Write the pages before anything is read."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
