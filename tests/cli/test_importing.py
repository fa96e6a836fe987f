"""`judgebayes import`, end to end: what it writes is what the other commands read."""

import json
import re
import shlex
from pathlib import Path

import pytest
from runner import CliRunner

from judgebayes import cli
from judgebayes.errors import JudgeBayesError


def run(*words: object) -> str:
    result = CliRunner().invoke(cli.app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def next_command(said: str) -> list[str]:
    command = re.search(r"^Next: (.*)$", said, re.MULTILINE)
    assert command is not None
    return shlex.split(command.group(1))[1:]


QUICK = ("--method", "sc", "--splits", "2")


def judgebench(folder: Path, n: int = 24) -> Path:
    lines = [
        {
            "pair_id": f"p{i}",
            "label": "A>B" if i % 2 else "B>A",
            "judgments": [
                {"decision": "A>B" if i % 3 else None},
                {"decision": "A=B" if i % 5 == 0 else "B>A"},
            ],
        }
        for i in range(n)
    ]
    path = folder / "judge_name=vanilla,judge_model=gpt-4o.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_judgebench_votes_are_calibrated_by_the_commands_that_are_printed(tmp_path: Path) -> None:
    source = judgebench(tmp_path)
    out, labels = tmp_path / "my votes.parquet", tmp_path / "labels.parquet"
    said = run("import", "judgebench", source, "-o", out, "--labels-out", labels)
    assert "Read 48 records: 40 votes of 1 judge(s) on 24 items" in said
    assert "Missing votes: 8 (no decision 8)." in said
    assert "Labels of 24 items (B 12, A 12)." in said
    command = next_command(said)
    assert command[:2] == ["check", str(out)]
    checked = run(*command).split("This command runs:")[1]
    answer = run(*shlex.split(checked)[1:], *QUICK)
    assert "40 votes of 1 judge(s) on 24 items, classes B, tie, A" in answer
    assert "24 of 24 items are labelled" in answer
    assert "Missing or unreadable votes: 8" in answer


def test_what_cannot_be_done_is_one_sentence_and_writes_nothing(tmp_path: Path) -> None:
    source = judgebench(tmp_path)
    out = tmp_path / "v.csv"
    with pytest.raises(JudgeBayesError, match="no known suffix"):
        run("import", "judgebench", source, "-o", tmp_path / "v.dat")
    with pytest.raises(JudgeBayesError, match="is a workbook"):
        run("import", "judgebench", source, "-o", tmp_path / "v.xlsx")
    with pytest.raises(JudgeBayesError, match="which is also the file of --out"):
        run("import", "judgebench", source, "-o", out, "--labels-out", out)
    with pytest.raises(JudgeBayesError, match="does not take items"):
        run("import", "judgebench", source, "-o", out, "--items", source)
    (tmp_path / "t.csv").write_text("item,vote\nx,1\ny,0\n")
    assert not out.exists()
