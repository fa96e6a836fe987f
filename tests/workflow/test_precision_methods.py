"""Every method of `precision`: against the library's own function, its columns, and what it refuses."""

import json
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import judgebayes as jb
from judgebayes.errors import JudgeBayesError
from judgebayes.generators import (
    PrecisionCounts,
    as_published,
    count_votes,
    ensemble_precision,
    ensembles,
    logit_shift,
    rogan_gladen,
    targets,
)
from judgebayes.generators.posterior import FittedGeneratorValidator, GeneratorValidator
from judgebayes.generators.systems import interval, success_rate
from judgebayes.inference import MAP, NUTS
from judgebayes.inference.status import Status
from judgebayes.workflow import precision_methods
from judgebayes.workflow.names import PRECISION_METHODS
from judgebayes.workflow.precision_fits import Points
from judgebayes.workflow.precision_methods import METHODS
from judgebayes.workflow.precision_tables import check_words
from judgebayes.workflow.precision_words import precision_warnings

NAMES = ("alpha", "beta", "gamma")
JUDGES = ("one", "two", "three")
ITEMS = 60


@pytest.fixture(scope="module", autouse=True)
def _few_draws() -> Iterator[None]:
    few = NUTS(draws=200, warmup=200, chains=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(precision_methods.INFERENCES, "nuts", lambda: few)
        yield


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


def test_every_name_is_a_method() -> None:
    assert set(PRECISION_METHODS) == {"auto", *METHODS}


def test_rules_are_those_of_the_library_and_have_no_interval(
    tables: tuple[pd.DataFrame, pd.DataFrame], most: pd.DataFrame
) -> None:
    data = jb.precision(tables[0], most, method="majority").data
    votes, labels = data.read.votes, data.labels
    place = np.array([NAMES.index(str(i).split()[0]) for i in data.read.coding.items])
    with jax.enable_x64(True):
        counts = count_votes(votes, labels, place, 3)
        veto = ensemble_precision(ensembles(votes, "veto"), place, 3)
        worst = np.abs(veto[:, :2] - np.asarray(counts.labelled_precision)[:2]).max(1)
        expected = {
            "majority": ensemble_precision(ensembles(votes, "valid"), place, 3)[1],
            "veto": veto[worst.argmin()],
            "regression-as-published": as_published(targets(counts)).precision,
            "logit-shift": logit_shift(counts),
            "rogan-gladen": rogan_gladen(counts),
        }
    for name, values in expected.items():
        result = jb.precision(tables[0], most, method=name)
        np.testing.assert_allclose(by_name(result), values, atol=1e-9)
        assert list(result.shares) == ["generator", "estimate", "raw mean", "items", "labelled"]
        assert set(result.to_dict()["tables"]["generators"][0]) == set(result.shares)
        assert "exact" not in result.legend


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
    assert "Fewer than 5 valid or 5 invalid labels of 'beta': no interval" in said
    assert "No label of 'gamma': no estimate" in said
    row = json.loads(json.dumps(result.to_dict()))["tables"]["generators"][-1]
    assert row["generator"] == "gamma"
    assert row["estimate"] is row["low"] is row["P(better than next)"] is None
    ppi = jb.precision(votes, labels[::2], method="ppi").shares
    assert (ppi["low"] < ppi["estimate"]).all()
    assert (ppi["estimate"] < ppi["high"]).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "inference"), [("hierarchical", None), ("flat", "nuts"), ("item-level", "laplace")]
)
def test_programs_have_draws_and_their_modes_none(
    method: str,
    inference: str | None,
    tables: tuple[pd.DataFrame, pd.DataFrame],
    most: pd.DataFrame,
) -> None:
    result = jb.precision(tables[0], most, method=method, inference=inference, target="these")
    low, estimate, high = (by_name(result, name) for name in ("low", "estimate", "high"))
    truth = tables[1].groupby(tables[1]["item"].str.split().str[0])["label"].mean()
    np.testing.assert_allclose(estimate[:2], truth[list(NAMES[:2])], atol=1e-9)
    np.testing.assert_allclose(low[:2], high[:2], atol=1e-9)
    assert low[2] < high[2] - 0.05
    assert abs(estimate[2] - truth["gamma"]) < 0.15
    mode = jb.precision(tables[0], most, method=method, inference="map")
    assert "low" not in mode.shares
    assert "order settled" not in mode.shares
    assert np.abs(by_name(mode) - truth[list(NAMES)]).max() < 0.2
    assert "has no interval" in " ".join(mode.sentences)


