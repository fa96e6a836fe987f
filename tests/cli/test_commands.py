import subprocess
import sys
from pathlib import Path

import pytest

from judgebayes import cli


def test_help_and_import_load_no_jax() -> None:
    for code in ("import judgebayes", "import judgebayes.cli"):
        script = f"{code}; import sys; print(any(m in sys.modules for m in ('jax', 'pandas')))"
        found = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        assert found.stdout.strip() == "False", code


def test_help_names_the_commands() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "judgebayes", "--help"], capture_output=True, text=True, check=True
    )
    for command in ("reproduce", "calibrate", "apply", "example"):
    for command in ("reproduce", "calibrate", "apply", "diagnose"):
        assert command in found.stdout


def test_a_known_error_is_one_sentence_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", ["judgebayes", "calibrate", str(tmp_path / "[bold]no.csv")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("Error: There is no file")
    assert "[bold]no.csv" in said
    assert "Traceback" not in said


def test_example_writes_files_that_calibrate_reads(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    folder = tmp_path / "try"
    said = CliRunner().invoke(cli.app, ["example", str(folder)])
    assert said.exit_code == 0, said.output
    votes, labels = (str(folder / name) for name in ("votes.csv", "labels.csv"))
    found = CliRunner().invoke(
        cli.app, ["calibrate", votes, "--labels", labels, "--splits", "2", "--method", "sc"]
    )
    assert "4800 votes of 1 judge(s) on 600 items" in found.output
    assert "100 of 600 items are labelled" in found.output
    again = CliRunner().invoke(cli.app, ["example", str(folder)])
    assert "exists already" in str(again.exception)
