"""P3 Table 1: error margins of the mixture and of the Binomial, and how many labels they use.

Claim: the mixture of Beta-Binomials (the paper's EM) has a lower error margin than the Binomial, on
every data set and on average over them; margin 0.5 points.
Command: judgebayes reproduce betaconform/table1 --data DIR
Runtime: about 5 minutes with data, most of it the resampled items.
Expected: the mixture's margin is less than half of the Binomial's on average; the model-free estimate,
which the paper leaves out, is as good as the mixture's posterior mode.
"""

from judgebayes.experiments.betaconform.common import PAPER
from judgebayes.experiments.betaconform.margins import SPLITS, margin_table
from judgebayes.experiments.core import Output, Run, experiment


@experiment(
    PAPER,
    "table1",
    "Table 1: error margin, mixture against Binomial",
    "the mixture of Beta-Binomials has a lower error margin than the Binomial on every data set",
    needs=("p3_correct_counts",),
    twins=True,
)
def main(run: Run) -> Output:
    """Return the table."""
    methods = ("binomial", "em-printed", "em", "mixture-map", "thinning", SPLITS)
    return margin_table(run, "table1", ("binomial", "thinning"), methods)
