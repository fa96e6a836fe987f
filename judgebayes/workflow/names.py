"""Names and traits of the methods, read from the source, so that help does not import JAX."""

import ast
import re
from functools import cache
from pathlib import Path

from judgebayes.errors import JudgeBayesError

__all__ = [
    "CALIBRATORS",
    "INFERENCES",
    "METHODS",
    "PRECISION_INFERENCES",
    "PRECISION_METHODS",
    "TOP",
    "declared",
]

INFERENCES = ("drps", "ml", "map", "nuts")
PRECISION_METHODS = (
    *("auto", "panel", "impression", "strata", "hierarchical", "flat", "item-level", "veto"),
    *("majority", "regression-as-published", "logit-shift", "rogan-gladen", "ppi", "labels-only"),
)
PRECISION_INFERENCES = ("map", "laplace", "nuts")
TOP = {f"top-{k}": k for k in (3, 5, 10)}
"""The k most accurate judges, combined by the one-coin model."""
PACKAGE = Path(__file__).parents[1]


@cache
def declared(package: str, kind: str) -> dict[str, dict[str, object]]:
    """Return the declarations `@kind(name, ...)` of classes in a package's source, by name.

    Raises
    ------
    JudgeBayesError
        If a declaration is not a plain call with literal values.
    """
    declarations: dict[str, dict[str, object]] = {}
    for path in sorted((PACKAGE / package).glob("*.py")):
        source = path.read_text(encoding="utf-8")
        for call in re.findall(rf"^@({kind}\(.*?\))$", source, re.DOTALL | re.MULTILINE):
            try:
                node = ast.parse(call, mode="eval").body
                assert isinstance(node, ast.Call)
                (name,) = map(ast.literal_eval, node.args)
                declarations[name] = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
            except (ValueError, SyntaxError, AssertionError) as error:
                raise JudgeBayesError(
                    f"{path.name}: @{call} is not a plain call with literal values."
                ) from error
    return declarations


def _in_order(declarations: dict[str, dict[str, object]]) -> list[str]:
    return sorted(declarations, key=lambda name: int(str(declarations[name].get("place", 50))))


METHODS = ("auto", *_in_order(declared("aggregators", "aggregator")), *TOP)
CALIBRATORS = ("auto", "none", *declared("calibrators", "calibrator"))
