"""Merge the labels of several annotators of an item into one."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from judgebayes.aggregators.annotators import Annotations, ErrorRates, Merge, error_rates
from judgebayes.arrays import ItemInts
from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import split_names
from judgebayes.measures.scores import krippendorff_alpha
from judgebayes.sentence import percent
from judgebayes.votes import Classes
from judgebayes.votes.classes import listing, written
from judgebayes.votes.columns import numbered, positions
from judgebayes.votes.slots import class_indices
from judgebayes.workflow.options import Annotators

ANNOTATOR = "column of the label"
"""The column of the annotator in a table that has had a column of labels per annotator."""
MOST_NAMED = 8
Z = 1.645
"""The normal quantile of 90 % intervals."""


@dataclass(frozen=True)
class Doubt:
    """How probable the classes of labelled items are, if their labels may be wrong."""

    items: pd.Index
    log_likelihood: Float[np.ndarray, "node item class"]
    """log p(annotators' labels | class); 0 for items whose labels were not merged into one."""
    rate: float
    """The estimated share of the merged labels that is wrong."""

    def of(self, items: pd.Index) -> Float[np.ndarray, "node item class"]:
        """Return the log-likelihood of these items; 0 for items without labels."""
        at = positions(items, self.items.to_series(), str(self.items.name))
        total = np.zeros((len(self.log_likelihood), len(items), self.log_likelihood.shape[2]))
        total[:, at[at >= 0]] = self.log_likelihood[:, at >= 0]
        return total


def check_annotators(options: Annotators) -> None:
    """Check the options for several annotators.

    Raises
    ------
    JudgeBayesError
        If other options are given without a way of merging.
    """
    for name in ("annotator", "adjudicator"):
        if options.labels_merge is None and getattr(options, name) is not None:
            raise JudgeBayesError(
                f"--{name} is used with --labels-merge majority, adjudicated or noisy only."
            )


def label_columns(table: pd.DataFrame, named: str | None) -> list[str]:
    """Return the columns of labels that `--label` names, if they are several columns of the table."""
    if named is None or named in table.columns:
        return []
    names = split_names(named)
    return names if len(names) > 1 and set(names) <= set(table.columns) else []


def melted(table: pd.DataFrame, columns: list[str]) -> tuple[pd.DataFrame, str, str]:
    """Return a table with a row per label, its column of the label, and that of the annotator.

    The annotators are the names of the columns. Rows without a label are left out.
    """
    label = ", ".join(columns)
    others = [name for name in table.columns if name not in columns]
    long = table.melt(others, columns, ANNOTATOR, label, ignore_index=False)
    return long.dropna(subset=[label]), label, ANNOTATOR


def merge_table(
    table: pd.DataFrame,
    item: str,
    label: str,
    annotator: str | None,
    classes: Classes,
    options: Annotators,
) -> tuple[pd.DataFrame, list[str], Doubt | None]:
    """Return the table with the merged label in every row of an item, sentences, and the doubt.

    Raises
    ------
    JudgeBayesError
        For a label of an unknown class, an annotator with two labels of an item, an unknown
        adjudicator, or `noisy` labels without an item that has two.
    """
    index = class_indices(table[label], classes, f"column {label!r}")
    item_of, items = numbered(table[item], item)
    person_of, names = _people(table, annotator)
    final = _final(names, person_of, annotator, options.adjudicator)
    use = index >= 0
    if annotator is not None:
        use = _first_of_each(table, use, (item_of, person_of, index), (item, annotator, label))
    given = Annotations(
        item_of[use], person_of[use], index[use], final[use], len(items), len(classes)
    )
    how: Merge = options.labels_merge  # type: ignore[assignment]
    rates = error_rates(given)
    if how == "noisy" and rates is None:
        raise JudgeBayesError(
            f"No item has two labels in column {label!r}, so the share of wrong labels cannot be "
            "estimated from their disagreement: use --labels-merge majority."
        )
    labels = given.merged(how, rates)
    doubt, words = None, _words(given, names, labels, options)
    if rates is not None:
        doubt = _doubt(items, labels, given, rates)
        words += _noise_words(given, names, rates, doubt.rate, how)
    values = pd.Series([classes.values[k] if k >= 0 else None for k in labels], dtype=object)
    new = table.assign(**{label: values.to_numpy()[item_of]})
    return new, words, None if how == "majority" else doubt


def _people(
    table: pd.DataFrame, annotator: str | None
) -> tuple[Int[np.ndarray, " row"], list[str]]:
    """Return the annotator of each row, and their names; all rows are of one without a column."""
    if annotator is None:
        return np.zeros(len(table), int), []
    code, names = numbered(table[annotator], annotator)
    return code, [written(name) or str(name) for name in names]


def _final(
    names: list[str],
    person_of: Int[np.ndarray, " row"],
    annotator: str | None,
    adjudicator: str | None,
) -> Bool[np.ndarray, " row"]:
    """Return which rows are the adjudicator's."""
    if adjudicator is None:
        return np.zeros(len(person_of), bool)
    if annotator is None:
        raise JudgeBayesError(
            "--adjudicator names an annotator, and the labels have no column of annotators; name it "
            "with --annotator, or name a column per annotator (--label A,B)."
        )
    if adjudicator not in names:
        raise JudgeBayesError(
            f"There is no annotator {adjudicator!r} in column {annotator!r}; it contains "
            f"{listing(names)}."
        )
    return np.asarray(person_of == names.index(adjudicator))


def _first_of_each(
    table: pd.DataFrame,
    use: Bool[np.ndarray, " row"],
    codes: tuple[Int[np.ndarray, " row"], ...],
    columns: tuple[str, str, str],
) -> Bool[np.ndarray, " row"]:
    """Return the first row of each item and annotator; refuse an annotator with two labels."""
    item, annotator, label = columns
    rows = pd.DataFrame(dict(zip(("item", "person", "label"), codes, strict=True)))[use]
    twice = rows.drop_duplicates().duplicated(["item", "person"])
    if twice.any():
        row = table.iloc[twice.index[twice][0]]
        raise JudgeBayesError(
            f"Annotator {row[annotator]!r} gives item {row[item]!r} more than one label in column "
            f"{label!r} (row {row.name} says {row[label]!r}); an annotator must give an item one label."
        )
    first = np.zeros(len(use), bool)
    first[rows.index[~rows.duplicated(["item", "person"])]] = True
    return first


def _doubt(items: pd.Index, labels: ItemInts, given: Annotations, rates: ErrorRates) -> Doubt:
    """Return the log-likelihood of labelled items, and the share of wrong labels."""
    known = labels >= 0
    nodes = np.stack([at.log_likelihood(given) for at in rates.nodes()])
    middle = nodes[1][known]
    wrong = 1 - np.exp(
        middle[np.arange(len(middle)), labels[known]] - np.logaddexp.reduce(middle, axis=1)
    )
    rate = float(wrong.mean()) if len(middle) else 0.0
    return Doubt(items, np.where(known[:, None], nodes, 0.0), max(rate, 0.0))


def _words(
    given: Annotations, names: list[str], labels: ItemInts, options: Annotators
) -> list[str]:
    """Return sentences on the labels per item, their disagreement, and how they were merged."""
    counts = given.counts()
    several = counts.sum(1) > 1
    split = several & ((counts > 0).sum(1) > 1)
    people = [name for name in names if name != options.adjudicator]
    plural = "annotators" if len(people) != 1 else "annotator"
    who = f"{len(people)} {plural} ({listing(people, MOST_NAMED)})" if names else "annotators"
    lines = [f"{int(several.sum())} of {len(labels)} items have more than one label by {who}"]
    if several.any():
        alpha = krippendorff_alpha(counts)
        lines[0] += (
            f"; they disagree on {int(split.sum())} ({percent(split.sum() / several.sum())})"
        )
        if np.isfinite(alpha):
            lines[0] += f", and Krippendorff's alpha is {alpha:.2f}"
    lines[0] += "."
    if not names:
        lines.append(
            "The labels have no column of annotators: each row counts as the label of another one."
        )
    text, why = {
        "majority": ("its most frequent label", "with a tie"),
        "adjudicated": ("the label on which its annotators agree", "on which they disagree"),
        "noisy": ("its most probable label", "without one that is clearly more probable"),
    }[str(options.labels_merge)]
    if options.adjudicator is not None:
        decided = int((given.decided() >= 0).sum())
        text += f", or that of {options.adjudicator!r}, who decides ({decided} items)"
    unlabelled = int(((labels < 0) & (counts.sum(1) > 0)).sum())
    return [
        *lines,
        f"--labels-merge {options.labels_merge}: each item has {text}; {unlabelled} items {why} stay "
        "unlabelled.",
    ]


def _noise_words(
    given: Annotations, names: list[str], rates: ErrorRates, rate: float, how: Merge
) -> list[str]:
    """Return sentences on the estimated errors of annotators and of merged labels."""
    n = np.bincount(given.annotator[~given.final], minlength=len(rates.rate))
    at, spread = rates.level
    ends = [percent(np.average(rates.shifted(at + z * spread).rate, weights=n), 1) for z in (-Z, Z)]
    mean = percent(np.average(rates.rate, weights=n), 1)
    text = (
        f"An estimated {mean} of the annotators' labels are wrong (90 % interval {ends[0]} to "
        f"{ends[1]}"
    )
    if len(names) and (n > 0).sum() > 2:
        worst = sorted(np.flatnonzero(n), key=lambda place: -rates.rate[place])[:MOST_NAMED]
        text += "; " + ", ".join(f"{names[i]} {percent(rates.rate[i], 1)}" for i in worst)
    text += f"), and therefore {percent(rate, 1)} of the merged ones"
    ends_with = {
        "majority": "; the results do not count this, but those of --labels-merge noisy do.",
    }.get(
        how,
        ": calibrate, report, precision, ensemble and diagnose --by count this; other results do not.",
    )
    return [
        text + ends_with,
        "This assumes that annotators err independently, and equally often for every class.",
    ]
