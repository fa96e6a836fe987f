"""Audit: panels of people who vote with ties, few of them on each item.

Claim: (none of the paper) with three ordered classes and few raters for each item, the pool predicts the
vote of a rater who was left out better than stacking and Davidson's model.
Command: judgebayes reproduce calibrate-dont-curate/audit-raters --data DIR
Runtime: about 3 minutes; 20 splits of three panels, with 50, 100 and 200 labels.
Expected: the pool beats stacking on all three panels; shared difficulty alone is as good on the two
panels of translations, where few raters vote on many items, and worse on MT-Bench.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from judgebayes import Davidson, Pool, SharedDifficulty, Stacking
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.calibrate_dont_curate.rows import interval_row
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import MTBENCH_LLM, MTBENCH_PEOPLE, WMT23, people, wmt23
from judgebayes.inference import MAP
from judgebayes.inference.fit import Method
from judgebayes.measures.scores import absolute_loss
from judgebayes.measures.significance import two_way_interval
from judgebayes.votes import Votes, encode

LABELS = (50, 100, 200)
COUNT = 20
CLASSES = (-1, 0, 1)
POOL, PART = "pool", "shared-difficulty"
METHODS: dict[str, Method] = {
    POOL: Pool(),
    PART: SharedDifficulty(),
    "stacking": Stacking(),
    "davidson": Davidson(),
    "davidson, mode": Davidson(MAP()),
}


@experiment(
    PAPER,
    "audit-raters",
    "Audit: raters who vote with ties, few on each item",
    "the pool predicts the vote of a rater who was left out better than stacking and Davidson's model",
    needs=(WMT23, MTBENCH_PEOPLE),
)
def main(run: Run) -> Output:
    """Return every method's NLL by panel and number of labels, and the pool's lead."""
    records: list[dict[str, Any]] = []
    panels = rater_panels(run)
    for name in run.few(list(panels)):
        votes, labels = left_out(panels[name]())
        whole = random_splits(
            len(labels), splits=2 if run.smoke else COUNT, calibration=0.5, seed=run.seed
        )
        for size in run.few(list(LABELS)):
            run.say(f"{name}: {size} labels")
            records += _compared(name, votes, labels, whole.with_calibration(size), size)
    table = rows(PAPER, "audit-raters", records)
    notes = [
        "The label of an item is the vote of one of its raters, drawn at random, who leaves the votes. "
        "On MT-Bench it is a person's, and GPT-4 is one of the judges.",
        "Intervals account for sampling of items and of labels. The best other method is chosen on "
        "the same numbers, which favours it; shared-difficulty, a part of the pool, is not among them.",
    ]
    return Output(table, notes=notes)


def rater_panels(run: Run) -> dict[str, Callable[[], pd.DataFrame]]:
    """Return functions that read the votes of each panel of people, by name."""
    return {
        f"{WMT23}, en-de": lambda: wmt23(run, "ende").rename(columns={"rater": "judge"}),
        f"{WMT23}, zh-en": lambda: wmt23(run, "zhen").rename(columns={"rater": "judge"}),
        MTBENCH_PEOPLE: lambda: people(run),
    }


def left_out(votes: pd.DataFrame) -> tuple[Votes, Int[np.ndarray, " item"]]:
    """Return the votes without one of each item's, and that one as its label."""
    votes = votes.drop_duplicates(["item", "judge"])
    raters = votes[votes["judge"] != MTBENCH_LLM]
    label = raters.groupby("item").sample(1, random_state=0)
    rest = votes.drop(label.index)
    rest = rest[rest["item"].isin(label["item"])]
    encoded, coding = encode(rest[["item", "judge", "vote"]], classes=CLASSES)
    known = label[["item", "vote"]].rename(columns={"vote": "label"})
    return encoded, coding.labels(known, label="label", unknown_items="drop")


def _compared(
    name: str, votes: Votes, labels: Int[np.ndarray, " item"], splits: Splits, size: int
) -> list[dict[str, Any]]:
    """Return the result rows of one panel and number of labels."""
    used = splits.calibration[:, (splits.calibration >= 0).any(0)]
    parts = Splits(used, splits.evaluation)
    nll: dict[str, Float[np.ndarray, "split item"]] = {}
    for method, aggregator in METHODS.items():
        held_out = evaluate_splits(
            aggregator, votes, labels, parts, fit_on="calibration", loss=absolute_loss(len(CLASSES))
        )
        nll[method] = held_out.nll()
        items = np.asarray(held_out.items)
    others = [method for method in METHODS if method not in (POOL, PART)]
    best = min(others, key=lambda method: float(np.nanmean(nll[method])))
    values = [(method, "nll", each) for method, each in nll.items()]
    values.append((f"{best} minus pool", "nll difference", nll[best] - nll[POOL]))
    return [
        interval_row(
            name,
            method,
            metric,
            two_way_interval(each, items, len(labels), fitted=size),
            len(used),
            judge=f"{votes.n_judges} judges",
            n=size,
        )
        for method, metric, each in values
    ]
