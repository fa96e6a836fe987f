"""Mutation testing: do the tests of a module fail when one of its operators changes?

    python tests/mutation.py measures.scores measures.decide calibrators.conformal measures.significance

changes one operator, constant or call of a module at a time, runs the module's own tests on it
(`tests/<package>/test_<module>.py`, and the examples in its docstrings) and lists the changes that
make no test fail. The results, and why the survivors are acceptable, are in `mutation.md`.

No file is changed: a change exists only in the memory of one child process. Results are stored in
`build/mutation`, so that an interrupted run can resume; a change of the module or of its tests starts
again, except that `--survivors` tries only the survivors again after new tests.
"""

import argparse
import ast
import hashlib
import json
import os
import resource
import signal
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "mutation"
HUNG = 900
"""Seconds after which a child that does not respond is killed."""
OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.MatMult: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
NAMES = {"max": "min", "any": "all", "argmax": "argmin", "ceil": "floor", "maximum": "minimum"}
NAMES |= {new: old for old, new in NAMES.items()}


def files(module: str) -> tuple[Path, Path]:
    """Return a module's file, and that of its tests."""
    package, _, name = module.rpartition(".")
    return (
        ROOT / "judgebayes" / package / f"{name}.py",
        ROOT / "tests" / package / f"test_{name}.py",
    )


class Mutant(NamedTuple):
    """A change: its position, its description, and the changed source."""

    line: int
    column: int
    change: str
    source: str


class Tried(NamedTuple):
    """The result for a source: the first failing test, "" if all passed, and the seconds."""

    killer: str
    seconds: float


def changes(tree: ast.Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield a node and its replacement; docstrings, annotations and messages are not changed."""
    skipped = {
        id(inside)
        for node in ast.walk(tree)
        for part in (
            getattr(node, "annotation", None),
            getattr(node, "returns", None),
            node if isinstance(node, (ast.Raise, ast.JoinedStr, ast.ImportFrom)) else None,
        )
        if part is not None
        for inside in ast.walk(part)
    }
    for node in ast.walk(tree):
        if id(node) not in skipped and isinstance(node, ast.expr):
            yield from ((node, new) for new in _changed(node))


def _changed(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.BinOp() | ast.BoolOp() if type(node.op) in OPERATORS:
            yield _with(node, op=OPERATORS[type(node.op)]())
        case ast.Compare():
            for at, op in enumerate(node.ops):
                if type(op) in OPERATORS:
                    new = OPERATORS[type(op)]()
                    yield _with(node, ops=[*node.ops[:at], new, *node.ops[at + 1 :]])
        case ast.UnaryOp():
            yield node.operand
        case ast.IfExp(test=ast.Name()):
            yield _with(node, body=node.orelse, orelse=node.body)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.Call(func=ast.Attribute(attr="where"), args=[condition, yes, no]):
            yield _with(node, args=[condition, no, yes])
        case ast.Call(func=ast.Attribute(attr=name)) if name in NAMES:
            yield _with(node, func=_with(node.func, attr=NAMES[name]))
        case ast.Call(func=ast.Name(id=name)) if name in NAMES:
            yield _with(node, func=_with(node.func, id=NAMES[name]))


def _with(node: ast.expr, **new: object) -> ast.expr:
    fields = {name: getattr(node, name) for name in node._fields} | new
    return ast.copy_location(type(node)(**fields), node)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def mutants(source: str) -> Iterator[Mutant]:
    """Yield every change of a module."""
    count = sum(1 for _ in changes(ast.parse(source)))
    for which in range(count):
        tree = ast.parse(source)
        old, new = list(changes(tree))[which]
        description = f"{ast.unparse(old)}  ->  {ast.unparse(new)}"
        whole = ast.fix_missing_locations(_Replace(old, new).visit(tree))
        yield Mutant(old.lineno, old.col_offset, description, ast.unparse(whole))


def prepare() -> None:
    """Import once everything that the children need; no program runs before the forks."""
    # Most programs of a change are shared with other changes, so all are cached.
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(FOLDER / "jax")
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.chdir(ROOT)
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    warnings.simplefilter("ignore")
    import conftest  # noqa: F401
    import hypothesis
    import scipy.stats  # noqa: F401

    # The first failing example suffices, and it is the same in every run.
    hypothesis.settings.register_profile(
        "mutation",
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        database=None,
        derandomize=True,
    )
    hypothesis.settings.load_profile("mutation")


class _FirstFailure:
    """Stores the name of the first test, or file, that fails."""

    name = ""

    def pytest_runtest_logreport(self, report: object) -> None:
        self._keep(report)

    def pytest_collectreport(self, report: object) -> None:
        self._keep(report)

    def _keep(self, report: object) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid.split("::", 1)[-1]


def _replace(module: str, source: str) -> None:
    """Replace an imported module by a changed one, with types checked as in tests."""
    name = f"judgebayes.{module}"
    held = sys.modules[name]
    # A new name, because the type checker remembers the classes of the original module.
    new = types.ModuleType(f"{name}_changed")
    new.__file__ = held.__file__
    sys.modules[name] = sys.modules[new.__name__] = new
    package, _, leaf = name.rpartition(".")
    setattr(sys.modules[package], leaf, new)
    exec(held.__spec__.loader.source_to_code(source.encode(), held.__file__), vars(new))


def _child(module: str, source: str, output: Path) -> None:
    """Replace the module by the source, run its tests, and report the first failure."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1), os.dup2(nothing, 2)
    import pytest

    try:
        _replace(module, source)
    except Exception as error:
        output.write_text(f"import: {type(error).__name__}")
        return
    first = _FirstFailure()
    names = [str(file) for file in files(module)]
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    ignored = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    code = pytest.main([*options, *ignored, *names], plugins=[first])
    output.write_text(first.name or ("" if code == 0 else f"exit {code}"))


class Children:
    """Runs sources in parallel, each in a child process with a limit of processor time."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder, self.workers = folder, workers
        self.running: dict[int, Callable[[Tried], None]] = {}

    def start(self, module: str, source: str, limit: int, done: Callable[[Tried], None]) -> None:
        """Try a source as soon as a process is free; `done` is called with the result."""
        while len(self.running) >= self.workers:
            self.wait()
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            signal.alarm(HUNG)
            try:
                _child(module, source, self.folder / str(os.getpid()))
            finally:
                os._exit(0)
        self.running[child] = done

    def wait(self) -> None:
        """Wait for one child."""
        child, _, used = os.wait4(-1, 0)
        output = self.folder / str(child)
        killer = output.read_text() if output.exists() else "time"
        output.unlink(missing_ok=True)
        self.running.pop(child)(Tried(killer, used.ru_utime + used.ru_stime))

    def finish(self) -> None:
        """Wait for all."""
        while self.running:
            self.wait()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def recorded(path: Path, digests: dict[str, str], *, survivors: bool) -> dict[str, str]:
    """Return the failing test of every change that need not be tried again."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {
        row["mutant"]: row["killer"]
        for row in rows
        if row["module"] == digests["module"]
        and (row["tests"] == digests["tests"] or (survivors and row["killer"]))
    }


