"""Audit: coverage of conformal sets by stratum, with one threshold and with a threshold per stratum.

Claim: (none of the paper) with a threshold per stratum, sets at 90 % contain the label in 87 to 94 % of
the items of every stratum, of agreement or of a column; filling empty sets never covers less. With one
threshold, coverage differs between strata. The intervals that the program prints contain the coverage of
the sets that it prints.
Command: judgebayes reproduce calibrate-dont-curate/audit-conformal
Runtime: about 12 minutes on a quiet core; 500 replays of each of 6 panels.
Expected: a threshold per stratum is within 87 to 94 % everywhere; one threshold is far from the level
where votes agree least or where a column divides easy from hard items. Where nearly all answers of a
stratum are right, sets without empty ones cover more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Int
from scipy.special import expit

from judgebayes import Beta, Calibrated, OneCoin, Stacking
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.experiments.calibrate_dont_curate.common import PAPER
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.inference.fit import Method
from judgebayes.votes import Votes
from judgebayes.workflow.conformal_sets import (
    AGREEMENT,
    FITTED_SHARE,
    Strata,
    agreement_strata,
    sets_by_stratum,
    strata_by,
    strata_table,
)

LEVEL = 0.9
LEAST, MOST = 0.87, 0.94
"""The bounds that the coverage of every stratum must keep."""
REPLAYS = 500
ITEMS = 2000
"""Items without a label, on which the sets are checked."""
DIVISIONS = 20
METRICS = {
    "coverage": "coverage",
    "size": "set size",
    "empty": "empty sets",
    "right": "right",
    "contained": "intervals that contain the coverage",
}
"""The names of the metrics in the table, by what is observed."""
ONE, OWN, FEW = "one threshold", "a threshold per stratum", "too few labels"
FILLED = ", no empty sets"
COLUMN = "kind"
KINDS = ("easy", "hard", "rare")
SHARES = (0.55, 0.35, 0.1)
EASE = (0.6, -0.4, -0.9)
"""What an item's kind adds to the judges' log-odds of a right vote."""


@dataclass(frozen=True)
class Panel:
    """A simulated panel: independent judges who share an item's difficulty."""

    judges: int
    classes: int
    labels: int
    share: float = 1.0
    """The share of the votes that are not missing."""
    reliability: float = 0.6
    """The judges' mean log-odds of a right vote."""

    @property
    def name(self) -> str:
        """The judges, classes and missing votes; easy panels are named."""
        missing = "" if self.share == 1 else f", {self.share:g} of the votes"
        easy = ", easy" if self.reliability > 1 else ""
        return f"{self.judges} judges, {self.classes} classes{missing}{easy}"

    def sample(
        self, rng: np.random.Generator, items: int
    ) -> tuple[Votes, Int[np.ndarray, " item"], Strata]:
        """Return votes, labels, and the items' kinds, which a column states."""
        labels = rng.integers(0, self.classes, items)
        kind = rng.choice(len(KINDS), items, p=SHARES)
        ease = np.array(EASE)[kind] + rng.normal(0, 0.8, items)
        chance = np.log(self.classes - 1)  # so that a judge with log-odds of 0 guesses
        logits = rng.normal(self.reliability, 0.5, self.judges) + ease[:, None] - chance
        right = rng.random(logits.shape) < expit(logits)
        wrong = (labels[:, None] + rng.integers(1, self.classes, logits.shape)) % self.classes
        votes = np.where(right, labels[:, None], wrong)
        votes = np.where(rng.random(votes.shape) < self.share, votes, -1)
        index = jnp.asarray(votes[:, :, None], jnp.int8)
        return Votes(index, None, None, None, self.classes), labels, Strata(kind, list(KINDS))


PANELS = (
    Panel(8, 2, 200),
    Panel(20, 2, 150),
    Panel(20, 2, 400),
    Panel(20, 2, 400, share=0.4),
    Panel(10, 4, 400),
    Panel(20, 2, 400, reliability=1.3),
)


class Observed(NamedTuple):
    """The sets of one replay, in one stratum."""

    by: str
    stratum: str
    filled: bool
    coverage: float
    size: float
    empty: float
    right: float
    """The share of the items whose most probable class is the label."""
    contained: float
    """1 if the printed interval contains the coverage of these sets."""


@experiment(
    PAPER,
    "audit-conformal",
    "Audit: conformal sets by stratum",
    "with a threshold per stratum, sets at 90 % cover 87 to 94 % of the labels in every stratum",
    twins=True,
)
def main(run: Run) -> Output:
    """Return coverage, size, share of empty sets, and coverage of intervals, by panel and stratum."""
    replays = 3 if run.smoke else REPLAYS
    records: list[dict[str, Any]] = []
    for panel in PANELS[:1] if run.smoke else PANELS:
        run.say(f"{panel.name}, {panel.labels} labels")
        seen = pd.DataFrame(
            [
                {**observed._asdict(), "replay": replay}
                for replay in range(replays)
                for observed in replayed(panel, np.random.default_rng([run.seed, replay]), replay)
            ]
        )
        records += _records(panel, seen)
    table = rows(PAPER, "audit-conformal", records)
    return Output(table, notes=_notes(table))


def method_for(panel: Panel) -> Method:
    """Return the method of a panel: stacking for two classes, one-coin with a beta map for more."""
    if panel.classes == 2:
        return Stacking()
    return Calibrated(OneCoin(class_prior="labels"), Beta(), cross_fit=5)


