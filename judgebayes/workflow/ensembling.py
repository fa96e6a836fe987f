"""The error of a majority vote on a user's items, and the number of labels to estimate it."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import jax
import numpy as np
import pandas as pd
from scipy.stats import binom

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import NUTS, Status
from judgebayes.majority import (
    BetaBinomial,
    Counts,
    ErrorCurve,
    FittedDistribution,
    correct_counts,
    design_effect,
    next_labels,
    odd_sizes,
)
from judgebayes.progress import Progress, followed
from judgebayes.sentence import of_votes, percent, with_interval
from judgebayes.show.page import Block, Findings, Paragraph, Plot, Table
from judgebayes.votes import Votes
from judgebayes.workflow.asking import data_of
from judgebayes.workflow.data import Study, grouped_words, undecided_as_class
from judgebayes.workflow.ensemble_estimates import (
    CURVE,
    MIXTURE,
    Estimates,
    Stop,
    chosen_words,
    first_words,
    labels_to_go,
    panel_errors,
    plurality_right,
    shares_of,
    split_words,
    stop_of,
)
from judgebayes.workflow.ensemble_panel import panel_of, without_intervals
from judgebayes.workflow.methods import FEW_LABELS
from judgebayes.workflow.next_steps import majority_steps, next_file, next_table
from judgebayes.workflow.options import TARGETS, EnsembleRequest, Fixed
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import Answer, Parts, Written, as_notes, ends

MEANINGS = {
    "split curve": "labels of all items, known or drawn given how the votes split.",
    "model-free": "smaller panels drawn from the votes of labelled items.",
    "mixture": "a model of hard and easy items, fitted to the labels.",
    "independent": "the error if the votes on an item were independent.",
    "no decision": "items on which the votes are tied, which do not count as wrong.",
}
"""What the columns of the tables mean."""
FAR = 3
MAX_REPORTED_WIDTH = 0.5
"""A share of hard items with a wider interval than this is reported as undetermined."""


@dataclass(frozen=True, repr=False, kw_only=True)
class MajorityError(Answer):
    """The error of a majority vote, by the number of votes."""

    schema: ClassVar[str] = "judgebayes.majority_error/1"
    data: Study
    estimates: Estimates
    """The panel's votes, the labels, and the split curve fitted to them."""
    fit: FittedDistribution
    """The mixture of hard and easy items."""
    curves: dict[str, dict[str, ErrorCurve]]
    """By quantity and method: the "error" of the decision; the mean "distance" of a median from the
    label in classes; and "less than half right", P(S < k/2), the paper's figure, where it is not the
    error of the decision."""
    stop: Stop | None
    """Whether labelling may stop; None without a target width."""
    warnings: list[str]


@with_options
@in_float64
def ensemble(
    request: Annotated[
        EnsembleRequest,
        Fixed({"out": None, "html": None}),
    ],
    progress: Progress | None = None,
) -> MajorityError:
    """Estimate the error of a majority of k votes on your items, and how many labels this needs.

    The function behind `judgebayes ensemble`, with the same options; `votes` and `labels` are
    paths or tables, or `votes` is what `read` returned.

    Raises
    ------
    JudgeBayesError
        If there are no labels, the numbers of votes or the level are invalid, or for bad input.
    """
    if not 0 < request.level < 1:
        raise JudgeBayesError(f"--level is {request.level}; it must be a probability, such as 0.9.")
    goal = request.target_width
    if goal is not None and not 0 < goal < 1:
        raise JudgeBayesError(
            f"--target-width is {goal:g}; it must be between 0 and 1, such as 0.05."
        )
    data = undecided_as_class(data_of(request))
    panel = panel_of(data, request)
    counts, words = _correct_counts(data, panel.votes)
    words += [*panel.words, *_noise_words(data.label_noise)]
    even = request.ties is not None or request.decision == "median"
    sizes = sizes_of(request.k, counts.most, even)
    effect = 1.0
    if data.groups is not None:
        effect = design_effect(counts, data.groups, odd_sizes(counts.most), level=request.level)
        worth = int((np.asarray(counts.correct) >= 0).sum()) / effect
        words += grouped_words(data, f"These say as much as {worth:.0f} independent items.")
    estimates = Estimates(request, panel, counts, data.groups, effect, data.label_noise)
    for each in followed(
        [BetaBinomial(2, NUTS())], "sampling the posterior of the mixture", progress
    ):
        fit = each.fit(counts, weight=estimates.weight, key=jax.random.key(request.seed))
    odd = tuple(size for size in sizes if size % 2)
    paper = estimates.paper(fit, odd) if odd else {}
    curves = paper if panel.papers_error and odd == sizes else estimates.decided(sizes, "wrong")
    every = {"error": curves}
    if request.decision == "median":
        every["distance"] = estimates.decided(sizes, "absolute")
    if curves is not paper and paper:
        every["less than half right"] = paper
    stop = None if goal is None else stop_of(estimates, data.coding.items, goal)
    panels, splits = panel_errors(estimates, data), panel.splits
    said = [
        *words,
        *(_mixture_words(fit) if counts.most > 1 else []),
        *split_words(estimates.fitted, splits),
    ]
    to_go = [*labels_to_go(estimates), *([] if stop is None else stop.sentences)]
    warnings = [*_warnings(fit, counts, sizes), *chosen_words(splits), *first_words(splits)]
    next_items = _next_items(estimates, data, sizes)
    errors = pd.concat(
        [
            pd.DataFrame({"quantity": quantity, "votes": curve.size, "method": name} | vars(curve))
            for quantity, of in every.items()
            for name, curve in of.items()
        ],
        ignore_index=True,
    ).drop(columns="size")
    seen = ~curves[CURVE].extrapolated & np.isfinite(curves[CURVE].error)
    written: tuple[str, Written] = ("the errors", errors)
    parts = Parts(
        blocks=[
            *map(Paragraph, said),
            *_curve_blocks(estimates, every),
            _panels_table(panels, request.level),
            *map(Paragraph, to_go),
            Findings(as_notes(warnings)),
            *next_table(next_items),
        ],
        tables={"errors": errors, "panels": panels, "next": next_items},
        numbers=data.numbers
        | {"error": ends(*panels.loc[0, ["error", "low", "high"]])}
        | ({} if stop is None else stop.numbers),
        next_steps=majority_steps(curves[CURVE].size[seen], curves[CURVE].error[seen], panels),
        files={"out": written if next_items is None else next_file(next_items, ["item"])},
    )
    return MajorityError(
        parts=parts,
        data=data,
        estimates=estimates,
        fit=fit,
        curves=every,
        stop=stop,
        warnings=warnings,
    )


