"""Single checks of a panel and of its labels; each reports a finding beyond a threshold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from judgebayes.finding import Finding, Severity
from judgebayes.panel.judges import (
    Tally,
    effective_judges,
    part_of,
    position_bias,
    residual_correlation,
)
from judgebayes.sentence import percent
from judgebayes.votes.array import Votes

MOST_NAMED = 5
NORMAL_90 = 1.6448536269514722


@dataclass(frozen=True)
class Thresholds:
    """Thresholds of the diagnostics. The text of H.8 leaves the numbers blank; these are our choices.

    Parameters
    ----------
    readable, unreadable
        Review a judge below the first share of readable votes, and leave it out below the second. The
        paper accepts judges with 92 to 95 %, and calls one with 54 % a failure.
    below_chance
        Posterior probability, under Beta(1 + right, 1 + wrong), that a judge's accuracy is below chance,
        1 / classes, from which it is reported; Bonferroni-corrected over judges. H.8 asks for
        "reliably below chance".
    constant
        Share of the most common label from which the labels count as nearly constant: at 98 % the
        base rate alone has an NLL of 0.10, which panels on balanced labels rarely reach.
    leak_labels
        Number of labels without an error (or without a correct vote) that count as a leak. After n
        labels, the posterior probability that a perfect judge's accuracy is above 0.9 is 1 - 0.9^(n +
        1): 99.5 % for 50 labels.
    asymmetry, significance
        The one-coin model counts as violated if recall differs between labels by at least the first, and
        the test of equal recalls rejects at the second level, Bonferroni-corrected over judges. A
        small difference in a large sample does no harm.
    duplicate
        Correlation of two judges' errors, given the label, from which they count as duplicates: at 0.9
        only 1 - 0.81 = 19 % of the second judge's variance is its own.
    common
        The least number of shared labelled items for a correlation of two judges, and of items of a
        label for a test of recall.
    redundant
        The effective number of judges, as a share of the panel, below which the panel counts as
        redundant.
    saturated
        The decrease of calibrated NLL, in nats, from the second half of the panel, below which the panel
        counts as saturated: 0.005 is a third of the standard error of an NLL over a thousand items
        (about 0.5 / sqrt(1000)).
    floor
        A calibrated NLL below this is too good: it means an average probability of 0.98 for the label,
        which is implausible for human labels. Look for a leak or a constant label.
    bias
        Position bias, (first - second) / (first + second), from which a note is given if its 90 %
        interval excludes zero.
    undecided
        The share of undecided votes above which a judge is reported.
    few_labels, few_votes
        Fewer labelled items are a problem, and so is a panel of which more than half of the judges have
        votes on fewer labelled items: of 5 votes that are all right, a perfect and a 70 % accurate
        judge (17 %) cannot be told apart.
    """

    readable: float = 0.9
    unreadable: float = 0.6
    below_chance: float = 0.95
    constant: float = 0.98
    leak_labels: int = 50
    asymmetry: float = 0.1
    significance: float = 0.05
    duplicate: float = 0.9
    common: int = 20
    redundant: float = 0.25
    saturated: float = 0.005
    floor: float = 0.02
    bias: float = 0.1
    undecided: float = 0.5
    few_labels: int = 10
    few_votes: int = 5


def about(
    severity: Severity,
    text: str,
    topic: str,
    names: Sequence[str],
    where: Bool[np.ndarray, " judge"],
    detail: Callable[[int], str] | None = None,
    by: Float[np.ndarray, " judge"] | None = None,
) -> list[Finding]:
    """Return a finding about the judges `where` it is so, the least `by` a value first; or none.

    In the text, `{n}` is the number of judges and `{who}` their list, with a detail of each.
    """
    which = np.flatnonzero(where)
    ranked = (which if by is None else which[np.argsort(by[which], kind="stable")]).tolist()
    shown = [names[j] if detail is None else f"{names[j]} ({detail(j)})" for j in ranked]
    return listed(severity, text, topic, [names[j] for j in ranked], shown)


def listed(
    severity: Severity, text: str, topic: str, judges: Sequence[str], shown: Sequence[str]
) -> list[Finding]:
    """Return a finding about judges, with a list of what is shown of them; none if that is empty."""
    if not shown:
        return []
    rest = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
    sentence = text.format(n=len(shown), who=", ".join(shown[:MOST_NAMED]) + rest)
    return [Finding(severity, sentence, topic, tuple(judges))]


def check_parseability(
    share: Float[np.ndarray, " judge"], names: list[str], limits: Thresholds
) -> list[Finding]:
    """Report judges with too few readable votes; `share` is the share of readable votes of each."""

    def below(severity: Severity, least: float, most: float, advice: str) -> list[Finding]:
        return about(
            severity,
            f"{{n}} judge(s) gave fewer than {percent(most)} of the requested votes in a readable form: "
            f"{{who}}. {advice}.",
            "parseability",
            names,
            (share >= least) & (share < most),
            lambda j: percent(share[j]),
            share,
        )

    low, high = limits.unreadable, limits.readable
    return [
        *below("bad", -np.inf, low, "Fix the parser or leave these judges out"),
        *below("note", low, high, "Look at their answers without a readable vote"),
    ]


def check_position(votes: Votes, names: list[str], limits: Thresholds) -> list[Finding]:
    """Report judges that favour the response shown first, or the one shown second.

    Raises
    ------
    JudgeBayesError
        If the votes have no presentation order.
    """
    bias, error = position_bias(votes)
    significant = np.abs(bias) > NORMAL_90 * error
    return about(
        "note",
        "{n} judge(s) have a position bias: {who} (+ for the response shown first). Ask in both orders "
        "and use both votes.",
        "position-bias",
        names,
        significant & (np.abs(bias) >= limits.bias),
        lambda j: percent(bias[j], sign=True),
        -np.abs(bias),
    )


def check_label_balance(
    tally: Tally, classes: Sequence[object], limits: Thresholds
) -> list[Finding]:
    """Report labels that are all, or nearly all, of one class; `classes` are the names."""
    share = np.bincount(tally.label, minlength=tally.n_classes) / len(tally.label)
    most = int(share.argmax())
    if share[most] == 1:
        return [
            Finding(
                "bad",
                f"All {len(tally.label)} labels are class {classes[most]}. A calibrator learns that "
                "constant and looks perfect, whatever the judges say: its accuracy will be 100 % "
                "and its NLL will measure only its regularisation. If votes are recorded as "
                "right or wrong, record instead which response came first, and which response the "
                "judge voted for.",
                "labels",
            )
        ]
    if share[most] >= limits.constant:
        base = -float((share[share > 0] * np.log(share[share > 0])).sum())
        return [
            Finding(
                "bad",
                f"{percent(share[most], 1)} of the labels are class {classes[most]}. A constant answer "
                f"has this accuracy and an NLL of {base:.3f}: compare every method with it.",
                "labels",
            )
        ]
    return []


def check_leaks(tally: Tally, limits: Thresholds) -> list[Finding]:
    """Report judges that are right, or wrong, on all of their labelled items."""
    findings: list[Finding] = []
    enough = tally.trials >= limits.leak_labels
    for what, where in (
        ("right", tally.hits == tally.trials),
        ("wrong", tally.hits == 0),
    ):
        counts = sorted({int(n) for n in tally.trials[where & enough]})
        of = " to ".join(str(n) for n in dict.fromkeys((*counts[:1], *counts[-1:])))
        findings += about(
            "bad",
            f"{{who}}: {what} on all of {of} labelled items. This is implausible: "
            "such a judge repeats the label"
            + (" or produced it" if what == "right" else " reversed, or is broken")
            + ". A method that learns weights will use only this judge. Leave it out.",
            "leak",
            tally.names,
            where & enough,
        )
    return findings


def check_few_labels(tally: Tally, limits: Thresholds) -> list[Finding]:
    """Report labels that are too few for any statement on the judges, or on most of them."""
    n, judges = len(tally.label), len(tally.names)
    if n < limits.few_labels:
        return [
            Finding(
                "bad",
                f"Only {n} item(s) are labelled: nothing can be said about the judges. Label at least "
                f"{limits.few_labels}, better 50.",
                "labels",
            )
        ]
    few = tally.trials < limits.few_votes
    if judges < 2 or few.sum() <= judges / 2:
        return []
    return [
        Finding(
            "bad",
            f"{int(few.sum())} of {judges} judges have votes on fewer than {limits.few_votes} labelled "
            f"items (median {np.median(tally.trials):.0f}): their accuracies are not known. Label items "
            "on which more of them voted, or more items.",
            "labels",
        )
    ]


def check_below_chance(tally: Tally, limits: Thresholds) -> list[Finding]:
    """Report judges that are reliably right less often than chance, 1 / classes."""
    from scipy.special import betainc

    above = betainc(1 + tally.trials - tally.hits, 1 + tally.hits, 1 - 1 / tally.n_classes)
    rate = part_of(tally.hits, tally.trials)
    return about(
        "note",
        f"{{n}} judge(s) are less accurate than chance ({percent(1 / tally.n_classes)}): {{who}}. A "
        "method that learns weights reverses their votes. A majority vote gets worse because of them.",
        "below-chance",
        tally.names,
        above < (1 - limits.below_chance) / max(len(tally.names), 1),
        lambda j: percent(rate[j]),
        rate,
    )


def _homogeneity(
    hits: Float[np.ndarray, "label judge"], trials: Float[np.ndarray, "label judge"], least: int
) -> Float[np.ndarray, " judge"]:
    """Return the p-value of the chi-square test that each judge's share is equal for all labels."""
    from scipy.special import gammaincc

    used = trials >= least
    hits, trials = np.where(used, hits, 0.0), np.where(used, trials, 0.0)
    pooled = part_of(hits.sum(0), trials.sum(0))
    spread = pooled * (1 - pooled)
    squared_gaps = np.where(used, (hits - trials * pooled) ** 2, 0.0) / np.maximum(trials, 1)
    degrees_of_freedom = used.sum(0) - 1
    testable = (degrees_of_freedom > 0) & (spread > 0)
    chi2 = squared_gaps.sum(0) / np.where(testable, spread, 1.0)
    return np.where(testable, gammaincc(np.maximum(degrees_of_freedom, 1) / 2, chi2 / 2), np.nan)


