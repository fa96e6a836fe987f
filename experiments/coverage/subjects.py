"""Every interval that the program prints, with where it prints it and the trials that test it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from judgebayes.experiments.coverage import (
    annotators,
    answers,
    claims,
    fits,
    generators,
    held_out,
    judges,
    majority,
    panel,
    sets,
)
from judgebayes.experiments.coverage.engine import Setting, Trials


@dataclass(frozen=True)
class Subject:
    """A family of intervals."""

    printed: str
    """Where the program shows them."""
    trials: Callable[[Setting], Iterable[Trials]]


SUBJECTS: Mapping[str, Subject] = {
    "judges": Subject(
        "`diagnose`, its plot, and `report`: judges with 90 % intervals; `report`: ranges of an "
        "accuracy that follow from the number of labels",
        judges.shares,
    ),
    "position-bias": Subject("`diagnose` and `report`: position bias", judges.position_bias),
    "reliability": Subject("Python: `fit.reliability(level)`", fits.reliability),
    "held-out": Subject(
        "`calibrate`: extra loss [95 %], share sent to a person and risk of the rest [90 %]; `report`: "
        "right on held-out labels, held-out NLL, right by probability, held-out scores by the number "
        "of labels",
        held_out.held_out,
    ),
    "conformal": Subject(
        "`calibrate --conformal`, `report`: the sets, and the range of their coverage",
        sets.conformal,
    ),
    "majority": Subject(
        "`ensemble`: both columns, with and without `--target these`; stops by `WidthRule`",
        majority.majority,
    ),
    "hard-items": Subject("`ensemble`: how many items are hard", majority.hard_items),
    "impression": Subject(
        "`Impression` of the paper's experiments, where labels are of whole generators",
        generators.impression,
    ),
    "stratified": Subject(
        "`precision`: win rates and systems with `systems`; Python: "
        "`judgebayes.generators.Stratified`",
        generators.stratified,
    ),
    "panel": Subject("`precision`: generators, with any labels", panel.panel),
    "annotators": Subject(
        "`precision` and `diagnose --by`, with `--set labels_merge=noisy` or `adjudicated`",
        annotators.annotators,
    ),
    "success": Subject("Python: `judgebayes.generators.systems`", answers.success),
    "splits": Subject(
        "Python: `judgebayes.measures.significance`, and tables of `reproduce`", answers.over_splits
    ),
    "claims": Subject(
        "`reproduce`: the interval of every claim, and all intervals of a table at once",
        claims.graded,
    ),
}
"""Families by name; nothing is drawn or compiled at import."""
