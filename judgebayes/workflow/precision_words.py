"""Warnings of `judgebayes precision`: what the labels and the votes cannot tell."""

from collections.abc import Sequence

import numpy as np

from judgebayes.generators import FittedShares, judge_youden, panel_youden
from judgebayes.generators.baselines import LEAST
from judgebayes.generators.clusters import COPIES
from judgebayes.generators.counts import PrecisionCounts
from judgebayes.inference.status import Status
from judgebayes.sentence import percent
from judgebayes.votes.classes import listing
from judgebayes.workflow.precision_fits import Fit, Points, has_draws
from judgebayes.workflow.precision_tables import LEVEL, SETTLED

FEW_INVALID = 10
ODD = 0.5
"""A judge's votes on a generator are called unlike the others' from this probability."""
SURPRISING = 0.05
"""Labels contradict the other generators if, given these, labels so far out are less probable."""
ENDS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
NOT_CONVERGED = (
    "The fit had not converged when it stopped: the labels and votes hardly determine the estimates. "
    "Take them as rough, and label more items; --next 50 proposes some."
)
UNINFORMATIVE = 0.5
"""A panel is called uninformative from this posterior probability."""


def precision_warnings(
    generators: Sequence[str],
    judges: Sequence[str],
    counts: PrecisionCounts,
    fit: Fit,
    copies: Sequence[tuple[int, int, float]] = (),
) -> list[str]:
    """Return what is missing for a safe answer, with what to do about it.

    `copies` are two judges each, and their residual correlation.
    """
    lines = []
    if int(fit.status) == Status.MAX_STEPS:
        lines.append(NOT_CONVERGED)
    elif int(fit.status) != Status.CONVERGED:
        lines.append(Status(int(fit.status)).sentence)
    labelled = int(counts.labelled.sum())
    raw = isinstance(fit, Points) and fit.raw
    if labelled == 0 and not raw:
        lines.append(
            "No item is labelled: estimates and intervals only reflect the votes and the priors. Label "
            "the items of at least one generator; --next 50 proposes the first."
        )
    elif labelled == 1 and len(counts.valid) > 1:
        lines.append(
            "Only one generator has labels. The variation of the judges' errors between "
            "generators is therefore taken from the prior."
        )
    without = np.flatnonzero(~np.asarray(counts.labelled))
    if labelled and len(without) and has_draws(fit):
        lines.append(
            f"{len(without)} of {len(generators)} have no label of their own "
            f"({listing([generators[int(place)] for place in without], 3)}): their intervals assume "
            "that the judges err on them as on the labelled ones, which votes cannot show. Where the "
            "judges share a bias for or against one, its interval is wrong, and no order of them is "
            "called settled: label a few items of each."
        )
    if labelled:
        lines += _few_invalid(counts)
        lines += _uninformative(counts)
    if isinstance(fit, FittedShares):
        lines += _odd_judges(judges, counts, fit)
        lines += _contradicting(generators, counts, fit)
    for place in np.flatnonzero(judge_youden(counts).below(0.0) >= SETTLED).tolist():
        lines.append(
            f"Judge {judges[place]!r} calls invalid items valid more often than valid ones: check "
            "whether its votes are reversed."
        )
    lines += [
        f"Judges {judges[a]!r} and {judges[b]!r} vote alike beyond what label and generator explain: "
        f"their residuals have a correlation of {rho:.2f} (said above {COPIES:g}). If one is a copy of "
        "the other, leave one out: two copies count as two opinions."
        for a, b, rho in copies
    ]
    return lines


def _few_invalid(counts: PrecisionCounts) -> list[str]:
    few = round(float(counts.invalid.sum()))
    if few >= FEW_INVALID:
        return []
    return [
        f"Only {few} labelled item(s) are invalid, too few to estimate how often the judges notice "
        "invalid items. Label more; --next 50 proposes items."
    ]


def _uninformative(counts: PrecisionCounts) -> list[str]:
    """Return a sentence if the judges as a whole hardly tell valid from invalid items."""
    probability = float(panel_youden(counts).below(LEAST))
    if not probability >= UNINFORMATIVE:
        return []
    return [
        f"The judges hardly tell valid from invalid items: with probability {probability:.2f} their "
        f"mean Youden index (TPR + TNR - 1) is below {LEAST:g} (said from {UNINFORMATIVE:g}). "
        "Estimates of generators with few labels then rest on the priors: label items of each "
        "generator, or add better judges."
    ]


def _contradicting(
    generators: Sequence[str], counts: PrecisionCounts, fit: FittedShares
) -> list[str]:
    """Return a sentence for each generator in part labelled, if its labels contradict the others'."""
    in_part = np.asarray(counts.unlabelled) > 0
    lines = []
    for place in np.flatnonzero((fit.tail_probability < SURPRISING) & in_part).tolist():
        low, high = (np.interp(level, fit.levels, fit.held_out[place]) for level in ENDS)
        valid = float(counts.labelled_precision[place])
        lines.append(
            f"The labels of {generators[place]!r} contradict what the other generators predict: "
            f"{percent(valid)} of them are valid, where {percent(low)} to {percent(high)} of its items "
            f"were expected (labels so far out have a probability of {fit.tail_probability[place]:.3f}, "
            f"said below {SURPRISING:g}). Its interval uses both: label more of its items."
        )
    return lines


def _odd_judges(judges: Sequence[str], counts: PrecisionCounts, fit: FittedShares) -> list[str]:
    """Return a sentence for each judge whose votes have lost their weight."""
    voted = np.asarray(counts.judged + counts.valid_judged + counts.invalid_judged) > 0
    odd = (np.asarray(fit.panel.odd).max(0) >= ODD) & voted
    share = np.asarray(counts.matrix)
    lines = []
    for place in np.flatnonzero(odd.any(0)).tolist():
        own = share[odd[:, place], place]
        calls = percent(own.min())
        if percent(own.max()) != calls:
            calls += f" to {percent(own.max())}"
        lines.append(
            f"Judge {judges[place]!r} votes unlike the others on {int(odd[:, place].sum())} of "
            f"{int(voted[:, place].sum())} generator(s), of whose items it calls {calls} valid: these "
            "votes have hardly any weight."
        )
    return lines
