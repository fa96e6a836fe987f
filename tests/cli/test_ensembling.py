"""`judgebayes ensemble` on files of the shapes that users have."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from few_draws import FEW, with_few_draws
from typer.testing import CliRunner, Result

from judgebayes.cli import app
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import NUTS, NormalAtMode
from judgebayes.majority import Thinning, counts_of
from judgebayes.workflow.ensembling import sizes_of


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, np.ndarray]:
    rng = np.random.default_rng(3)
    chance = np.where(rng.random(80) < 0.25, rng.beta(1, 3, 80), rng.beta(12, 1.5, 80))
    label = rng.integers(0, 2, 80)
    right = rng.random((80, 5)) < chance[:, None]
    vote = np.where(right, label[:, None], 1 - label[:, None])
    item, judge = np.indices(vote.shape)
    long = {"item": item.ravel(), "judge": judge.ravel(), "vote": vote.ravel()}
    pd.DataFrame(long).to_csv(tmp_path / "v.csv", index=False)
    pd.DataFrame({"item": range(40), "label": label[:40]}).to_csv(tmp_path / "l.csv", index=False)
    return tmp_path / "v.csv", tmp_path / "l.csv", right[:40].sum(1)


@pytest.fixture
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    with_few_draws(monkeypatch)


def run(*args: object) -> Result:
    result = CliRunner().invoke(app, ["ensemble", *(str(a) for a in args)])
    if result.exception is not None and not isinstance(result.exception, JudgeBayesError):
        raise result.exception
    return result


@pytest.mark.usefixtures("_few_draws")
@pytest.mark.parametrize(
    "few",
    [
        FEW,
        pytest.param(NUTS(draws=200, warmup=200, chains=2), marks=pytest.mark.slow),
    ],
)
def test_the_table_the_labels_to_go_and_the_plot(
    files: tuple[Path, Path, np.ndarray],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    few: NormalAtMode | NUTS,
) -> None:
    monkeypatch.setattr("judgebayes.workflow.ensembling.NUTS", lambda: few)
    votes, labels, correct = files
    out, plot = tmp_path / "t.csv", tmp_path / "p.png"
    chosen = tmp_path / "next.csv"
    said = run(
        *(
            votes,
            "--labels",
            labels,
            "--k",
            "1:9",
            "--out",
            out,
            "--plot",
            plot,
            "--target",
            "these",
        ),
        *("--next", 25, "--next-out", chosen),
    ).output
    assert "Label next: 25 item(s)" in said
    assert "5 more are not shown" in said
    proposed = pd.read_csv(chosen)
    assert list(proposed) == ["item", "label"]
    assert set(proposed["item"]) <= set(range(40, 80))
    assert proposed["item"].is_unique
    assert "40 of 80 items are labelled, with 5 votes each" in said
    assert "extrapolated" in said
    assert "No item has more than 5 votes" in said
    assert "more." in said
    table = pd.read_csv(out)
    free = table[table["method"] == "model-free"].set_index("votes")
    fit = Thinning().fit(counts_of(correct, 5)).curve((1, 3, 5), population=80)
    np.testing.assert_allclose(free.loc[[1, 3, 5], "error"], fit.error, atol=1e-9)
    np.testing.assert_allclose(free.loc[[1, 3, 5], "high"], fit.high, atol=1e-9)
    assert free.loc[[7, 9], "error"].isna().all()
    mixture = table[table["method"] == "mixture"].set_index("votes")
    assert (mixture["low"] < mixture["high"]).all()
    assert abs(mixture.loc[5, "error"] - free.loc[5, "error"]) < 0.05
    assert plot.stat().st_size > 3000


@pytest.mark.usefixtures("_few_draws")
def test_groups_widen_the_intervals_and_both_targets_are_named(
    files: tuple[Path, Path, np.ndarray], tmp_path: Path
) -> None:
    votes, labels, correct = files
    # Groups of items with the same number of correct votes.
    group = np.append(np.argsort(np.argsort(correct, kind="stable")) // 8, np.arange(40) + 5)
    table = pd.read_csv(votes)
    table.assign(source=group[table["item"]]).to_csv(votes, index=False)

    def interval(*args: object) -> tuple[str, float]:
        said = run(votes, "--labels", labels, "--k", "5", "--out", tmp_path / "t.csv", *args).output
        row = pd.read_csv(tmp_path / "t.csv").query("method == 'model-free'").iloc[0]
        return said, row["high"] - row["low"]

    said, alone = interval()
    assert "on more items like these" in said
    said, grouped = interval("--group", "source")
    assert "40 labelled items are in 5 groups of column 'source'" in said
    assert grouped > 1.5 * alone
    said, these = interval("--group", "source", "--target", "these")
    assert "on these items" in said
    assert alone < these < grouped
    refused = run(votes, "--labels", labels, "--target", "all").exception
    assert "--target 'all' is unknown; choose one of: these, more" in str(refused)


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--k", "2,4"], "--k '2,4' must name odd"),
        (["--k", "x:y"], "for example 1:21"),
        (["--level", "2"], "--level is 2.0; it must be"),
        (["--target-width", "0"], "must be between 0 and 1"),
    ],
)
def test_bad_requests_get_their_sentence(
    files: tuple[Path, Path, np.ndarray], args: list[str], sentence: str
) -> None:
    result = run(files[0], "--labels", files[1], *args)
    assert isinstance(result.exception, JudgeBayesError)
    assert sentence in str(result.exception)


def test_labels_are_needed(files: tuple[Path, Path, np.ndarray]) -> None:
    assert "is estimated from labels" in str(run(files[0]).exception)


def test_numbers_of_votes_are_read() -> None:
    assert sizes_of(None, 6) == (1, 3, 5)
    assert sizes_of("1:21", 6) == tuple(range(1, 22, 2))
    assert sizes_of("11", 6) == (11,)


def ternary(folder: Path, with_ties: bool) -> tuple[Path, Path]:
    """Write votes of five judges on pairs, A, tie or B, and labels of half of the pairs."""
    rng = np.random.default_rng(5)
    truth = rng.choice(["A", "tie", "B"] if with_ties else ["A", "B"], 80)
    rows = [
        (i, judge, truth[i] if rng.random() < 0.6 else rng.choice(["A", "tie", "B"]))
        for i in range(80)  # as many as in `files`, for which the same programs serve
        for judge in ("ann", "ben", "cy", "di", "eve")
        if rng.random() < 0.9
    ]
    votes, labels = folder / "pairs.csv", folder / "truth.csv"
    pd.DataFrame(rows, columns=["item", "judge", "vote"]).to_csv(votes, index=False)
    pd.DataFrame({"item": range(40), "label": truth[:40]}).to_csv(labels, index=False)
    return votes, labels


@pytest.mark.usefixtures("_few_draws")
def test_three_classes_print_the_plurality_and_name_the_papers_figure(tmp_path: Path) -> None:
    said = run(*_with_labels(ternary(tmp_path, with_ties=True)), "--out", tmp_path / "t.csv").output
    assert "Error of a plurality" in said
    assert "less than half of k votes right, P(S < k/2) (P3)" in " ".join(said.split())
    table = pd.read_csv(tmp_path / "t.csv")
    wrong = table.query("quantity == 'error' and votes == 3").set_index("method")["error"]
    half = table.query("quantity == 'less than half right' and votes == 3").set_index("method")
    assert set(wrong.index) == {"split curve", "model-free"}
    assert wrong["model-free"] < half.loc["model-free", "error"]  # 2 of 5 votes can be the most


@pytest.mark.usefixtures("_few_draws")
def test_ties_that_no_label_has_are_votes_for_neither_side(tmp_path: Path) -> None:
    votes, labels = ternary(tmp_path, with_ties=False)
    said = run(*_with_labels((votes, labels)), "--ties", "abstain", "--k", "1:4").output
    assert "No label is 'tie'" in said
    assert "no decision: items on which the votes are tied" in " ".join(said.split())
    by_judge = run(*_with_labels((votes, labels)), "--ties", "ann", "--k", "2").output
    assert "Error of a plurality" in by_judge


@pytest.mark.usefixtures("_few_draws")
def test_a_named_panel_is_compared_with_its_rivals(
    files: tuple[Path, Path, np.ndarray],
) -> None:
    said = run(files[0], "--labels", files[1], "--judges", "0,1,2", "--k", "3").output
    for row in ("0, 1, 2", "all 5 judges", "best single judge", "stacking, fitted on 32 labels"):
        assert row in said


@pytest.mark.usefixtures("_few_draws")
def test_a_median_has_a_distance(tmp_path: Path) -> None:
    files = ternary(tmp_path, with_ties=True)
    said = run(*_with_labels(files), "--decision", "median", "--k", "3,4").output
    assert "Error of a median" in said
    assert "mean distance from the label" in said


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--judges", "0,eve"], "--judges: there is no judge 'eve'; choose one of: 0, 1"),
        (["--judges", "0,0"], "names a judge twice"),
        (["--ties", "eve"], "choose one of: random, abstain, 0"),
        (["--ties", "random", "--decision", "median"], "no effect on a median"),
        (["--decision", "mean"], "--decision 'mean' is unknown; choose one of"),
        (["--k", "2"], "--ties states how ties are decided"),
    ],
)
def test_bad_panels_get_their_sentence(
    files: tuple[Path, Path, np.ndarray], args: list[str], sentence: str
) -> None:
    assert sentence in str(run(files[0], "--labels", files[1], *args).exception)


def _with_labels(files: tuple[Path, Path]) -> tuple[object, ...]:
    return files[0], "--labels", files[1]


def test_a_session_names_the_next_item_and_keeps_the_labels(
    files: tuple[Path, Path, np.ndarray], tmp_path: Path
) -> None:
    votes, session = files[0], tmp_path / "session.jsonl"
    said = run(votes, "--session", session).output
    assert "0 of 80 items are labelled" in said
    item = said.rsplit("Next item: ", 1)[1].strip()
    said = run(votes, "--session", session, "--new-label", f"{item}=1").output
    assert "1 of 80 items are labelled" in said
    assert item in session.read_text()
    wrong = run(votes, "--session", session, "--next", 5)
    assert "no effect with --session" in str(wrong.exception)
