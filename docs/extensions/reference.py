"""The reference pages, written before every build from the package and its command line.

A command that is added appears automatically. A module or a name appears under the task that `TASKS`
gives its module, and under "Other" where no task does; a test fails then.
"""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Task:
    """What a reader wants to do, and the modules that do it: a package stands for all its modules."""

    slug: str
    title: str
    purpose: str
    modules: tuple[str, ...]


TASKS = (
    Task(
        "analyse",
        "Run a whole analysis",
        "What a command does, as a function of files or tables. The result holds sentences and tables.",
        (
            "workflow.calibrating",
            "workflow.diagnosing",
            "workflow.answers",
            "workflow.results",
            "workflow.options",
        ),
    ),
    Task(
        "read",
        "Read votes and labels",
        "Tables in, integer arrays inside, tables out; missing votes stay missing.",
        ("votes", "io", "workflow.data", "workflow.reading"),
    ),
    Task(
        "aggregate",
        "Aggregate votes",
        "From votes to the probability of each class of each item.",
        ("aggregators", "workflow.methods", "workflow.names"),
    ),
    Task(
        "calibrate",
        "Calibrate probabilities",
        "From probabilities to better ones, and to sets with a stated coverage.",
        ("calibrators", "evaluate.sklearn"),
    ),
    Task(
        "decide",
        "Decide and measure",
        "Bayes actions, proper scores, answering only where sure, tests of differences.",
        ("measures", "workflow.losses", "workflow.abstaining"),
    ),
    Task(
        "compare",
        "Compare methods on splits",
        "Fit on a part of the labels, decide the others, many times.",
        ("evaluate", "workflow.comparing"),
    ),
    Task(
        "judges",
        "Diagnose judges and choose panels",
        "What is wrong with judges and labels, how able judges are, and which to keep.",
        ("panel", "item_response", "finding"),
    ),
    Task(
        "majority",
        "Estimate the error of a majority vote",
        "How wrong a majority of k judges is, and how many labels it takes to know.",
        ("majority", "workflow.ensembling"),
    ),
    Task(
        "generators",
        "Estimate the precision of generators",
        "The share of valid outputs of each generator, from biased judges; what to label next.",
        ("generators", "workflow.precision", "workflow.systems"),
    ),
    Task(
        "posteriors",
        "Estimate parameters and sample posteriors",
        "Point estimates, priors, draws, checks, comparison of models.",
        ("inference", "posterior", "priors"),
    ),
    Task(
        "keep",
        "Save a fit and apply it",
        "Fits as plain JSON files, and their answers to new votes.",
        ("workflow.applying", "workflow.fit_file"),
    ),
    Task(
        "collect",
        "Collect votes",
        "Ask judges behind an endpoint, and stop where more votes are not worth their price.",
        ("collect", "workflow.adaptive"),
    ),
    Task(
        "show",
        "Draw and report",
        "Figures, the HTML page, the versions that a report of a fault needs.",
        ("plots", "report"),
    ),
    Task(
        "extend",
        "Extend",
        "Declare a method of your own, load it, and hold it to the laws.",
        ("testing", "workflow.plugins"),
    ),
    Task(
        "scale",
        "Run at scale",
        "Programs compiled once, checkpoints of long sweeps, batches that suit the memory.",
        ("compiled", "evaluate.batches", "progress"),
    ),
    Task(
        "data",
        "Public and simulated data",
        "Data sets with checksums, and twins of what papers publish.",
        ("public", "simulate"),
    ),
    Task(
        "shared",
        "Errors and shared types",
        "What the other pages use.",
        ("errors", "arrays", "sentence", "workflow.records"),
    ),
)
OTHER = Task("other", "Other", "What no task names yet.", ())

NAMES = {
    "aggregator": "extend",
    "calibrator": "extend",
    "in_files": "extend",
    "SparseVotes": "scale",
    "encode_sparse": "scale",
    "testing": "extend",
    "priors": "posteriors",
}
"""Names of the package whose task is not that of their module."""


