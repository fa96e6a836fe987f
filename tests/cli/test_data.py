from pathlib import Path

import pytest
from typer.testing import CliRunner

from judgebayes.cli import app
from judgebayes.cli.reproducing import where_from
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments import data, panels
from judgebayes.experiments.beyond_consensus import common
from judgebayes.experiments.public import SOURCES
from judgebayes.workflow import methods, names


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


def test_a_result_that_was_not_run_names_the_command_that_gets_its_data() -> None:
    assert where_from(["rb2_k8_scores", "wmt23_sxs_mqm"]) == "judgebayes data get rb2 wmt23"
    assert where_from(["rb2_k8_scores", "pandalm_testset"]) == "--data DIR"
    read = {data.RB2, data.LLMBAR, data.WMT23, panels.REWARDBENCH, common.DATASET}
    assert {source.folder for source in SOURCES.values()} == read


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("judgebayes calibrate v.csv --method st", "stacking"),
        ("judgebayes report v.csv --calibrator iso", "isotonic"),
        ("judgebayes data get code", "code-feedback"),
        ("judgebayes import judgeb", "judgebench"),
    ],
)
def test_the_shell_completes_names(words: str, expected: str) -> None:
    count = str(len(words.split()) - 1)
    environment = {
        "_JUDGEBAYES_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": count,
    }
    result = CliRunner().invoke(app, [], prog_name="judgebayes", env=environment)
    assert result.output.split() == [expected]


def test_the_names_are_those_of_the_methods() -> None:
    assert set(methods.INFERENCES) == set(names.INFERENCES)
    assert methods.known_methods() == names.METHODS
    assert methods.known_calibrators() == names.CALIBRATORS
