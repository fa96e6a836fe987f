import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from runner import CliRunner

from judgebayes import cli
from judgebayes.cli import COMMANDS

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


@pytest.mark.parametrize(
    "arguments", [["--help"], *([*name.split(), "--help"] for name in COMMANDS), ["--version"]]
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


@pytest.mark.parametrize("name", ["", "data", *COMMANDS])
def test_help_is_whole_at_80_columns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every option, every word that explains it, and every summary is there, on no longer line."""
    monkeypatch.setenv("COLUMNS", "80")
    said = CliRunner().invoke(cli.app, [*name.split(), "--help"]).output
    assert max(map(len, said.splitlines())) <= 80
    assert "…" not in said
    bare = re.sub(r"\s", "", said)

    def whole(text: str) -> bool:
        return re.sub(r"\s", "", text) in bare

    below = {n: c for n, c in COMMANDS.items() if n.rpartition(" ")[0] == name}
    for own, command in below.items():
        assert whole(own.split()[-1] + inspect.getdoc(command.record).partition("\n\n")[0]), own
    command = COMMANDS.get(name)
    for leaf in () if command is None else command.leaves.values():
        assert whole(leaf.option.help), leaf.name
        names = () if leaf.option.positional or leaf.option.key else leaf.option.names
        for option in names or (() if leaf.option.positional or leaf.option.key else (leaf.shown,)):
            assert re.search(rf"(^|\s){option}[\s,]", said), option


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
