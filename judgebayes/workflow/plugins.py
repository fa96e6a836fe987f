"""The user's own methods: a Python file, or a package with an entry point."""

import importlib.util
import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from traceback import extract_tb

from judgebayes.errors import JudgeBayesError

GROUP = "judgebayes.methods"
"""The group of entry points; each names a module that declares methods when it is imported."""


def load_plugins(file: Path | None) -> None:
    """Import the installed packages with methods, and run the file that the user names.

    Raises
    ------
    JudgeBayesError
        If there is no such file, or it or a package cannot be imported.
    """
    _installed()
    if file is None:
        return
    if not file.is_file():
        raise JudgeBayesError(f"There is no file {str(file)!r} for --plugin.")
    _run(file.resolve())


@cache
def _installed() -> None:
    for each in entry_points(group=GROUP):
        try:
            each.load()
        except Exception as error:
            raise JudgeBayesError(
                f"The package of the method {each.name!r} ({each.value}) cannot be imported: "
                f"{type(error).__name__}: {error}"
            ) from error


@cache
def _run(file: Path) -> None:
    """Run a file once, as a module."""
    name = f"judgebayes_plugin_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise JudgeBayesError(f"{str(file)!r} is not a Python file, which --plugin needs.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except JudgeBayesError:
        raise
    except Exception as error:
        lines = [f.lineno for f in extract_tb(error.__traceback__) if f.filename == str(file)]
        where = f" (line {lines[-1]})" if lines else ""
        raise JudgeBayesError(
            f"{str(file)!r} cannot be run{where}: {type(error).__name__}: {error}"
        ) from error
