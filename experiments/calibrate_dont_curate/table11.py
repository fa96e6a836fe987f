"""P2 Table 11 (H.12): calibration maps on the one-coin score of all, five and ten judges.

Claim: beta with a light elastic net is best; Platt is robust; isotonic and beta without a penalty
overfit; temperature cannot correct the miscalibration: beta has a lower NLL on new items than each
(margin 0.01 nats). Audit: without the floor under their input probabilities maps have a lower NLL
(margin 0.01 nats).
Command: judgebayes reproduce calibrate-dont-curate/table11 --data DIR
Runtime: about 35 seconds.
Expected: contradicted in most comparisons. In the true orientation the maps of one, two and three
parameters hardly differ, and temperature, the simplest, is not worse anywhere. Isotonic, which the
paper says overfits, is ahead of beta on the reward models and on RewardBench 2. The claim holds against
beta without a penalty on these two, by very little. What matters is the floor under a map's input
probabilities, which no row of the paper varies: without it the NLL is lower on all public panels (on
the twin the floor hardly matters), and all judges are then as good as the best five on RewardBench 2
and LLMBar, but not on the reward models. Under the correctness encoding the intercept determines the
order: temperature and every symmetric map, which have none, keep their numbers of the true orientation,
and the penalty on the intercept orders the others.
"""

from typing import Any

from judgebayes import Beta, Platt
from judgebayes.experiments.calibrate_dont_curate.answers import advantage, answers, answers_of
from judgebayes.experiments.calibrate_dont_curate.common import FLOOR, MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.data import both_orientations
from judgebayes.experiments.calibrate_dont_curate.methods import aggregator
from judgebayes.experiments.calibrate_dont_curate.parts import halves
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    metric_rows,
)
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.inference.fit import Method

MAPS = ("none", "beta", "platt", "temperature", "isotonic", "beta, no penalty", "beta, L2")
PENALTIES = (1e-4, 1e-2, 1e-1)
OTHERS: dict[str, Method] = {
    "beta, symmetric": Beta(symmetric=True, clip=FLOOR),
    "platt, symmetric": Platt(symmetric=True, clip=FLOOR),
    "beta, unclipped": Beta(),
    "platt, unclipped": Platt(),
    "platt, unclipped, symmetric": Platt(symmetric=True),
}
AGAINST = ("temperature", "platt", "isotonic", "beta, no penalty")
UNCLIPPED = ("beta, unclipped", "platt, unclipped")
CLAIM = Statement("a lightly penalised beta map is best", "paper", MARGIN["nll"])
WITHOUT = Statement("maps without a floor are better than beta with it", "audit", MARGIN["nll"])


@experiment(
    PAPER,
    "table11",
    "Table 11: calibration maps",
    "a lightly penalised beta map is best; isotonic and unpenalised beta overfit",
    twins=True,
)
def main(run: Run) -> Output:
    """Return NLLs of every map, and of beta over a grid of penalties."""
    records: list[dict[str, Any]] = []
    for panel in both_orientations(run):
        for method in run.few(["one-coin", "top-5", "top-10"]):
            run.say(f"{panel.name}, {panel.orientation}: {method}")
            by_map = answers(run, panel, method, run.few(list(MAPS), 3))
            if method == "one-coin":
                swept = {f"beta, penalty {x:g}": Beta(penalty=x, clip=FLOOR) for x in PENALTIES}
                more = dict(run.few(list({**OTHERS, **swept}.items())))
                by_map = by_map | answers_of(
                    run, panel, aggregator(method, panel), more, halves(run, panel)
                )
            for name, one in by_map.items():
                n_judges = None if method == "one-coin" else int(method[4:])
                records += metric_rows(one, name, ("nll",), n=n_judges)
            if method == "one-coin":
                pairs = [("beta", name, CLAIM) for name in AGAINST]
                pairs += [(name, "beta", WITHOUT) for name in UNCLIPPED]
                for better, worse, statement in pairs:
                    if better in by_map and worse in by_map:
                        gain = advantage(by_map[better], by_map[worse])
                        name = f"{worse} minus {better}"
                        records.append(
                            claim_row(panel, name, "nll difference", gain, run.splits, statement)
                        )
    notes = [
        "In this table n is the number of judges kept, empty for all.",
        "beta has the penalty 0.001, half L1 and half L2, towards the identity: the paper's "
        "strength is blank in the text. Both steps learn from the whole calibration half.",
        "unclipped: the map's input is the one-coin log-odds, unchanged. The other maps' input "
        "probabilities are at least 1e-6, so that all answers beyond 13.8 nats are equal.",
    ]
    return Output(rows(PAPER, "table11", graded(records)), notes=notes)