def task_of(module: str) -> Task:
    """Return the task that names a module, or the most of the packages around it."""
    parts = module.removeprefix("judgebayes.").split(".")
    for end in range(len(parts), 0, -1):
        for task in TASKS:
            if ".".join(parts[:end]) in task.modules:
                return task
    return OTHER


def task_of_name(name: str, home: str) -> Task:
    """Return the task of a name of the package: its own, or that of the module where it lives."""
    own = [task for task in TASKS if task.slug == NAMES.get(name)]
    return own[0] if own else task_of(home)


def modules() -> list[ModuleType]:
    """Return the public modules: rooms that say what they offer, and what stands in others."""
    rooms = [child for child in children(judgebayes) if child.__name__ not in NOT_LIBRARY]
    each = [m for room in rooms for m in ([room] if offers(room) else children(room))]
    return [module for module in each if offers(module)]


def children(package: ModuleType) -> list[ModuleType]:
    """Return the modules of a package, none of a module."""
    names = [module.name for module in pkgutil.iter_modules(getattr(package, "__path__", []))]
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


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of two columns."""
    cells = "".join(f"   * - {left}\n     - {right}\n" for left, right in rows)
    return f".. list-table::\n   :widths: 30 70\n\n{cells}\n"


def by_task() -> dict[Task, tuple[dict[str, str], list[ModuleType]]]:
    """Return the names of the package (with their modules) and the modules of each task that has any."""
    names: dict[Task, dict[str, str]] = {task: {} for task in (*TASKS, OTHER)}
    pages: dict[Task, list[ModuleType]] = {task: [] for task in (*TASKS, OTHER)}
    for name, home in homes().items():
        names[task_of_name(name, home)][name] = home
    for module in modules():
        pages[task_of(module.__name__)].append(module)
    return {task: (names[task], pages[task]) for task in names if names[task] or pages[task]}


def short(module: ModuleType) -> str:
    """Return a module's name without the package's."""
    return module.__name__.removeprefix("judgebayes.")


def task_page(task: Task, names: dict[str, str], pages: list[ModuleType]) -> str:
    """Return the page of a task: the package's names for it, and its modules."""
    page = f"{task.title}\n{'=' * len(task.title)}\n\n{task.purpose}\n\n"
    if names:
        page += "``import judgebayes as jb`` offers:\n\n" + table(
            (f":py:obj:`jb.{name} <{home}.{name}>`", summary(getattr(judgebayes, name)))
            for name, home in names.items()
        )
    if pages:
        page += "Modules, with all that they offer:\n\n" + table(
            (f":doc:`judgebayes.{short(module)} <{short(module)}>`", summary(module))
            for module in pages
        )
    listed = "".join(f"   {short(module)}\n" for module in pages)
    return f"{page}.. toctree::\n   :hidden:\n\n{listed}"


def index_page() -> str:
    """Return the page of all tasks, with the package's names for each."""
    tasks = by_task()
    rows = [
        (
            f":doc:`task-{task.slug}`",
            ", ".join(f":py:obj:`{name} <{home}.{name}>`" for name, home in names.items())
            or ", ".join(f":doc:`{short(module)}`" for module in pages),
        )
        for task, (names, pages) in tasks.items()
    ]
    head = (
        "Python, by task\n===============\n\n``import judgebayes as jb`` offers the names below; "
        "each task's page lists its modules, from which everything else is imported. The "
        "generative models, ``judgebayes.models``, have :doc:`pages of their own </models>`.\n\n"
    )
    listed = "".join(f"   task-{task.slug}\n" for task in tasks)
    return f"{head}{table(rows)}.. toctree::\n   :hidden:\n\n{listed}"


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
    pages |= {f"api/task-{task.slug}.rst": task_page(task, *x) for task, x in by_task().items()}
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
