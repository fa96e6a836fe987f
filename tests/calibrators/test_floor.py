"""Maps have no floor by default; the tables of P2 name theirs."""

import ast
from pathlib import Path

import numpy as np
import pytest

import judgebayes as jb
from judgebayes.experiments import calibrate_dont_curate

MAPS = ("Beta", "Platt", "Temperature")


@pytest.mark.parametrize("name", MAPS)
def test_extreme_answers_stay_apart(name: str) -> None:
    rng = np.random.default_rng(0)
    logit = rng.normal(0, 30, 209)
    labels = (rng.random(209) < 1 / (1 + np.exp(-0.1 * logit))).astype(int)
    log_probs = -np.logaddexp(0, np.stack([logit, -logit], 1))
    fit, floored = (
        own().fit(log_probs, labels)
        for own in (getattr(jb, name), lambda: getattr(jb, name)(clip=1e-6))
    )
    assert len(np.unique(np.asarray(fit(log_probs))[:, 1])) == 209
    assert len(np.unique(np.asarray(floored(log_probs))[:, 1])) < 100
    loss = [-np.asarray(f(log_probs))[np.arange(209), labels].mean() for f in (fit, floored)]
    assert loss[0] < loss[1]


@pytest.mark.parametrize("name", MAPS)
def test_a_certain_answer_is_finite(name: str) -> None:
    labels = np.array([0, 1, 1, 0, 1, 0])
    with np.errstate(divide="ignore"):
        log_probs = np.log(np.eye(2)[[0, 1, 1, 0, 0, 1]])
    answer = np.asarray(getattr(jb, name)().fit(log_probs, labels)(log_probs))
    assert np.isfinite(answer).all()
    np.testing.assert_allclose(np.exp(answer[0, 0]), 2 / 3, atol=0.02)


def test_every_map_of_the_papers_tables_names_its_floor_or_is_called_unclipped() -> None:
    folder = Path(str(calibrate_dont_curate.__file__)).parent
    without = []
    for path in sorted(folder.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            of_map = isinstance(node, ast.Call) and getattr(node.func, "id", None) in MAPS
            if of_map and "clip" not in {each.arg for each in node.keywords}:  # type: ignore[attr-defined]
                without.append(path.stem)
    # These audits have the maps of the command; table 11 compares floors.
    audits = ["audit_conformal", "audit_forecast", "audit_panel_worlds"]
    assert without == [*audits, "audit_ties", *["table11"] * 3]
