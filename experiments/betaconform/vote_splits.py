"""Data sets whose votes for, against and for neither side of the label are known on every item."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from judgebayes.experiments.betaconform.common import PAPER, DataSet, all_data_sets, simulated
from judgebayes.experiments.core import Run
from judgebayes.majority import Splits

LLMBAR, RB2 = "llmbar_evaluators", "rb2_k8_scores"
PANEL, PANELS, SEED = 11, 4, 7
"""Votes on an item of LLMBar, panels of any judges, and the seed that chooses judges."""


@dataclass(frozen=True)
class SplitSet:
    """One panel's votes on one data set."""

    family: str
    name: str
    splits: Splits
    """Votes for the label, for neither side and against it; every label is the first class."""

    def columns(self) -> dict[str, Any]:
        """Return the columns of a result row that identify this set."""
        return {"dataset": self.family, "task": "", "judge": self.name}


def split_sets(run: Run) -> list[SplitSet]:
    """Return the panels of RewardBench, LLMBar and RewardBench 2, or simulated ones without data."""
    if not all(run.has(folder) for folder in (LLMBAR, RB2)):
        return [_of_correct(data_set) for data_set in run.few(simulated(), 2)]
    made = run.remember((PAPER, "split_sets"), lambda: _split_sets(run))
    return [made[0], made[-1]] if run.smoke else made


def _split_sets(run: Run) -> list[SplitSet]:
    reward = [_of_correct(d) for d in all_data_sets(run) if d.dataset == "rewardbench"]
    return [*reward, *_llmbar(run), *_rb2(run)]


def _of_correct(data_set: DataSet) -> SplitSet:
    right = data_set.correct
    given = np.stack([right, 0 * right, data_set.votes - right], axis=1)
    return SplitSet(data_set.dataset, f"{data_set.task} {data_set.judge}".strip(), _labelled(given))


def _labelled(given: np.ndarray) -> Splits:
    return Splits(given, np.zeros(len(given), int), (0, 2))


def _llmbar(run: Run) -> list[SplitSet]:
    """Return up to 11 evaluators of each LLM, and four panels of 11 of all; ties are for neither."""
    assert run.data is not None
    votes = pd.read_parquet(run.data / LLMBAR / "votes_by_order.parquet")
    labels = pd.read_parquet(run.data / LLMBAR / "labels.parquet")
    label = labels[labels["subset"].str.startswith("LLMBar/")].set_index("item")["label_AB"]
    votes = votes[votes["item"].isin(label.index)]
    votes = votes.assign(evaluator=votes["judge"].astype(str) + "|" + votes["order"].astype(str))
    wide = votes.pivot_table(
        index="item", columns="evaluator", values="vote", aggfunc="first", observed=True
    ).reindex(label.index)
    rng = np.random.default_rng(SEED)
    models = sorted(votes["model"].astype(str).unique())
    panels = [(m, [c for c in wide.columns if c.startswith(f"{m}/")]) for m in models]
    panels += [
        (f"panel {i}", list(rng.choice(wide.columns, PANEL, replace=False))) for i in range(PANELS)
    ]
    sets = []
    for name, columns in panels:
        some = list(rng.choice(columns, PANEL, replace=False)) if len(columns) > PANEL else columns
        cast = wide[some].to_numpy(object)
        right = (cast == label.to_numpy(object)[:, None]).sum(1)
        sides = np.isin(cast, ["A", "B"]).sum(1)
        given = np.stack([right, len(some) - sides, sides - right], axis=1)
        sets.append(SplitSet("llmbar", name, _labelled(given)))
    return sets


def _rb2(run: Run) -> list[SplitSet]:
    """Return comparisons of the scores of the first two responses, of which the first is right."""
    assert run.data is not None
    scores = pd.read_parquet(run.data / RB2 / "scores.parquet")
    plain = (scores["prompt"] == "base") & (scores["temperature"] == 1.0)
    scores = scores[plain & scores["response"].isin([0, 1])]
    sets = []
    for (subset, model), part in scores.groupby(["subset", "model"], observed=True):
        table = part.pivot_table(
            index="item", columns=["response", "sample"], values="score", observed=True
        ).dropna()
        a, b = table[0].to_numpy(), table[1].to_numpy()
        given = np.stack([(a > b).sum(1), (a == b).sum(1), (a < b).sum(1)], axis=1)
        sets.append(SplitSet("rb2", f"{subset} {model}", _labelled(given)))
    return sets
