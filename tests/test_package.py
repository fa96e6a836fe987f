import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import judgebayes

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", judgebayes.__all__)
def test_every_public_name_can_be_looked_up(name: str) -> None:
    assert getattr(judgebayes, name) is not None
    assert name in dir(judgebayes)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="attribute Davidsson"):
        _ = judgebayes.Davidsson


def test_the_models_do_not_import_the_library() -> None:
    for path in (ROOT / "models").glob("*.py"):
        imports = [line for line in path.read_text().splitlines() if "import" in line]
        outside = [
            line for line in imports if "judgebayes" in line and "judgebayes.models" not in line
        ]
        assert not outside, path


def test_the_library_does_not_import_the_experiments() -> None:
    for path in (ROOT / "judgebayes").glob("**/*.py"):
        inside = path.relative_to(ROOT / "judgebayes").parts[0]
        if inside not in ("models", "experiments", "cli"):
            assert "judgebayes.experiments" not in path.read_text(), path


def test_every_module_imports_and_changes_no_setting() -> None:
    script = (
        "import importlib, pkgutil, jax, judgebayes\n"
        "before = jax.config.jax_enable_x64\n"
        "for m in pkgutil.walk_packages(judgebayes.__path__, 'judgebayes.'):\n"
        "    if not m.name.endswith('__main__'): importlib.import_module(m.name)\n"
        "assert jax.config.jax_enable_x64 == before\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_no_module_replaces_a_public_name() -> None:
    """An imported module becomes an attribute of its package and overwrites any other."""
    for module in pkgutil.walk_packages(judgebayes.__path__, "judgebayes."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    stub = ast.parse((ROOT / "judgebayes" / "__init__.pyi").read_text(encoding="utf-8"))
    homes = {
        each.name: f"judgebayes.{node.module}" if node.module else "judgebayes"
        for node in ast.walk(stub)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    assert set(homes) == set(judgebayes.__all__)
    for name, home in homes.items():
        attribute = getattr(judgebayes, name)
        assert isinstance(attribute, ModuleType) == (name in ("priors", "testing")), name
        if name == "priors":
            assert attribute is importlib.import_module("judgebayes.priors")
        else:
            assert attribute is getattr(importlib.import_module(home), name), name


def test_the_version_is_the_same_wherever_it_is_stated() -> None:
    assert f'version = "{judgebayes.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"version: {judgebayes.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert judgebayes.__version__.removesuffix(".dev0") == newest[1]
