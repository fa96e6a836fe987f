"""Classes for votes that are scores with many values: quantiles, or cut points learnt from labels.

The scores of a user's files are cut by the option `bins`, or as those of a saved fit were.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from judgebayes.errors import JudgeBayesError
from judgebayes.votes import Classes
from judgebayes.votes.classes import canonical, distinct, inferred, listing, written
from judgebayes.votes.columns import cell_of, first_row
from judgebayes.workflow.scales import are_scores, in_order
from judgebayes.workflow.sources import Labels, Opened

LEARNT = "learnt"
MOST_BINS = 50


@dataclass(frozen=True)
class Bins:
    """Cut points between classes: a score is in the class above each cut point that is at most it."""

    names: tuple[Hashable, ...]
    """The classes, from the lowest to the highest scores."""
    cuts: Mapping[str, tuple[float, ...]]
    """The cut points of each judge; those of "" are for all others."""
    learnt_from: int = 0
    """The number of labelled items that the cut points are learnt from; 0 for quantiles."""

    def of(self, scores: Float[np.ndarray, " vote"], judge: str = "") -> np.ndarray:
        """Return the class of each score of a judge, None where there is none."""
        cuts = self.cuts.get(judge, self.cuts.get("", ()))
        place = np.searchsorted(np.asarray(cuts, float), scores, side="right")
        names: np.ndarray = np.array([*self.names, None], object)
        return names[np.where(np.isnan(scores), -1, place)]

    def words(self) -> list[str]:
        """Return what the classes are, in sentences."""
        if not self.learnt_from:
            (cuts,) = self.cuts.values()
            return [
                f"bins={len(self.names)}: scores are read as the classes {listing(self.names)}, cut "
                f"at {_numbers(cuts)}, which gives each class about the same share of the votes."
            ]
        each = "; ".join(
            f"{judge} at {_numbers(cuts)}" for judge, cuts in self.cuts.items() if judge
        )
        return [
            f"bins=learnt: scores are read as the classes of the labels, {listing(self.names)}, cut "
            f"at {_numbers(self.cuts[''])}{f' ({each})' if each else ''}.",
            f"The cut points are learnt from {self.learnt_from} labelled items, which the results "
            "below use again: held-out scores are a little too good. bins with a number uses no "
            "label.",
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the cut points as plain values."""
        return {
            "names": list(self.names),
            "cuts": {judge: list(cuts) for judge, cuts in self.cuts.items()},
        }


def bins_from(saved: object) -> Bins | None:
    """Return the cut points of `Bins.to_json`; None if they are of another form."""
    try:
        names = tuple(saved["names"])  # type: ignore[index]
        cuts = {str(j): tuple(map(float, cut)) for j, cut in saved["cuts"].items()}  # type: ignore[index]
    except (TypeError, KeyError, ValueError, OverflowError, AttributeError):
        return None
    plain = all(isinstance(name, str | int | float) for name in names)
    rising = all(
        np.isfinite(cut).all() and len(cut) == len(names) - 1 and sorted(cut) == [*cut]
        for cut in cuts.values()
    )
    return Bins(names, cuts) if plain and rising and 2 <= len(names) <= MOST_BINS else None


def numbers_of(scores: pd.Series, judges: pd.Series | None = None) -> Float[np.ndarray, " vote"]:
    """Return scores as numbers, NaN where there is none.

    Raises
    ------
    JudgeBayesError
        If a cell is no number.
    """
    plain = scores.map(canonical).astype(object)
    row = first_row(plain.map(lambda value: not isinstance(value, int | float | None)))
    if row is not None:
        raise JudgeBayesError(
            f"{cell_of(scores, row, judges)}; bins needs numbers. If it means no vote, use --set "
            "missing=VALUE."
        )
    return plain.to_numpy(float)


def quantile_bins(
    scores: Float[np.ndarray, " vote"], n: int, names: Sequence[Hashable] | None = None
) -> Bins:
    """Return classes with about the same number of votes each.

    Parameters
    ----------
    scores
        The scores of all votes.
    n
        The number of classes.
    names
        Their names; 1, 2, ..., n by default.

    Raises
    ------
    JudgeBayesError
        If there are fewer than n different scores, or so many equal ones that a class is empty.
    """
    cuts = np.quantile(scores, np.arange(1, n) / n, method="higher") if len(scores) else scores
    if len(np.unique(cuts)) < n - 1 or len(cuts) == 0 or cuts[0] <= scores.min():
        raise JudgeBayesError(
            f"bins={n}: the votes have {len(np.unique(scores))} different values, and so many are "
            "equal that a class would be empty; use fewer classes."
        )
    return Bins(tuple(names or range(1, n + 1)), {"": tuple(map(float, cuts))})


