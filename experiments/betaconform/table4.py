"""P3 Table 4: error margins of the mixture and of a single Beta-Binomial.

Claim: the mixture (the paper's EM) has a lower error margin than one Beta-Binomial, on every data set
and on average over them; margin 0.5 points.
Command: judgebayes reproduce betaconform/table4 --data DIR
Runtime: about 4 seconds after table1, with data.
Expected: the second component hardly helps, and the paper's EM, whose components are Binomials, has a
higher mean margin than one Beta-Binomial on most data sets.
"""

from judgebayes.experiments.betaconform.common import PAPER
from judgebayes.experiments.betaconform.margins import SPLITS, margin_table
from judgebayes.experiments.core import Output, Run, experiment


@experiment(
    PAPER,
    "table4",
    "Table 4: error margin, mixture against one Beta-Binomial",
    "the mixture of two has a lower error margin than one Beta-Binomial",
    needs=("p3_correct_counts",),
    twins=True,
)
def main(run: Run) -> Output:
    """Return the table."""
    methods = ("beta-binomial", "em", "mixture-map", "thinning", SPLITS)
    return margin_table(run, "table4", ("beta-binomial",), methods)
