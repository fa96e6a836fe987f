from pathlib import Path

import pytest
from runner import CliRunner

from judgebayes.cli import app
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.public import SOURCES
from judgebayes.workflow import methods, options


def test_the_list_marks_data_sets_that_are_downloaded(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["data", "list", "--cache", str(tmp_path)])
    assert result.exit_code == 0
    for name in SOURCES:
        assert name in result.output
    assert "yes" not in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["llmbra"], "There is no data set 'llmbra'; choose one of: llmbar, "),
        (["all", "--from", "."], "one repository; use it with one data set only"),
        (["llmbar", "--from", "nowhere"], "There is no folder 'nowhere'"),
    ],
)
def test_a_request_that_fails_is_one_sentence(
    arguments: list[str], sentence: str, tmp_path: Path
) -> None:
    words = ["data", "get", *arguments, "--cache", str(tmp_path)]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, JudgeBayesError)
    assert sentence in str(result.exception)


def test_a_changed_source_leaves_no_data_set(tmp_path: Path) -> None:
    clone, cache = tmp_path / "clone", tmp_path / "cache"
    for path in SOURCES["rewardbench"].checksums():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        (clone / path).write_text("model,0\na,1\n")
    words = ["data", "get", "rewardbench", "--from", str(clone), "--cache", str(cache)]
    result = CliRunner().invoke(app, words)
    assert "differs from the pinned file" in str(result.exception)
    assert list(cache.iterdir()) == []


def test_the_names_are_those_of_the_methods() -> None:
    assert set(methods.INFERENCES) == set(options.INFERENCES)
    assert methods.known_methods() == options.METHODS
    assert methods.known_calibrators() == options.CALIBRATORS
