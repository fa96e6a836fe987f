"""The site is complete, and its diagrams and lists are generated from the code."""

import ast
import importlib
import importlib.util
import re
import sys
from pathlib import Path

import pytest

import judgebayes
from judgebayes.panel import agreement, checks, diagnostics

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SHARED = {"__init__", "base", "distributions", "label_noise"}
"""Files of `models/` without a program."""
FILES = {path.stem for path in (ROOT / "models").glob("*.py")} - SHARED
MODELS = sorted(FILES - {"item_validator"} | {"generator_validator"})
"""The programs of generators and judges are one page; those of counts are the fourth paper's."""


@pytest.fixture(scope="module", autouse=True)
def _extensions() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(DOCS / "extensions"), *sys.path])
        yield


def test_every_model_has_a_section_with_its_diagrams() -> None:
    plates = importlib.import_module("plates")
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (DOCS / "models").glob("*.md")}
    assert sorted(pages) == MODELS
    page = (DOCS / "models.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"{include} models/(\w+)\.md", page)) == MODELS
    for name in plates.subjects():
        assert f"```{{plate}} {name}\n" in pages[name.partition(".")[0]]
    assert {name.partition(".")[0] for name in plates.subjects()} == set(MODELS)


def test_a_diagram_has_the_sites_and_the_arrows_of_its_program() -> None:
    pytest.importorskip("graphviz", reason="plate diagrams need the docs group: graphviz")
    plates = importlib.import_module("plates")
    if not plates.drawable():
        pytest.skip("plate diagrams need Graphviz: its program `dot` is not installed")
    diagram = plates.diagram("irt")
    for name in ("ability", "difficulty", "log_discrimination", "votes", "judge", "item"):
        assert f">{name}</text>" in diagram
    assert diagram.count('class="edge"') == 4  # into votes, from its parameters and the label
    assert diagram.count('fill="#bebebe"') + diagram.count('fill="grey"') == 2
    assert "<title>" not in diagram


def test_the_options_of_every_record_are_listed() -> None:
    records = importlib.import_module("records")
    options = importlib.import_module("judgebayes.workflow.options")
    for name, record in vars(options).items():
        if name.endswith("Request"):
            lines: list[str] = []
            records.with_fields(None, "class", name, record, None, lines)
            assert any(line.startswith(":param ") for line in lines), name


def test_the_reference_lists_every_name_and_every_command() -> None:
    reference = importlib.import_module("reference")
    index = reference.index_page()
    for name in judgebayes.__all__:
        assert f":py:obj:`{name} <" in index
    listed = {module.__name__ for module in reference.modules()}
    homes = reference.homes()
    assert sorted(homes) == sorted(judgebayes.__all__)
    assert set(homes.values()) - {"judgebayes"} <= listed
    commands = reference.command_page()
    for command in ("calibrate", "reproduce", "import"):
        assert f"## judgebayes {command}\n" in commands
    assert "…" not in commands  # no sentence is incomplete


def test_every_module_and_name_of_the_reference_has_a_task() -> None:
    reference = importlib.import_module("reference")
    tasks = reference.by_task()
    assert reference.OTHER not in tasks
    assert list(tasks) == list(reference.TASKS)  # and no task is empty
    assert sum(len(names) for names, _ in tasks.values()) == len(judgebayes.__all__)
    pages = [module for _, pages in tasks.values() for module in pages]
    assert sorted(m.__name__ for m in pages) == sorted(m.__name__ for m in reference.modules())
    assert reference.NAMES.keys() <= set(judgebayes.__all__)
    for path in (path for task in reference.TASKS for path in task.modules):
        assert importlib.util.find_spec(f"judgebayes.{path}"), path
    index = reference.index_page()
    for task, (names, pages) in tasks.items():
        page = reference.task_page(task, names, pages)
        assert f"task-{task.slug}" in index
        assert all(f"`jb.{name} <" in page for name in names)
        assert all(f"   {reference.short(module)}\n" in page for module in pages)


def said(call: ast.Call) -> str:
    """The constant parts of a finding's sentence."""
    parts = (n.value for n in ast.walk(call.args[1]) if isinstance(n, ast.Constant))
    return " ".join(part for part in parts if isinstance(part, str))


def test_the_guide_explains_every_diagnostic() -> None:
    """Each finding of the code is quoted exactly once in a section of the guide."""
    trees = [
        ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        for module in (agreement, checks, diagnostics)
    ]
    calls = [
        node
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") in ("Finding", "about", "listed")
        and said(node)
    ]
    guide = (DOCS / "guides" / "diagnostics.md").read_text(encoding="utf-8")
    quotes = re.findall(r"^> (.+)$", guide, re.MULTILINE)
    assert len(calls) > 10
    matches = {quote: [call for call in calls if quote in said(call)] for quote in quotes}
    assert {quote: len(headings) for quote, headings in matches.items()} == dict.fromkeys(quotes, 1)
    explained = {id(headings[0]) for headings in matches.values()}
    assert explained == {id(call) for call in calls}


WHERE_IT_SPEAKS_UP = {
    "constant": "At least {:g} % of the labels are of one class",
    "leak_labels": "without a single error on {:g} labelled items or more",
    "unreadable": "a problem below {:g} % of the votes",
    "readable": "of the votes, a note below {:g} %",
    "floor": "calibrated NLL of the whole panel is below {:g}",
    "below_chance": "below 1 / classes with a probability of {:g} %",
    "asymmetry": "TPR and TNR differ by {:g} % or more",
    "bias": "The bias is {:g} % or more",
    "duplicate": "correlation of two judges' errors is {:g} or more",
    "redundant": "worth fewer than {:g} % of its number",
    "saturated": "calibrated NLL falls by less than {:g} nats",
    "undecided": "on more than {:g} % of the labelled items",
    "few_labels": "Fewer than {:g} items are labelled",
    "few_votes": "votes on fewer than {:g} labelled items",
}


def test_the_guide_states_the_thresholds_of_the_code() -> None:
    guide = (DOCS / "guides" / "diagnostics.md").read_text(encoding="utf-8")
    text = " ".join(guide.split())
    limits = vars(checks.Thresholds())
    for name, words in WHERE_IT_SPEAKS_UP.items():
        number = limits[name] * 100 if "{:g} %" in words else limits[name]
        assert words.format(number) in text, name
    assert limits.keys() - WHERE_IT_SPEAKS_UP.keys() <= {"significance", "common"}
