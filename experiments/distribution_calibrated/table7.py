"""P1 Table 7: accuracy of the method and of self-consistency, judge by judge.

Claim: the method beats self-consistency with every judge; margin 0.005. On twins: its printed
score is predicted; margin the printed gain over SC.
Command: judgebayes reproduce distribution-calibrated/table7 --data DIR
Runtime: about 2 seconds after Table 6, whose fits it uses.
Expected: with five judges and five subsets, Davidson beats SC in every cell, in most significantly; the
calibrated margin threshold does about as well.
"""

from judgebayes.experiments.core import Output, Run, experiment
from judgebayes.experiments.distribution_calibrated.common import PAPER
from judgebayes.experiments.distribution_calibrated.judge_tables import judge_table


@experiment(
    PAPER,
    "table7",
    "Table 7: accuracy by judge",
    "Davidson beats self-consistency with every judge, task and number of votes",
    needs=("rb2_k8_scores",),
    twins=True,
)
def main(run: Run) -> Output:
    """Return the table."""
    return judge_table(run, "table7", "accuracy")
