"""Tampered fits: refused by one sentence, or answers that are probabilities."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.votes import Votes
from judgebayes.workflow.fit_fields import check_answers
from judgebayes.workflow.fit_file import answers, load_fit

FITS = Path(__file__).parents[1] / "fixtures" / "fits"
NAMES = (
    *("pairs-davidson-calibrator-beta", "animals-one-coin-calibrator-isotonic", "pairs-stacking"),
    *("binary-dawid-skene", "pairs-sc", "python-curated", "animals-best-constant"),
)
CHANGES = (-1, 0, 10**9, 1e300, "nan", "inf", True, None, [], {}, "x", [1, 2, 3], 0.5, 7)


def document(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((FITS / f"{name}.json").read_text(encoding="utf-8"))
    return read


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every part of a document."""
    items = value.items() if isinstance(value, dict) else []
    items = enumerate(value) if isinstance(value, list) else items
    for key, each in items:
        yield (*at, key)
        yield from places(each, (*at, key))


def changed(whole: dict[str, Any], at: tuple[Any, ...], to: Any) -> dict[str, Any]:
    result: Any = copy.deepcopy(whole)
    inner = result
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = to
    return dict(result)


@in_float64
def answer(path: Path) -> np.ndarray:
    saved = load_fit(path)
    n_judges = max(len(saved.judges), len(saved.notes.get("judges", [])), 1)
    index = np.random.default_rng(0).integers(-1, len(saved.classes.values), (6, n_judges, 4))
    votes = Votes(jnp.asarray(index, jnp.int8), None, None, None, len(saved.classes.values))
    return np.exp(np.asarray(answers(saved, votes)))


@pytest.mark.parametrize("name", NAMES)
def test_a_tampered_fit_is_refused_or_answers(name: str, tmp_path: Path) -> None:
    whole, path = document(name), tmp_path / "fit.json"
    every = [at for at in places(whole) if at[0] != "notes"]
    rng = np.random.default_rng(len(every))
    refused = 0
    for _ in range(25):
        at = every[rng.integers(len(every))]
        path.write_text(json.dumps(changed(whole, at, CHANGES[rng.integers(len(CHANGES))])))
        try:
            np.testing.assert_allclose(answer(path).sum(1), 1, atol=1e-6)
        except JudgeBayesError:
            refused += 1
    assert refused > 0


@pytest.mark.parametrize(
    ("name", "at", "to", "what"),
    [
        (
            "binary-one-coin-calibrator-none",
            ("fitted", "draws", "alpha", "array", 0, 0),
            -1.0,
            "above 0",
        ),
        ("pairs-davidson", ("fitted", "draws", "eta0", "array"), [[0.0], [1.0]], "needs the axes"),
        ("pairs-stacking", ("fitted", "draws", "weight", "array", 0), [1.0], "needs the axes"),
        ("pairs-davidson", ("fitted", "draws", "beta"), {}, "draws is"),
        ("pairs-davidson", ("fitted",), 0, "is no fit"),
        ("pairs-davidson", ("version",), True, "version True"),
        ("pairs-davidson", ("version",), 1.0, "version 1.0"),
        ("pairs-sc", ("fitted", "method"), [1], "method is|is no fit"),
    ],
)
def test_the_sentence_names_the_field(
    name: str, at: tuple[Any, ...], to: Any, what: str, tmp_path: Path
) -> None:
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(changed(document(name), at, to)))
    with pytest.raises(JudgeBayesError, match=what):
        answer(path)


@pytest.mark.parametrize(
    ("probs", "what"),
    [
        ([[0.5, 0.6]], "sum to 1.1 on 1 of 1"),
        ([[np.nan, 0.5]], "not finite"),
        ([[0.2, 0.3, 0.5]], "shape"),
    ],
)
def test_answers_are_probabilities(probs: list[list[float]], what: str) -> None:
    with pytest.raises(JudgeBayesError, match=what):
        check_answers(np.log(probs), 1, 2)


def test_an_untouched_fit_answers() -> None:
    for name in NAMES:
        np.testing.assert_allclose(answer(FITS / f"{name}.json").sum(1), 1, atol=1e-6)


@pytest.mark.parametrize(
    ("at", "to", "said"),
    [
        (("classes",), [0, 1, 2], "mean_share is"),
        (("method",), None, "method is None"),
        (("classes",), [[0], [1]], "a class is"),
        (("classes",), [0, 1e999], "a class is inf"),
        (("classes",), [True, False], "a class is True"),
        (("classes",), ["a", " a"], "two or more different"),
        (("undecided",), [None], "a class is None"),
        (("profile", "items"), 0, "items is 0"),
        (("profile", "items"), True, "items is True"),
        (("profile", "mean_share"), [2, -1], "mean_share is"),
        (("profile", "mean_share"), [float("nan")] * 2, "mean_share is"),
        (("profile", "covariance"), [[1]], "covariance is"),
        (("profile", "covariance"), [[-1, 0], [0, 1]], "covariance is"),
        (("profile", "votes_per_item"), float("inf"), "votes_per_item is inf"),
        (("tasks",), "abc", "tasks is 'abc'"),
        (("tasks",), ["a", "a"], "tasks is"),
        (("judges",), [1, 2], "judges is"),
        (("notes",), [["wide", True]], "notes is"),
        (("notes",), {"wide": "no"}, "wide is 'no'"),
        (("notes",), {"judges": "abc"}, "judges is 'abc'"),
        (("notes",), {"columns": {"item": 3}}, "columns is"),
        (("notes",), {"skip_rows": True}, "skip_rows is True"),
        (("notes",), {"labels": -1}, "labels is -1"),
        (("notes",), {"bins": {"names": ["a", "b"], "cuts": {"j": [2, 1]}}}, "bins is"),
    ],
)
def test_a_tampered_summary_is_refused(
    at: tuple[str, ...], to: object, said: str, tmp_path: Path
) -> None:
    whole = document("binary-one-coin-calibrator-none")
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(changed(whole, at, to)))
    with pytest.raises(JudgeBayesError, match=f"not a valid fit .*{said}"):
        load_fit(path)


def test_a_fit_with_two_fields_of_one_name_is_refused(tmp_path: Path) -> None:
    text = json.dumps(document("binary-one-coin-calibrator-none"))
    path = tmp_path / "fit.json"
    path.write_text(text.replace('"version"', '"version": 2, "version"', 1))
    with pytest.raises(JudgeBayesError, match="is not a saved fit"):
        load_fit(path)