def trial(module: str, children: Children, *, survivors: bool) -> str:
    """Try every change of a module, print the survivors, and return the row of the table."""
    path, tests = files(module)
    digests = {"module": _digest(path), "tests": _digest(tests)}
    source, record = path.read_text(), FOLDER / f"{module}.jsonl"
    __import__(f"judgebayes.{module}")
    baseline: list[Tried] = []
    children.start(module, ast.unparse(ast.parse(source)), 600, baseline.append)
    children.finish()
    if baseline[0].killer:
        sys.exit(f"{tests.name} fails as it is: {baseline[0].killer}")
    limit = 30 + 5 * int(baseline[0].seconds)
    survivors_by_mutant = recorded(record, digests, survivors=survivors)
    every = {f"{m.line}:{m.column}: {m.change}": m for m in mutants(source)}

    def note(name: str) -> Callable[[Tried], None]:
        def noted(tried: Tried) -> None:
            survivors_by_mutant[name] = tried.killer
            row = digests | {"mutant": name, **tried._asdict()}
            with record.open("a") as file:
                file.write(json.dumps(row) + "\n")

        return noted

    for name, mutant in every.items():
        if name not in survivors_by_mutant:
            children.start(module, mutant.source, limit, note(name))
    children.finish()
    lived = [name for name in every if not survivors_by_mutant[name]]
    for name in lived:
        print(f"{module}.py:{name}", flush=True)
    timed = sum(survivors_by_mutant[name] == "time" for name in every)
    return f"| `{module}` | {len(every)} | {len(every) - len(lived)} ({timed}) | {len(lived)} |"


def main() -> None:
    """Print the survivors of each module, and the table."""
    parser = argparse.ArgumentParser(description="Change a module, run its tests.")
    parser.add_argument("modules", nargs="+")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--survivors", action="store_true", help="try these alone again")
    asked = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    prepare()
    with tempfile.TemporaryDirectory() as folder:
        children = Children(Path(folder), asked.workers)
        lines = [trial(m, children, survivors=asked.survivors) for m in asked.modules]
    print("\n| module | changes | killed (by the time limit) | survive |\n|---|---|---|---|")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