def _by_label(values: np.ndarray, tally: Tally) -> Float[np.ndarray, "label judge"]:
    member = (tally.label == np.arange(tally.n_classes)[:, None]).astype(float)
    return member @ values


def _by_class(share: Float[np.ndarray, "label judge"], judge: int) -> str:
    """Return a judge's shares, the highest label first."""
    return ", ".join(percent(r) for r in share[::-1, judge] if np.isfinite(r))


def check_one_coin(tally: Tally, limits: Thresholds) -> list[Finding]:
    """Report judges whose accuracy differs between labels, contrary to the one-coin model."""
    hits, trials = _by_label(tally.right, tally), _by_label(tally.voted.astype(float), tally)
    p = _homogeneity(hits, trials, limits.common)
    recall = part_of(hits, np.where(trials >= limits.common, trials, 0.0))
    tested = np.where(np.isfinite(recall).sum(0) > 1, recall, 0.0)
    recall_range = np.nanmax(tested, 0) - np.nanmin(tested, 0)
    differs = (p * len(tally.names) < limits.significance) & (recall_range >= limits.asymmetry)
    findings = about(
        "note",
        f"{{n}} of {len(tally.names)} judge(s) are more accurate on items of one label than of another: "
        "{who} (highest label first). The one-coin model assumes one accuracy per judge, which does not "
        "describe them; use a confusion matrix per judge (Dawid-Skene). On pairs, look for position "
        "bias.",
        "one-coin",
        tally.names,
        differs,
        lambda j: _by_class(recall, j),
        -recall_range,
    )
    if tally.n_classes == 2:
        findings += _wrong_sign(recall, tally)
    return findings


