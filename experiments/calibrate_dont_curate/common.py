"""What the tables of P2 share: panels, methods, answers once per run, and how two are compared."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from judgebayes.aggregators import (
    AccuracyWeighted,
    Aggregator,
    DawidSkene,
    LogOddsWeighted,
    OneCoin,
    Stacking,
    VoteShare,
)
from judgebayes.calibrators import Beta, Calibrator, Identity, Isotonic, Platt, Temperature
from judgebayes.evaluate.one_split import FitOn
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_calibrators
from judgebayes.experiments.calibrate_dont_curate.twins import twin_panel
from judgebayes.experiments.core import Grade, Run, expected, grade
from judgebayes.experiments.data import LLMBAR, RB2
from judgebayes.experiments.panels import (
    ORIENTATIONS,
    REWARDBENCH,
    Panel,
    llmbar_panel,
    rb2_panel,
    rewardbench_panel,
)
from judgebayes.measures.decide import zero_one_loss
from judgebayes.measures.significance import (
    Interval,
    bootstrap_interval,
    item_means,
    two_way_interval,
)
from judgebayes.panel.curate import Curated, OnePerFamily, families_of, top_k
from judgebayes.panel.diagnostics import diagnose

__all__ = [
    "CLIP",
    "DATASETS",
    "FEW",
    "HALF",
    "LARGE",
    "METRICS",
    "PAPER",
    "Answers",
    "Parts",
    "advantage",
    "aggregator",
    "answers",
    "answers_of",
    "benchmark",
    "both_orientations",
    "by_subset",
    "calibrator",
    "claim_row",
    "class_ece",
    "degenerate",
    "halves",
    "log_scales",
    "metric_rows",
    "panels",
    "paper_values",
    "short",
    "simulated_grade",
    "split_batches",
    "split_p_values",
    "synthetic_row",
    "value_row",
]

PAPER = "calibrate-dont-curate"
DATASETS = (REWARDBENCH, RB2, LLMBAR)
HALF = 0.5
METRICS = ("nll", "brier", "ece", "accuracy")
CLIP = 1e-3
"""Probabilities are scored as at least this much.

The paper's floor is blank in the text. Its Table 1 tells it: the top 3, 5 and 10 reward models are
public, their NLLs under a floor of 0.001 are 0.203, 0.216 and 0.260, the printed ones 0.200, 0.214 and
0.257, and a floor of 0.0001 or 0.005 misses them by 20 %.
"""

LARGE, FEW = 200_000, 20
"""Of a panel with more votes than that, stacking answers the first 20 splits only: it has a weight
per judge to find, in every split."""

VOTES_AT_ONCE = 25_000_000
"""How many votes the fits of one batch of splits may see together: bounds the memory."""


def panels(run: Run) -> list[Panel]:
    """Return the panels in the true orientation: public data where there are any, and the twin."""
    made = [
        panel(run)
        for name, panel in (
            (REWARDBENCH, rewardbench_panel),
            (RB2, rb2_panel),
            (LLMBAR, llmbar_panel),
        )
        if run.has(name) and not (run.smoke and name != LLMBAR)
    ]
    if run.smoke and made:
        return [panel.of(list(range(0, 60, 5)), "small") for panel in made]
    twin = run.remember("twin panel", lambda: twin_panel(run.seed, smoke=run.smoke))
    return [*made, twin]


def both_orientations(run: Run) -> Iterable[Panel]:
    """Yield every panel in the true orientation and then as correct and incorrect votes."""
    for panel in panels(run):
        yield from run.remember(("oriented", panel.key), partial(_oriented, panel))


def _oriented(panel: Panel) -> list[Panel]:
    return [panel.oriented(orientation) for orientation in ORIENTATIONS]


def aggregator(name: str, panel: Panel) -> Aggregator:
    """Return an aggregator by the name that tables give it.

    `top-5` is the one-coin model of the five judges most accurate on the labels, `one-per-family`
    that of the most accurate judge of each family.
    """
    if name.startswith("top-"):
        return top_k(OneCoin(), int(name.removeprefix("top-")))
    plain: dict[str, Aggregator] = {
        "majority": VoteShare(),
        "accuracy-weighted": AccuracyWeighted(),
        "log-odds": LogOddsWeighted(),
        "one-coin": OneCoin(),
        "dawid-skene": DawidSkene(),
        "stacking": Stacking(),
        "one-per-family": Curated(OneCoin(), OnePerFamily(family_numbers(panel))),
    }
    return plain[name]


def family_numbers(panel: Panel) -> tuple[int, ...]:
    """Return the number of each judge's family."""
    return families_of(panel.judges, dict(zip(panel.judges, panel.families, strict=True)))


