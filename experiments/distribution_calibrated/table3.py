"""P1 Table 3: MAE of every aggregation method, 4 and 12 votes.

Claim: the distribution-calibrated method attains the best score on all data sets and counts;
margin 0.01 MAE. On twins: its printed score is predicted; margin the printed gain over SC.
Command: judgebayes reproduce distribution-calibrated/table3 --data DIR
Runtime: about 3 minutes with data and 100 splits; 1 minute on twins with 20.
Expected: on the real votes of gpt-5.4, Davidson beats SC in every cell, and the calibrated margin
threshold is nearly as good; the best constant loses except on Precise IF, where it is slightly ahead.
"""

from judgebayes.experiments.core import Output, Run, experiment
from judgebayes.experiments.distribution_calibrated.common import PAPER
from judgebayes.experiments.distribution_calibrated.method_tables import method_table


@experiment(
    PAPER,
    "table3",
    "Table 3: MAE by method",
    "the distribution-calibrated method has the lowest MAE on every data set and number of votes",
    needs=("rb2_k8_scores",),
    twins=True,
)
def main(run: Run) -> Output:
    """Return the table."""
    return method_table(run, "table3", "mae")
