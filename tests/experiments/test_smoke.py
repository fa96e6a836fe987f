"""Every experiment runs in its smoke version: on twins in CI, from the wheel; on real votes by hand."""

from pathlib import Path

import pandas as pd
import pytest
from report.test_report import check as check_page
from typer.testing import CliRunner

from judgebayes.cli import app
from judgebayes.experiments import matrix
from judgebayes.experiments.core import SMOKE_SPLITS, Experiment, Run, experiments

ALL = list(experiments())


@pytest.fixture(scope="module")
def shared() -> Run:
    return Run(smoke=True)


@pytest.fixture(scope="module")
def shared_real(data: object) -> Run:
    return Run(data=data, smoke=True)


def check(experiment: Experiment, run: Run) -> None:
    output = experiment.run(run)  # `Output` looks at the table
    for figure in output.figures.values():
        figure.canvas.draw()


def name(experiment: Experiment) -> str:
    return f"{experiment.paper}/{experiment.name}"


@pytest.mark.slow  # CI runs them all, as a user would: `judgebayes reproduce --smoke`
@pytest.mark.parametrize("experiment", [e for e in ALL if e.twins], ids=name)
def test_on_twins(experiment: Experiment, shared: Run) -> None:
    check(experiment, shared)


@pytest.mark.slow
@pytest.mark.parametrize("experiment", [e for e in ALL if e.needs and not e.twins], ids=name)
def test_on_real_votes(experiment: Experiment, shared_real: Run) -> None:
    check(experiment, shared_real)


@pytest.mark.slow
@pytest.mark.parametrize("experiment", [e for e in ALL if e.needs and e.twins], ids=name)
def test_on_real_votes_too(experiment: Experiment, shared_real: Run) -> None:
    check(experiment, shared_real)


def test_the_command_writes_results_and_says_what_it_did_not_run(tmp_path: Path) -> None:
    paper = "distribution-calibrated"
    result = CliRunner().invoke(
        app,
        [
            "reproduce",
            f"{paper}/audit-published",
            f"{paper}/fig2",
            "--twins",
            "--smoke",
            "--out",
            str(tmp_path / "r"),
        ],
    )
    assert result.exit_code == 0, result.output
    assert f"embedded twins only, {SMOKE_SPLITS} splits, seed 0" in result.output
    title = next(e.title for e in ALL if name(e) == f"{paper}/audit-published")
    assert result.output.index(f"  {title}\n") < result.output.index(f"/2 {title}: ")
    assert "not run" in result.output
    assert "needs rb2_k8_scores" in result.output
    assert (tmp_path / "r" / paper / "audit-published.md").exists()
    assert (tmp_path / "r" / "index.md").exists()
    page = (tmp_path / "r" / "index.html").read_text()
    check_page(page)
    assert f"judgebayes reproduce {paper}/audit-published {paper}/fig2" in page
    assert f"{paper}/fig2 needs rb2_k8_scores" in page
    assert "Claims" in result.output
    claims = pd.read_csv(tmp_path / "r" / "claims.csv")
    assert set(claims["table"]) == {"audit-published"}
    assert claims["statement"].notna().all()


def test_a_run_ends_with_one_table_of_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [e for e in ALL if e.name == "audit-published"]
    assert len(few) == 3
    monkeypatch.setattr("judgebayes.cli.reproducing.find", lambda what: few)
    monkeypatch.setenv("COLUMNS", "400")
    args = ["reproduce", "--twins", "--smoke", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    table = result.output[result.output.index("\nClaims") :]
    assert all(head in table for head in matrix.SUMMARY_HEAD)
    claims = pd.read_csv(tmp_path / "claims.csv", keep_default_na=False)
    summary = pd.read_csv(tmp_path / "summary.csv", keep_default_na=False)
    assert {name.partition("/")[0] for name in summary["result"]} == set(claims["paper"])
    for row in summary.itertuples():
        own = claims[(claims["paper"] + "/" + claims["table"] == row.result)]
        own = own[own["claim"] == row.kind]
        for grade, count in own["grade"].value_counts().items():
            assert f"{grade} {count}" in row.outcome
        assert row.result in table
    page = (tmp_path / "index.html").read_text()
    check_page(page)
    assert 'href="claims.csv"' in page
