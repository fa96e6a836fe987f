"""The panel whose majority is asked about: its judges, the classes of the labels, and how ties end."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from judgebayes.arrays import ItemInts
from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import split_names
from judgebayes.majority import Decision, ErrorCurve, Splits, decision_probs, splits_of
from judgebayes.sentence import percent
from judgebayes.votes import Votes
from judgebayes.votes.classes import listing
from judgebayes.workflow.data import Study
from judgebayes.workflow.options import EnsembleRequest

LEAST_LABELS = 10
"""The least number of labels without a tie for ties to be no class of the labels."""


@dataclass(frozen=True)
class EnsemblePanel:
    """A panel's votes, and what is decided from them."""

    votes: Votes
    splits: Splits
    decision: Decision
    chosen: list[int] | None
    """The positions of the named judges among all; None for all."""
    by_class: bool
    """Whether classes mean something: False for pairs in an arbitrary order."""
    words: list[str]

    @property
    def papers_error(self) -> bool:
        """Whether P(S < k/2) with odd k is the error of the decision: there are two classes."""
        return self.splits.given.shape[1] == 2

    def abstained(self, sizes: tuple[int, ...]) -> ErrorCurve | None:
        """Return the share of items on which k random votes are tied, if ties are not broken."""
        if self.decision != "abstain":
            return None
        given, classes, shares = self.splits.given, self.splits.label_classes, []
        for size in sizes:
            there = given[self.splits.total >= size]
            decided = decision_probs(there, size, "abstain", classes).sum(1)
            shares.append(1 - decided.mean() if len(decided) else np.nan)
        return without_intervals(sizes, np.array(shares), np.isnan(shares))


def without_intervals(
    sizes: tuple[int, ...], values: Float[np.ndarray, " size"], beyond: Bool[np.ndarray, " size"]
) -> ErrorCurve:
    """Return values as a curve whose intervals are unknown."""
    none = np.full(len(sizes), np.nan)
    return ErrorCurve(np.asarray(sizes, int), values, none, none, beyond)


def panel_of(data: Study, request: EnsembleRequest) -> EnsemblePanel:
    """Return the panel of a request.

    Raises
    ------
    JudgeBayesError
        If there are no labels, a judge does not exist, or options contradict each other.
    """
    if not data.labelled:
        raise JudgeBayesError(
            "The error of a majority vote is estimated from labels, and there are none; add them with "
            "--labels FILE or --label COLUMN."
        )
    words, coding = [], data.coding
    names = [str(name) for name in coding.judges]
    chosen = None
    votes = data.votes
    if request.judges is not None:
        chosen = [_position(name, names) for name in split_names(request.judges)]
        if len(set(chosen)) < len(chosen):
            raise JudgeBayesError("--judges names a judge twice; name each once.")
        votes = votes.of_judges(chosen)
    decision = _decision(request)
    classes = coding.classes
    possible = tuple(range(len(classes)))
    ties_are_votes = classes.pairwise and len(classes) == 3
    seen = set(data.labels[data.labels >= 0].tolist())
    neither = ties_are_votes or bool(coding.undecided.any())
    if neither and 1 not in seen and (data.labels >= 0).sum() >= LEAST_LABELS:
        possible = (0, 2)
        count = int((np.asarray(votes.index) == 1).sum())
        if count:
            share = percent(count / int((np.asarray(votes.index) >= 0).sum()))
            words.append(
                f"No label is {classes.names[1]!r}: {count} votes for it ({share}) are votes for "
                f"neither side{_decided_wrong(votes, data.labels)}."
            )
    if request.decision == "median" and classes.pairwise and len(possible) == 2:
        raise JudgeBayesError("--decision median needs ordered classes; labels have two classes.")
    if request.decision == "median" and not classes.ordered:
        raise JudgeBayesError(
            f"--decision median needs ordered classes; the order of {listing(classes.values)} is not "
            "known: name them from the lowest to the highest with --set classes=LOW,...,HIGH."
        )
    splits = splits_of(votes, data.labels, possible)
    return EnsemblePanel(votes, splits, decision, chosen, not classes.pairwise, words)


def _decided_wrong(votes: Votes, labels: ItemInts) -> str:
    """Return which share of the votes for a side, on labelled items, is wrong."""
    index, truth = np.asarray(votes.index), labels[:, None, None]
    for_side = (index >= 0) & (index != 1) & (truth >= 0)
    if not for_side.any():
        return ""
    wrong = (for_side & (index != truth)).sum() / for_side.sum()
    return f". Of the votes for a side on labelled items, {percent(wrong)} are wrong"


def _decision(request: EnsembleRequest) -> Decision:
    """Return what is decided."""
    if request.decision == "median":
        if request.ties is not None:
            raise JudgeBayesError("--ties has no effect on a median; leave it out.")
        return "median"
    return "abstain" if request.ties == "abstain" else "random"


def _position(name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise JudgeBayesError(
            f"--judges: there is no judge {name!r}; choose one of: {', '.join(names)}."
        )
    return list(names).index(name)