def _wrong_sign(recall: Float[np.ndarray, "label judge"], tally: Tally) -> list[Finding]:
    """Report judges whose one-coin weight has the opposite sign to the evidence of their votes."""
    youden = recall.sum(0) - 1
    trials = _by_label(tally.voted.astype(float), tally)
    error = np.sqrt((recall * (1 - recall) / np.maximum(trials, 1)).sum(0))
    accuracy_excess = part_of(tally.hits, tally.trials) - 0.5
    significant = np.isfinite(youden) & (np.abs(youden) > NORMAL_90 * error)
    return about(
        "bad",
        "The one-coin model gives {n} judge(s) a weight of the wrong sign, because one label is more "
        "common: {who}. Use Dawid-Skene, or stacking.",
        "one-coin",
        tally.names,
        significant & (youden * accuracy_excess < 0),
        lambda j: f"accuracy {percent(accuracy_excess[j] + 0.5)}, TPR + TNR - 1 = {youden[j]:+.2f}",
    )


def check_missingness(tally: Tally, limits: Thresholds) -> list[Finding]:
    """Report judges that leave out items of one label more often than items of another."""
    voted = _by_label((tally.voted | (tally.undecided > 0)).astype(float), tally)
    items = _by_label(tally.asked.astype(float), tally)
    p = _homogeneity(voted, items, limits.common)
    return about(
        "note",
        "{n} judge(s) have missing votes more often on items of one label than of another: {who}. A "
        "missing vote then contains information, but every aggregator here ignores it.",
        "missingness",
        tally.names,
        p * len(tally.names) < limits.significance,
    )


