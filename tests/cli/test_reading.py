"""What the command line makes of a user's files before anything is fitted."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import judgebayes as jb
from judgebayes.errors import AmbiguousStudy, JudgeBayesError
from judgebayes.workflow.asking import open_files
from judgebayes.workflow.data import Study, encoded
from judgebayes.workflow.fit_file import apply_notes
from judgebayes.workflow.options import ReadRequest
from judgebayes.workflow.scales import classes_of
from judgebayes.workflow.systems import generators_of


def read(path: Path, labels: Path | None = None, wide: bool = False) -> tuple[Study, str | None]:
    opened = open_files(ReadRequest(votes=path, labels=labels, wide=wide))
    return encoded(opened, classes_of(opened)), opened.columns["label"]


@pytest.mark.parametrize(
    ("name", "is_label"),
    [
        *(("Gold", True), ("label", True), ("human", False), ("target", False)),
        *(("Goldlabel", True), ("HUMAN-LABELS", True), ("gold_by_ann", True), ("labeller", False)),
    ],
)
def test_the_label_of_a_wide_file_is_detected_unless_it_may_be_a_judge(
    tmp_path: Path, name: str, is_label: bool
) -> None:
    table = pd.DataFrame({"item": range(4), "j": ["yes", "no"] * 2, "k": ["no", "yes"] * 2})
    table[name] = ["yes", None, "no", None]
    table.to_csv(tmp_path / "wide.csv", index=False)
    if name in ("human", "target"):
        with pytest.raises(AmbiguousStudy, match="named like the answers of people") as raised:
            read(tmp_path / "wide.csv", wide=True)
        assert [each.options for each in raised.value.candidates] == [
            {"label": name},
            {"label": "none"},
        ]
        return
    reading, label = read(tmp_path / "wide.csv", wide=True)
    assert label == (name if is_label else None)
    assert reading.votes.n_judges == (2 if is_label else 3)
    assert reading.coding.classes.values == ("no", "yes")
    assert f"label = {name!r}" in reading.words()[0] or not is_label
    table[["item", name]].dropna().to_csv(tmp_path / "g.csv", index=False)
    reading, label = read(tmp_path / "wide.csv", tmp_path / "g.csv", wide=True)
    assert (label, reading.votes.n_judges) == (None, 2 if is_label else 3)
    aside = (
        f"Column {name!r} is left out: it is named like labels, but the labels are in another file."
    )
    assert (aside in reading.opened.notes) is is_label


def test_judges_that_are_named_like_labels_stay_judges(tmp_path: Path) -> None:
    table = pd.DataFrame({"item": range(2), "ann_label": [0, 1], "ben_label": [1, 0]})
    table.to_csv(tmp_path / "wide.csv", index=False)
    assert read(tmp_path / "wide.csv", wide=True)[0].votes.n_judges == 2
    table.assign(gold=[1, 0]).to_csv(tmp_path / "wide.csv", index=False)
    reading, label = read(tmp_path / "wide.csv", wide=True)
    assert (label, reading.votes.n_judges) == ("gold", 2)
    # One that voted in a kept fit is a judge in the next file, too.
    kept = {"judges": ["ann_label"], "columns": {"label": "gold"}}
    request = ReadRequest(votes=tmp_path / "wide.csv", wide=True)
    opened = open_files(*apply_notes(request, kept))
    assert [*opened.table[opened.judge].unique()] == ["ann_label", "ben_label"]
    assert opened.columns["label"] == "gold"
    table.drop(columns="ben_label").to_csv(tmp_path / "wide.csv", index=False)
    again = open_files(*apply_notes(request, {"judges": ["ann_label"]}))
    assert [*again.table[again.judge].unique()] == ["ann_label"]


def test_labels_may_name_the_item_in_their_own_way(tmp_path: Path) -> None:
    votes = pd.DataFrame({"item": range(4), "judge": "j", "vote": [0, 1, 1, 0]})
    votes.to_csv(tmp_path / "votes.csv", index=False)
    gold = pd.DataFrame({"sample_key": range(4), "human": [0, 1, 0, 1]})
    gold.to_csv(tmp_path / "two.csv", index=False)
    opened = open_files(ReadRequest(votes=tmp_path / "votes.csv", labels=tmp_path / "two.csv"))
    assert opened.labels is not None
    assert (opened.labels.item, opened.labels.label) == ("sample_key", "human")
    three = gold.assign(note="x")
    three.to_csv(tmp_path / "three.csv", index=False)
    assert read(tmp_path / "votes.csv", tmp_path / "three.csv")[0].opened.notes == (
        "Columns of three.csv: item = 'sample_key', label = 'human'; the item column is detected by its "
        "values, which are items of the votes.",
    )
    three.assign(note=range(4)).to_csv(tmp_path / "three.csv", index=False)
    with pytest.raises(JudgeBayesError, match=r"three.csv' is the item\?.*the votes, 'item'"):
        read(tmp_path / "votes.csv", tmp_path / "three.csv")


@pytest.mark.parametrize("wide", [False, True])
def test_the_row_of_one_odd_vote_among_many_is_named(tmp_path: Path, wide: bool) -> None:
    votes: list[object] = [0, 1] * 40
    votes[61] = "maybe"
    table = pd.DataFrame({"item": range(80), ("judge one" if wide else "vote"): votes})
    table.to_csv(tmp_path / "v.csv", index=False)
    with pytest.raises(
        JudgeBayesError,
        match=r"1 of 80 votes are not one of 0, 1: 'maybe' 1 \(the first in row 63\)",
    ):
        read(tmp_path / "v.csv", wide=wide)


def test_labels_of_another_scale_are_blamed_and_not_the_votes(tmp_path: Path) -> None:
    pd.DataFrame({"item": range(6), "vote": [0, 1] * 3}).to_csv(tmp_path / "v.csv", index=False)
    pd.DataFrame({"item": range(3), "label": [0, 5, 1]}).to_csv(tmp_path / "g.csv", index=False)
    with pytest.raises(
        JudgeBayesError,
        match=r"Row 3 of the label column 'label' contains 5, but the votes are 0, 1",
    ):
        read(tmp_path / "v.csv", tmp_path / "g.csv")


def test_a_wide_table_keeps_one_row_per_item_of_its_other_columns() -> None:
    table = pd.DataFrame(
        {"item": list("aab"), "gpt": [1, 0, 1], "claude": [1, 1, 0], "model": list("xxy")}
    )
    with pytest.raises(JudgeBayesError, match=r"Rows 1 and 2 are the same vote .*repeats=true"):
        jb.read(table, wide=True, ignore="model")
    data = jb.read(table, wide=True, ignore="model", repeats=True)
    assert np.asarray(data.votes.index).tolist() == [[[1, 0], [1, 1]], [[1, -1], [0, -1]]]
    names, of_item = generators_of(data, "model")
    assert (names, of_item.tolist()) == (["x", "y"], [0, 1])
    assert "model" not in data.opened.table
