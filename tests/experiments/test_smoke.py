"""Every experiment runs in its smoke version: on twins in CI, from the wheel; on real votes by hand."""

from pathlib import Path

import pandas as pd
import pytest
from report.test_report import check as check_page
from runner import CliRunner

from judgebayes.cli import app
from judgebayes.experiments.core import SMOKE_SPLITS, Experiment, Run, experiments

ALL = list(experiments())


@pytest.fixture(scope="module")
def shared_real(data: object) -> Run:
    return Run(data=data, smoke=True)


def name(experiment: Experiment) -> str:
    return f"{experiment.paper}/{experiment.name}"


@pytest.mark.slow
@pytest.mark.parametrize("experiment", [e for e in ALL if e.needs], ids=name)
def test_on_real_votes(experiment: Experiment, shared_real: Run) -> None:
    output = experiment.run(shared_real)  # `Output` looks at the table
    assert set(output.table["paper"]) == {experiment.paper}
    assert set(output.table["table"]) == {experiment.name}
    for figure in output.figures.values():
        figure.canvas.draw()


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
