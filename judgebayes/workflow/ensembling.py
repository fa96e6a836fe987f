"""How wrong a majority vote is on a user's items, and how many labels it takes to know it."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import NUTS, Status
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
from judgebayes.progress import Progress, followed
from judgebayes.workflow.data import Data, encoded, read_before
from judgebayes.workflow.options import EnsembleRequest, Fixed
from judgebayes.workflow.reading import classes_of, open_files
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import Result

__all__ = ["MajorityError", "ensemble", "ensemble_request", "sizes_of"]

FEW_LABELS = 30
FAR = 3
UNLABELLED = (
    "Whether a vote is correct takes a label, and there are none: give them with --labels FILE or "
    "--label COLUMN."
)


@dataclass(frozen=True, repr=False)
class MajorityError(Result):
    """How wrong a majority vote is, by the number of votes."""

    schema: ClassVar[str] = "judgebayes.majority_error/1"
    data: Data
    request: EnsembleRequest
    counts: Counts
    """How many votes of each item are correct."""
    sizes: tuple[int, ...]
    """The numbers of votes."""
    fit: FittedDistribution
    """The mixture of hard and easy items."""
    curves: dict[str, ErrorCurve]
    """The error by the mixture, and without a model."""
    independent: Float[np.ndarray, " size"]
    """What it would be if the votes on an item were independent."""
    said: list[str]
    """What was read, and what the mixture is, in sentences."""
    labels_to_go: list[str]
    """How wide the interval is, and how many labels would make it narrow, in sentences."""
    warnings: list[str]

    @property
    def sentences(self) -> list[str]:
        """What was read and fitted, what it takes to know more, and what to beware of."""
        return [*self.said, *self.labels_to_go, *self.warnings]

    @property
    def errors(self) -> pd.DataFrame:
        """A row per method and number of votes: the error with its interval."""
        return _frame(self.curves)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The errors."""
        return {"errors": self.errors}


@with_options
def ensemble(
    request: Annotated[EnsembleRequest, Fixed({"out": None, "plot": None})],
    progress: Progress | None = None,
) -> MajorityError:
    """Estimate how wrong a majority vote of k is on your items, and how many labels it takes to know.

    What `judgebayes ensemble` does, with its options under the same names; `votes` and `labels` are
    paths or tables, or `votes` is what `read` returned.

    Raises
    ------
    JudgeBayesError
        If there are no labels, the numbers of votes or the level make no sense, or for bad input.
    """
    return ensemble_request(request, progress)


@in_float64
def ensemble_request(request: EnsembleRequest, progress: Progress | None = None) -> MajorityError:
    """Return what `ensemble` does, of options in a record."""
    if not 0 < request.level < 1:
        raise JudgeBayesError(f"--level {request.level} is no probability; right would be 0.9.")
    if not 0 < request.target_width < 1:
        raise JudgeBayesError(
            f"--target-width {request.target_width:g} makes no sense; right would be 0.05, say."
        )
    data = read_before(request) or _read_files(request)
    counts, words = _counted(data)
    sizes = sizes_of(request.k, counts.most)
    population = len(counts.correct) if request.these_items else None
    free = Thinning().fit(counts)
    for each in followed(
        [BetaBinomial(2, NUTS())], "sampling the posterior of the mixture", progress
    ):
        fit = each.fit(counts, key=jax.random.key(request.seed))
    curves = {
        "mixture": fit.curve(
            sizes, level=request.level, population=population, of=counts, seed=request.seed
        ),
        "model-free": free.curve(sizes, level=request.level, population=population),
    }
    return MajorityError(
        data=data,
        request=request,
        counts=counts,
        sizes=sizes,
        fit=fit,
        curves=curves,
        independent=np.asarray(Binomial().fit(counts).estimate(sizes)),
        said=[*words, *(fit.words() if counts.most > 1 else [])],
        labels_to_go=_labels_to_go(request, free, counts, population),
        warnings=_warnings(fit, counts, sizes),
    )


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


def _read_files(request: EnsembleRequest) -> Data:
    opened = open_files(request.votes, request.labels, request.columns, request.reading)
    if opened.labels is None:
        raise JudgeBayesError(UNLABELLED)
    classes = classes_of(opened, request.classes, None)
    return encoded(opened, classes, drop_unknown=request.drop_unknown_labels, dense=True)


def _counted(data: Data) -> tuple[Counts, list[str]]:
    """Return how many votes of each item are correct, and what was read, in sentences."""
    if not data.labelled:
        raise JudgeBayesError(UNLABELLED)
    read, labels = data.table, data.labels
    counts = correct_counts(read.votes, labels)
    given = np.asarray(counts.given)[np.asarray(counts.correct) >= 0]
    if len(given) == 0:
        raise JudgeBayesError("No item has both a vote and a label: label one at least.")
    between = f"{given.max()}" if given.min() == given.max() else f"{given.min()} to {given.max()}"
    words = read.words()
    each = "1 vote" if between == "1" else f"{between} votes"
    words.append(f"{len(given)} of {len(labels)} items are labelled, with {each} each.")
    return counts, words


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
