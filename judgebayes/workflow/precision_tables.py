"""The tables of `judgebayes precision`: generators, judges, and the check on labelled generators.

Warnings of `judgebayes precision`: what the labels and the votes cannot tell.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from judgebayes.generators import SharePosterior, judge_youden, mean_prediction, panel_youden
from judgebayes.generators.clusters import COPIES, copies_among
from judgebayes.generators.counts import PrecisionCounts
from judgebayes.generators.own_labels import LEAST
from judgebayes.generators.panel import Posterior
from judgebayes.inference.status import Status
from judgebayes.sentence import percent
from judgebayes.show.page import Plot
from judgebayes.votes.classes import listing
from judgebayes.workflow.precision_methods import Given, Points, PrecisionFit

LEVEL = 0.9
"""Probability of the intervals."""
SETTLED = 0.95
"""An order of two generators is settled from this probability."""
CHECKED = 30
"""A generator with this many labels is predicted from the others, as a check."""


def generator_table(given: Given, fit: PrecisionFit, seed: int = 0) -> pd.DataFrame:
    """Return a row per generator, the best first, and whether it is better than the next.

    The order of two generators is settled if one is better in at least 95 % of the joint draws, in
    which the uncertainty about the judges, which they share, cancels. Equal draws count half. The order
    of a generator without a label of its own is never settled: that the judges err on it as on the
    others is assumed. A fit without intervals has no columns of ends and of orders, and raw means are no
    estimate.
    """
    counts, estimate = given.counts, np.asarray(fit.estimate(), float)
    columns = {"generator": given.names, "estimate": estimate}
    if isinstance(fit, Posterior):
        low, high = fit.interval(LEVEL)
        columns |= {"low": np.asarray(low), "high": np.asarray(high)}
    columns |= {
        "raw mean": np.asarray(mean_prediction(counts)),
        "items": np.rint(counts.valid + counts.invalid + counts.unlabelled).astype(int),
        "labelled": np.rint(counts.valid + counts.invalid).astype(int),
    }
    order = np.argsort(-estimate, kind="stable")
    table = pd.DataFrame(columns).iloc[order].reset_index(drop=True)
    if isinstance(fit, Points) and fit.raw:
        return table.drop(columns="estimate")
    if isinstance(fit, Posterior):
        above = _above(np.asarray(fit.sample(key=jax.random.key(seed))), order)
        table["P(better than next)"] = [*above, np.nan]
        known = np.asarray(counts.labelled)
        both = known[order[:-1]] & known[order[1:]]
        settled = np.where(both & (np.asarray(above) >= SETTLED), "yes", "no")
        table["order settled"] = [*settled.tolist(), ""]
    return table


def _above(
    draws: Float[np.ndarray, "draw generator"], order: Int[np.ndarray, " generator"]
) -> list[float]:
    """Return the probability that each generator is better than the next; NaN if one is unknown."""
    pairs = [(draws[:, a], draws[:, b]) for a, b in pairwise(order)]
    return [
        float((x > y).mean() + (x == y).mean() / 2) if np.isfinite(x + y).all() else np.nan
        for x, y in pairs
    ]


def judge_table(given: Given) -> pd.DataFrame:
    """Return each judge's rates over all labelled items, and the share of items it voted on."""
    counts, rates = given.counts, given.counts.rates()
    voted = counts.judged + counts.valid_judged + counts.invalid_judged
    total = (counts.valid + counts.invalid + counts.unlabelled).sum()
    return pd.DataFrame(
        {
            "judge": given.judges,
            "TPR": np.asarray(rates.tpr),
            "TNR": np.asarray(rates.tnr),
            "on valid": np.rint(counts.valid_judged.sum(0)).astype(int),
            "on invalid": np.rint(counts.invalid_judged.sum(0)).astype(int),
            "voted on": np.asarray(voted.sum(0) / total),
        }
    )


