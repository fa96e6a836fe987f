"""What every command gives to machines: JSON, exit codes, silence."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from documents import check_document, closed_schema
from endpoint import Reply, serving
from few_draws import with_few_draws
from typer.testing import CliRunner, Result

from judgebayes import cli
from judgebayes.compiled.store import HALF
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.public import SOURCES
from judgebayes.workflow.machine import schema

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


def calibrate(folder: Path, new: Path) -> Iterator[dict[str, Any]]:
    fast = ("--method", "sc", "--splits", "2")
    content = run("calibrate", *labelled(folder), *fast)
    result = content["result"]
    held_out = result["held_out"]["accuracy"]
    assert held_out["low"] <= held_out["estimate"] <= held_out["high"]
    assert len(result["tables"]["answers"]) == result["items"] == ITEMS
    assert sum(result["decisions"].values()) == ITEMS
    assert result["labels"] == LABELLED
    yield content
    more = ("--save", new / "fit.json", "--abstain-cost", "0.2", "--conformal", "0.8")
    yield run("calibrate", *labelled(folder), *fast, *more)
    yield run("calibrate", folder / "v.csv", "--method", "sc")
    words = ("--method", "best-constant", "--splits", "10", "--forecast", LABELLED)
    content = run("calibrate", *labelled(folder), *words)
    forecast = content["result"]["more_labels"]
    assert forecast["labels"] == 2 * LABELLED
    assert forecast["nll"]["low"] <= forecast["nll"]["estimate"] <= forecast["nll"]["high"]
    assert forecast["gain"] >= 0
    yield content
    paired = (*labelled(folder), *fast, "--pairwise", "--require", "win_rate.low>0")
    content = run("calibrate", *paired, "--ties", "excluded", "--target", "these")
    rate = content["result"]["win_rate"]
    assert rate["low"] <= rate["estimate"] <= rate["high"]
    assert (rate["labels"], rate["ties"], rate["target"]) == (LABELLED, "excluded", "these")
    yield content
    games = pd.read_csv(folder / "v.csv").assign(a="x", b="y")
    games.loc[games["item"] % 3 == 0, "b"] = "z"
    games.to_csv(new / "games.csv", index=False)
    words = ("calibrate", new / "games.csv", "--method", "sc", "--pairwise", "--systems", "a,b")
    yield run(*words, "--require", "tables.win rates.0.naive>0")
    best = run(
        *words,
        "--labels",
        folder / "l.csv",
        "--splits",
        2,
        "--require",
        "tables.systems.x.P(best)<2",
    )
    assert {*best["result"]["tables"]} >= {"win rates", "systems"}
    yield best


def apply(folder: Path, new: Path) -> Iterator[dict[str, Any]]:
    assert next(iter(new.glob("fit.json")), None) or [*calibrate(folder, new)]
    yield run("apply", new / "fit.json", folder / "v.csv")


def report(folder: Path, new: Path) -> Iterator[dict[str, Any]]:
    fast = ("--method", "sc", "--splits", "2", "--out", new / "page.html")
    content = run("report", *labelled(folder), *fast)
    assert Path(content["result"]["page"]).is_file()
    yield content
    paired = run("report", *labelled(folder), *fast, "--pairwise")
    assert "Win rate of 1 over 0: " in Path(paired["result"]["page"]).read_text()
    yield paired


def diagnose(folder: Path, new: Path) -> Iterator[dict[str, Any]]:
    content = run("diagnose", *labelled(folder))
    assert {each["severity"] for each in content["findings"]} <= {"good", "note", "bad"}
    assert content["findings"]
    yield content
    yield run("diagnose", *labelled(folder), "--by", "generator")


def check(folder: Path, new: Path) -> Iterator[dict[str, Any]]:
    content = run("check", *labelled(folder))
    result = content["result"]
    assert result["command"].startswith("judgebayes calibrate ")
    assert result["can"]["calibrate"]
    assert result["labels"] == LABELLED
    yield content
    yield run("check", folder / "v.csv")
    (new / "prose.csv").write_text("title,text\na,long story\nb,other story\n")
    broken = run("check", new / "prose.csv", code=2)
    assert broken["result"]["command"] is None
    yield broken


def ensemble(folder: Path, new: Path) -> Iterator[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        with_few_draws(patch)
        content = run("ensemble", *labelled(folder), "--next", "3")
    error = content["result"]["error"]
    assert error["low"] <= error["estimate"] <= error["high"]
    yield content
    yield run("ensemble", folder / "v.csv", "--session", new / "session.csv")


def precision(folder: Path, new: Path) -> Iterator[dict[str, Any]]:
    yield run("precision", *labelled(folder), "--method", "rogan-gladen")
    games = pd.read_csv(folder / "v.csv").assign(a="x", b="y")
    games.to_csv(new / "games.csv", index=False)
    words = (new / "games.csv", "--labels", folder / "l.csv", "--generator", "none")
    yield run("precision", *words, "--systems", "a,b", "--classes", "0,1", "--method", "majority")


def posterior(folder: Path, new: Path) -> Iterator[dict[str, Any]]:
    few = ("--draws", "20", "--warmup", "20", "--chains", "2")
    words = (*labelled(folder), "--model", "one-coin", *few)
    content = run("posterior", *words, "-o", new / "1.npz")
    assert content["result"]["draws"] == 20
    yield content
    shutil.copy(new / "1.npz", new / "2.npz")
    yield run("posterior-compare", new / "1.npz", new / "2.npz")


def import_(folder: Path, new: Path) -> Iterator[dict[str, Any]]:
    content = run("import", "tidy", folder / "v.csv", "-o", new / "votes.csv")
    assert content["result"]["votes"] == content["result"]["records"] == 3 * ITEMS
    yield content


def repair(folder: Path, new: Path) -> Iterator[dict[str, Any]]:
    shown = {"line": [1, 2], "text": ["Close it.", "Open it."]}
    pd.DataFrame({"item": ["a", "b"], **shown}).to_csv(new / "items.csv", index=False)
    verdicts = '[{"line": 1, "text": "Close it.", "label": "valid"},]'
    pd.DataFrame({"judge": ["j"], "text": [verdicts]}).to_csv(new / "answers.csv", index=False)
    content = run("repair", new / "answers.csv", "--items", new / "items.csv", "-o", new / "v.csv")
    assert content["result"]["votes"] == 1
    assert content["result"]["repaired"] == {"trailing commas": 1, "other key": 3}
    assert content["result"]["missing"] == {"no verdict on the item": 1}
    assert pd.read_csv(new / "v.csv")["vote"].tolist()[0] == "valid"
    yield content


def collect(folder: Path, new: Path) -> Iterator[dict[str, Any]]:
    texts = {"prompt": "Which?", "response_a": ["1", "2"], "response_b": ["3", "4"]}
    pd.DataFrame({"id": ["a", "b"], **texts}).to_csv(new / "items.csv", index=False)
    with serving(lambda prompt, before: Reply("[[A]]")) as fake:
        judge = ("--judge", f"j@{fake.url}", "-n", "2", "-o", new / "votes.jsonl")
        words = ("collect", new / "items.csv", *judge)
        yield run(*words, "--dry-run")
        content = run(*words, "--budget-calls", "3", code=1)
        assert not content["result"]["complete"]
        yield content
        content = run(*words)
        assert content["result"]["complete"]
        assert content["result"]["tables"]["judges"][0]["votes"] == 4
        yield content


def data(folder: Path, new: Path) -> Iterator[dict[str, Any]]:
    content = run("data", "list", "--cache", new)
    assert len(content["result"]["tables"]["data sets"]) == len(SOURCES)
    yield content
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("judgebayes.cli.getting.is_whole", lambda source, cache: True)
        yield run("data", "get", "llmbar", "--cache", new)


def small(folder: Path, new: Path) -> Iterator[dict[str, Any]]:
    yield run("example", new / "example")
    yield run("version")
    yield run("reproduce", "--list")


MAKERS: tuple[Callable[[Path, Path], Iterator[dict[str, Any]]], ...] = (
    check,
    calibrate,
    apply,
    report,
    diagnose,
    ensemble,
    precision,
    posterior,
    import_,
    repair,
    collect,
    data,
    small,
)
SEEN: dict[str, set[str]] = {}
"""The commands whose JSON each maker yielded."""


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_the_json_of_a_command_is_valid(
    make: Callable[[Path, Path], Iterator[dict[str, Any]]],
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    documents = list(make(folder, tmp_path))
    assert documents
    for content in documents:
        assert list(closed_schema().iter_errors(content)) == []
        assert content["error"] is None
    SEEN[make.__name__] = {content["command"] for content in documents}


def test_the_schema_and_these_tests_have_every_command() -> None:
    commands: Any = typer.main.get_command(cli.app)
    names = {
        f"{name} {inner}".strip()
        for name, command in commands.commands.items()
        for inner in getattr(command, "commands", {"": None})
    }
    assert set(schema()["properties"]["command"]["enum"]) == names
    if len(SEEN) == len(MAKERS):  # all of them ran and passed
        assert names == set().union(*SEEN.values())


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


def test_the_suggested_commands_and_the_page_do_not_repeat_the_options_for_machines(
    folder: Path, tmp_path: Path
) -> None:
    words = ("--method", "sc", "--splits", "2", "--json", tmp_path / "r.json", "--quiet")
    required = ("--require", "items>0", "--fail-on", "bad", "--out", tmp_path / "page.html")
    result = invoke("report", *labelled(folder), *words, *required)
    assert result.output == ""
    page = (tmp_path / "page.html").read_text()
    assert "r.json" not in page
    assert "--require" not in page
    result = invoke("calibrate", *labelled(folder), *words[:6], "--require", "items>0")
    assert "judgebayes diagnose" in result.stdout
    assert "--json" not in result.stdout
    assert "--require" not in result.stdout


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
    result = invoke("version", "--json", path)
    assert isinstance(result.exception, JudgeBayesError)
    assert "cannot be written: No space left on device" in str(result.exception)
    assert path.read_text() == "old"
    assert not [*tmp_path.glob(f"*{HALF}"), *tmp_path.glob(f".*{HALF}")]


def script(code: str) -> list[str]:
    """The command line with some of the program replaced."""
    return [
        sys.executable,
        "-c",
        f"import sys, time\nfrom judgebayes import cli\n{code}\ncli.main()",
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_standard_output_that_is_full_is_one_sentence() -> None:
    command = [sys.executable, "-m", "judgebayes", "version", "--json", "-"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        done.stderr.splitlines()[0],
        "Error: The JSON cannot be written to standard output: No space left on device.",
    ]


def test_a_pipe_that_nobody_reads_does_not_end_a_command(tmp_path: Path) -> None:
    """As with `| head`: the files are written, and the exit code is the command's."""
    out = tmp_path / "list.json"
    words = "data", "list", "--cache", str(tmp_path), "--json", str(out)
    command = [sys.executable, "-m", "judgebayes", *words]
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(command, stdout=writes, stderr=subprocess.PIPE, check=False)
    os.close(writes)
    assert done.stderr == b""
    assert done.returncode == 0
    assert json.loads(out.read_text())["exit_code"] == 0


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
    assert "did you mean 'items'?" in str(result.exception)
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
    content = run(*words, "--fail-on", "bad", code=1)
    assert content["result"]["problems"] == len(severe)
    result = invoke(*words, "--fail-on", "bad", "--quiet")
    assert result.stderr.splitlines() == [f"--fail-on bad: {e['sentence']}" for e in severe]
    run(*words, "--fail-on", "note", code=1)
    result = invoke(*words, "--fail-on", "good")
    assert "--fail-on 'good' is unknown; choose one of: bad, note." in str(result.exception)


