"""Simulated votes that agree with published results of a paper.

This package may not import `workflow` or any package after it.
"""

from judgebayes.simulate.twins import (
    FAMILIES,
    Family,
    Target,
    Twin,
    draw_votes,
    fit_twins,
    majority_outcome,
    most_likely,
    states,
)

__all__ = [
    "FAMILIES",
    "Family",
    "Target",
    "Twin",
    "draw_votes",
    "fit_twins",
    "majority_outcome",
    "most_likely",
    "states",
]