def check_undecided(tally: Tally, limits: Thresholds) -> list[Finding]:
    """Report judges that are mostly undecided, and those that are so more often on one label."""
    given = _by_label((tally.voted | (tally.undecided > 0)).astype(float), tally)
    none = _by_label(tally.undecided, tally)
    share = part_of(none.sum(0), given.sum(0))
    findings = about(
        "note",
        f"{{n}} judge(s) are undecided on more than {percent(limits.undecided)} of the labelled items: "
        "{who}. Their accuracy is that of the few items on which they decide.",
        "undecided",
        tally.names,
        share > limits.undecided,
        lambda j: percent(share[j]),
        -share,
    )
    p = _homogeneity(none, given, limits.common)
    return findings + about(
        "note",
        "{n} judge(s) are undecided more often on items of one label than of another: {who} (highest "
        "label first). An undecided vote then says something about the label: one-coin, Dawid-Skene and "
        "stacking use it where the classes are not two responses that could be swapped.",
        "undecided",
        tally.names,
        p * len(tally.names) < limits.significance,
        lambda j: _by_class(part_of(none, given), j),
    )


def check_redundancy(tally: Tally, limits: Thresholds) -> list[Finding]:
    """Report pairs of judges with nearly the same errors, and panels with few effective judges."""
    correlation, names = residual_correlation(tally, limits.common), tally.names
    above = np.triu(correlation, 1) >= limits.duplicate  # NaN is not
    pairs = sorted(np.argwhere(above).tolist(), key=lambda ij: -correlation[ij[0], ij[1]])
    findings = listed(
        "note",
        "{n} pair(s) of judges make nearly the same errors (correlation given the label of "
        f"{limits.duplicate} or more): {{who}}. The one-coin model and Dawid-Skene treat them as "
        "independent.",
        "redundancy",
        list(dict.fromkeys(names[j] for pair in pairs for j in pair)),
        [f"{names[i]} and {names[j]} ({correlation[i, j]:.2f})" for i, j in pairs],
    )
    varied = int(np.isfinite(np.diag(correlation)).sum())
    worth = effective_judges(correlation)
    if varied > 1 and worth < limits.redundant * varied:
        mean = (varied / worth - 1) / (varied - 1)
        findings.append(
            Finding(
                "note",
                f"The mean correlation of the judges' errors, given the label, is {mean:.2f}: for "
                f"the average of their votes, {varied} judges are worth {worth:.1f} independent "
                "judges. Probabilities from models of independent judges are overconfident until "
                "calibrated.",
                "redundancy",
            )
        )
    return findings


def check_saturation(curve: pd.DataFrame, limits: Thresholds) -> list[Finding]:
    """Report a panel of which half is as good as the whole, or whose NLL is too good.

    `curve` is the result of `judgebayes.panel.diagnostics.panel_curve`.
    """
    full, half = curve.iloc[-1], curve.iloc[-2]
    findings = []
    if full["nll"] < limits.floor:
        findings.append(
            Finding(
                "bad",
                f"The calibrated NLL of the panel is {full['nll']:.4f}, too good for human "
                "labels: look for a judge that leaks the label.",
                "saturation",
            )
        )
    if half["saved"] + NORMAL_90 * half["saved_error"] < limits.saturated:
        findings.append(
            Finding(
                "note",
                f"The panel is saturated: from {half['judges']:.0f} random judges to all "
                f"{full['judges']:.0f}, calibrated NLL changes from {half['nll']:.3f} to "
                f"{full['nll']:.3f}. More judges of this kind do not improve the one-coin model. "
                "A model of their correlation (stacking), or other judges, may help.",
                "saturation",
            )
        )
    return findings
