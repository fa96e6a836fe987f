"""`judgebayes ensemble` on files of the shapes that users have."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from few_draws import with_few_draws
from runner import CliRunner, Result

from judgebayes.cli import app
from judgebayes.errors import JudgeBayesError


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
    assert "groups of column 'source', and 40 labelled items in 5 of them" in said
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


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--judges", "0,eve"], "--judges: there is no judge 'eve'; choose one of: 0, 1"),
        (["--judges", "0,0"], "names a judge twice"),
        (["--ties", "eve"], "choose one of: random, abstain"),
        (["--ties", "random", "--decision", "median"], "no effect on a median"),
        (["--decision", "mean"], "--decision 'mean' is unknown; choose one of"),
        (["--k", "2"], "--ties states how ties are decided"),
    ],
)
def test_bad_panels_get_their_sentence(
    files: tuple[Path, Path, np.ndarray], args: list[str], sentence: str
) -> None:
    assert sentence in str(run(files[0], "--labels", files[1], *args).exception)
