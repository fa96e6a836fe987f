"""Every method of `precision`: against the library's own function, its columns, and what it refuses."""

import json

import jax
import numpy as np
import pandas as pd
import pytest

import judgebayes as jb
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.significance import interval, success_rate
from judgebayes.generators import count_votes, rogan_gladen

NAMES = ("alpha", "beta", "gamma")
JUDGES = ("one", "two", "three")
ITEMS = 60


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Votes on three generators, and labels of all items."""
    rng = np.random.default_rng(2)
    rows, gold = [], []
    for name, share in zip(NAMES, (0.8, 0.7, 0.5), strict=True):
        for i in range(ITEMS):
            label = int(rng.random() < share)
            gold.append((f"{name} {i}", label))
            votes = np.where(rng.random(3) < 0.85, label, 1 - label)
            rows += [(f"{name} {i}", name, j, v) for j, v in zip(JUDGES, votes, strict=True)]
    columns = ["item", "generator", "judge", "vote"]
    return pd.DataFrame(rows, columns=columns), pd.DataFrame(gold, columns=["item", "label"])


@pytest.fixture(scope="module")
def most(tables: tuple[pd.DataFrame, pd.DataFrame]) -> pd.DataFrame:
    """The labels of all items of two generators."""
    return tables[1][~tables[1]["item"].str.startswith("gamma")]


def by_name(result: jb.Precision, column: str = "estimate") -> np.ndarray:
    return result.shares.set_index("generator").loc[list(NAMES), column].to_numpy()


def test_rules_are_those_of_the_library_and_have_no_interval(
    tables: tuple[pd.DataFrame, pd.DataFrame], most: pd.DataFrame
) -> None:
    result = jb.precision(tables[0], most, method="rogan-gladen")
    data = result.data
    votes, labels = data.votes, data.labels
    place = np.array([NAMES.index(str(i).split()[0]) for i in data.coding.items])
    with jax.enable_x64(True):
        counts = count_votes(votes, labels, place, 3)
        expected = rogan_gladen(counts)
    np.testing.assert_allclose(by_name(result), expected, atol=1e-9)
    assert list(result.shares) == ["generator", "estimate", "raw mean", "items", "labelled"]
    assert set(result.to_dict()["tables"]["generators"][0]) == set(result.shares)
    assert "exact" not in " ".join(result.sentences)


def test_own_labels_give_intervals_where_there_are_enough(
    tables: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    votes, labels = tables
    few = pd.concat([labels[:ITEMS], labels[ITEMS : ITEMS + 4]])
    result = jb.precision(votes, few, method="labels-only")
    table = result.shares.set_index("generator")
    known = labels["label"].to_numpy()[:ITEMS]
    theirs = interval(success_rate("labels", 0.0 * known, known))
    assert tuple(table.loc["alpha", ["estimate", "low", "high"]]) == pytest.approx(theirs)
    assert table.loc["beta", "estimate"] == few["label"][ITEMS:].mean()
    assert np.isnan(table.loc["beta", "low"])
    assert np.isnan(table.loc["gamma", "estimate"])
    assert table["P(better than next)"].isna().all()
    assert (table["order settled"] != "yes").all()
    said = " ".join(result.sentences)
    assert "Of 'beta': no interval, because a normal one needs at least 5" in said
    assert "Of 'gamma': no label, so no estimate" in said
    row = json.loads(json.dumps(result.to_dict()))["tables"]["generators"][-1]
    assert row["generator"] == "gamma"
    assert row["estimate"] is row["low"] is row["P(better than next)"] is None
    ppi = jb.precision(votes, labels[::2], method="ppi").shares
    assert (ppi["low"] < ppi["estimate"]).all()
    assert (ppi["estimate"] < ppi["high"]).all()


def test_refusals_name_what_would_be_right(
    tables: tuple[pd.DataFrame, pd.DataFrame], most: pd.DataFrame
) -> None:
    votes = tables[0]
    with pytest.raises(JudgeBayesError, match="--method 'best' is unknown"):
        jb.precision(votes, most, method="best")
    for name in ("rogan-gladen", "ppi"):
        with pytest.raises(JudgeBayesError, match="learns from labels"):
            jb.precision(votes, method=name)
    grouped = votes.assign(group=votes["item"].str.split().str[1])
    for options in ({"target": "these"}, {"group": "group"}):
        said = jb.precision(grouped, most, method="rogan-gladen", **options).sentences
        assert any("--target and --group" in line and "no intervals" in line for line in said)
    plain = jb.precision(votes, most, method="rogan-gladen").sentences
    assert not any("no intervals" in line for line in plain)


def test_without_labels_only_the_raw_mean_is_given(
    tables: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    result = jb.precision(tables[0])
    assert list(result.shares) == ["generator", "raw mean", "items", "labelled"]
    raw = tables[0].groupby("generator")["vote"].mean()
    np.testing.assert_allclose(by_name(result, "raw mean"), raw[list(NAMES)])
    assert result.shares["raw mean"].is_monotonic_decreasing
    assert "not corrected for the judges' errors" in " ".join(result.sentences)
    assert "--next 50" in " ".join(result.sentences)
    proposed = jb.precision(tables[0], next_labels=9)
    assert len(proposed.tables["next"]) == 9
    corrected = jb.precision(tables[0], method="panel")
    assert (corrected.shares["low"] < corrected.shares["high"]).all()
    assert (corrected.shares["order settled"] != "yes").all()
    assert "intervals only reflect the votes and the priors" in " ".join(corrected.warnings)


def test_uninformative_judges_are_named(
    tables: tuple[pd.DataFrame, pd.DataFrame], most: pd.DataFrame
) -> None:
    # Every judge calls 4 of 5 items valid, of the valid items and of the invalid ones.
    items = [f"{name} {i}" for name in NAMES for i in range(200)]
    gold = pd.DataFrame({"item": items, "label": [int(i % 10 > 2) for i in range(600)]})
    place = gold.groupby("label").cumcount()
    blind = pd.concat(
        gold.assign(judge=judge, vote=((place + k) % 5 > 0).astype(int))
        for k, judge in enumerate(JUDGES)
    )
    blind = blind.assign(generator=blind["item"].str.split().str[0]).drop(columns="label")
    known = gold[:400]
    result = jb.precision(blind, known)
    assert "hardly tell valid from invalid items: with probability 0." in " ".join(result.warnings)
    assert "reversed" not in " ".join(result.warnings)
    simple = jb.precision(blind, known, method="rogan-gladen")
    assert simple.shares["estimate"].isna().all()
    assert "not identified" in " ".join(simple.sentences)
    gamma = result.shares.set_index("generator").loc["gamma"]
    assert gamma["high"] - gamma["low"] > 0.2
    assert "hardly tell" not in " ".join(jb.precision(tables[0], most).warnings)


def test_labels_that_contradict_the_other_generators_are_said(
    tables: tuple[pd.DataFrame, pd.DataFrame], most: pd.DataFrame
) -> None:
    gold = tables[1][tables[1]["item"].str.startswith("gamma")].head(24)
    right = jb.precision(tables[0], pd.concat([most, gold]))
    assert "contradict" not in " ".join(right.warnings)
    wrong = jb.precision(tables[0], pd.concat([most, gold.assign(label=0)]))
    said = " ".join(wrong.warnings)
    assert "The labels of 'gamma' contradict what the other generators predict: 0 % of them" in said
    assert "'alpha'" not in said
    assert "'beta'" not in said
    low, high = (
        np.interp(level, wrong.fit.levels, wrong.fit.held_out[2]) for level in (0.05, 0.95)
    )
    assert f"{100 * low:.0f} % to {100 * high:.0f} % of its items were expected" in said
