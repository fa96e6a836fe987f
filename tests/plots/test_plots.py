import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from judgebayes.experiments import plots as paper_plots
from judgebayes.experiments.calibrate_dont_curate.selective import AccuracyCurve
from judgebayes.experiments.plots import curves, intervals, reliability_diagrams
from judgebayes.majority import ErrorCurve
from judgebayes.measures.scores import Reliability
from judgebayes.plots import error_curves
from judgebayes.show.tables import judges_figure

TIDY = pd.DataFrame(
    {
        "task": ["t", "t", "u", "u"] * 2,
        "method": ["davidson"] * 4 + ["sc"] * 4,
        "metric": "mae",
        "n": [1, 2, 1, 2] * 2,
        "value": np.linspace(0.2, 0.5, 8),
        "low": np.linspace(0.1, 0.4, 8),
        "high": np.linspace(0.3, 0.6, 8),
    }
)
JUDGES = pd.DataFrame(
    {
        "judge": list("abcd"),
        **{
            f"{name}{end}": np.array([0.9, 0.6, 0.3, np.nan]) + shift
            for name in ("accuracy", "tpr", "tnr")
            for end, shift in (("", 0.0), ("_low", -0.05), ("_high", 0.05))
        },
    }
)
COVERED = pd.DataFrame(
    {
        "interval": ["a", "a", "b", "b"],
        "data": "simulated",
        "level": [0.5, 0.9] * 2,
        "coverage": [0.52, 0.85, 0.5, 0.9],
        "replays": 40,
    }
)
BINS = Reliability(*np.array([[3.0, 0, 5], [0.1, 0, 0.8], [0.2, 0, 0.7]]))
CURVE = AccuracyCurve(np.array([0.1, 0.5, 1.0]), np.array([1.0, 0.9, 0.8]))
P = np.array([[5.0, 1, 0], [1, 6, 2], [0, 2, 7]])


@pytest.fixture(
    params=[
        lambda: curves(TIDY, "n", panel="task", metric="mae", xlabel="n", ylabel="MAE", title="T"),
        lambda: intervals(TIDY, label="task", series="method", xlabel="x", title="T"),
        lambda: intervals(
            TIDY, label="n", series="method", panel="task", xlabel="x", title="T", zero=True
        ),
        lambda: paper_plots.heat_map(
            np.array([[0.1, np.nan], [-0.2, 0.0]]),
            ["a", "b"],
            ["c", "d"],
            xlabel="x",
            ylabel="y",
            title="T",
            colour_label="change",
        ),
        lambda: paper_plots.confusion_matrices(
            {"davidson": P, "sc": P}, ("B", "tie", "A"), title="T"
        ),
        lambda: paper_plots.bars(
            {"t": {"labels": [0.2, 0.3, 0.5], "sc": [0.1, 0.1, 0.8]}},
            ("B", "tie", "A"),
            ylabel="share",
            title="T",
        ),
        lambda: error_curves(
            {
                "x": ErrorCurve(
                    np.array([1, 3]),
                    np.array([0.2, 0.1]),
                    np.array([0.1, 0.05]),
                    np.array([0.3, 0.2]),
                    np.array([False, True]),
                )
            },
        ),
        lambda: paper_plots.distributions(
            {"t": {"actual": np.array([0.2, 0.8]), "x": np.array([0.3, 0.7])}},
            xlabel="x",
            title="T",
        ),
        lambda: paper_plots.scatter(
            {"x": np.array([[0.0, 1.0], [1.0, 2.0]])}, xlabel="x", ylabel="y", title="T"
        ),
        lambda: paper_plots.decision_regions(
            {"sign": lambda counts: 1 + np.sign(counts[:, 2] - counts[:, 0])}, 5, title="T"
        ),
        lambda: judges_figure(JUDGES, 4).draw(),
        lambda: judges_figure(JUDGES.filter(regex="judge|accuracy"), 2).draw(),
        lambda: reliability_diagrams({"t": {"raw": BINS, "beta": BINS}}, title="T"),
        lambda: paper_plots.accuracy_coverage(
            {"t": {"raw": CURVE}, "u": {"raw": CURVE}}, title="T"
        ),
        lambda: paper_plots.coverage_panels(COVERED, title="T"),
    ],
    ids=[
        "curves",
        "intervals",
        "panels",
        "heat",
        "confusion",
        "bars",
        "errors",
        "shares",
        "scatter",
        "regions",
        "judges",
        "accuracies",
        "reliability",
        "coverage",
        "nominal",
    ],
)
def figure(request: pytest.FixtureRequest) -> Figure:
    return request.param()


def test_figures_are_drawn_with_labelled_axes(figure: Figure, tmp_path: object) -> None:
    figure.savefig(tmp_path / "f.png")
    assert (tmp_path / "f.png").stat().st_size > 3000
    assert all(axes.get_xlabel() or axes.get_title() for axes in figure.axes[:1])


def test_all_points_are_in_the_figure() -> None:
    drawn = curves(TIDY, "n", panel="task", metric="mae", xlabel="n", ylabel="m", title="T")
    values = [y for axes in drawn.axes for line in axes.lines for y in line.get_ydata()]
    np.testing.assert_allclose(sorted(values), sorted(TIDY["value"]))
