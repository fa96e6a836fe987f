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
