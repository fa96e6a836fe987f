"""Shared code of P2's tables: the paper's name, and the margins of all claims."""

PAPER = "calibrate-dont-curate"

FLOOR = 1e-6
"""The least probability that enters the maps of P2's tables; the library's maps have no floor.

Table 11 has the maps without it beside them.
"""

MARGIN = {
    "nll": 0.01,
    "brier": 0.005,
    "ece": 0.007,
    "accuracy": 0.003,
    "auac": 0.01,
    "coin": 0.02,
    "variance share": 0.1,
    "simulated accuracy": 0.01,
    "printed": 0.001,
}
"""The smallest difference that matters, stated before any number.

nll, brier, ece, accuracy: Table 1 lists majority voting and accuracy weighting as two methods; on
JudgeBench they differ by 0.011, 0.005, 0.007 and 0.003. H.8 also calls NLLs from 0.076 to 0.087 stable.
auac: one point of accuracy, since the area is a mean accuracy. coin: twice that of the NLL, as H.11
gives random labels a range instead of a number. variance share: a tenth of the variance. simulated
accuracy: one point, the unit in which H.6 states its gaps. printed: rounding of two printed numbers.
"""
