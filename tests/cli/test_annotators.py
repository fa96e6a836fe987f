"""Every command that reads labels merges those of several annotators."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from judgebayes.cli import app
from judgebayes.cli.requests import PosteriorRequest
from judgebayes.cli.sampling import read_data
from judgebayes.workflow import ensembling
from judgebayes.workflow.options import Annotators, Columns, EnsembleRequest, ReadingOptions


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("annotators")
    rng = np.random.default_rng(0)
    valid = rng.random(90) < 0.6
    right = rng.random((90, 3)) < 0.85
    table = pd.DataFrame(np.where(right, valid[:, None], ~valid[:, None]).astype(int))
    table = table.assign(item=[f"i{n}" for n in range(90)], kind=np.arange(90) % 2)
    votes = table.melt(["item", "kind"], var_name="judge", value_name="vote")
    votes["generator"] = np.where(votes["item"].isin(table["item"][:45]), "old", "new")
    votes.to_csv(folder / "votes.csv", index=False)
    given = valid[:60, None] ^ (rng.random((60, 2)) < 0.1)
    labels = pd.DataFrame(given.astype(int), columns=["ann", "ben"]).assign(item=table["item"][:60])
    labels = labels.melt("item", var_name="rater", value_name="label")
    labels.to_csv(folder / "labels.csv", index=False)
    return folder / "votes.csv", folder / "labels.csv"


def slow(command: list[str], said: str) -> object:
    return pytest.param(command, said, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ["calibrate", "--method", "best-constant", "--splits", "2"],
            "labels are assumed to be wrong",
        ),
        (["report", "--method", "best-constant", "--splits", "2"], "The report is in"),
        (["diagnose", "--by", "kind"], "TPR and TNR by 'kind'"),
        slow(["ensemble", "--k", "3"], "The split curve counts that an estimated"),
        slow(["precision"], "the interval is that of wrong labels"),
        slow(["posterior", "--model", "one-coin", "--draws", "20", "--warmup", "20"], "R-hat"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command(
    files: tuple[Path, Path],
    command: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    name, *options = command
    arguments = [
        name,
        str(files[0]),
        "--labels",
        str(files[1]),
        "--labels-merge",
        "noisy",
        *options,
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    assert (
        "have more than one label by 2 annotators ('ann', 'ben'); they disagree on" in result.output
    )
    assert "diagnose --by count this; other results do not" in result.output
    assert said in result.output


def test_ensemble_and_posterior_read_merged_labels(files: tuple[Path, Path]) -> None:
    votes, labels = files
    merging = Annotators(labels_merge="noisy")
    columns, reading = Columns(task="none", group="none"), ReadingOptions()
    data, words = read_data(
        PosteriorRequest(votes=votes, labels=labels, columns=columns, annotators=merging)
    )
    assert any("they disagree on" in line for line in words)
    ensemble = EnsembleRequest(
        votes=votes, labels=labels, columns=columns, reading=reading, annotators=merging
    )
    same = ensembling._read_files(ensemble)
    assert (same.labels == data.labels).all()
    assert 40 < (same.labels >= 0).sum() < 60
