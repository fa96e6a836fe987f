import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgebayes import DRPS, BaseRate, Davidson, MarginThreshold
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.one_split import check_answers
from judgebayes.inference.status import Status
from judgebayes.votes import Classes, Votes, from_counts
from judgebayes.workflow.fit_file import (
    SavedFit,
    VoteProfile,
    answers,
    digest_of,
    drift,
    load_fit,
    profile,
    save_fit,
)

TERNARY = Classes((-1, 0, 1), True)


@pytest.fixture
def kept(votes: Votes, labels: np.ndarray, tmp_path: Path) -> Path:
    fit = Davidson(DRPS(starts=1)).fit(votes, labels)
    save_fit(
        tmp_path / "fit.json", SavedFit("davidson", fit, TERNARY, profile(votes), [], [], {"n": 1})
    )
    return tmp_path / "fit.json"


def test_a_fit_comes_back_whole(kept: Path, votes: Votes) -> None:
    saved = load_fit(kept)
    assert (saved.method, saved.classes, saved.notes) == ("davidson", TERNARY, {"n": 1})
    assert saved.profile == profile(votes)


def test_minus_infinity_survives(votes: Votes, tmp_path: Path) -> None:
    fit = BaseRate().fit(votes, np.repeat([0, 2], 30))
    save_fit(tmp_path / "b.json", SavedFit("b", fit, TERNARY, profile(votes)))
    json.loads((tmp_path / "b.json").read_text(), parse_constant=lambda c: pytest.fail(c))
    np.testing.assert_array_equal(load_fit(tmp_path / "b.json").fitted(votes), fit(votes))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("not json", "is not a saved fit"),
        ("[]", "is not a saved fit"),
        ('{"format": "other"}', "is not a saved fit"),
        ('{"format": "judgebayes fit", "version": 99}', "version 99.*reads version 4"),
        ('{"format": "judgebayes fit", "version": 4}', "is damaged"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(JudgeBayesError, match=sentence):
        load_fit(tmp_path / "x.json")


@pytest.mark.parametrize(
    "change",
    [
        {"type": "os.system"},
        {"type": "Fit", "extra": 1},
        {"array": [1, 2], "dtype": "O"},
        {"array": "x", "dtype": "float64"},
    ],
)
def test_a_tampered_fit_is_data_and_never_code(kept: Path, change: dict[str, object]) -> None:
    document = json.loads(kept.read_text())
    document["fitted"]["status"] = change
    if "type" in change:
        document["fitted"] = change
    kept.write_text(json.dumps(document))
    with pytest.raises(JudgeBayesError, match="is damaged"):
        load_fit(kept).fitted(from_counts(np.eye(3, dtype=int)))


@pytest.mark.parametrize("wrong", ["nan", "inf", "-inf"])
def test_no_decision_comes_from_numbers_that_are_not_finite(
    kept: Path, votes: Votes, labels: np.ndarray, wrong: str
) -> None:
    document = json.loads(kept.read_text())
    document["fitted"]["draws"]["gamma"]["array"] = [[wrong]]
    kept.write_text(json.dumps(document))
    with pytest.raises(JudgeBayesError, match=r"is damaged.*changed after it was saved"):
        load_fit(kept)
    fit = Davidson(DRPS(starts=1)).fit(votes, labels)
    broken = replace(fit, draws=dict(fit.draws) | {"gamma": np.array([float(wrong)])})
    with pytest.raises(JudgeBayesError, match=r"davidson cannot be saved.*gamma are .*not finite"):
        save_fit(kept.parent / "b.json", SavedFit("davidson", broken, TERNARY, profile(votes)))
    assert not (kept.parent / "b.json").exists()


def parts(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every part of a document."""
    items = value.items() if isinstance(value, dict) else []
    for key, each in enumerate(value) if isinstance(value, list) else items:
        yield (*at, key)
        yield from parts(each, (*at, key))


def changed(whole: dict[str, Any], at: tuple[Any, ...], to: Any) -> dict[str, Any]:
    result: Any = copy.deepcopy(whole)
    inner = result
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = to
    return dict(result)


def test_every_change_of_a_file_is_noticed(kept: Path) -> None:
    whole = json.loads(kept.read_text())
    for at in parts(whole):
        for to in (-7, True, None, [], "x"):
            text = json.dumps(changed(whole, at, to))
            kept.write_text(text)
            if text == json.dumps(whole):
                continue
            with pytest.raises(JudgeBayesError, match=r"is damaged|not a saved fit|format version"):
                load_fit(kept)
    kept.write_text(json.dumps(whole, sort_keys=True))
    assert load_fit(kept).method == "davidson"


def test_a_forged_file_is_refused_or_answers(kept: Path, votes: Votes) -> None:
    """Whoever writes the digest, too, gets one sentence, or answers that are probabilities."""
    whole = json.loads(kept.read_text())
    del whole["digest"]
    refused = 0
    for at in parts(whole):
        for to in (-7, 10**9, "nan", True, None, [], {}, [1, 2, 3]):
            forged = changed(whole, at, to)
            kept.write_text(json.dumps(forged | {"digest": digest_of(forged)}))
            try:
                probs = np.exp(np.asarray(answers(load_fit(kept), votes)))
                np.testing.assert_allclose(probs.sum(1), 1, atol=1e-6)
            except JudgeBayesError:
                refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    ("probs", "what"),
    [
        ([[0.5, 0.6]], "these sum to 1.1"),
        ([[np.nan, 0.5]], "these sum to nan"),
        ([[0.2, 0.3, 0.5]], "shape"),
    ],
)
def test_answers_are_probabilities(probs: list[list[float]], what: str) -> None:
    with pytest.raises(JudgeBayesError, match=what):
        check_answers(np.log(probs), from_counts(np.eye(2, dtype=int)[:1]), "The fit")


def test_a_fit_with_two_fields_of_one_name_is_refused(kept: Path) -> None:
    kept.write_text(kept.read_text().replace('"version"', '"version": 4, "version"', 1))
    with pytest.raises(JudgeBayesError, match="is not a saved fit"):
        load_fit(kept)


def test_draws_have_no_objective_and_are_kept(kept: Path, votes: Votes, labels: np.ndarray) -> None:
    fit = Davidson(DRPS(starts=1)).fit(votes, labels)
    sampled = replace(fit, details={"objective": np.nan, "projected_gradient": np.array(np.nan)})
    save_fit(kept, SavedFit("davidson", sampled, TERNARY, profile(votes)))
    assert np.isnan(load_fit(kept).fitted.details["objective"])  # type: ignore[attr-defined]


def test_a_fit_that_failed_is_neither_kept_nor_read(
    kept: Path, votes: Votes, labels: np.ndarray
) -> None:
    fit = Davidson(DRPS(starts=1)).fit(votes, labels)
    failed = replace(fit, status=np.asarray(int(Status.NONFINITE)))
    with pytest.raises(JudgeBayesError, match="the fit failed: The objective is not finite"):
        save_fit(kept.parent / "b.json", SavedFit("davidson", failed, TERNARY, profile(votes)))
    for status in (int(Status.NONFINITE), 99):
        document = json.loads(kept.read_text())
        document["fitted"]["status"]["array"] = status
        kept.write_text(json.dumps(document))
        with pytest.raises(JudgeBayesError, match="is damaged"):
            load_fit(kept)


def test_files_that_are_not_there_or_cannot_be_written(tmp_path: Path, votes: Votes) -> None:
    with pytest.raises(JudgeBayesError, match="There is no file"):
        load_fit(tmp_path / "none.json")
    fit = MarginThreshold().fit(votes, np.ones(60, int))
    with pytest.raises(JudgeBayesError, match="cannot be written"):
        save_fit(tmp_path / "no" / "fit.json", SavedFit("m", fit, TERNARY, profile(votes)))


def test_the_same_votes_have_not_drifted(votes: Votes) -> None:
    assert drift(profile(votes), profile(votes), TERNARY) == []


def test_drift_is_reported_for_a_change_and_not_for_chance() -> None:
    rng = np.random.default_rng(0)

    def votes_profile(p: list[float], n: int = 6) -> VoteProfile:
        return profile(from_counts(rng.multinomial(n, p, 400)))

    same = sum(
        bool(drift(votes_profile([0.3, 0.2, 0.5]), votes_profile([0.3, 0.2, 0.5]), TERNARY))
        for _ in range(40)
    )
    assert same == 0
    drifted = drift(votes_profile([0.3, 0.2, 0.5]), votes_profile([0.2, 0.4, 0.4]), TERNARY)
    assert any("votes for 0 was" in line and "drifted" in line for line in drifted)
    assert "has 6" not in " ".join(drifted)
    fewer = drift(votes_profile([0.3, 0.2, 0.5]), votes_profile([0.3, 0.2, 0.5], 3), TERNARY)
    assert any(
        "made on 6 votes per item (median), but these items have 3" in line for line in fewer
    )
