"""Imports go one way: a package imports from itself and from earlier ones, never from a later one."""

import ast
import graphlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = """
sentence errors progress finding arrays compiled models votes measures io inference calibrators
aggregators item_response panel evaluate majority generators priors posteriors collect plots show
workflow testing report judgebayes experiments cli __main__
"""
"""`judgebayes` is the top-level package, which exports names of all packages below it."""
ORDER = ROOMS.split()
LOOSE = 8
"""The number of files allowed beside the packages."""


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield imports from this library, also in functions, but not under TYPE_CHECKING."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if f"{a.name}.".startswith("judgebayes."))
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            if f"{node.module}.".startswith("judgebayes."):
                yield from (f"{node.module}.{a.name}" for a in node.names)
        yield from imports(node)


@cache
def edges(source: str) -> list[str]:
    """Return the imports of a module from this library."""
    return list(imports(ast.parse(source)))


def room(module: str) -> str:
    """Return the package of a module."""
    name = module.split(".")[1] if "." in module else "judgebayes"
    return name if name in ORDER else "judgebayes"


def wrong(files: Mapping[str, str]) -> list[str]:
    """Return every import of a later package."""
    wrong_imports = []
    for module, source in files.items():
        for target in edges(source):
            here, there = room(module), room(target)
            barred = here == "models" != there or ORDER.index(there) > ORDER.index(here)
            if barred and target != "judgebayes.__version__":
                wrong_imports.append(f"{module} -> {target}")
    return wrong_imports


@cache
def modules() -> Mapping[str, str]:
    """Return the source of every module, by name."""
    sources = {}
    for top in ("judgebayes", "judgebayes/models", "judgebayes/experiments"):
        for path in (ROOT / top).rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            sources[name] = path.read_text(encoding="utf-8")
    return sources


def test_a_package_imports_from_earlier_ones_only() -> None:
    assert not wrong(modules())


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("judgebayes.votes.array", "import judgebayes.measures.scores"),
        ("judgebayes.models.irt", "def f():\n    from judgebayes import errors"),
        ("judgebayes.io.tables", "from judgebayes import __version__, cli"),
        ("judgebayes.show.page", "from judgebayes import Davidson"),
        ("judgebayes.experiments.core", "from judgebayes.cli.calibrating import best"),
    ],
)
def test_a_planted_wrong_import_is_detected(module: str, source: str) -> None:
    (detected,) = set(wrong({**modules(), module: source})) - set(wrong(modules()))
    assert detected.startswith(f"{module} -> ")


def circle(files: Mapping[str, str]) -> list[str]:
    """Return modules in an import cycle, or none if there is no cycle."""
    graph = {
        module: {
            target if target in files else target.rpartition(".")[0] for target in edges(source)
        }
        for module, source in files.items()
        if module != "judgebayes"
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_there_is_no_import_cycle() -> None:
    assert circle(modules()) == []
    below, above = "judgebayes.votes.array", "judgebayes.votes.coding"
    planted = {**modules(), below: modules()[below] + f"\nfrom {above} import scale_of"}
    assert {below, above} <= set(circle(planted))


def test_every_package_has_a_position_and_few_files_lie_beside_them() -> None:
    children = {
        path.stem
        for path in (ROOT / "judgebayes").iterdir()
        if path.name[:2] != "__" and path.suffix != ".typed"
    }
    loose = list((ROOT / "judgebayes").glob("*.py"))
    assert children <= set(ORDER)
    assert len(loose) <= LOOSE, loose


def expected_map() -> list[tuple[list[str], str]]:
    """Return the rows of the map in order: names, and their allowed imports."""
    first = ORDER.index("compiled")
    rows = [(ORDER[:first], "those to the left")]
    for before, here in pairwise(ORDER[first - 1 :]):
        may = "nothing" if here == "models" else f"`{before}` and all above"
        rows.append(([here], may))
    return rows


def test_the_map_for_contributors_has_the_same_order() -> None:
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    table = page.partition("\n| package |")[2].partition("\n\n")[0]
    cells = [line.strip("|").split("|") for line in table.splitlines()[2:]]
    rows = [(re.findall(r"`(\w+)`", names), may.strip()) for names, _, may in cells]
    assert rows == expected_map()
    in_tree = {path.stem for path in (ROOT / "judgebayes").glob("[!_]*")} | {"__main__"}
    assert {name for names, _ in rows for name in names} - {"judgebayes"} == in_tree - {"py"}


def test_a_package_documents_what_it_may_not_import() -> None:
    for here, after in pairwise(ORDER):
        path = ROOT / "judgebayes" / here / "__init__.py"
        if path.exists():
            words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            said = {"models": "may import no other part", "cli": "may import all others"}
            assert said.get(here, f"may not import `{after}` or any package after it") in words


def test_the_way_of_a_vote_names_files_and_functions_that_exist() -> None:
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    table = page.partition("\n| station |")[2].partition("\n\n")[0]
    stations = [line.strip("|").split("|")[0] for line in table.splitlines()[2:]]
    assert len(stations) == 8
    for station in stations:
        names = re.findall(r"`([^`]+)`", station)
        source = ""
        for path in (ROOT / "judgebayes" / name for name in names if "/" in name):
            assert path.exists(), path
            source += path.read_text(encoding="utf-8") if path.is_file() else ""
        for name in (name.rpartition(".")[2] for name in names if "/" not in name):
            assert re.search(rf"\b(def|class) {name}\b", source), name
