"""An output never replaces an input of the same command, or another output."""

from pathlib import Path

import pytest
from runner import CliRunner

from judgebayes import cli
from judgebayes.cli import COMMANDS
from judgebayes.cli.command import OUTPUTS
from judgebayes.cli.machine import check_outputs
from judgebayes.errors import JudgeBayesError

READ = {
    *("cache", "costs", "data", "files", "fit", "folder", "items", "labels", "local"),
    *("loss", "path", "template", "votes"),
}
"""Options that name something to read, a folder, or a file that a command both reads and adds to."""


def test_every_option_that_names_a_file_is_one_to_read_or_to_write() -> None:
    named = {
        name
        for command in COMMANDS.values()
        for name, each in command.signature().parameters.items()
        if "Path" in str(each.annotation)
    }
    assert named == READ | {*OUTPUTS}


@pytest.mark.parametrize("option", ["--json", "--out"])
def test_a_file_that_is_read_is_not_replaced(option: str, tmp_path: Path) -> None:
    votes = tmp_path / "votes.csv"
    votes.write_text("item,judge,vote\na,j,1\nb,j,0\n")
    link = tmp_path / "link.csv"
    link.symlink_to(votes)
    before = votes.read_bytes()
    for output in (votes, link):
        done = CliRunner().invoke(cli.app, ["diagnose", str(votes), option, str(output)])
        assert isinstance(done.exception, JudgeBayesError)
        assert f"{option} is {str(output)!r}, which is also the votes" in str(done.exception)
    assert votes.read_bytes() == before


def test_two_outputs_are_two_files(tmp_path: Path) -> None:
    same = tmp_path / "x.json"
    with pytest.raises(JudgeBayesError, match="which is also the file of --save"):
        check_outputs({"save": same, "json": tmp_path / "." / "x.json"})
    check_outputs({"save": same, "json": Path("-"), "out": None, "votes": tmp_path / "v.csv"})
    check_outputs({"json": Path("/dev/null"), "out": Path("/dev/null")})  # nothing is replaced


def test_a_file_that_cannot_be_written_is_told_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgebayes.workflow.diagnosing.diagnose", lambda _: pytest.fail("worked"))
    out = tmp_path / "none" / "judges.csv"
    done = CliRunner().invoke(cli.app, ["diagnose", "votes.csv", "--out", str(out)])
    assert isinstance(done.exception, JudgeBayesError)
    assert "There is no folder" in str(done.exception)