def held_out_table(given: Given, fit: PrecisionFit) -> pd.DataFrame | None:
    """Return each labelled generator's share of valid labels, predicted from the other generators.

    Beside the estimate and its interval is the raw mean of the votes. None if the fit makes no such
    prediction, or fewer than two generators have 30 labels.
    """
    checked = np.asarray(given.counts.valid + given.counts.invalid) >= CHECKED
    if not isinstance(fit, SharePosterior) or checked.sum() < 2:
        return None
    low, estimate, high = (
        np.array([np.interp(level, fit.levels, row) for row in fit.held_out])
        for level in ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2)
    )
    columns = {
        "generator": np.array(given.names),
        "labels say": np.asarray(given.counts.labelled_precision),
        "predicted": estimate,
        "low": low,
        "high": high,
        "raw mean": np.asarray(mean_prediction(given.counts)),
    }
    return pd.DataFrame({name: values[checked] for name, values in columns.items()})


def shown_shares(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of generators with fewer columns: labels of items, and the order."""
    labelled = zip(table["labelled"], table["items"], strict=True)
    shown = table.assign(labelled=[f"{a}/{b}" for a, b in labelled]).drop(columns="items")
    if "order settled" not in table:
        return shown
    orders = zip(table["P(better than next)"], table["order settled"], strict=True)
    shown["beats next"] = [
        "" if np.isnan(p) else f"{p:.2f}, {'settled' if settled == 'yes' else 'open'}"
        for p, settled in orders
    ]
    return shown.drop(columns=["P(better than next)", "order settled"])


def precision_figure(table: pd.DataFrame) -> Plot:
    """Return a figure of the generators' estimates and raw means, in per cent."""
    nothing = {"low": np.nan, "high": np.nan}
    parts = [table.assign(value=table["raw mean"], **nothing, series="raw mean")]
    if "estimate" in table:
        ends, series = ({}, "estimate, 90 % interval") if "low" in table else (nothing, "estimate")
        parts.insert(0, table.assign(value=table["estimate"], **ends, series=series))
    both = pd.concat(parts)
    both[["value", "low", "high"]] *= 100

    def draw() -> Any:
        from judgebayes.plots import intervals  # Matplotlib takes half a second to import

        return intervals(both, label="generator", series="series", xlabel="valid items, %")

    title = "Share of each generator's items that is valid"
    return Plot(draw, "generators", title, "The table has the numbers.", title)


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


def precision_warnings(given: Given, fit: PrecisionFit) -> list[str]:
    """Return what is missing for a safe answer, with what to do about it."""
    names, judges, counts = given.names, given.judges, given.counts
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
    if labelled and len(without) and isinstance(fit, Posterior):
        lines.append(
            f"{len(without)} of {len(names)} have no label of their own "
            f"({listing([names[int(place)] for place in without], 3)}): their intervals assume "
            "that the judges err on them as on the labelled ones, which votes cannot show. Where the "
            "judges share a bias for or against one, its interval is wrong, and no order of them is "
            "called settled: label a few items of each."
        )
    if labelled:
        few = round(float(counts.invalid.sum()))
        if few < FEW_INVALID:
            lines.append(
                f"Only {few} labelled item(s) are invalid, too few to estimate how often the judges "
                "notice invalid items. Label more; --next 50 proposes items."
            )
        lines += _uninformative(counts)
    if isinstance(fit, SharePosterior):
        lines += _odd_judges(judges, counts, fit)
        lines += _contradicting(names, counts, fit)
    for place in np.flatnonzero(judge_youden(counts).below(0.0) >= SETTLED).tolist():
        lines.append(
            f"Judge {judges[place]!r} calls invalid items valid more often than valid ones: check "
            "whether its votes are reversed."
        )
    lines += [
        f"Judges {judges[a]!r} and {judges[b]!r} vote alike beyond what label and generator explain: "
        f"their residuals have a correlation of {rho:.2f} (said above {COPIES:g}). If one is a copy of "
        "the other, leave one out: two copies count as two opinions."
        for a, b, rho in copies_among(given.data.votes, given.data.labels, given.generator)
    ]
    return lines


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
    generators: Sequence[str], counts: PrecisionCounts, fit: SharePosterior
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


def _odd_judges(judges: Sequence[str], counts: PrecisionCounts, fit: SharePosterior) -> list[str]:
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