def calibrator(name: str) -> Calibrator:
    """Return a calibrator by the name that tables give it."""
    plain: dict[str, Calibrator] = {
        "none": Identity(),
        "temperature": Temperature(),
        "platt": Platt(),
        "isotonic": Isotonic(),
        "beta": Beta(),
        "beta, no penalty": Beta(penalty=None),
        "beta, L2": Beta(l1_share=0.0),
    }
    return plain[name]


class Parts(NamedTuple):
    """Splits with a name under which answers are remembered."""

    name: str
    splits: Splits


def halves(
    run: Run,
    panel: Panel,
    *,
    labels: int | None = None,
    count: int | None = None,
    share: float = HALF,
) -> Parts:
    """Return random splits, half for calibration.

    With `labels`, only so many of that half, nested in larger budgets; with `count`, only the
    first so many splits.
    """

    def make() -> Splits:
        return random_splits(len(panel.labels), splits=run.splits, calibration=share, seed=run.seed)

    splits = run.remember((panel.dataset, len(panel.labels), share, "splits"), make)
    name = f"{share:g}"
    if labels is not None and labels < splits.calibration.shape[1]:
        name = f"{name}, {labels} labels"
        splits = _first(splits, labels, wide=_votes(panel) <= LARGE)
    if count is not None and count < len(splits):
        name, splits = f"{name}, {count} splits", _some(splits, np.arange(count))
    return Parts(name, splits)


def _first(splits: Splits, labels: int, *, wide: bool) -> Splits:
    """Return the splits with fewer labels; `wide` keeps the shape, so that nothing compiles anew."""
    fewer = splits.with_calibration(labels)
    if not wide:
        return fewer
    extra = splits.calibration.shape[1] - labels
    filled = np.pad(fewer.calibration, ((0, 0), (0, extra)), constant_values=-1)
    return Splits(filled, fewer.evaluation)


def _votes(panel: Panel) -> int:
    return len(panel.labels) * len(panel.judges)


def _some(splits: Splits, which: np.ndarray) -> Splits:
    return Splits(splits.calibration[which], splits.evaluation[which])


def by_subset(run: Run, panel: Panel, *, labels: int | None = None) -> Parts:
    """Return splits that divide the subsets: what is evaluated comes from other subsets."""
    splits = random_splits(
        len(panel.labels),
        splits=run.splits,
        calibration=HALF,
        groups=panel.subset,
        seed=run.seed,
    )
    if labels is not None and labels < splits.calibration.shape[1]:
        splits = splits.with_calibration(labels)
    return Parts(f"by subset, {labels} labels", splits)


@dataclass(frozen=True)
class Answers:
    """What one method answered on the evaluation items of every split of a panel."""

    panel: Panel
    log_probs: Float[np.ndarray, "split item class"]
    items: np.ndarray
    """Which item each is; -1 fills up shorter parts."""

    @property
    def inside(self) -> np.ndarray:
        """Whether there is an item."""
        return self.items >= 0

    @property
    def labels(self) -> np.ndarray:
        """The labels, -1 where there is no item."""
        return np.where(self.inside, self.panel.labels[np.maximum(self.items, 0)], -1)

    @property
    def p(self) -> Float[np.ndarray, "split item"]:
        """The probability of class 1, clipped."""
        return np.clip(np.exp(self.log_probs[..., 1]), CLIP, 1 - CLIP)

    @property
    def p_label(self) -> Float[np.ndarray, "split item"]:
        """The probability of the label, clipped."""
        return np.where(self.labels == 1, self.p, 1 - self.p)

    def each(self, metric: str) -> Float[np.ndarray, "split item"]:
        """Return nll, brier (0 to 1) or accuracy of every answer, NaN where there is no item.

        An answer of exactly one half is half right.
        """
        p = self.p_label
        if metric == "nll":
            value = -np.log(p)
        elif metric == "brier":
            value = (1 - p) ** 2
        else:
            value = (p > 0.5) + 0.5 * (p == 0.5)
        return np.where(self.inside, value, np.nan)

    def by_split(self, metric: str) -> Float[np.ndarray, " split"]:
        """Return a metric of every split: those of `each`, or ece (of class 1)."""
        if metric == "ece":
            return np.array(
                [
                    class_ece(p[i], y[i])
                    for p, y, i in zip(self.p, self.labels, self.inside, strict=True)
                ]
            )
        return np.nanmean(self.each(metric), axis=1)

    def by_item(self, metric: str = "nll") -> Float[np.ndarray, " all_items"]:
        """Return each item's mean over the splits that evaluate it."""
        return item_means(self.each(metric), self.items, len(self.panel.labels))

    def interval(self, metric: str = "nll") -> Interval:
        """Return the mean over splits with its bootstrap interval, the paper's."""
        return bootstrap_interval(self.by_split(metric))


