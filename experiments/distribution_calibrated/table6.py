"""P1 Table 6: MAE of the method and of self-consistency, judge by judge.

Claim: the method beats self-consistency with every judge; margin 0.01 MAE. On twins: its printed
score is predicted; margin the printed gain over SC.
Command: judgebayes reproduce distribution-calibrated/table6 --data DIR
Runtime: about 1 minute with data and 100 splits; 1 minute on twins with 20.
Expected: with five judges and five subsets, Davidson beats SC in every cell, nearly always
significantly; the calibrated margin threshold does about as well.
"""

from judgebayes.experiments.core import Output, Run, experiment
from judgebayes.experiments.distribution_calibrated.common import PAPER
from judgebayes.experiments.distribution_calibrated.judge_tables import judge_table


@experiment(
    PAPER,
    "table6",
    "Table 6: MAE by judge",
    "Davidson beats self-consistency with every judge, task and number of votes",
    needs=("rb2_k8_scores",),
    twins=True,
)
def main(run: Run) -> Output:
    """Return the table."""
    return judge_table(run, "table6", "mae")
