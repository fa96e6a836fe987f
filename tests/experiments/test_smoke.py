"""Every experiment runs in its smoke version: on twins in CI, from the wheel; on real votes by hand."""

from pathlib import Path

import pytest
from report.test_report import check as check_page
from typer.testing import CliRunner

from judgebayes.cli import app
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
    assert "ours" not in result.output


def test_without_a_name_the_matrix_of_all_papers_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [e for e in ALL if e.name == "audit-published"]
    assert len(few) == 3
    monkeypatch.setattr("judgebayes.cli.reproducing.find", lambda what: few)
    monkeypatch.setenv("COLUMNS", "160")
    args = ["reproduce", "--twins", "--smoke", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    matrix = result.output[result.output.index("\ndistribution-calibrated") :]
    papers = ["distribution-calibrated", "calibrate-dont-curate", "betaconform"]
    assert [line.strip() for line in matrix.splitlines() if line.strip() in papers] == papers
    assert matrix.count("Audit: ") == 3
    assert all(head in matrix for head in ("result", "grades", "ours", "paper", "audit"))
    assert "reproduced" in matrix
    check_page((tmp_path / "index.html").read_text())
