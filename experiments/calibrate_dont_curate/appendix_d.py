"""P2 Appendix D: reliability signals of comparisons, in a model of preferences.

Claim: on subjective preference data no comparison-level reliability signal changes the NLL: the
differences are equivalent to zero (within 0.01 nats; the paper's margin is blank in the text).
Command: judgebayes reproduce calibrate-dont-curate/appendix-d --data DIR
Runtime: about 4 seconds.
Expected: replicated on MT-Bench's human votes: weights by a voter's agreement with others, by GPT-4's
consistency, or by the number of voters hardly change the NLL.
"""

from typing import Any

import numpy as np
import pandas as pd

from judgebayes.experiments.calibrate_dont_curate.common import MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.rows import Cell, Statement, graded
from judgebayes.experiments.claims import evidence
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.significance import equivalence_test
from judgebayes.measures.significance import item_means

MTBENCH_HUMAN = "mtbench_human_gpt4"
MARGINS = (0.005, 0.01, 0.02)
CLAIM = Statement("a reliability signal changes no NLL", "paper", MARGIN["nll"], within=True)
RIDGE = 0.1
FEWEST = 5


@experiment(
    PAPER,
    "appendix-d",
    "Appendix D: equivalence on preference data",
    "weighting comparisons by reliability signals is equivalent to not weighting them",
    needs=(MTBENCH_HUMAN,),
)
def main(run: Run) -> Output:
    """Return the NLL difference due to each signal, with two one-sided tests."""
    assert run.data is not None
    folder = run.data / MTBENCH_HUMAN
    votes = signals(
        pd.read_parquet(folder / "votes.parquet"), pd.read_parquet(folder / "labels.parquet")
    )
    plain = left_out_nll(votes, np.ones(len(votes)), run)
    records: list[dict[str, Any]] = []
    for name in ("judge agreement", "gpt-4 consistency", "number of voters"):
        difference = left_out_nll(votes, votes[name].to_numpy(float), run) - plain
        places = np.broadcast_to(np.arange(len(votes)), difference.shape)
        questions = votes["question"].to_numpy()
        change = evidence(difference, places, len(votes), questions, seed=run.seed)
        row = {
            "dataset": MTBENCH_HUMAN,
            "task": "TOST",
            "judge": f"{len(votes)} votes",
            "method": name,
            "splits": run.splits,
        }
        cell = {"metric": "nll difference", "value": change.estimate, "claim": Cell(CLAIM, change)}
        records.append({**row, **cell})
        of_item = item_means(difference, places, len(votes))
        for margin in MARGINS:
            p = equivalence_test(of_item, margin, questions).p_value
            records.append({**row, "n": margin, "metric": "TOST p-value", "value": p})
    notes = [
        f"{len(votes)} decided votes of {votes['judge'].nunique()} people on pairs of six models. A "
        "Bradley-Terry model of the models is fitted to the votes on half of the questions, each "
        "with a weight, and scored on the others, all votes alike. Differences are weighted minus "
        "unweighted, with intervals for new questions and new splits that hold at once for the three "
        "signals. The p-values are of two one-sided tests over questions; n is the margin (the paper's "
        "is blank).",
        "A voter's agreement is with the other voters, on questions of other categories.",
        "The likelihood of a pair is the same for `a beats b` and `b loses to a`, so the orientation "
        "has no effect, and there is one row per signal.",
    ]
    return Output(rows(PAPER, "appendix-d", graded(records)), notes=notes)


def signals(votes: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Return decided human votes with a weight column for each signal, with mean 1."""
    votes = votes.astype({"item": str, "judge": str})
    human = votes[(votes["judge"] != "gpt4_pair") & (votes["vote"] != 0)].reset_index(drop=True)
    about = labels.astype({"item": str}).set_index("item")
    human = human.join(about[["category", "question_id", "m1", "m2", "n", "gpt4_raw"]], on="item")
    human = human.rename(columns={"question_id": "question"})
    total = human.groupby("item")["vote"].transform("sum")
    others = np.sign(total - human["vote"])
    agrees = np.where(others == 0, np.nan, human["vote"] == others)
    human["agrees"] = agrees
    rate = [
        human.loc[(human["judge"] == j) & (human["category"] != c), "agrees"]
        for j, c in zip(human["judge"], human["category"], strict=True)
    ]
    overall = float(np.nanmean(agrees))
    human["judge agreement"] = [r.mean() if r.notna().sum() >= FEWEST else overall for r in rate]
    human["gpt-4 consistency"] = np.where(
        human["gpt4_raw"].astype(str).str.contains("inconsistent"), 0.5, 1.0
    )
    human["number of voters"] = np.sqrt(human["n"])
    for name in ("judge agreement", "gpt-4 consistency", "number of voters"):
        human[name] = human[name] / human[name].mean()
    return human


def left_out_nll(votes: pd.DataFrame, weight: np.ndarray, run: Run) -> np.ndarray:
    """Return the NLL of each vote in each split that holds out its question, else NaN."""
    models = sorted({*votes["m1"], *votes["m2"]})
    x = np.zeros((len(votes), len(models)))
    x[np.arange(len(votes)), [models.index(m) for m in votes["m1"]]] = 1
    x[np.arange(len(votes)), [models.index(m) for m in votes["m2"]]] = -1
    x = x * votes["vote"].to_numpy()[:, None]  # the winner has +1
    questions, which = np.unique(votes["question"], return_inverse=True)
    rng = np.random.default_rng(run.seed)
    nll = np.full((run.splits, len(votes)), np.nan)
    for row in nll:
        inside = np.isin(which, rng.permutation(len(questions))[: len(questions) // 2])
        strength = bradley_terry(x[inside], weight[inside])
        row[~inside] = np.logaddexp(0, -x[~inside] @ strength)
    return nll


def bradley_terry(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return strengths by Newton's method, with a small ridge penalty that fixes their level."""
    strength = np.zeros(x.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-x @ strength))
        gradient = x.T @ (weight * (1 - p)) - RIDGE * strength
        curvature = (x * (weight * p * (1 - p))[:, None]).T @ x + RIDGE * np.eye(len(strength))
        strength = strength + np.linalg.solve(curvature, gradient)
    return strength
