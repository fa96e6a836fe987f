"""`judgebayes check`: every messy file is read by the one command that it proposes."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from messy import MESSY, Files, spreadsheet
from runner import CliRunner

import judgebayes as jb
from judgebayes import cli
from judgebayes.io import tables
from judgebayes.workflow import likely

OPTIONS: dict[str, dict[str, Any]] = {
    "prompts_and_costs": {"vote": "Outcome", "match_ids": "loosely"},
    "inspect_log": {},
    "spreadsheet": {"wide": True, "ignore": "Comment,Graded on", "encoding": "cp1252"},
    "arena": {},
    "scores": {"vote": "score", "bins": "learnt"},
    "from_pandas": {
        "judge": "rater_model",
        "vote": "is_correct",
    },
    "criteria": {},
    "appended_twice": {},
    "three_annotators": {"labels_merge": "majority"},
    "both_orders": {
        "vote": "preferred",
        "order": "presentation",
        "votes_as": "shown",
        "missing": "unclear",
    },
    "german_words": {
        "item": "Frage",
        "judge": "Richter",
        "vote": "Urteil",
    },
    "zero_padded": {"vote": "correct", "match_ids": "loosely"},
    "paths_as_ids": {"item": "case", "match_ids": "loosely", "drop_unknown_labels": True},
}
JUDGES = {"criteria": 6, "spreadsheet": 3, "from_pandas": 3, "both_orders": 1}
LABELS = {
    **{"prompts_and_costs": 40, "inspect_log": 45, "spreadsheet": 40, "arena": 50, "scores": 40},
    **{"from_pandas": 35, "criteria": 40, "appended_twice": 40, "three_annotators": 40},
    **{"both_orders": 40, "german_words": 60, "zero_padded": 40, "paths_as_ids": 39},
}


@pytest.mark.parametrize("make", MESSY, ids=lambda make: make.__name__)
def test_a_messy_file_is_read_with_the_options_of_one_check(
    make: Callable[[Path], Files], tmp_path: Path
) -> None:
    files, name = make(tmp_path), make.__name__
    checked = jb.check(files.votes, files.labels)
    assert checked.options == OPTIONS[name]
    data = jb.read(files.votes, files.labels, **checked.options)
    assert data.votes.n_items == 60
    assert data.votes.n_judges == JUDGES.get(name, 2)
    assert int((data.labels >= 0).sum()) == LABELS[name]
    assert checked.command is not None
    words = shlex.split(checked.command)
    assert words[:3] == ["judgebayes", "calibrate", str(files.votes)]
    # Every option is one of the command, and the JSON has no value that JSON lacks.
    help_text = CliRunner().invoke(cli.app, ["calibrate", "--help"]).output
    assert all(word in help_text for word in words if word.startswith("--"))
    as_json = json.loads(json.dumps(checked.to_dict(), allow_nan=False))
    assert as_json["command"] == checked.command
    assert as_json["schema"] == "judgebayes.check/1"
    answers = {row["answered by"]: row["can"] for row in as_json["tables"]["questions"]}
    assert answers == dict.fromkeys(("calibrate", "diagnose", "ensemble"), True) | {
        "precision": name != "arena"  # which has three classes
    }


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    files = spreadsheet(tmp_path)
    checked = jb.check(files.votes)
    assert [(each.topic, each.option) for each in checked.problems] == [
        ("file", "--set encoding=cp1252"),
        ("columns", "--set wide=true"),
        ("columns", "--set 'ignore=Comment,Graded on'"),
    ]
    assert any("'Human label' is read as the labels" in each.sentence for each in checked.findings)


def test_a_file_without_votes_has_no_command(tmp_path: Path) -> None:
    path = tmp_path / "prose.csv"
    path.write_text("title,text\na,long story\nb,other story\n")
    checked = jb.check(path)
    assert checked.command is None
    assert checked.exit_code == 2
    assert checked.data is None
    assert not checked.questions["can"].any()
    assert any("is a name that is recognised" in each.sentence for each in checked.problems)


def test_without_labels_only_diagnose_answers() -> None:
    table = pd.DataFrame({"item": [0, 0, 1, 1], "judge": list("abab"), "vote": [0, 1, 1, 1]})
    checked = jb.check(table)
    assert checked.command == "judgebayes diagnose VOTES"
    assert checked.exit_code == 0
    with pytest.raises(jb.JudgeBayesError, match="nothing to draw"):
        checked.plot()
    why = checked.questions.set_index("answered by")["why"]
    assert why["calibrate"].startswith("There are no labels")


def test_the_file_of_items_is_compared(tmp_path: Path) -> None:
    votes = pd.DataFrame({"item": [f"a{n}" for n in range(8)], "vote": [0, 1] * 4})
    items = pd.DataFrame({"ID": [f"A-{n}" for n in range(10)], "prompt": "p"})
    checked = jb.check(votes, items=items.assign(ID=items["ID"].str.replace("-", "")))
    (one,) = [each for each in checked.findings if each.topic == "items"]
    assert "8 of 8 items with votes are in column 'ID'" in one.sentence
    assert "2 of its items have no votes" in one.sentence


@pytest.mark.parametrize("mapped_back", [False, True])
def test_the_order_is_settled_by_the_labels_or_by_the_orders(mapped_back: bool) -> None:
    truth = np.random.default_rng(0).integers(0, 2, 40)
    rows = [
        {
            "item": i,
            "vote": "AB"[int(truth[i] == 0) ^ int(swapped and not mapped_back)],
            "order": "BA" if swapped else "AB",
            "label": "AB"[int(truth[i] == 0)],
        }
        for i in range(40)
        for swapped in (False, True)
    ]
    table = pd.DataFrame(rows)
    expected = "original" if mapped_back else "shown"
    assert jb.check(table).options["votes_as"] == expected
    assert jb.check(table.drop(columns="label")).options["votes_as"] == expected


def test_repeats_are_numbered_by_a_column_or_by_the_order_of_the_file() -> None:
    table = pd.DataFrame(
        {
            "item": [0, 0, 1, 1] * 2,
            "judge": list("abab") * 2,
            "vote": [0, 1, 1, 1, 0, 0, 1, 0],
            "try no": [1] * 4 + [2] * 4,
        }
    )
    assert jb.check(table).options == {"sample": "try no"}
    assert jb.check(table.drop(columns="try no")).options["repeats"] is True
    scores = table.assign(vote=np.arange(8) / 7 + table["item"])
    gold = pd.DataFrame({"item": [0, 1], "label": [0, 1]})
    assert jb.check(scores, gold, bins="learnt").options["sample"] == "try no"


def test_a_problem_of_labels_or_scores_says_what_its_option_does() -> None:
    rng = np.random.default_rng(0)
    scores = pd.DataFrame({"item": range(80), "vote": rng.random(80).round(4)})
    (said,) = (one.sentence for one in jb.check(scores).findings if one.severity == "bad")
    assert said.startswith("The votes are scores with 80 different values; five classes")
    words = pd.DataFrame({"item": range(4), "vote": ["correct", "incorrect", None, "correct"]})
    letters = pd.DataFrame({"item": range(4), "label": ["C", "I", "C", "C"]})
    checked = jb.check(words, letters)
    assert "classes" not in checked.options
    assert not any("nan" in one.sentence for one in checked.findings)
    gold = pd.DataFrame({"item": range(4), "outcome": ["correct", "incorrect"] * 2})
    bad = [one.sentence for one in jb.check(words, gold, judge="typo").findings]
    assert not any("outcome" in sentence for sentence in bad)


def test_words_get_the_order_of_their_meaning_or_none() -> None:
    words = pd.DataFrame({"item": range(6), "vote": ["poor", "good", "fair"] * 2})
    assert jb.read(words).coding.classes.names == ("poor", "fair", "good")
    assert not any("no order" in each.sentence for each in jb.check(words).findings)
    colours = words.assign(vote=["red", "blue", "green"] * 2)
    assert not jb.read(colours).coding.classes.ordered
    checked = jb.check(colours)
    assert "classes" not in checked.options
    assert any("having no order" in each.sentence for each in checked.findings)


def test_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every step reading its files again, a check of millions of rows did not end."""
    (tmp_path / "v.csv").write_text("item,judge,vote\na,j,1\nb,j,0\na,k,1\n")
    (tmp_path / "l.csv").write_text("item,label\na,1\nb,0\n")
    read: list[str] = []
    real = tables._read_file
    monkeypatch.setattr(
        tables, "_read_file", lambda path, layout: (read.append(path.name), real(path, layout))[1]
    )
    checked = jb.check(str(tmp_path / "v.csv"), str(tmp_path / "l.csv"))
    assert checked.command is not None
    assert sorted(read) == ["l.csv", "v.csv"]


def test_values_are_looked_at_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[object] = []
    real = likely.canonical
    monkeypatch.setattr(likely, "canonical", lambda value: (looked.append(value), real(value))[1])
    assert likely.Candidates(pd.DataFrame({"a": [1, 0] * 5000})).vote() == "a"
    assert len(looked) < 10
