"""`judgebayes ensemble`: how wrong a majority vote is on a user's items, and the labels to know it."""

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float
from rich.console import Console
from rich.table import Table

from judgebayes.cli.saying import WARNING, numbers, say, show
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import NUTS, Status
from judgebayes.io import check_writable, write_table
from judgebayes.majority import (
    BetaBinomial,
    Binomial,
    Counts,
    ErrorCurve,
    FittedDistribution,
    FittedThinning,
    Thinning,
    correct_counts,
    labels_needed,
    odd_sizes,
)
from judgebayes.workflow.options import EnsembleRequest
from judgebayes.workflow.reading import classes_of, labels_of, open_files, read_votes

__all__ = ["ensemble_error", "sizes_of"]

FEW_LABELS = 30
COLUMNS = (
    "mixture: hard and easy items, fitted to the labels. model-free: smaller panels drawn from the "
    "votes there are. independent: what it would be if the votes on an item were independent."
)
FAR = 3


def ensemble_error(request: EnsembleRequest) -> None:
    """Read, fit, print the error against the number of votes, write what was asked for.

    Raises
    ------
    JudgeBayesError
        If there are no labels, or the numbers of votes or the level make no sense.
    """
    console = Console()
    check_writable(request.out)
    check_writable(request.plot, table=False)
    if not 0 < request.level < 1:
        raise JudgeBayesError(f"--level {request.level} is no probability; right would be 0.9.")
    if not 0 < request.target_width < 1:
        raise JudgeBayesError(
            f"--target-width {request.target_width:g} makes no sense; right would be 0.05, say."
        )
    counts, words = _read(request)
    sizes = sizes_of(request.k, counts.most)
    population = len(counts.correct) if request.these_items else None
    free = Thinning().fit(counts)
    with console.status("sampling the posterior of the mixture"):
        fit = BetaBinomial(2, NUTS()).fit(counts, key=jax.random.key(request.seed))
    curves = {
        "mixture": fit.curve(
            sizes, level=request.level, population=population, of=counts, seed=request.seed
        ),
        "model-free": free.curve(sizes, level=request.level, population=population),
    }
    independent = np.asarray(Binomial().fit(counts).estimate(sizes))
    say(console, [*words, *(fit.words() if counts.most > 1 else [])])
    _print(console, curves, independent, request.level)
    say(console, _labels_to_go(request, free, counts, population))
    say(console, _warnings(fit, counts, sizes), WARNING)
    if request.out is not None:
        write_table(_frame(curves), request.out)
        say(console, [f"The table is in {request.out}."])
    if request.plot is not None:
        _plot(curves, independent, request)
        say(console, [f"The plot is in {request.plot}."])


def sizes_of(asked: str | None, most: int) -> tuple[int, ...]:
    """Return the odd numbers of votes that `1:21`, `1,5,9` or `11` stands for.

    Raises
    ------
    JudgeBayesError
        If it stands for none, or is not of that form.
    """
    if asked is None:
        return odd_sizes(most)
    first, colon, last = asked.partition(":")
    try:
        if colon:
            sizes = tuple(k for k in range(int(first), int(last) + 1) if k % 2 == 1 and k > 0)
        else:
            sizes = tuple(int(part) for part in asked.split(","))
    except ValueError:
        sizes = ()
    if not sizes or any(k < 1 or k % 2 == 0 for k in sizes):
        raise JudgeBayesError(
            f"--k {asked!r} names no odd numbers of votes; right would be 1:21 or 3,5,11."
        )
    return sizes


def _read(request: EnsembleRequest) -> tuple[Counts, list[str]]:
    opened = open_files(request.votes, request.labels, request.columns, request.reading)
    if opened.labels is None:
        raise JudgeBayesError(
            "Whether a vote is correct takes a label, and there are none: give them with --labels "
            "FILE or --label COLUMN."
        )
    read = read_votes(opened, classes_of(opened, request.classes, None))
    labels = labels_of(
        opened,
        read,
        drop_unknown=request.drop_unknown_labels,
        allow_degenerate=True,  # votes are compared with labels, nothing is learnt from these
    )
    counts = correct_counts(read.votes, labels)
    given = np.asarray(counts.given)[np.asarray(counts.correct) >= 0]
    if len(given) == 0:
        raise JudgeBayesError("No item has both a vote and a label: label one at least.")
    between = f"{given.max()}" if given.min() == given.max() else f"{given.min()} to {given.max()}"
    words = read.words()
    each = "1 vote" if between == "1" else f"{between} votes"
    words.append(f"{len(given)} of {len(labels)} items are labelled, with {each} each.")
    return counts, words


