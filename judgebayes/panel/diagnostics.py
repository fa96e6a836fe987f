"""All diagnostics of a panel and its labels, the most serious finding first."""

from collections.abc import Sequence

import numpy as np

from judgebayes.arrays import Labels
from judgebayes.finding import Finding
from judgebayes.panel.agreement import check_agreement, check_constant
from judgebayes.panel.checks import (
    Thresholds,
    check_below_chance,
    check_few_labels,
    check_label_balance,
    check_leaks,
    check_missingness,
    check_one_coin,
    check_parseability,
    check_position,
    check_redundancy,
    check_saturation,
    check_undecided,
)
from judgebayes.panel.judges import readable_share
from judgebayes.panel.saturation import curve_of
from judgebayes.panel.tally import tally_of
from judgebayes.votes.array import Votes
from judgebayes.votes.coding import Coding


def diagnose(
    votes: Votes,
    labels: Labels,
    judges: Coding | Sequence[str] | None = None,
    *,
    thresholds: Thresholds | None = None,
    seed: int = 0,
) -> list[Finding]:
    """Return findings on the labels and the judges, the most serious first.

    Topics: `labels` (none, few, constant, nearly constant), `constant` (votes), `leak`, `parseability`
    (P1), `saturation` (P2), `one-coin`, `missingness` (P3), `undecided`, `below-chance`, `redundancy`,
    `position-bias`; without labels `agreement`, of the judges with one another.

    Parameters
    ----------
    votes, labels
        The votes, and class indices of the labels, -1 where unknown.
    judges
        The coding of the votes, or the judges' names; numbers if not given.
    thresholds
        The thresholds of the checks; by default `Thresholds()`.
    seed
        Seed of the random panels in the check of saturation.

    Raises
    ------
    JudgeBayesError
        If there are not as many labels as items, or names as judges.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> from judgebayes.panel.diagnostics import diagnose
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 0, -1, -1])
    >>> for finding in diagnose(votes, np.ones(6, int)):  # few, and all the same
    ...     print(finding.severity, finding.topic)
    bad labels
    bad labels
    """
    limits = Thresholds() if thresholds is None else thresholds
    tally = tally_of(votes, labels, judges)
    names = tally.names
    n_judges = len(names)
    findings = check_parseability(readable_share(votes, judges), names, limits)
    if votes.order is not None:
        findings += check_position(votes, names, limits)
    classes = judges.classes.names if isinstance(judges, Coding) else range(votes.n_classes)
    findings += check_constant(votes, np.asarray(labels), names, classes)
    if len(tally.label) == 0:
        findings.append(
            Finding("note", "No item has a label, so nothing is known about accuracy.", "labels")
        )
        findings += check_agreement(votes, names)
    else:
        leaks = check_leaks(tally, names, limits)
        findings += check_few_labels(tally, limits)
        findings += check_label_balance(tally, classes, limits) + leaks
        findings += check_missingness(tally, names, limits) + check_undecided(tally, names, limits)
        # A leak would dominate the other checks, which therefore exclude it.
        leaking = {name for finding in leaks for name in finding.judges}
        not_leaking = np.array([j for j, name in enumerate(names) if name not in leaking], int)
        tally = tally.of_judges(not_leaking)
        names = tally.names
        findings += check_below_chance(tally, names, limits) + check_one_coin(tally, names, limits)
        findings += check_redundancy(tally, names, limits)
        both_classes = tally.n_classes == 2 and len(np.unique(tally.label)) == 2
        # A panel may be right on all of a few labels.
        if both_classes and len(names) > 1 and len(tally.label) >= limits.common:
            panel_index = np.asarray(votes.index)[:, not_leaking]
            findings += check_saturation(
                curve_of(panel_index, np.asarray(labels), tally, 20, seed), limits
            )
    if len(tally.label) and not any(finding.severity == "bad" for finding in findings):
        findings.append(
            Finding(
                "good",
                f"{n_judges} judge(s) and {len(tally.label)} labels: no problem prevents "
                "calibration" + ("; consider the notes above." if findings else "."),
            )
        )
    return sorted(findings, key=lambda f: ("bad", "note", "good").index(f.severity))
