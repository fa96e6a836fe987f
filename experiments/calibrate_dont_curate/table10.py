"""P2 Table 10 (H.10): the pipeline step by step, and conformal coverage.

Claim: beta calibration cuts NLL by 89 to 93 %; conformal sets then cover 90 and 80 % of the labels.
Command: judgebayes reproduce calibrate-dont-curate/table10 --data DIR
Runtime: about 35 seconds.
Expected: in the true orientation NLL falls by about a half, and Platt's map alone is enough. Coverage
follows its exact law at the higher level; at the lower one the saturated answers of the reward models
and RewardBench 2 tie, so that coverage is larger. Under the correctness encoding NLL falls nearly to
zero.
"""

from typing import Any

import numpy as np

from judgebayes import Beta, Identity, OneCoin, Platt
from judgebayes.calibrators.conformal import SplitConformal, coverage, coverage_law
from judgebayes.evaluate.splits import Splits
from judgebayes.experiments.calibrate_dont_curate.answers import answers_of
from judgebayes.experiments.calibrate_dont_curate.chain import Chain
from judgebayes.experiments.calibrate_dont_curate.common import FLOOR, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import benchmark, both_orientations
from judgebayes.experiments.calibrate_dont_curate.parts import Parts, halves
from judgebayes.experiments.calibrate_dont_curate.rows import metric_rows, paper_values, value_row
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.panels import Panel
from judgebayes.experiments.significance import bootstrap_interval
from judgebayes.inference.fit import Method
from judgebayes.measures.significance import Interval
from judgebayes.panel.judges import top_k

NESTED = 0.7
STEPS: dict[str, Method] = {
    "one-coin": Identity(),
    "one-coin + platt": Platt(clip=FLOOR),
    "one-coin + platt + beta": Chain((Platt(clip=FLOOR), Beta(clip=FLOOR))),
}
LEVELS = (0.9, 0.8)
SLICE = 0.2
"""The share of the calibration half that only the conformal step uses."""


@experiment(
    PAPER,
    "table10",
    "Table 10: pipeline ablation and conformal coverage",
    "beta calibration cuts NLL by an order of magnitude; conformal sets have nominal coverage",
    twins=True,
)
def main(run: Run) -> Output:
    """Return the metrics of every step, and coverage with its exact law."""
    printed = paper_values("table10")
    records: list[dict[str, Any]] = []
    notes = [
        "The nested protocol: 70 % of the calibration half for the aggregator, 30 % for the maps. "
        f"For conformal sets {SLICE:.0%} of that half is set aside before both.",
        "low and high of the law are its central 95 % interval for one split.",
    ]
    for panel in both_orientations(run):
        run.say(f"{panel.name}, {panel.orientation}")
        parts = halves(run, panel)
        by_arm = answers_of(run, panel, OneCoin(), STEPS, parts, share=NESTED)
        for k in run.few([5, 10]):
            arm = answers_of(
                run, panel, top_k(OneCoin(), k), {"beta": Beta(clip=FLOOR)}, parts, share=NESTED
            )
            by_arm[f"top-{k} + beta"] = arm["beta"]
        for name, one in by_arm.items():
            for row in metric_rows(one, name):
                row["paper_value"] = printed.get((benchmark(panel), name, row["metric"]))
                records.append(row)
        raw, full = (
            by_arm[name].by_split("nll") for name in ("one-coin", "one-coin + platt + beta")
        )
        fall = bootstrap_interval(1 - full / raw)
        records.append(value_row(panel, "one-coin + platt + beta", "nll fall", fall, run.splits))
        records += _conformal(run, panel, parts)
    return Output(rows(PAPER, "table10", records), notes=notes)


def _conformal(run: Run, panel: Panel, parts: Parts) -> list[dict[str, Any]]:
    """Return coverage and size of split conformal sets, and the exact law of the coverage."""
    half, other = parts.splits.calibration, parts.splits.evaluation
    own = round(SLICE * half.shape[1])
    conformal_splits = Splits(half[:, own:], np.concatenate([half[:, :own], other], axis=1))
    chain = {"chain": STEPS["one-coin + platt + beta"]}
    chain_answers = answers_of(
        run, panel, OneCoin(), chain, Parts("conformal", conformal_splits), share=NESTED
    )["chain"]
    records = []
    for level in run.few(list(LEVELS)):
        covered, size = [], []
        for log_probs, labels in zip(chain_answers.log_probs, chain_answers.labels, strict=True):
            fitted = SplitConformal(level).fit(log_probs[:own], labels[:own])
            sets = fitted(log_probs[own:])
            covered.append(float(coverage(sets, labels[own:])))
            size.append(float(np.asarray(sets).sum(1).mean()))
        law = coverage_law(own, level, other.shape[1])
        inside = np.mean([law.low <= c <= law.high for c in covered])
        name = f"conformal at {level:.0%}"
        for metric, interval in (
            ("coverage", bootstrap_interval(np.array(covered))),
            ("law of the coverage", Interval(law.mean, law.low, law.high)),
            ("splits within the law", Interval(float(inside), np.nan, np.nan)),
            ("set size", bootstrap_interval(np.array(size))),
        ):
            records.append(value_row(panel, name, metric, interval, run.splits))
    return records