def class_ece(p: Float[np.ndarray, " item"], labels: np.ndarray, bins: int = 10) -> float:
    r"""Return :math:`\sum_b n_b / n\,|\bar y_b - \bar p_b|` over equal bins of the probability of 1.

    Calibration of the most probable class (`scores.ece`) would not notice a constant label. Under
    one this is 1 - mean p.
    """
    which = np.clip((p * bins).astype(int), 0, bins - 1)
    gap = np.bincount(which, weights=labels - p, minlength=bins)
    return float(np.abs(gap).sum() / len(p))


def answers(
    run: Run,
    panel: Panel,
    method: str,
    calibrators: Sequence[str] = ("beta",),
    *,
    parts: Parts | None = None,
    share: float | None = None,
) -> dict[str, Answers]:
    """Return what a named method answers behind each named calibrator, once per run.

    Uncalibrated answers come with every fit, so that one program serves who asks for either.
    `share=None`: both steps learn from all labels; 0.7 is the paper's nested protocol.
    """
    parts = halves(run, panel) if parts is None else parts
    if method == "stacking" and _votes(panel) > LARGE:
        parts = Parts(f"{parts.name}, few", _some(parts.splits, np.arange(len(parts.splits))[:FEW]))

    key = ("answers", panel.key, method, parts.name, share)
    known: dict[str, Answers] = run.remember(key, dict)
    wanted = dict.fromkeys(("none", *calibrators))
    missing = {name: calibrator(name) for name in wanted if name not in known}
    if missing:
        known |= answers_of(run, panel, aggregator(method, panel), missing, parts, share=share)
    return {name: known[name] for name in calibrators}


def answers_of(
    run: Run,
    panel: Panel,
    method: Aggregator,
    maps: Mapping[str, Calibrator],
    parts: Parts,
    *,
    share: float | None = None,
    cross_fit: int | None = None,
    fit_on: FitOn = "calibration",
) -> dict[str, Answers]:
    """Return what an aggregator answers behind each calibrator, splits in batches."""
    splits = parts.splits
    found = [
        evaluate_calibrators(
            method,
            maps,
            panel.votes,
            panel.labels,
            part,
            fit_on=fit_on,
            share=share,
            cross_fit=cross_fit,
            loss=zero_one_loss(2),
            seed=run.seed,
            batch_size=run.batch_size,
            checkpoint=run.checkpoint,
        )
        for part in split_batches(panel, splits, fit_on)
    ]
    width = splits.evaluation.shape[1]
    return {
        name: Answers(
            panel,
            np.concatenate([np.asarray(f[name].log_probs)[:, :width] for f in found]),
            splits.evaluation,
        )
        for name in maps
    }


