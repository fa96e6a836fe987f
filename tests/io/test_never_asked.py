"""A judge that saw only some of the items has no missing votes on the others."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from runner import CliRunner

from judgebayes.cli import app
from judgebayes.io.formats import import_votes
from judgebayes.io.gathering import Imported
from judgebayes.panel.diagnostics import diagnose
from judgebayes.panel.judges import judge_table
from judgebayes.votes import Coding, Votes, encode

ITEMS = 40


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JudgeBench outputs of three judges: one saw all pairs, one saw half, one failed on half."""
    folder = tmp_path_factory.mktemp("outputs")
    rng = np.random.default_rng(5)
    truth = ["A>B" if rng.random() < 0.5 else "B>A" for _ in range(ITEMS)]
    for judge, seen, readable in (("all", 1, 1), ("half", 2, 1), ("failing", 1, 2)):
        lines = []
        for n in range(0, ITEMS, seen):
            right = truth[n] if rng.random() < 0.8 else "A>B"
            first = right if n % readable == 0 else None
            second = None if first is None else {"A>B": "B>A", "B>A": "A>B"}[first]
            judged = [{"decision": first}, {"decision": second}]
            lines.append(json.dumps({"pair_id": f"p{n}", "label": truth[n], "judgments": judged}))
        (folder / f"judge_name={judge},judge_model=None.jsonl").write_text("\n".join(lines))
    return folder


@pytest.fixture(scope="module")
def imported(outputs: Path) -> Imported:
    return import_votes("judgebench", outputs)


@pytest.fixture(scope="module")
def encoded(imported: Imported) -> tuple[Votes, Coding]:
    return encode(imported.votes, order="order", votes_as="original", classes=("B", "tie", "A"))


def test_the_import_distinguishes_not_asked_from_missing(imported: Imported) -> None:
    assert imported.coverage().to_dict() == {"all": 1.0, "half": 1.0, "failing": 0.5}


def test_coding_and_diagnostics_distinguish_them_too(
    imported: Imported, encoded: tuple[Votes, Coding]
) -> None:
    votes, coding = encoded
    by_name = {name: place for place, name in enumerate(coding.judges)}
    counted = imported.votes.groupby(["item", "judge"]).size()
    for (item, judge), rows in counted.items():
        assert coding.asked is not None
        assert coding.asked[coding.items.get_loc(item), by_name[judge]] == rows
    assert int(coding.asked.sum()) == len(imported.votes)
    words = " ".join(coding.words(votes))
    assert "Missing or unreadable votes: 40, by judge: failing 40." in words
    assert "1 judge(s) were asked on only some of the 40 items: half 20." in words
    assert imported.labels is not None
    labels = coding.labels(imported.labels)
    table = judge_table(votes, labels, coding).set_index("judge")
    assert table["missing"].to_dict() == {"all": 0.0, "half": 0.0, "failing": 0.5}
    assert table["not_asked"].to_dict() == {"all": 0.0, "half": 0.5, "failing": 0.0}
    by_topic = {f.topic: f for f in diagnose(votes, labels, coding)}
    assert by_topic["parseability"].judges == ("failing",)
    # Arrays without a coding cannot distinguish them.
    without_coding = {f.topic: f for f in diagnose(votes, labels, list(coding.judges))}
    assert set(without_coding["parseability"].judges) == {"half", "failing"}


def test_items_never_shown_do_not_count_as_selective_missingness() -> None:
    """A judge that was asked mostly on items of one label does not skip the others."""
    rng = np.random.default_rng(3)
    truth = np.repeat([0, 1], 60)
    table = pd.DataFrame(
        [
            {"item": n, "judge": judge, "vote": truth[n] if rng.random() < 0.8 else 1 - truth[n]}
            for judge, items in (("all", range(120)), ("some", range(50, 120)))
            for n in items
        ]
    )
    votes, coding = encode(table)
    labels = coding.labels(pd.DataFrame({"item": np.arange(120), "label": truth}))
    assert not [f for f in diagnose(votes, labels, coding) if f.topic == "missingness"]
    without_coding = diagnose(votes, labels, list(coding.judges))
    assert [f.judges for f in without_coding if f.topic == "missingness"] == [("some",)]


def test_the_command_reports_not_asked_separately(imported: Imported, tmp_path: Path) -> None:
    assert imported.labels is not None
    imported.votes.to_parquet(tmp_path / "votes.parquet")
    imported.labels.to_csv(tmp_path / "labels.csv", index=False)
    args = ["diagnose", str(tmp_path / "votes.parquet"), "--labels", str(tmp_path / "labels.csv")]
    args += ["--set", "votes_as=original", "--set", "classes=B,tie,A"]
    result = CliRunner().invoke(app, args, env={"COLUMNS": "140"})
    assert result.exit_code == 0, result.output
    assert "not asked" in result.output
    row = next(line for line in result.output.splitlines() if line.startswith("half"))
    assert row.split()[1:4] == ["40", "0%", "50%"]
    assert (
        "1 judge(s) gave fewer than 60 % of the requested votes in a readable form: failing (50 %)"
        in result.output
    )
