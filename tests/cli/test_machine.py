"""What every command gives to machines: JSON, exit codes, silence."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from documents import check_document, closed_schema
from endpoint import Reply, serving
from few_draws import with_few_draws
from runner import CliRunner, Result

from judgebayes import cli
from judgebayes.compiled.store import HALF
from judgebayes.errors import JudgeBayesError
from judgebayes.workflow.machine import ANSWERS

ITEMS, LABELLED = 60, 40


def invoke(*words: object) -> Result:
    return CliRunner().invoke(cli.app, [str(word) for word in words])


def run(*words: object, code: int = 0) -> dict[str, Any]:
    """Run a command with `--json -` and return its document; nothing else is on standard output."""
    result = invoke(*words, "--json", "-")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    content = check_document(result.stdout)
    assert content["exit_code"] == code
    assert content["version"] == cli.machine.__version__
    return content


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Votes of three judges on the items of two generators, most of them labelled."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, ITEMS)
    right = rng.random((ITEMS, 3)) < (0.9, 0.75, 0.7)
    item, judge = (x.ravel() for x in np.indices(right.shape))
    table = {
        "item": item,
        "judge": np.array(["gpt-4.1", "b", "c"])[judge],
        "vote": np.where(right.ravel(), label[item], 1 - label[item]),
        "generator": np.array(["g", "h"])[item % 2],
    }
    pd.DataFrame(table).to_csv(folder / "v.csv", index=False)
    gold = pd.DataFrame({"item": np.arange(ITEMS), "label": label})
    gold.head(LABELLED).to_csv(folder / "l.csv", index=False)
    return folder


def labelled(folder: Path) -> tuple[object, ...]:
    return folder / "v.csv", "--labels", folder / "l.csv"


COMMANDS = """
check {votes} --labels {labels}
calibrate {votes} --labels {labels} {fast} --save {new}/fit.json --html {new}/p.html {decide}
apply {new}/fit.json {votes}
diagnose {votes} --labels {labels} --by generator
ensemble {votes} --labels {labels} --target-width 0.3
precision {votes} --labels {labels} --method rogan-gladen
posterior {votes} --labels {labels} --model one-coin --draws 20 --warmup 20 --chains 2 -o {new}/1.npz
posterior {votes} --labels {labels} --model one-coin --draws 20 --warmup 20 --chains 2 -o {new}/2.npz
compare {new}/1.npz {new}/2.npz
import reviews {new}/answers.csv --items {new}/items.csv -o {new}/v.csv
collect {new}/pairs.csv --judge j@{url} -n 2 -o {new}/votes.jsonl --dry-run
collect {new}/pairs.csv --judge j@{url} -n 2 -o {new}/votes.jsonl
data list --cache {new}
data get llmbar --cache {new}
example {new}/example
reproduce --list
"""


def test_the_json_of_every_command_is_valid(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_few_draws(monkeypatch)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr("judgebayes.experiments.getting.is_whole", lambda source, cache: True)
    shown = {"line": [1, 2], "text": ["Close it.", "Open it."]}
    pd.DataFrame({"item": ["a", "b"], **shown}).to_csv(tmp_path / "items.csv", index=False)
    verdicts = '[{"line": 1, "text": "Close it.", "label": "valid"},]'
    pd.DataFrame({"judge": ["j"], "text": [verdicts]}).to_csv(tmp_path / "answers.csv", index=False)
    texts = {"prompt": "Which?", "response_a": ["1", "2"], "response_b": ["3", "4"]}
    pd.DataFrame({"id": ["a", "b"], **texts}).to_csv(tmp_path / "pairs.csv", index=False)
    with serving(lambda prompt, before: Reply("[[A]]")) as fake:
        words = COMMANDS.format(
            votes=folder / "v.csv",
            labels=folder / "l.csv",
            new=tmp_path,
            fast="--method sc --splits 2",
            decide="--loss person=0.2 --conformal 0.8",
            url=fake.url,
        )
        documents = [run(*line.split()) for line in words.split("\n") if line]
    for content in documents:
        assert list(closed_schema().iter_errors(content)) == []
        assert content["error"] is None
    names = {*cli.COMMANDS}
    assert set(ANSWERS) <= names
    assert {content["command"] for content in documents} == names


# --- where it is written --------------------------------------------------------------------------


def test_a_file_of_json_is_whole_and_the_sentences_are_printed(
    folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "result.json"
    result = invoke("diagnose", *labelled(folder), "--json", path)
    assert "items are labelled" in result.stdout
    assert result.stderr == ""
    content = check_document(path.read_text())
    result = invoke("diagnose", *labelled(folder), "--json", "-")
    assert "items are labelled" in result.stderr
    assert json.loads(result.stdout) == content
    assert [each.name for each in tmp_path.iterdir()] == ["result.json"]


def test_quiet_prints_errors_only(folder: Path, tmp_path: Path) -> None:
    result = invoke("diagnose", *labelled(folder), "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    result = invoke("diagnose", *labelled(folder), "--quiet", "--json", "-")
    check_document(result.stdout)
    assert result.stderr == ""
    result = invoke("diagnose", *labelled(folder), "--quiet", "--require", "items>60")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Not met: items>60; the value is 60.\n"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("none/result.json", "There is no folder"),
        (".", "is a folder; name a file in it"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_the_work(
    name: str, sentence: str, tmp_path: Path
) -> None:
    result = invoke("example", tmp_path / "e", "--json", tmp_path / name)
    assert isinstance(result.exception, JudgeBayesError)
    assert sentence in str(result.exception)
    assert not (tmp_path / "e").exists()


def test_json_that_cannot_be_finished_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")
    whole = Path.write_text

    def full(self: Path, text: str, **how: Any) -> int:
        whole(self, text[: len(text) // 2], **how)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    result = invoke("data", "list", "--json", path)
    assert isinstance(result.exception, JudgeBayesError)
    assert "cannot be written: No space left on device" in str(result.exception)
    assert path.read_text() == "old"
    assert not [*tmp_path.glob(f"*{HALF}"), *tmp_path.glob(f".*{HALF}")]


# --- exit codes -----------------------------------------------------------------------------------


def test_requirements_decide_the_exit_code(folder: Path) -> None:
    words = ("diagnose", *labelled(folder))
    met = ("--require", "items>=60", "--require", "tables.judges.gpt-4.1.accuracy>0.7")
    content = run(*words, *met)
    assert [each["holds"] for each in content["required"]] == [True, True]
    content = run(*words, *met, "--require", "labels>40", code=1)
    assert [each["holds"] for each in content["required"]] == [True, True, False]
    assert content["error"] is None
    assert content["required"][2]["value"] == LABELLED
    result = invoke(*words, *met, "--require", "labels>40")
    assert result.stderr == "Not met: labels>40; the value is 40.\n"


def test_a_requirement_on_what_is_not_there_keeps_the_results(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    words = ("diagnose", *labelled(folder), "--json", path)
    result = invoke(*words, "--require", "item>1")
    assert isinstance(result.exception, JudgeBayesError)
    assert "Did you mean 'items'?" in str(result.exception)
    content = check_document(path.read_text())
    assert (content["exit_code"], content["error"]) == (2, str(result.exception))
    assert content["result"]["items"] == ITEMS
    path.unlink()
    result = invoke(*words, "--require", "items")  # this is told before the work
    assert isinstance(result.exception, JudgeBayesError)
    assert not path.exists()


def test_findings_change_the_exit_code_only_if_asked(folder: Path, tmp_path: Path) -> None:
    votes = pd.read_csv(folder / "v.csv")
    gold = pd.read_csv(folder / "l.csv").rename(columns={"label": "vote"})
    leak = gold.assign(judge="leak", generator="g")
    pd.concat([votes, leak]).to_csv(tmp_path / "v.csv", index=False)
    words = ("diagnose", tmp_path / "v.csv", "--labels", folder / "l.csv")
    severe = [each for each in run(*words)["findings"] if each["severity"] == "bad"]
    assert severe
    content = run(*words, "--require", "problems==0", code=1)
    assert content["problems"] == content["result"]["problems"] == len(severe)
    result = invoke(*words, "--require", "problems==0", "--quiet")
    assert result.stderr == f"Not met: problems==0; the value is {len(severe)}.\n"
    run(*words, "--require", "notes>=0")
    # Every answer has the counts.
    run("precision", *labelled(folder), "--require", "notes>=0", "--require", "problems==0")


def test_bad_input_is_in_the_json_too(tmp_path: Path) -> None:
    result = invoke("diagnose", tmp_path / "none.csv", "--json", "-")
    content = check_document(result.stdout)
    assert content["result"] is None
    assert (content["exit_code"], content["error"]) == (2, str(result.exception))
    assert "There is no file" in content["error"]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_a_signal_ends_a_command_with_its_code(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    path, started, whole = (tmp_path / name for name in ("r.json", "started", "whole.csv"))
    waits = (
        "import pathlib, signal, sys, time, types\n"
        "from judgebayes import cli\n"
        "from judgebayes.compiled.store import atomically\n"
        "e = sys.modules['judgebayes.experiments.getting'] = types.ModuleType('examples')\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def wait(*_):\n"
        f"    with atomically(pathlib.Path({str(whole)!r})) as one: one.touch()\n"
        f"    with atomically(pathlib.Path({str(tmp_path / 'half.csv')!r})):\n"
        f"        pathlib.Path({str(started)!r}).touch()\n"
        "        time.sleep(60)\n"
        "e.write_example = wait\n"
        "cli.main()"
    )
    command = [sys.executable, "-c", waits, "example", str(tmp_path / "e"), "--json", str(path)]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        while not started.exists():
            assert child.poll() is None
            time.sleep(0.02)
        child.send_signal(number)
        printed = child.communicate(timeout=60)[1]
    finally:
        child.kill()
    assert child.returncode == code
    assert "Traceback" not in printed
    content = check_document(path.read_text())
    assert content["exit_code"] == code
    assert content["error"] == printed.strip().splitlines()[-1]
    assert "Every file is complete, or as it was before." in printed
    assert sorted(each.name for each in tmp_path.iterdir()) == ["r.json", "started", "whole.csv"]


def test_bad_usage_is_2_and_the_version_0(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["judgebayes", "calibrate", "--split", "3"])
        patch.setattr(cli.signal, "signal", lambda *_: None)
        with pytest.raises(SystemExit) as ended:
            cli.main()
    assert ended.value.code == 2
    assert "Unknown option: --split. Did you mean --splits?" in capsys.readouterr().err
    result = invoke("--version")
    assert (result.exit_code, result.stdout) == (0, f"judgebayes {cli.machine.__version__}\n")