def split_batches(panel: Panel, splits: Splits, fit_on: FitOn) -> list[Splits]:
    """Return the splits in as many parts as the votes that their fits see ask for."""
    seen = len(panel.labels) if fit_on == "all" else splits.calibration.shape[1]
    parts = min(len(splits), -(-len(splits) * seen * len(panel.judges) // VOTES_AT_ONCE))
    return [_some(splits, some) for some in np.array_split(np.arange(len(splits)), parts)]


def advantage(
    method: Answers, other: Answers, metric: str = "nll", *, groups: np.ndarray | None = None
) -> Interval:
    """Return how much lower the method's NLL is than the other's, on the splits that both have.

    The interval allows for other items (with `groups`, other groups of items) and for other
    calibration sets.
    """
    n = min(len(method.items), len(other.items))
    difference = other.each(metric)[:n] - method.each(metric)[:n]
    return two_way_interval(difference, method.items[:n], len(method.panel.labels), groups)


def split_p_values(
    difference: Float[np.ndarray, "split item"], *, flips: int = 10_000, seed: int = 0
) -> Float[np.ndarray, " split"]:
    """Return each split's two-sided p-value by random sign flips of its items (P2 Appendix F).

    The flips are the same for all splits, which makes them one matrix product.
    """
    d = np.nan_to_num(difference)
    observed = np.abs(d.sum(1))
    rng = np.random.default_rng(seed)
    exceed = np.zeros(len(d))
    for size in (1000,) * (flips // 1000):
        signs = rng.integers(0, 2, (size, d.shape[1]), dtype=np.int8).astype(float) * 2 - 1
        exceed += (np.abs(signs @ d.T) >= observed * (1 - 1e-12)).sum(0)
    return (1 + exceed) / (1 + flips)


def metric_rows(
    found: Answers, method: str, metrics: Sequence[str] = METRICS, **more: Any
) -> list[dict[str, Any]]:
    """Return a row per metric of what a method answered."""
    return [
        value_row(found.panel, method, m, found.interval(m), len(found.items), **more)
        for m in metrics
    ]


def log_scales(figure: Figure, places: Sequence[float]) -> Figure:
    """Return the figure with logarithmic axes, labelled in plain numbers at the given places."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    plain = FuncFormatter(lambda value, _: f"{value:g}")
    for ax in figure.axes:
        low, high = ax.get_xlim()
        inside = [x for x in places if low <= x <= high]
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(inside, [f"{x:g}" for x in inside])
        ax.xaxis.set_minor_formatter(NullFormatter())
        bottom, top = ax.get_ylim()
        wide = top > 5 * bottom
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)) if wide else MaxNLocator(5))
        ax.yaxis.set_major_formatter(plain)
        ax.yaxis.set_minor_formatter(NullFormatter())
    return figure


def value_row(
    panel: Panel, method: str, metric: str, interval: Interval, splits: int, **more: Any
) -> dict[str, Any]:
    """Return a row of a number with its interval; `more` fills other columns.

    What the twin scores is a prediction, whatever it is.
    """
    return {
        "dataset": panel.name,
        "task": panel.orientation,
        "judge": f"{len(panel.judges)} judges",
        "method": method,
        "metric": metric,
        "value": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "splits": splits,
        "grade": "simulated" if panel.dataset == "twin" else "",
        **more,
    }


def claim_row(
    panel: Panel, method: str, metric: str, interval: Interval, splits: int, **more: Any
) -> dict[str, Any]:
    """Return the row of a claim "this is above zero", graded where the data can test it.

    Labels that are all the same test nothing: whatever holds on them holds without any vote.
    """
    row = value_row(panel, method, metric, interval, splits, **more)
    if degenerate(panel) or panel.dataset == "twin":
        return row
    return {**row, "grade": grade(interval)}


def degenerate(panel: Panel) -> bool:
    """Tell whether the program's own diagnostic calls the labels constant."""
    return any(
        f.topic == "labels" and f.severity == "bad" for f in diagnose(panel.votes, panel.labels)
    )


def paper_values(table: str) -> dict[tuple[str, str, str], float]:
    """Return what survives of a table's numbers in the text, by benchmark, method and metric."""
    found = expected(PAPER, table)
    return {(r.task, r.method, r.metric): float(r.value) for r in found.itertuples()}


def short(judge: str) -> str:
    """Return the last part of a judge's name that is a path."""
    return judge.rstrip("/").split("/")[-1]


def benchmark(panel: Panel) -> str:
    """Return the paper's name of what a panel stands for."""
    return {
        REWARDBENCH: "RewardBench",
        RB2: "RewardBench 2",
        LLMBAR: "LLMBar",
        "twin": "JudgeBench",
    }[panel.dataset]


def simulated_grade(advantage: Interval) -> Grade:
    """Return the grade of a claim that the paper itself tests on simulated votes."""
    if not np.isfinite(advantage.low):
        return ""
    return "simulated" if advantage.low > 0 else "contradicted" if advantage.high < 0 else ""


def synthetic_row(
    statement: str, what: str, value: float, holds: bool | np.bool_ | None
) -> dict[str, Any]:
    """Return the row of a number that a statement says something about, graded by whether it holds.

    `holds` is None for a number that is shown for its own sake.
    """
    graded: Grade = "" if holds is None else "simulated" if holds else "contradicted"
    return {
        "dataset": "synthetic",
        "task": f"{statement}: {what}",
        "method": "exact",
        "metric": "value",
        "value": float(value),
        "grade": graded,
    }