def test_bad_input_is_in_the_json_too(tmp_path: Path) -> None:
    result = invoke("diagnose", tmp_path / "none.csv", "--json", "-")
    content = check_document(result.stdout)
    assert content["result"] is None
    assert (content["exit_code"], content["error"]) == (2, str(result.exception))
    assert "There is no file" in content["error"]


BY_SIGNAL = pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)


def stopped(
    program: list[str], number: signal.Signals, code: int, folder: Path, name: str = "example"
) -> str:
    """Send a signal to a command once `started` exists; check the exit code, and return its errors."""
    words = [str(folder / "e")] if name == "example" else []
    command = [*program, name, *words, "--json", str(folder / "r.json")]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        while not (folder / "started").exists():
            assert child.poll() is None
            time.sleep(0.02)
        child.send_signal(number)
        printed = child.communicate(timeout=60)[1]
    finally:
        child.kill()
    assert child.returncode == code
    return printed


@BY_SIGNAL
@pytest.mark.skipif(sys.platform == "win32", reason="no such signals")
def test_a_signal_ends_a_command_with_its_code(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    path, started, whole = (tmp_path / name for name in ("r.json", "started", "whole.csv"))
    waits = (
        "import pathlib, signal, types\n"
        "from judgebayes.compiled.store import atomically\n"
        "e = sys.modules['judgebayes.cli.examples'] = types.ModuleType('examples')\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def wait(*_):\n"
        f"    with atomically(pathlib.Path({str(whole)!r})) as one: one.touch()\n"
        f"    with atomically(pathlib.Path({str(tmp_path / 'half.csv')!r})):\n"
        f"        pathlib.Path({str(started)!r}).touch()\n"
        "        time.sleep(60)\n"
        "e.write_example = wait"
    )
    printed = stopped(script(waits), number, code, tmp_path)
    assert "Traceback" not in printed
    content = check_document(path.read_text())
    assert content["exit_code"] == code
    assert content["error"] == printed.strip().splitlines()[-1]
    assert f"Complete: {str(whole)!r}; no other file was changed." in printed
    assert sorted(each.name for each in tmp_path.iterdir()) == ["r.json", "started", "whole.csv"]


def test_bad_usage_is_2_and_the_version_0() -> None:
    result = invoke("calibrate", "--no-such-option")
    assert result.exit_code == 2
    assert "No such option" in result.stderr
    for words in (["--version"], ["version"]):
        result = invoke(*words)
        assert (result.exit_code, result.stdout) == (0, f"judgebayes {cli.machine.__version__}\n")


@contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    import pty

    ours, theirs = pty.openpty()
    try:
        yield ours, theirs
    finally:
        os.close(ours)


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_no_color_is_respected() -> None:
    words = ("version", "--require", "x")
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    coloured = {}
    for name, more in (("usual", {}), ("none", {"NO_COLOR": "1"})):
        with terminal() as (ours, theirs):
            child = subprocess.Popen(
                [sys.executable, "-m", "judgebayes", *words],
                stdout=theirs,
                stderr=theirs,
                env={**environment, "TERM": "xterm-256color", **more},
            )
            os.close(theirs)
            said = b""
            while True:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
                if not part:
                    break
                said += part
            assert child.wait() == 2
        assert b"is not a path" in said
        coloured[name] = any(b"\x1b[%d" % colour in said for colour in range(30, 38))
    assert coloured == {"usual": True, "none": False}