def learn_cuts(
    scores: Float[np.ndarray, " vote"], labels: Int[np.ndarray, " vote"], n: int
) -> tuple[float, ...]:
    r"""Return the cut points of scores that best reproduce the labels' classes.

    They minimise :math:`\sum_i |c(s_i) - y_i|`, the sum of class steps, over all nondecreasing
    assignments c of scores to classes 0, ..., n - 1, by dynamic programming. A cut point is half-way
    between two scores; classes that no score has are above the highest or between equal cut points.
    """
    values, of_value = np.unique(scores, return_inverse=True)
    cost = np.zeros((len(values), n))
    for c in range(n):
        np.add.at(cost[:, c], of_value, np.abs(c - labels))
    total = np.zeros((len(values) + 1, n))
    came = np.zeros((len(values), n), int)
    for i in range(len(values)):
        for c in range(n):
            came[i, c] = int(np.argmin(total[i, : c + 1]))
            total[i + 1, c] = total[i, came[i, c]] + cost[i, c]
    assigned = np.zeros(len(values), int)
    c = int(np.argmin(total[-1]))
    for i in reversed(range(len(values))):
        assigned[i] = c
        c = came[i, c]
    middle = np.concatenate([[values[0]], (values[1:] + values[:-1]) / 2, [values[-1] + 1.0]])
    return tuple(float(middle[np.searchsorted(assigned, c)]) for c in range(1, n))


def binned(opened: Opened, earlier: Bins | None) -> Opened:
    """Return the files with a class in place of each score, if `bins` or a saved fit cuts scores.

    `earlier` are the cut points of the saved fit.

    Raises
    ------
    JudgeBayesError
        If the option is no number of classes and not "learnt", a vote is no number, or there are no
        labels to learn from.
    """
    how, bins = opened.request.bins, earlier
    if how is None and bins is None:
        return opened
    judges = None if opened.judge is None else opened.table[opened.judge]
    scores, gold = (
        pd.DataFrame(
            {
                "item": opened.items.map(written),
                "judge": "" if judges is None else judges.map(written).fillna(""),
                "score": numbers_of(opened.votes, judges),
            }
        ),
        opened.labels,
    )
    labels_too = gold is not None and are_scores(list(gold.table[gold.label].unique()))
    if bins is None:
        classes = None if gold is None or labels_too else _label_classes(gold)
        if how == LEARNT:
            bins = _learnt(scores, gold, classes)
        else:
            bins = _quantiles(scores["score"].to_numpy(), str(how), classes)
    numbers, cut = scores["score"].to_numpy(), np.empty(len(scores), object)
    for judge, rows in scores.groupby("judge").indices.items():
        cut[rows] = bins.of(numbers[rows], str(judge))
    if gold is not None and labels_too:
        of_labels = bins.of(numbers_of(gold.table[gold.label]))
        gold = replace(gold, table=gold.table.assign(**{gold.label: of_labels}))
    return replace(
        opened,
        table=opened.table.assign(**{str(opened.votes.name): cut}),
        labels=gold,
        bins=bins,
        classes=tuple(map(str, bins.names)),
        notes=(*opened.notes, *bins.words()),
    )


def _quantiles(scores: Float[np.ndarray, " vote"], how: str, labels: Classes | None) -> Bins:
    if not how.isascii() or not how.isdigit() or not 2 <= int(how) <= MOST_BINS:
        raise JudgeBayesError(
            f"bins is {how!r}, neither a number of classes from 2 to {MOST_BINS} nor {LEARNT!r}."
        )
    n = int(how)
    if labels is not None and len(labels) != n:
        raise JudgeBayesError(
            f"bins={n} makes {n} classes, but the labels have {len(labels)} "
            f"({', '.join(labels.names)}): use --set bins={len(labels)} or --set bins={LEARNT}."
        )
    return quantile_bins(scores[np.isfinite(scores)], n, None if labels is None else labels.values)


def _learnt(scores: pd.DataFrame, gold: Labels | None, classes: Classes | None) -> Bins:
    if gold is None:
        raise JudgeBayesError(
            "bins=learnt learns cut points from labels, and there are none; use a number, such as "
            "--set bins=5, or add --labels FILE."
        )
    if classes is None:
        raise JudgeBayesError(
            "bins=learnt needs labels of few classes, and the labels are scores too; use a number, "
            "such as --set bins=5, which cuts both."
        )
    label = gold.table[[gold.item, gold.label]].dropna().drop_duplicates()
    pairs = {"item": label[gold.item].map(written), "label": classes.indices(label[gold.label])}
    known = scores.dropna(subset=["score"]).merge(pd.DataFrame(pairs), on="item")
    if len(known) == 0:
        raise JudgeBayesError("bins=learnt: no item has both a score and a label.")
    parts = {"": known}
    if known["judge"].nunique() > 1:
        parts |= {str(judge): part for judge, part in known.groupby("judge", sort=False)}
    cuts = {
        judge: learn_cuts(part["score"].to_numpy(float), part["label"].to_numpy(int), len(classes))
        for judge, part in parts.items()
    }
    return Bins(classes.values, cuts, int(known["item"].nunique()))


def _label_classes(gold: Labels) -> Classes:
    values = distinct(gold.table[gold.label].unique())
    if (classes := inferred(values)) is not None:
        return classes
    ordered, known = in_order(values)
    if not known:
        raise JudgeBayesError(
            f"bins takes the classes of the labels, and the order of {listing(values)} is unknown; "
            "write them as numbers."
        )
    return Classes(tuple(ordered), pairwise=False)


def _numbers(cuts: Sequence[float]) -> str:
    return ", ".join(f"{cut:.4g}" for cut in cuts)
