"""P1 Table 4: pairwise accuracy of every aggregation method, 4 and 12 votes.

Claim: the distribution-calibrated method attains the best score on all data sets and counts;
margin 0.005. On twins: its printed score is predicted; margin the printed gain over SC.
Command: judgebayes reproduce distribution-calibrated/table4 --data DIR
Runtime: seconds after Table 3, whose fits it uses.
Expected: the same order as in Table 3; by accuracy fewer of Davidson's leads over SC are significant.
"""

from judgebayes.experiments.core import Output, Run, experiment
from judgebayes.experiments.distribution_calibrated.common import PAPER
from judgebayes.experiments.distribution_calibrated.method_tables import method_table


@experiment(
    PAPER,
    "table4",
    "Table 4: accuracy by method",
    "the distribution-calibrated method has the highest pairwise accuracy everywhere",
    needs=("rb2_k8_scores",),
    twins=True,
)
def main(run: Run) -> Output:
    """Return the table."""
    return method_table(run, "table4", "accuracy")
