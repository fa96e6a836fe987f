"""The panels of the paper, in both orientations of the label, and their names."""

from collections.abc import Iterable
from functools import partial

from judgebayes.experiments.calibrate_dont_curate.twins import twin_panel
from judgebayes.experiments.core import Run
from judgebayes.experiments.data import LLMBAR, RB2
from judgebayes.experiments.panels import (
    ORIENTATIONS,
    REWARDBENCH,
    Panel,
    llmbar_panel,
    rb2_panel,
    rewardbench_panel,
)

DATASETS = (REWARDBENCH, RB2, LLMBAR)


def panels(run: Run) -> list[Panel]:
    """Return the panels in the true orientation: public data where there are any, and the twin."""
    available = [
        panel(run)
        for name, panel in (
            (REWARDBENCH, rewardbench_panel),
            (RB2, rb2_panel),
            (LLMBAR, llmbar_panel),
        )
        if run.has(name) and not (run.smoke and name != LLMBAR)
    ]
    if run.smoke and available:
        return [panel.of(list(range(0, 60, 5)), "small") for panel in available]
    twin = run.remember("twin panel", lambda: twin_panel(run.seed, smoke=run.smoke))
    return [*available, twin]


def both_orientations(run: Run) -> Iterable[Panel]:
    """Yield every panel in the true orientation and then as correct and incorrect votes."""
    for panel in panels(run):
        yield from run.remember(("oriented", panel.key), partial(_oriented, panel))


def _oriented(panel: Panel) -> list[Panel]:
    return [panel.oriented(orientation) for orientation in ORIENTATIONS]


def short(judge: str) -> str:
    """Return the last part of a judge's name that is a path."""
    return judge.rstrip("/").split("/")[-1]


def benchmark(panel: Panel) -> str:
    """Return the paper's name of the benchmark that a panel represents."""
    return {
        REWARDBENCH: "RewardBench",
        RB2: "RewardBench 2",
        LLMBAR: "LLMBar",
        "twin": "JudgeBench",
    }[panel.dataset]