def _print(
    console: Console,
    curves: dict[str, ErrorCurve],
    independent: Float[np.ndarray, " size"],
    level: float,
) -> None:
    table = Table(box=None, pad_edge=False)
    numbers(table, "votes", *curves, "independent", "")
    first = next(iter(curves.values()))
    for i, size in enumerate(first.size):
        cells = [_interval(c.error[i], c.low[i], c.high[i]) for c in curves.values()]
        note = "extrapolated" if first.extrapolated[i] else ""
        table.add_row(str(size), *cells, f"{independent[i]:.3f}", note)
    show(console, f"Error of a majority vote, with {level:.0%} intervals", table)
    console.print()
    say(console, [COLUMNS])


def _interval(error: float, low: float, high: float) -> str:
    return f"{error:.3f} [{low:.3f}, {high:.3f}]" if np.isfinite(error) else "-"


def _labels_to_go(
    request: EnsembleRequest, free: FittedThinning, counts: Counts, population: int | None
) -> list[str]:
    """Return how wide the interval is now and how many labels the target takes.

    At the largest number of votes that half of the labelled items have: fewer say little.
    """
    labelled = np.asarray(counts.given)[np.asarray(counts.correct) >= 0]
    size = odd_sizes(int(np.median(labelled)))[-1]
    now = free.curve((size,), level=request.level, population=population)
    width = float(now.high[0] - now.low[0])
    known, items = len(labelled), len(counts.correct)
    needed = labels_needed(
        free, size, request.target_width, level=request.level, population=population
    )
    votes = "1 vote" if size == 1 else f"{size} votes"
    begin = f"With {votes} the {request.level:.0%} interval is {width:.3f} wide"
    if needed is None:
        return [f"{begin}; no number of labels makes it {request.target_width:g}."]
    if needed <= known:
        return [f"{begin}: narrow enough for the target of {request.target_width:g}."]
    words = [
        f"{begin}. For {request.target_width:g} about {needed} labels are needed, "
        f"{needed - known} more."
    ]
    if needed > items:
        words.append(
            f"The file has {items} items: ask for a wider interval, or with --these-items for the "
            "error on these items alone."
        )
    return words


def _warnings(fit: FittedDistribution, counts: Counts, sizes: tuple[int, ...]) -> list[str]:
    found = []
    status = Status(int(fit.status))
    given = np.asarray(counts.given)[np.asarray(counts.correct) >= 0]
    if status != Status.CONVERGED:
        found.append(status.sentence)
    if counts.most == 1:
        found.append(
            "With one vote on an item nothing tells hard items from easy ones: what more votes would "
            "bring rests on the prior."
        )
    if len(given) < FEW_LABELS:
        found.append(f"Only {len(given)} labels: believe the intervals, not the estimates.")
    if len(np.unique(given)) > 1:
        largest = max((size for size in sizes if size <= counts.most), default=1)
        found.append(
            "Items have different numbers of votes: the model-free figure at k is that of the items "
            f"with at least k, which may be other items (at {largest}: "
            f"{int((given >= largest).sum())} of {len(given)})."
        )
    if max(sizes) > counts.most:
        found.append(
            f"No item has more than {counts.most} votes: beyond, the figures rest on the mixture "
            "alone, and hold for more votes of the same judges"
            + (" (far beyond, hardly)." if max(sizes) > FAR * counts.most else ".")
        )
    return found


def _frame(curves: dict[str, ErrorCurve]) -> pd.DataFrame:
    parts = [
        pd.DataFrame(
            {
                "votes": curve.size,
                "method": name,
                "error": curve.error,
                "low": curve.low,
                "high": curve.high,
                "extrapolated": curve.extrapolated,
            }
        )
        for name, curve in curves.items()
    ]
    return pd.concat(parts, ignore_index=True)


def _plot(
    curves: dict[str, ErrorCurve],
    independent: Float[np.ndarray, " size"],
    request: EnsembleRequest,
) -> None:
    from judgebayes.plots import error_curves

    assert request.plot is not None
    figure = error_curves(
        curves | {"independent votes": _line(next(iter(curves.values())), independent)},
        title=f"Error of a majority vote ({request.level:.0%} intervals)",
    )
    try:
        figure.savefig(request.plot, dpi=130)
    except (OSError, ValueError) as error:
        raise JudgeBayesError(
            f"{str(request.plot)!r} cannot be written: {error}. Right would be a path that ends in "
            ".png, .pdf or .svg."
        ) from error


def _line(like: ErrorCurve, error: Float[np.ndarray, " size"]) -> ErrorCurve:
    none = np.full(len(error), np.nan)
    return ErrorCurve(like.size, error, none, none, like.extrapolated)
