"""Labels of several annotators in files: reading, merging, errors."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import judgebayes as jb
from judgebayes.errors import JudgeBayesError
from judgebayes.workflow.data import Study

VOTES = pd.DataFrame(
    {
        "item": np.repeat(list("abcde"), 2),
        "judge": ["one", "two"] * 5,
        "vote": ["yes", "no", "yes", "yes", "no", "no", "yes", "no", "no", "yes"],
    }
)
LABELS = pd.DataFrame(
    [
        *(("a", "ann", "yes"), ("a", "ben", "yes"), ("b", "ann", "yes"), ("b", "ben", "no")),
        *(("c", "ann", "no"), ("c", "ben", "yes"), ("c", "eve", "no"), ("d", "ben", "no")),
    ],
    columns=["item", "annotator", "label"],
)


def labels_of(data: Study) -> dict[str, str]:
    items = data.items.dropna(subset=["label"])
    return dict(zip(items["item"], items["label"], strict=True))


def merged(how: str, labels: pd.DataFrame = LABELS, **more: str) -> dict[str, str]:
    return labels_of(jb.read(VOTES, labels, labels_merge=how, **more))


@pytest.mark.parametrize(
    ("how", "adjudicator", "expected"),
    [
        ("majority", None, {"a": "yes", "c": "no", "d": "no"}),
        ("adjudicated", None, {"a": "yes", "d": "no"}),
        ("adjudicated", "eve", {"a": "yes", "c": "no", "d": "no"}),
        ("majority", "ben", {"a": "yes", "b": "no", "c": "yes", "d": "no"}),
    ],
)
def test_each_way_of_merging(how: str, adjudicator: str | None, expected: dict[str, str]) -> None:
    more = {} if adjudicator is None else {"adjudicator": adjudicator}
    assert merged(how, **more) == expected


def test_different_labels_are_an_error_that_names_the_option() -> None:
    with pytest.raises(JudgeBayesError, match="--set labels_merge=majority, adjudicated or noisy"):
        jb.read(VOTES, LABELS)
    same = LABELS[LABELS["item"] == "a"]
    assert labels_of(jb.read(VOTES, same)) == {"a": "yes"}


def test_a_column_per_annotator_in_either_file(tmp_path: Path) -> None:
    wide = LABELS.pivot_table(index="item", columns="annotator", values="label", aggfunc="first")
    wide = wide.reset_index()
    three = {"label": "ann,ben,eve", "adjudicator": "eve"}
    expected = merged("adjudicated", adjudicator="eve")
    assert merged("adjudicated", wide, **three) == expected
    assert (
        labels_of(jb.read(VOTES.merge(wide, how="left"), labels_merge="adjudicated", **three))
        == expected
    )
    table = VOTES.pivot_table(index="item", columns="judge", values="vote", aggfunc="first")
    table = table.reset_index().merge(wide, how="left")
    table.to_csv(tmp_path / "wide.csv", index=False)
    data = jb.read(tmp_path / "wide.csv", wide=True, labels_merge="adjudicated", **three)
    assert labels_of(data) == expected
    assert list(data.judges["judge"]) == ["one", "two"]


def test_names_of_annotator_columns_and_none() -> None:
    for name in ("Rater", "labeller", "person"):
        assert merged("majority", LABELS.rename(columns={"annotator": name}))["c"] == "no"
    other = LABELS.rename(columns={"annotator": "who"})
    assert merged("majority", other, annotator="who")["c"] == "no"
    unnamed = jb.read(VOTES, LABELS.drop(columns="annotator"), labels_merge="majority")
    assert labels_of(unnamed) == merged("majority")
    assert any("no column of annotators" in line for line in unnamed.sentences)


def test_errors() -> None:
    def refused(match: str, labels: pd.DataFrame | None = LABELS, **options: str) -> None:
        with pytest.raises(JudgeBayesError, match=match):
            jb.read(VOTES, labels, **options)

    refused("labels_merge 'vote' is unknown", labels_merge="vote")
    refused("adjudicator is used with --set labels_merge", adjudicator="eve")
    refused("no annotator 'Eve' in column 'annotator'", labels_merge="majority", adjudicator="Eve")
    nameless = LABELS.drop(columns="annotator")
    refused("no column of annotators", nameless, labels_merge="majority", adjudicator="eve")
    twice = pd.concat([LABELS, pd.DataFrame([("a", "ann", "no")], columns=LABELS.columns)])
    refused("Annotator 'ann' gives item 'a' more than one label", twice, labels_merge="majority")
    refused("No item has two labels", LABELS.drop_duplicates("item"), labels_merge="noisy")
    refused("there are none", None, labels_merge="majority")
    with pytest.raises(JudgeBayesError, match="a column per annotator"):
        jb.read(VOTES.assign(label="yes"), labels_merge="majority")
    odd = LABELS.assign(label=[*LABELS["label"][:-1], "maybe"])
    refused("contains 'maybe'", odd, labels_merge="majority")


def test_the_labels_of_a_saved_fit_are_no_judges(tmp_path: Path) -> None:
    votes, labels = noisy_data()
    wide = labels.pivot_table(index="item", columns="annotator", values="label").reset_index()
    table = votes.pivot_table(index="item", columns="judge", values="vote").reset_index()
    table = table.merge(wide, how="left")
    table.to_csv(tmp_path / "wide.csv", index=False)
    fit = jb.calibrate(
        tmp_path / "wide.csv",
        wide=True,
        label="ann,ben",
        labels_merge="noisy",
        method="one-coin",
        splits=2,
    )
    jb.save(fit, tmp_path / "fit.json")
    again = jb.apply(tmp_path / "fit.json", tmp_path / "wide.csv")
    assert list(again.coding.judges) == ["x", "y", "z"]


def noisy_data(rate: float = 0.1) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    valid = rng.random(240) < 0.7
    items = [f"i{n}" for n in range(240)]
    right = rng.random((240, 3)) < 0.85
    vote = np.where(right, valid[:, None], ~valid[:, None]).astype(int)
    table = pd.DataFrame(vote, columns=list("xyz")).assign(item=items)
    votes = table.melt("item", var_name="judge", value_name="vote")
    votes["generator"] = np.where(votes["item"].isin(items[:120]), "old", "new")
    votes["difficulty"] = np.where(votes["item"].str[-1].isin(list("02468")), "easy", "hard")
    given = valid[:120, None] ^ (rng.random((120, 2)) < rate)
    labels = pd.DataFrame(given.astype(int), columns=["ann", "ben"]).assign(item=items[:120])
    return votes, labels.melt("item", var_name="annotator", value_name="label")


def test_calibrate_and_precision_count_wrong_labels() -> None:
    votes, labels = noisy_data()
    data = jb.read(votes, labels, labels_merge="noisy")
    assert 0.002 < data.label_noise < 0.05
    result = jb.calibrate(data, method="one-coin", splits=2)
    assert result.choice.label_noise == data.label_noise
    assert any("labels are assumed to be wrong" in line for line in result.sentences)
    own = jb.calibrate(data, method="one-coin", splits=2, label_noise=0.2)
    assert own.choice.label_noise == 0.2
    counted = jb.precision(data).shares.set_index("generator").loc["old"]
    assert counted["high"] - counted["low"] > 0.01
    strata = jb.precision(data, method="strata")
    assert any("takes the merged labels as right" in line for line in strata.sentences)
    majority = jb.read(votes, labels, labels_merge="majority")
    assert majority.log_likelihood is None
    assert majority.label_noise == 0
    assert any("the results do not count this" in line for line in majority.sentences)
