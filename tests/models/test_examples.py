"""The scripts of the pages on models run with NumPyro and ArviZ alone, and ArviZ names their axes."""

import runpy
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "docs" / "models").glob("*.py"))
AXES = {"item", "judge", "class", "vote", "level", "component", "generator", "mean_of", "repeat"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_runs_and_its_axes_have_names(script: Path) -> None:
    fit = runpy.run_path(str(script))["main"](samples=20)
    for group in ("posterior", "log_likelihood", "observed_data"):
        for name, values in fit[group].data_vars.items():
            assert set(values.dims) - {"chain", "draw"} <= AXES, (group, name)
    assert "posterior_predictive" in fit