def _curve_blocks(estimates: Estimates, every: dict[str, dict[str, ErrorCurve]]) -> list[Block]:
    """Return a table of each quantity by the number of votes, what its columns mean, and a figure."""
    curves, panel = every["error"], estimates.panel
    about, level = TARGETS[estimates.request.target], percent(estimates.request.level)
    sizes = tuple(map(int, curves[CURVE].size))
    odd = tuple(size for size in sizes if size % 2)
    correct, given = np.asarray(estimates.counts.correct), np.asarray(estimates.counts.given)
    right = correct[correct >= 0].sum() / given[correct >= 0].sum()
    values = binom.cdf(np.array(odd) // 2, odd, right)
    independent = without_intervals(odd, values, np.array(odd) > estimates.counts.most)
    both = MIXTURE in curves
    decision = "median" if "distance" in every else "majority vote" if both else "plurality"
    titles = {
        "error": f"Error of a {decision} on {about}, in %",
        "distance": "Its mean distance from the label, in hundredths of a class",
        "less than half right": "Items with less than half of k votes right, P(S < k/2) (P3), in %",
    }
    shown = {name: dict(of) for name, of in every.items()}
    if (beside := "error" if both else "less than half right") in shown:
        shown[beside]["independent"] = independent
    if (abstained := panel.abstained(sizes)) is not None:
        shown["error"]["no decision"] = abstained
    columns = {name for of in shown.values() for name in of}

    def draw() -> Any:
        from judgebayes.plots import error_curves  # Matplotlib takes long to import

        other = {"independent votes": independent} if both else {}
        return error_curves(curves | other)

    title = f"Error of a majority vote on {about}"
    return [
        *(_curves_table(f"{titles[q]}, with {level} intervals", of) for q, of in shown.items()),
        Paragraph(" ".join(f"{name}: {MEANINGS[name]}" for name in MEANINGS if name in columns)),
        Plot(draw, "errors", title, "The table has the numbers.", title),
    ]


def _panels_table(panels: pd.DataFrame, level: float) -> Table:
    rows = [
        (panel, with_interval(interval, ".1f", unit=""))
        for panel, *interval in panels.itertuples(index=False)
    ]
    title = f"Error of the votes that each item has, in %, with {percent(level)} intervals"
    return Table(title, ("panel", "error"), rows)


def _curves_table(title: str, curves: dict[str, ErrorCurve]) -> Table:
    """Return a row per number of votes: the error of each curve with its interval, if it has one."""
    every, rows = list(curves.values()), []
    for i, size in enumerate(every[0].size):
        ends = ((each.error[i], each.low[i], each.high[i]) for each in every)
        cells = (with_interval(each, ".1f", unit="") for each in ends)
        beyond = any(each.extrapolated[i] for each in every)
        rows.append([str(size), *cells, "extrapolated" if beyond else ""])
    return Table(title, ("votes", *curves, ""), rows)


def _next_items(estimates: Estimates, data: Study, sizes: tuple[int, ...]) -> pd.DataFrame | None:
    """Return a row per item to label next: its votes, and how probably their plurality is right."""
    most = estimates.request.next_labels
    if most is None:
        return None
    splits = estimates.panel.splits
    papers = estimates.panel.papers_error
    chosen = next_labels(
        estimates.fitted,
        splits,
        most,
        tuple(size for size in sizes if size % 2) if papers else sizes,
        estimates.asked,
        seed=estimates.request.seed,
    )
    some = splits.take(chosen)
    share = shares_of(some)
    return pd.DataFrame(
        {
            "item": pd.Index(data.coding.items)[chosen],
            "votes": some.total,
            "votes of the plurality": share.max(1),
            "P(plurality right)": plurality_right(estimates.fitted, some, share),
        }
    )


def sizes_of(text: str | None, most: int, even: bool = False) -> tuple[int, ...]:
    """Parse numbers of votes from `1:21`, `1,5,9` or `11`; by default all odd ones up to `most`.

    Even numbers are an error, and are left out of a range, unless ties are decided (`even`).

    Raises
    ------
    JudgeBayesError
        If there are none, or the text has another form.
    """
    if text is None:
        return odd_sizes(most)
    first, colon, last = text.partition(":")
    try:
        if colon:
            sizes = tuple(k for k in range(int(first), int(last) + 1) if (even or k % 2) and k > 0)
        else:
            sizes = tuple(int(part) for part in text.split(","))
    except ValueError:
        sizes = ()
    if not sizes or any(k < 1 or (k % 2 == 0 and not even) for k in sizes):
        raise JudgeBayesError(
            f"--k {text!r} must name {'' if even else 'odd '}numbers of votes, for example 1:21 or "
            "3,5,11." + ("" if even else " For even numbers, --ties states how ties are decided.")
        )
    return sizes


def _correct_counts(data: Study, votes: Votes) -> tuple[Counts, list[str]]:
    """Return the number of correct votes of each item, and what was read, in sentences."""
    labels = data.labels
    counts = correct_counts(votes, labels)
    given = np.asarray(counts.given)[np.asarray(counts.correct) >= 0]
    if len(given) == 0:
        raise JudgeBayesError(
            "No item has both a vote and a label; label at least one item with votes."
        )
    between = f"{given.max()}" if given.min() == given.max() else f"{given.min()} to {given.max()}"
    words = data.words()
    words.append(
        f"{len(given)} of {len(labels)} items are labelled, with {of_votes(between)} each."
    )
    return counts, words


def _mixture_words(fit: FittedDistribution) -> list[str]:
    """Return the parameters of the sampled mixture in a sentence, with 90 % intervals."""
    share, mean, _ = (np.asarray(x) for x in fit.theta)
    low, high = np.quantile(share[:, 0], (0.05, 0.95))
    if high - low > MAX_REPORTED_WIDTH:
        return [
            f"These labels do not determine how many items are hard ({percent(low)} to "
            f"{percent(high)}); the errors do not depend on it."
        ]
    ends = np.quantile(mean, (0.05, 0.95), axis=0)
    return [
        f"About {percent(share[:, 0].mean())} of the items are hard ({percent(low)} to "
        f"{percent(high)}): a vote on them is correct with probability {mean[:, 0].mean():.2f} "
        f"({ends[0, 0]:.2f} to {ends[1, 0]:.2f}), a vote on the others with "
        f"{mean[:, 1].mean():.2f} ({ends[0, 1]:.2f} to {ends[1, 1]:.2f})."
    ]


def _noise_words(noise: float) -> list[str]:
    """Return which estimates count that labels may be wrong, in a sentence."""
    if noise == 0:
        return []
    return [
        f"The split curve counts that an estimated {percent(noise, 1)} of the labels are wrong, and "
        "draws those of labelled items, too; the other columns take labels as right."
    ]


def _warnings(fit: FittedDistribution, counts: Counts, sizes: tuple[int, ...]) -> list[str]:
    warnings = []
    status = Status(int(fit.status))
    given = np.asarray(counts.given)[np.asarray(counts.correct) >= 0]
    if status != Status.CONVERGED:
        warnings.append(status.sentence)
    if counts.most == 1:
        warnings.append(
            "With one vote per item, hard and easy items cannot be distinguished: the effect of more "
            "votes comes from the prior."
        )
    if len(given) < FEW_LABELS:
        warnings.append(
            f"There are only {len(given)} label(s): use the intervals, not the estimates alone."
        )
    if len(np.unique(given)) > 1:
        largest = max((size for size in sizes if size <= counts.most), default=1)
        warnings.append(
            "Items have different numbers of votes: the model-free estimate at k uses only the items "
            f"with at least k votes, which may differ from the others (at {largest}: "
            f"{int((given >= largest).sum())} of {len(given)})."
        )
    if max(sizes) > counts.most:
        warnings.append(
            f"No item has more than {counts.most} votes: the error at larger numbers is "
            "extrapolated by the mixture, and applies to more votes of the same judges"
            + (" (far extrapolations are unreliable)." if max(sizes) > FAR * counts.most else ".")
        )
    return warnings
