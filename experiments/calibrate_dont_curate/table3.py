"""P2 Table 3 and section 4.3: stronger curators that refit the same pipeline for every panel.

Claim: no curator beats all judges: beam search, greedy forward, the exhaustive search of one judge per
family and the oracle's top 5 lose (margin 0.01 nats), backward elimination and L1 tie (within 0.01
nats). Audit: so do the best of nine judges, and five at random (margin 0.01 nats).
Command: judgebayes reproduce calibrate-dont-curate/table3 --data DIR
Runtime: about 5 minutes.
Expected: contradicted in the true orientation on the reward models and RewardBench 2, where every
search and L1 beat all judges with the one-coin model; on RewardBench 2 even five random judges do. On
LLMBar the paper's claims are uninformative: L1 is ahead, but a tie within the margin is not excluded;
beam, greedy and backward are ahead, and the best panel of one judge per family is behind, with
intervals that include zero. Under the correctness encoding every panel is nearly perfect, also a random
one.
"""

from typing import Any

from judgebayes import Beta, Calibrated, Identity, OneCoin
from judgebayes.experiments.calibrate_dont_curate.answers import (
    Answers,
    advantage,
    answers,
    answers_of,
)
from judgebayes.experiments.calibrate_dont_curate.common import FLOOR, MARGIN, PAPER
from judgebayes.experiments.calibrate_dont_curate.curators import (
    OnePerFamily,
    OracleTop,
    RandomPanel,
)
from judgebayes.experiments.calibrate_dont_curate.data import both_orientations
from judgebayes.experiments.calibrate_dont_curate.methods import family_numbers
from judgebayes.experiments.calibrate_dont_curate.parts import LARGE, halves
from judgebayes.experiments.calibrate_dont_curate.rows import (
    Statement,
    claim_row,
    graded,
    metric_rows,
)
from judgebayes.experiments.calibrate_dont_curate.searches import (
    BackwardElimination,
    Beam,
    Exhaustive,
    greedy_forward,
)
from judgebayes.experiments.calibrate_dont_curate.sparse_logistic import L1Logistic
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.panels import Panel
from judgebayes.panel.judges import Curated, Curator, TopAccuracy

ADDITIONS, WIDTH, PANEL_SIZE = 10, 3, 5
SEARCHED = 20
MOST_FAMILIES = 9
PENALTIES = (0.003, 0.03)
LOSES = Statement("all judges beat the searched panel", "paper", MARGIN["nll"])
TIES = Statement("all judges tie with the searched panel", "paper", MARGIN["nll"], within=True)
AUDIT = Statement("all judges beat a panel of our choice", "audit", MARGIN["nll"])


def claim_on(curator: str) -> Statement:
    """Return what the paper says of a curator, or that we add it."""
    if curator.startswith(("backward", "L1")):
        return TIES
    return AUDIT if curator.startswith(("random", "exhaustive, top")) else LOSES


def curators(panel: Panel, *, smoke: bool) -> dict[str, Curator]:
    """Return the curators by name; of more than nine families the nine most accurate are searched."""
    families = family_numbers(panel)
    few = len(set(families)) <= MOST_FAMILIES
    pool = OnePerFamily(families) if few else TopAccuracy(MOST_FAMILIES)
    steps = 3 if smoke else ADDITIONS
    return {
        "exhaustive, one per family" if few else "exhaustive, top 9": Exhaustive(pool),
        f"beam, width {WIDTH}": Beam(steps, WIDTH),
        "greedy forward, 5": greedy_forward(min(5, steps)),
        "random 5": RandomPanel(PANEL_SIZE),
        **{f"L1 logistic, {x:g}": L1Logistic(x) for x in PENALTIES},
        "backward": BackwardElimination(),
    }


@experiment(
    PAPER,
    "table3",
    "Table 3: same-pipeline panel search",
    "no curator beats all judges with the same pipeline",
    twins=True,
)
def main(run: Run) -> Output:
    """Return each curator's NLL and panel size, and its loss against all judges."""
    records: list[dict[str, Any]] = []
    for panel in both_orientations(run):
        large = panel.votes.n_items * len(panel.judges) > LARGE
        if large and panel.orientation == "correctness":
            continue  # Table 2 has its floor
        parts = halves(run, panel, count=SEARCHED)
        everyone = answers(run, panel, "one-coin")["beta"]
        records += metric_rows(everyone, "all", ("nll",), n=len(panel.judges))
        pipeline = Calibrated(OneCoin(), Beta(clip=FLOOR), share=None)
        for name, curator in run.few(list(curators(panel, smoke=run.smoke).items()), 3):
            run.say(f"{panel.name}, {panel.orientation}: {name}")
            method = Curated(pipeline, curator)
            answer_set = answers_of(run, panel, method, {"none": Identity()}, parts)["none"]
            records += metric_rows(answer_set, name, ("nll",))
            records.append(_loss(everyone, answer_set, name))
        oracle = Curated(pipeline, OracleTop(panel.labels, PANEL_SIZE))
        answer_set = answers_of(run, panel, oracle, {"none": Identity()}, parts, fit_on="all")[
            "none"
        ]
        records += metric_rows(answer_set, "oracle top 5", ("nll",))
        records.append(_loss(everyone, answer_set, "oracle top 5"))
    notes = [
        f"Searches use the first {SEARCHED} splits. The criterion is the paper's: NLL on the items "
        "that the calibrator was fitted to.",
        "The oracle ranks judges by their accuracy on the evaluation items.",
    ]
    return Output(rows(PAPER, "table3", graded(records)), notes=notes)


def _loss(everyone: Answers, searched: Answers, name: str) -> dict[str, Any]:
    """Return the row of what a curator's panel loses to all judges."""
    loss = advantage(everyone, searched)
    title, count = f"{name} minus all", len(searched.items)
    return claim_row(everyone.panel, title, "nll difference", loss, count, claim_on(name))
