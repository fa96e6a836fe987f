import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from judgebayes import cli

HEAVY = (
    "jax",
    "numpy",
    "pandas",
    "scipy",
    "sklearn",
    "numpyro",
    "matplotlib",
    "arviz",
    "pyarrow",
    "httpx2",
    "openai",
)


COMMANDS: Any = typer.main.get_command(cli.app)


@pytest.mark.parametrize(
    "arguments", [["--help"], *([name, "--help"] for name in COMMANDS.commands), ["--version"]]
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys\n"
        "from judgebayes.cli import main\n"
        f"sys.argv = ['judgebayes', *{arguments}]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print(*(m for m in {HEAVY} if m in sys.modules), file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stderr.strip() == ""
    assert result.stdout


@pytest.mark.parametrize(
    ("imported", "unneeded"),
    [
        ("judgebayes", HEAVY),
        ("judgebayes.cli.collecting", ("httpx2", "openai")),  # until something is asked
        # until something is drawn
        ("judgebayes.cli.answering, judgebayes.workflow.calibrating", ("matplotlib",)),
    ],
)
def test_importing_loads_nothing_that_can_wait(imported: str, unneeded: tuple[str, ...]) -> None:
    script = f"import {imported}, sys; print(*(m for m in {unneeded} if m in sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == ""


def below(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A command and those below it, with the words that call them."""
    yield words, command
    for name, each in getattr(command, "commands", {}).items():
        yield from below(each, (*words, name))


COMMANDS = dict(below(typer.main.get_command(cli.app)))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_is_whole_at_80_columns(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every option, every word that explains it, and every summary is there, on no longer line."""
    monkeypatch.setenv("COLUMNS", "80")
    said = CliRunner().invoke(cli.app, [*words, "--help"]).output
    assert max(map(len, said.splitlines())) <= 80
    assert "…" not in said
    bare = re.sub(r"\s", "", said)

    def whole(text: str) -> bool:
        return re.sub(r"[\s\b]", "", text) in bare

    command = COMMANDS[words]
    assert whole(command.help)
    for parameter in command.params:
        assert whole(parameter.help), parameter.name
        for name in parameter.opts if parameter.param_type_name == "option" else ():
            assert re.search(rf"(^|\s){name}[\s,]", said), name
    for name, each in getattr(command, "commands", {}).items():
        assert whole(name + each.help.partition("\n\n")[0]), name


def test_a_known_error_is_one_sentence_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["judgebayes", "calibrate", str(tmp_path / "[bold]no.csv")])
    # The signals of this process stay pytest's.
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("Error: There is no file")
    assert "[bold]no.csv" in said
    assert "Traceback" not in said
