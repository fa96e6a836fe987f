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

import judgebayes
from judgebayes.cli import COMMANDS
from judgebayes.cli import app as command_line
from judgebayes.inference.registry import AGGREGATORS, CALIBRATORS
from judgebayes.workflow.methods import known_methods, traits_of
from judgebayes.workflow.options import TOP

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
        "Each command as a function of files or tables. The result contains sentences and tables.",
        (
            "workflow.checking",
            "workflow.check_columns",
            "workflow.check_labels",
            "workflow.check_scales",
            "workflow.calibrating",
            "workflow.calibration",
            "workflow.diagnosing",
            "workflow.answers",
            "workflow.results",
            "workflow.machine",
            "workflow.options",
            "workflow.next_steps",
        ),
    ),
    Task(
        "read",
        "Read votes and labels",
        "From tables to integer arrays and back; missing votes stay missing.",
        (
            "votes",
            "io",
            "workflow.data",
            "workflow.asking",
            "workflow.study",
            "workflow.check_draft",
            "workflow.reading",
            "workflow.binning",
            "workflow.item_ids",
            "workflow.likely",
            "workflow.scales",
            "workflow.sources",
            "workflow.annotators",
        ),
    ),
    Task(
        "aggregate",
        "Aggregate votes",
        "From votes to the probability of each class of each item.",
        ("aggregators", "workflow.methods"),
    ),
    Task(
        "calibrate",
        "Calibrate probabilities",
        "Calibration maps, and conformal sets with a given coverage.",
        (
            *("calibrators", "evaluate.sklearn"),
            "workflow.conformal_sets",
        ),
    ),
    Task(
        "decide",
        "Decide and measure",
        "Bayes actions, proper scores, reliability, tests of differences.",
        ("measures", "workflow.losses"),
    ),
    Task(
        "compare",
        "Compare methods on splits",
        "Fit to a part of the labels and evaluate on the others, many times.",
        (
            "evaluate",
            "workflow.comparing",
        ),
    ),
    Task(
        "judges",
        "Diagnose judges and choose panels",
        "Problems of judges and labels, abilities of judges, selection of a panel.",
        ("panel", "item_response", "finding"),
    ),
    Task(
        "majority",
        "Estimate the error of a majority vote",
        "The error of a majority of k votes, and the number of labels to estimate it.",
        (
            *(
                "majority",
                "workflow.ensembling",
                "workflow.ensemble_panel",
            ),
            "workflow.ensemble_estimates",
        ),
    ),
    Task(
        "generators",
        "Estimate the precision of generators",
        "The share of valid outputs of each generator, from biased judges, and what to label next.",
        (
            *("generators", "workflow.precision", "workflow.precision_methods", "workflow.systems"),
            "workflow.win_rates",
            "workflow.precision_tables",
        ),
    ),
    Task(
        "posteriors",
        "Estimate parameters and sample posteriors",
        "Point estimates, priors, draws, checks, comparison of models.",
        ("inference", "posteriors", "priors", "workflow.posterior", "workflow.posterior_options"),
    ),
    Task(
        "keep",
        "Save a fit and apply it",
        "Fits as plain JSON files, and their application to new votes.",
        ("workflow.applying", "workflow.fit_file"),
    ),
    Task(
        "collect",
        "Collect votes",
        "Request votes from judges at an endpoint, and stop if more votes are not worth their price.",
        ("collect", "workflow.adaptive"),
    ),
    Task(
        "show",
        "Draw and report",
        "Figures, the HTML page, and the versions that a bug report needs.",
        ("plots", "show", "report"),
    ),
    Task(
        "extend",
        "Extend",
        "Declare your own method, load it, and test the laws on it.",
        ("testing",),
    ),
    Task(
        "scale",
        "Run at scale",
        "Batch sizes by memory.",
        ("compiled", "evaluate.engine", "progress"),
    ),
    Task(
        "shared",
        "Errors and shared types",
        "Errors and types that the other pages use.",
        ("errors", "arrays", "sentence", "workflow.leaves", "workflow.records"),
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
    """Return the public modules: packages or their parts, and the modules of the package's own names."""
    packages = [child for child in children(judgebayes) if child.__name__ not in NOT_LIBRARY]
    each = [m for p in packages for m in ([p] if offered(p) else children(p))]
    of_names = sorted({*homes().values()} - {"judgebayes"})
    each += [module for module in map(importlib.import_module, of_names) if module not in each]
    return [module for module in each if offered(module)]


def children(package: ModuleType) -> list[ModuleType]:
    """Return the modules of a package, none of a module."""
    names = [module.name for module in pkgutil.iter_modules(getattr(package, "__path__", []))]
    return [
        importlib.import_module(f"{package.__name__}.{name}")
        for name in names
        if not name.startswith("_")
    ]


def offered(module: ModuleType) -> list[str]:
    """Return the public names of a module: those that it defines, or that a package says it has."""
    defined = [
        name
        for name, thing in vars(module).items()
        if name[0] != "_" and getattr(thing, "__module__", None) == module.__name__
    ]
    return list(getattr(module, "__all__", defined))


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
    lists = [node for node in ast.walk(ast.parse(stub)) if isinstance(node, ast.ImportFrom)]
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
        page += "In ``import judgebayes as jb``:\n\n" + table(
            (f":py:obj:`jb.{name} <{home}.{name}>`", summary(getattr(judgebayes, name)))
            for name, home in names.items()
        )
    if pages:
        page += "Modules, with all public names:\n\n" + table(
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
        "Python, by task\n===============\n\n``import judgebayes as jb`` contains the names below. "
        "The page of each task lists the modules with all other names. The generative models, "
        "``judgebayes.models``, have :doc:`their own pages </models>`.\n\n"
    )
    listed = "".join(f"   task-{task.slug}\n" for task in tasks)
    return f"{head}{table(rows)}.. toctree::\n   :hidden:\n\n{listed}"


def command_page() -> str:
    """Return the reference of every command, from the command line's own help."""
    page = command_line.generate_docs().replace("# judgebayes\n", "# Command line\n", 1)
    keys: dict[str, tuple[str, list[str]]] = {}
    for name, each in COMMANDS.items():
        for key, text in each.keys.items():
            keys.setdefault(key, (text, []))[1].append(name)
    rows = [f"| `{key}` | {text} | {', '.join(names)} |" for key, (text, names) in keys.items()]
    head = ["## Keys of `--set`", "", "| key | what it says | commands |", "|---|---|---|"]
    return "\n".join([page, "", *head, *rows, ""])


def cell(text: str) -> str:
    """Return a docstring's line as a cell of a Markdown table: its formulas between dollars."""
    return re.sub(r":math:`(.*?)`", lambda m: f"${m[1]}$".replace("|", r"\vert "), text)


def methods_page() -> str:
    """Return the table of the methods of `calibrate`, from what each declares of itself."""
    yes = {True: "yes", False: ""}
    when = {"always": "yes", "panel": "for several judges", "tasks": "for several tasks"}
    head = ("`--method`", "what it is", "compared by `auto`", "distinguishes judges")
    head += ("learns from unlabelled items", "`--calibrator auto`", "fitted by, `NAME:nuts`")
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
        compared = "as a baseline" if traits.compared == "baseline" else when.get(traits.compared)
        lines.append((f"`{name}`", f"{link}: {cell(summary(method))}", compared or "", *known))
    top = ", ".join(f"`{name}`" for name in TOP)
    maps = "".join(
        f"| `{name}` | {{py:obj}}`{made.__name__} <{made.__module__}.{made.__name__}>`: "
        f"{cell(summary(made))} |\n"
        for name, made in CALIBRATORS.items()
    )
    rows = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return (
        f"# Methods\n\nAll methods of `calibrate`, with their declared properties.\n\n{rows}\n"
        f"{top}: the one-coin model of the most accurate judges only, with a beta map. `auto` compares "
        "the first of them if there are at least six judges.\n\n## Calibration maps\n\n"
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