def replayed(panel: Panel, rng: np.random.Generator, seed: int) -> Iterator[Observed]:
    """Yield the sets of one replay, by what has thresholds of its own, by stratum and filling."""
    votes, truth, kinds = panel.sample(rng, panel.labels + ITEMS)
    labelled = np.arange(panel.labels)
    counts = np.asarray(votes.pooled_counts())
    every = {COLUMN: kinds, AGREEMENT: agreement_strata(counts)}
    method, few_votes = method_for(panel), votes.take(labelled)
    for by in (None, COLUMN, AGREEMENT):
        strata, _ = strata_by(by, every, counts, labelled, LEVEL)
        parts = random_splits(
            panel.labels,
            splits=1 + DIVISIONS,
            calibration=FITTED_SHARE,
            strata=strata.of_item[labelled],
            seed=seed,
        )
        fits = _padded(parts.calibration, panel.labels)
        whole = Splits(fits[:1], np.arange(len(truth))[None])
        answers = evaluate_splits(method, votes, truth, whole, fit_on="calibration")
        log_probs = np.asarray(answers.log_probs)[0, : len(truth)]  # without padding
        others = Splits(fits[1:], _padded(parts.evaluation[1:], panel.labels))
        held_out = evaluate_splits(method, few_votes, truth[labelled], others, fit_on="calibration")
        shown = every if by is None else {by: strata}
        held = parts.evaluation[0][parts.evaluation[0] >= 0]
        for filled in (False, True):
            sets, pooled = sets_by_stratum(log_probs, truth, held, LEVEL, strata, no_empty=filled)
            printed = strata_table(
                held_out,
                LEVEL,
                strata._replace(of_item=strata.of_item[labelled]),
                {n: each._replace(of_item=each.of_item[labelled]) for n, each in shown.items()},
                no_empty=filled,
            ).set_index(["by", "stratum"])
            covered = sets[np.arange(len(truth)), truth]
            right = log_probs.argmax(1) == truth
            for name, division in ({"all": Strata(truth * 0, ["all"])} | shown).items():
                for k, stratum in enumerate(division.names):
                    here = (division.of_item == k) & (np.arange(len(truth)) >= panel.labels)
                    if not here.any() or (name, stratum) not in printed.index:
                        continue
                    row = printed.loc[(name, stratum)]
                    coverage = float(covered[here].mean())
                    yield Observed(
                        ONE if by is None else f"a threshold per {by}",
                        _named(name, division, k, pooled=by == name and k in pooled),
                        filled,
                        coverage,
                        float(sets[here].sum(1).mean()),
                        float((~sets[here].any(1)).mean()),
                        float(right[here].mean()),
                        float(row["coverage_low"] <= coverage <= row["coverage_high"]),
                    )


def _padded(part: Int[np.ndarray, "split part"], size: int) -> Int[np.ndarray, "split size"]:
    """Return parts of one length, so that all replays use one compiled program."""
    return np.pad(part, ((0, 0), (0, size - part.shape[1])), constant_values=-1)


def _named(by: str, division: Strata, place: int, *, pooled: bool) -> str:
    """Return a stratum's name; those of agreement are numbered, because their bounds vary."""
    if by == "all":
        return "all"
    name = division.names[place]
    if by == AGREEMENT:
        name = f"{place + 1} of {len(division.names)}"
    return f"{by} {name}" + (f", {FEW}" if pooled else "")


def _records(panel: Panel, seen: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the means over replays, with 95 % intervals, of strata that most replays have."""
    replays = seen["replay"].nunique()
    for (by, stratum, filled), own in seen.groupby(["by", "stratum", "filled"], sort=False):
        if len(own) < replays / 2:
            continue
        title = by
        if by != ONE and stratum != "all":
            title = FEW if str(stratum).endswith(FEW) else OWN
        for column, metric in METRICS.items():
            mean = float(own[column].mean())
            half = 1.96 * float(own[column].std(ddof=1)) / np.sqrt(len(own))
            yield {
                "dataset": "simulated",
                "task": panel.name,
                "judge": stratum,
                "n": panel.labels,
                "method": f"{title}{FILLED}" if filled else title,
                "metric": metric,
                "value": mean,
                "low": mean - half,
                "high": mean + half,
                "splits": len(own),
            }


def _notes(table: pd.DataFrame) -> list[str]:
    """Return sentences with the ranges of coverage."""
    wide = table.pivot_table(
        index=["task", "n", "judge", "method"], columns="metric", values="value"
    ).reset_index()
    lines = [
        "In this table n is the number of labels, and judge the stratum. Strata of agreement are "
        "numbered from the least agreement. low and high are 95 % intervals over replays."
    ]
    strata = wide[wide["judge"] != "all"]
    for title in (ONE, OWN, ONE + FILLED, OWN + FILLED):
        some = strata[strata["method"] == title]
        if some.empty:
            continue
        within = some["coverage"].between(LEAST, MOST)
        lines.append(
            f"{title}: coverage from {some['coverage'].min():.3f} to {some['coverage'].max():.3f}, "
            f"within {LEAST:.0%} to {MOST:.0%} in {within.sum()} of {len(some)} strata."
        )
    contained = wide[METRICS["contained"]]
    lines.append(
        f"The printed 95 % intervals contain the coverage of the sets in {contained.mean():.3f} of the "
        f"replays on average, in one stratum in {contained.min():.3f}."
    )
    return lines
