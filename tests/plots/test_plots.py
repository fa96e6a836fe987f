import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from judgebayes.experiments import plots as paper_plots
from judgebayes.experiments.calibrate_dont_curate.selective import AccuracyCurve
from judgebayes.experiments.plots import HATCHES
from judgebayes.majority import ErrorCurve
from judgebayes.measures.reliability import Reliability
from judgebayes.plots import style
from judgebayes.plots.calibration import reliability_diagrams
from judgebayes.plots.judges import judge_map
from judgebayes.plots.majority import error_curves
from judgebayes.plots.posteriors import chain_ranks, forest
from judgebayes.plots.series import curves, intervals
from judgebayes.plots.style import colour

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
            title="T",
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
        lambda: judge_map(JUDGES, title="T"),
        lambda: judge_map(JUDGES.filter(regex="judge|accuracy"), title="T"),
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


def test_regions_show_every_count_once() -> None:
    drawn = paper_plots.decision_regions({"tie": lambda c: np.ones(len(c), int)}, 4, title="T")
    shown = sum(len(c.get_offsets()) for c in drawn.axes[0].collections)
    assert shown == 15


def test_ranks_have_a_histogram_above_and_an_ecdf_below() -> None:
    given = np.array([0, 0, 1, 2, 3, 3, 3, 3])
    band = (np.zeros(3, int), np.full(3, 8))
    drawn = paper_plots.ranks({"a": given, "b": given}, 3, band, 2, title="T")
    top, _, bottom, _ = drawn.axes
    assert [bar.get_height() for bar in top.patches] == [3, 5]
    difference = bottom.lines[0].get_ydata()
    np.testing.assert_allclose(difference, [2 / 8 - 1 / 4, 3 / 8 - 2 / 4, 4 / 8 - 3 / 4])


def test_a_method_keeps_its_colour() -> None:
    assert colour("davidson", 0) == colour("davidson", 5)
    assert colour("davidson") != colour("sc")


def test_the_map_names_outlying_judges() -> None:
    axes = judge_map(JUDGES, title="T", named=2).axes[0]
    texts = [text.get_text() for text in axes.texts]
    assert {"a", "c"} <= set(texts)
    assert "b" not in texts


def crowd(at: list[tuple[float, float]]) -> pd.DataFrame:
    """Judges at these TNR and TPR."""
    shares = dict(zip(("tnr", "tpr"), np.transpose(at), strict=True)) | {"accuracy": 0.5}
    ends = {f"{n}{e}": v for n, v in shares.items() for e in ("", "_low", "_high")}
    return pd.DataFrame({"judge": [f"judge {n}" for n in range(len(at))], **ends})


def test_a_name_is_left_out_only_without_space_for_it() -> None:
    # Near the panel's middle, near another judge, at the same place, and in the corners.
    at = [(0.7, 0.7), (0.72, 0.7), (0.9, 0.4), (0.9, 0.4), (1.0, 1.0), (0.0, 0.5)]
    for size in ((6.4, 6.0), (5.0, 4.8)):
        figure = judge_map(crowd(at), title="T", size=size)
        figure.draw_without_rendering()
        ax = figure.axes[0]
        names = {t.get_text(): t.get_window_extent() for t in ax.texts if "judge" in t.get_text()}
        assert sorted(names) == [f"judge {n}" for n in range(len(at))]
        points = ax.transData.transform(at)
        for name, box in names.items():
            assert not any(box.contains(*point) for point in points), name
            assert not any(box.overlaps(b) for other, b in names.items() if other != name), name
            assert ax.bbox.extents[2] + 1 >= box.x1 > box.x0 >= ax.bbox.extents[0] - 1
    alike = judge_map(crowd([(0.5, 0.5)] * 12), title="T", named=12)
    assert 2 <= len([t for t in alike.axes[0].texts if "judge" in t.get_text()]) < 12


def test_empty_bins_are_not_drawn() -> None:
    drawn = reliability_diagrams({"t": {"raw": BINS}}, title="T")
    points = np.concatenate([c.get_offsets() for c in drawn.axes[0].collections])
    np.testing.assert_allclose(points, [[0.1, 0.2], [0.8, 0.7]])


def test_ranks_of_chains_average_to_one_and_show_a_deviating_chain() -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(3, 200)) + np.array([[0.0], [0.0], [3.0]])
    figure = chain_ranks({"x": draws}, title="t")
    heights = [patch.get_data().values for patch in figure.axes[0].patches]
    np.testing.assert_allclose([h.mean() for h in heights], 1)
    assert heights[2][-1] > 2.5
    assert heights[2][0] == 0


def test_a_forest_has_a_panel_per_variable_and_a_row_per_label() -> None:
    row = {"value": 0.5, "low": 0.1, "high": 0.9, "lower": 0.4, "upper": 0.6}
    table = pd.DataFrame(
        [
            {"variable": v, "panel": f"{v}: what it is", "label": label, **row}
            for v, label in (("a", "x"), ("a", "y"), ("b", "z"))
        ]
    )
    figure = forest(table, title="t")
    shown = [[t.get_text() for t in ax.get_yticklabels()] for ax in figure.axes]
    assert shown == [["x", "y"], ["z"]]


def test_series_can_be_told_apart_in_grey() -> None:
    """Series differ in marker, dashes and hatch; two without a hatch are far apart in grey."""
    places = range(len(style.PALETTE))
    assert len({style.MARKERS[k] for k in places}) == len(places)
    assert len({str(style.DASHES[k]) for k in places}) == len(places)
    plain = [style.PALETTE[k] for k in places if not HATCHES[k]]
    luminance = [
        sum(w * int(c[i : i + 2], 16) for w, i in ((0.299, 1), (0.587, 3), (0.114, 5)))
        for c in plain
    ]
    assert np.abs(np.diff(luminance)).min() > 60
    hatches = [HATCHES[k] for k in places if HATCHES[k]]
    assert len(set(hatches)) == len(hatches)


def test_panels_share_their_axes() -> None:
    table = pd.DataFrame(
        {
            "x": [1, 2, 1, 2],
            "panel": ["a", "a", "b", "b"],
            "method": "m",
            "metric": "mae",
            "value": [0.1, 0.2, 5.0, 9.0],
            "low": [0.0, 0.1, 4.0, 8.0],
            "high": [0.2, 0.3, 6.0, 10.0],
        }
    )
    words = {"panel": "panel", "metric": "mae", "xlabel": "x", "ylabel": "y", "title": "t"}
    a, b = curves(table, "x", **words).axes
    assert a.get_ylim() == b.get_ylim()