def test_draws_of_a_sampler_are_thinned_and_a_mode_is_a_point(
    tables: tuple[pd.DataFrame, pd.DataFrame], most: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sampler is replaced by given draws."""
    draws = np.random.default_rng(5).uniform(0.4, 0.6, (500, 3)) + np.array([0.3, 0.1, 0.0])
    asked = []

    def fit(method: GeneratorValidator, counts: PrecisionCounts) -> FittedGeneratorValidator:
        asked.append((method.form, type(method.inference).__name__, counts.valid.shape))
        of_mode = draws[:1] if isinstance(method.inference, MAP) else draws
        return FittedGeneratorValidator({}, jnp.asarray(of_mode), jnp.asarray(0), None)

    monkeypatch.setattr(GeneratorValidator, "fit", fit)
    for method, inference in (("flat", None), ("hierarchical", "nuts"), ("flat", "map")):
        result = jb.precision(tables[0], most, method=method, inference=inference, target="these")
        if inference == "map":
            assert "low" not in result.shares
            np.testing.assert_allclose(by_name(result), draws[0], rtol=1e-6)
        else:
            np.testing.assert_allclose(
                by_name(result, "low"), np.quantile(draws, 0.05, 0), rtol=1e-6
            )
            above = (draws[:, 0] > draws[:, 1]).mean()
            assert result.shares["P(better than next)"][0] == pytest.approx(above)
    assert asked == [("flat", "NUTS", (3,)), ("hierarchical", "NUTS", (3,)), ("flat", "MAP", (3,))]
    fewer = FittedGeneratorValidator({}, jnp.asarray(draws), jnp.asarray(0), None).draws(50)
    np.testing.assert_allclose(np.asarray(fewer)[[0, -1]], draws[[0, -1]], rtol=1e-6)
    assert fewer.shape == (50, 3)


def test_refusals_name_what_would_be_right(
    tables: tuple[pd.DataFrame, pd.DataFrame], most: pd.DataFrame
) -> None:
    votes = tables[0]
    with pytest.raises(JudgeBayesError, match="--method 'best' is unknown"):
        jb.precision(votes, most, method="best")
    with pytest.raises(JudgeBayesError, match="--inference 'vi' is unknown"):
        jb.precision(votes, most, method="flat", inference="vi")
    with pytest.raises(JudgeBayesError, match="choose one of: nuts, map"):
        jb.precision(votes, most, method="flat", inference="laplace")
    for name in ("auto", "strata", "veto", "ppi"):
        with pytest.raises(JudgeBayesError, match="no choice of inference: leave out --inference"):
            jb.precision(votes, most, method=name, inference="nuts")
    for name in ("veto", "regression-as-published", "logit-shift", "rogan-gladen", "ppi"):
        with pytest.raises(JudgeBayesError, match="learns from labels"):
            jb.precision(votes, method=name)
    some = votes[(votes["judge"] != "one") | (votes["generator"] == "alpha")]
    grouped = votes.assign(group=votes["item"].str.split().str[1])
    for options in ({"target": "these"}, {"group": "group"}):
        said = jb.precision(grouped, most, method="veto", **options).sentences
        assert any("--target and --group" in line and "no intervals" in line for line in said)
    assert not any("no intervals" in x for x in jb.precision(votes, most, method="veto").sentences)
    with pytest.raises(JudgeBayesError, match=r"'one' never voted on generator 'beta'.*panel"):
        jb.precision(some, most, method="regression-as-published")


def test_the_program_of_items_cautions_about_generators_without_labels(
    tables: tuple[pd.DataFrame, pd.DataFrame], most: pd.DataFrame
) -> None:
    votes, labels = tables
    few = jb.precision(votes, most, method="item-level", inference="map")
    assert any("No label of 'gamma'" in line and "panel" in line for line in few.sentences)
    some = pd.concat([most, labels[-5:]])
    with_some = jb.precision(votes, some, method="item-level", inference="map")
    assert not any("No label of" in line for line in with_some.sentences)


def test_a_fit_that_did_not_converge_gets_advice_that_the_command_has(
    tables: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    data = jb.precision(tables[0], method="majority").data
    place = np.array([NAMES.index(str(i).split()[0]) for i in data.read.coding.items])
    with jax.enable_x64(True):
        counts = count_votes(data.read.votes, np.full(len(place), -1), place, 3)
        stopped = Points(np.full(3, 0.5), jnp.asarray(int(Status.MAX_STEPS)))
        (line, *_) = precision_warnings(NAMES, JUDGES, counts, stopped)
    assert "had not converged" in line
    assert "--next 50" in line
    assert "max_steps" not in line


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
    corrected = jb.precision(tables[0], method="impression")
    assert (corrected.shares["low"] < corrected.shares["high"]).all()
    assert (corrected.shares["order settled"] != "yes").all()
    assert "the intervals only reflect the priors" in " ".join(corrected.warnings)


def test_pairs_without_intervals_are_ranked_by_their_estimates() -> None:
    rng = np.random.default_rng(3)
    rows = [
        (i, *pair, judge, "A" if rng.random() < 0.8 else "B")
        for i, pair in enumerate([("best", "fair"), ("best", "poor"), ("fair", "poor")] * 20)
        for judge in JUDGES
    ]
    votes = pd.DataFrame(rows, columns=["item", "left", "right", "judge", "vote"])
    result = jb.precision(votes, systems="left,right")
    assert list(result.systems) == ["system", "raw mean win rate"]
    assert list(result.systems["system"]) == ["best", "fair", "poor"]
    assert list(result.shares)[:2] == ["pair", "raw mean"]
    rates = result.shares.set_index("pair")["raw mean"]
    best = (rates["best over fair"] + rates["best over poor"]) / 2
    assert result.systems["raw mean win rate"][0] == pytest.approx(best)
    labels = pd.DataFrame({"item": range(0, 60, 3), "label": ["A", "B"] * 10})
    own = jb.precision(votes, labels, systems="left,right", method="labels-only")
    assert own.systems is None
    assert own.noun == "pair"


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


@pytest.mark.parametrize("case", ["no invalid", "one generator", "one judge", "sparse"])
def test_little_data_give_an_answer_or_advice(
    case: str, tables: tuple[pd.DataFrame, pd.DataFrame], most: pd.DataFrame
) -> None:
    votes, labels = tables[0], most
    if case == "no invalid":
        labels = labels[labels["label"] == 1].groupby(labels["item"].str[0]).head(20)
    elif case == "one generator":
        votes = votes[votes["generator"] == "gamma"]
        labels = tables[1][tables[1]["item"].str.startswith("gamma")][::2]
    elif case == "one judge":
        votes = votes[votes["judge"] == "one"]
    else:  # judges one and two voted on one generator each
        keep = {"one": ["alpha"], "two": ["gamma"], "three": list(NAMES)}
        votes = pd.concat(
            votes[(votes["judge"] == j) & votes["generator"].isin(g)] for j, g in keep.items()
        )
    result = jb.precision(votes, labels, target="these")
    shares = result.shares.set_index("generator")
    truth = tables[1].groupby(tables[1]["item"].str.split().str[0])["label"].mean()
    low, high = shares.loc["gamma", ["low", "high"]]
    said = " ".join(result.warnings)
    assert 0 <= low < high <= 1
    if case == "no invalid":
        assert "No labelled item is invalid" in said
        assert "--next 50" in said
        assert high - low > 0.3
        refused = jb.precision(votes, labels, method="rogan-gladen")
        assert refused.shares["estimate"].isna().all()
    else:
        assert low < truth["gamma"] < high
        assert "reversed" not in said


def test_a_simpler_method_is_named_if_it_clearly_predicts_better() -> None:
    truth = np.array([0.5, 0.6, 0.7, 0.8])

    def table(ours: list[float]) -> pd.DataFrame:
        columns = {
            "labels say": truth,
            "predicted": truth + np.array(ours),
            "raw mean": truth + 0.2,
            "logit shift": truth + np.array([0.01, 0.0, 0.01, 0.01]),
            "Rogan-Gladen": [np.nan, 0.9, 0.9, 0.9],
            "PPI": truth - 0.3,
        }
        return pd.DataFrame(columns)

    clear, missing = check_words(table([0.10, -0.11, 0.09, 0.10]), "generator")
    assert "the logit shift clearly predicts better: use --method logit-shift" in clear
    assert "Mean error in points: predicted 10.0" in clear
    assert "not identified for 1 of 4 generators" in missing
    assert "so few cannot tell" in check_words(table([0.3, 0.0, 0.0, 0.02]), "generator")[0]
    assert "better" not in check_words(table([0.0] * 4), "generator")[0]


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
