"""Judges compared with one another: agreement, shares of classes, equal votes and constant ones."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from jaxtyping import Float

from judgebayes.finding import Finding
from judgebayes.measures.scores import krippendorff_alpha
from judgebayes.panel.checks import about, listed
from judgebayes.sentence import percent
from judgebayes.votes.array import Votes

LEAST = 10
"""With fewer votes, or items in common, equal votes are taken for chance."""
SURPRISING = 0.01
"""Constant votes are reported if the other judges, or the labels, make them less probable."""
BELOW = 3.0
"""Standard errors by which an agreement must be below that of votes at random."""


def _shares(votes: Votes) -> Float[np.ndarray, "item judge class"]:
    """Return how many votes each judge gives an item, by class, divided by their number."""
    index = np.asarray(votes.index)
    counts = np.stack([(index == k).sum(2) for k in range(votes.n_classes)], axis=2).astype(float)
    return counts / np.maximum(counts.sum(2, keepdims=True), 1)


def agreement_table(votes: Votes, classes: Sequence[object]) -> pd.DataFrame:
    r"""Return a row per judge: its agreement with the others, and its share of votes by class.

    The agreement is the probability that a vote of the judge equals a vote of another judge on the same
    item, averaged over the judge's items with votes of others. With the share :math:`p_{ijk}` of the
    votes of judge j on item i for class k, and a bar for the mean over the other judges on the item,

    .. math:: a_j = \operatorname{mean}_i \sum_k p_{ijk} \bar p_{i,-j,k}, \qquad
              c_j = \sum_k \operatorname{mean}_i p_{ijk} \operatorname{mean}_i \bar p_{i,-j,k}.

    Columns: `agreement` a; `chance` c, that of votes at random with the same shares; `agreement_error`,
    the standard error of a - c over items; and `share CLASS` for each class.
    """
    share = _shares(votes)
    voted = share.sum(2) > 0
    others = share.sum(1, keepdims=True) - share
    n_others = voted.sum(1, keepdims=True) - voted
    both = voted & (n_others > 0)
    others = others / np.maximum(n_others, 1)[:, :, None]
    equal = (share * others).sum(2)
    items = both.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_own = np.where(both[:, :, None], share, 0.0).sum(0) / items[:, None]
        mean_others = np.where(both[:, :, None], others, 0.0).sum(0) / items[:, None]
        agreement = np.where(both, equal, 0.0).sum(0) / items
        chance = (mean_own * mean_others).sum(1)
        # The influence of an item on a - c.
        influence = (
            equal
            - (share * mean_others).sum(2)
            - (others * mean_own).sum(2)
            - agreement
            + 2 * chance
        )
        error = np.sqrt(np.where(both, influence**2, 0.0).sum(0)) / items
        by_class = share.sum(0) / voted.sum(0)[:, None]
    columns = {"agreement": agreement, "chance": chance, "agreement_error": error}
    return pd.DataFrame(
        columns | {f"share {name}": by_class[:, k] for k, name in enumerate(classes)}
    )


def check_agreement(votes: Votes, names: Sequence[str]) -> list[Finding]:
    """Report how far the judges agree, judges that agree less than chance, and pairs that always do."""
    share = _shares(votes)
    if len(names) < 2:
        return []
    findings = []
    index = np.asarray(votes.index)
    counts = np.stack([(index == k).sum((1, 2)) for k in range(votes.n_classes)], axis=1)
    alpha = krippendorff_alpha(counts)
    table = agreement_table(votes, range(votes.n_classes))
    mean = float(table["agreement"].mean())
    if np.isfinite(mean):
        beyond = "" if np.isnan(alpha) else f" (Krippendorff's alpha {alpha:.2f}; 0 is chance)"
        findings.append(
            Finding(
                "note",
                f"Without labels, judges are compared with one another: two votes on an item are equal "
                f"in {percent(mean)}{beyond}. Judges that agree may be wrong together.",
                "agreement",
            )
        )
    gap = table["agreement"] - table["chance"]
    findings += about(
        "bad",
        "{n} judge(s) agree with the others less than votes at random would: {who}. Check whether their "
        "votes are reversed, or about other items.",
        "agreement",
        names,
        (gap < -BELOW * table["agreement_error"]).to_numpy(),
        lambda j: f"{percent(table['agreement'][j])}, {percent(table['chance'][j])} by chance",
    )
    voted = share.sum(2) > 0
    same = []
    for a, b in combinations(range(len(names)), 2):
        both = voted[:, a] & voted[:, b]
        alike = np.array_equal(share[both, a], share[both, b])
        if both.sum() >= LEAST and alike and (share[both, a].max(0) > 0).sum() > 1:
            same.append((a, b, int(both.sum())))
    return findings + listed(
        "bad",
        "{n} pair(s) of judges give the same vote on every item: {who}. One is perhaps a copy of the "
        "other, and would count as a second opinion.",
        "redundancy",
        list(dict.fromkeys(names[j] for a, b, _ in same for j in (a, b))),
        [f"{names[a]} and {names[b]} ({n} items)" for a, b, n in same],
    )


def check_constant(
    votes: Votes, labels: np.ndarray, names: Sequence[str], classes: Sequence[object]
) -> list[Finding]:
    """Report judges that give every item the same vote, where chance does not explain it.

    Of n items with votes, the labels (else the other judges' votes) have the class with the share q;
    votes that follow them would all be for this class with probability q^n.
    """
    share = _shares(votes)
    voted = share.sum(2) > 0
    constant: dict[str, str] = {}
    for judge in range(len(names)):
        own = share[voted[:, judge], judge]
        top = int(own.sum(0).argmax()) if len(own) else 0
        if len(own) < LEAST or not (own[:, top] == 1).all():
            continue
        known = voted[:, judge] & (labels >= 0)
        others = np.delete(share, judge, axis=1)[voted[:, judge]].sum((0, 1))
        if known.sum() >= LEAST:
            expected = float((labels[known] == top).mean())
        else:
            expected = float(others[top] / others.sum()) if others.sum() else 0.0
        if expected ** len(own) < SURPRISING:
            constant[names[judge]] = f"{names[judge]} ({classes[top]}, {len(own)} items)"
    return listed(
        "bad",
        "{n} judge(s) give the same vote on every item: {who}. Such votes say nothing about an item: "
        "check the prompt and the parser, or leave the judge out.",
        "constant",
        list(constant),
        list(constant.values()),
    )
