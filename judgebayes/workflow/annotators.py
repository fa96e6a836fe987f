"""Merge the labels of several annotators of an item into one."""

from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import softmax

from judgebayes.arrays import ItemInts
from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import split_names
from judgebayes.measures.scores import krippendorff_alpha
from judgebayes.sentence import percent
from judgebayes.votes import MISSING, Coding
from judgebayes.votes.annotators import Annotations, ErrorRates, Merge, error_rates
from judgebayes.votes.classes import listing
from judgebayes.votes.columns import first_row, label_indices, numbered, positions
from judgebayes.workflow.options import ReadRequest
from judgebayes.workflow.sources import Labels, Opened

ANNOTATOR = "column of the label"
"""The column of the annotator in a table that has had a column of labels per annotator."""
MOST_NAMED = 8
Z = 1.645
"""The normal quantile of 90 % intervals."""


def label_columns(table: pd.DataFrame, named: str | None) -> list[str]:
    """Return the columns of labels that `--label` names, if they are several columns of the table."""
    if named is None or named in table.columns:
        return []
    names = split_names(named)
    return names if len(names) > 1 and set(names) <= set(table.columns) else []


def stacked(table: pd.DataFrame, columns: list[str], name: str, value: str) -> pd.DataFrame:
    """Return a table with a row per cell of some columns, their names and their values in columns."""
    values = table[columns].astype(object).to_numpy().ravel()
    names = np.tile(np.array(columns, object), len(table))
    rest = table.drop(columns=columns)
    rows = rest.take(np.repeat(np.arange(len(rest)), len(columns)))
    return rows.assign(**{name: names, value: values})


def melted(table: pd.DataFrame, columns: list[str]) -> tuple[pd.DataFrame, str, str]:
    """Return a table with a row per label, its column of the label, and that of the annotator.

    The annotators are the names of the columns. Rows without a label are left out.
    """
    label = ", ".join(columns)
    return stacked(table, columns, ANNOTATOR, label).dropna(subset=[label]), label, ANNOTATOR


def merged(
    opened: Opened, coding: Coding
) -> tuple[Opened, Float[np.ndarray, "node item class"] | None, float]:
    """Return the files with one label for each item, if the labels of annotators are merged.

    If these may be wrong, and the majority does not decide: also log p(annotators' labels | class) of
    the items with votes, 0 without a merged label; and the estimated share of wrong labels.

    Raises
    ------
    JudgeBayesError
        If there is nothing to merge, for a label of an unknown class, an annotator with two labels of an
        item, an unknown adjudicator, or `noisy` labels without an item that has two.
    """
    gold, options = opened.labels, opened.request
    if options.labels_merge is None:
        return opened, None, 0.0
    if gold is None:
        raise JudgeBayesError(
            "labels_merge merges labels, and there are none; add them with --labels FILE or --label "
            "COLUMN."
        )
    if gold.table is opened.table:
        raise JudgeBayesError(
            f"The votes repeat the label of column {gold.label!r}, so that annotators cannot be "
            "counted: put the labels into a file of their own (--labels FILE), or name a column per "
            "annotator (--label A,B)."
        )
    classes = coding.classes
    index = label_indices(gold.table[gold.label], classes)
    item_of, items = numbered(gold.table[gold.item], gold.item)
    person_of, names = _people(gold, options.adjudicator)
    rows = pd.DataFrame({"item": item_of, "person": person_of, "label": index})[index >= 0]
    if gold.annotator is not None:
        rows = rows.drop_duplicates()
        if (twice := first_row(rows.duplicated(["item", "person"]))) is not None:
            row = gold.table.iloc[rows.index[twice]]
            raise JudgeBayesError(
                f"Annotator {row[gold.annotator]!r} gives item {row[gold.item]!r} more than one label "
                f"in column {gold.label!r} (row {row.name} says {row[gold.label]!r}); an annotator must "
                "give an item one label."
            )
    final = rows["person"] == (
        -1 if options.adjudicator is None else names.index(options.adjudicator)
    )
    decided = np.full(len(items), MISSING)
    decided[rows["item"][final]] = rows["label"][final]
    item, person, label = rows[~final].to_numpy().T
    people = int(rows["person"].to_numpy().max(initial=0)) + 1
    given = Annotations(item, person, label, decided, people, len(classes))
    how: Merge = options.labels_merge  # type: ignore[assignment]
    rates = error_rates(given)
    if how == "noisy" and rates is None:
        raise JudgeBayesError(
            f"No item has two labels in column {gold.label!r}, so the share of wrong labels cannot be "
            "estimated from their disagreement: use --set labels_merge=majority."
        )
    labels = given.merged(how, rates)
    words, likelihood, rate = _words(given, names, labels, options), None, 0.0
    if rates is not None:
        known, at = labels >= 0, positions(coding.items, items.to_series(), gold.item)
        nodes = np.stack([each.log_likelihood(given) for each in rates.nodes()])
        wrong = 1 - softmax(nodes[1], axis=1)[known, labels[known]]
        rate = max(float(wrong.mean()) if known.any() else 0.0, 0.0)
        words += _noise_words(given, names, rates, rate, how)
        likelihood = np.zeros((len(nodes), len(coding.items), len(classes)))
        likelihood[:, at[known & (at >= 0)]] = nodes[:, known & (at >= 0)]
    if how == "majority":
        likelihood, rate = None, 0.0
    values = np.array([*classes.values, None], object)[labels]
    table = gold.table.assign(**{gold.label: values[item_of]})
    labelled, notes = replace(gold, table=table), (*opened.notes, *words)
    return replace(opened, labels=labelled, notes=notes), likelihood, rate


def _people(gold: Labels, adjudicator: str | None) -> tuple[Int[np.ndarray, " row"], list[str]]:
    """Return the annotator of each row, and their names; all rows are of one without a column.

    Raises
    ------
    JudgeBayesError
        If the adjudicator is none of them.
    """
    if gold.annotator is None:
        if adjudicator is not None:
            raise JudgeBayesError(
                "adjudicator names an annotator, and the labels have no column of annotators; name it "
                "with --set annotator=COLUMN, or name a column per annotator (--label A,B)."
            )
        return np.zeros(len(gold.table), int), []
    code, keys = numbered(gold.table[gold.annotator], gold.annotator)
    names = [*map(str, keys)]
    if adjudicator is not None and adjudicator not in names:
        raise JudgeBayesError(
            f"There is no annotator {adjudicator!r} in column {gold.annotator!r}; it contains "
            f"{listing(names)}."
        )
    return code, names


def _words(
    given: Annotations, names: list[str], labels: ItemInts, options: ReadRequest
) -> list[str]:
    """Return sentences on the labels per item, their disagreement, and how they were merged."""
    counts = given.sums()
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
        decided = int((given.decided >= 0).sum())
        text += f", or that of {options.adjudicator!r}, who decides ({decided} items)"
    unlabelled = int(((labels < 0) & (counts.sum(1) > 0)).sum())
    return [
        *lines,
        f"labels_merge={options.labels_merge}: each item has {text}; {unlabelled} items {why} stay "
        "unlabelled.",
    ]


def _noise_words(
    given: Annotations, names: list[str], rates: ErrorRates, rate: float, how: Merge
) -> list[str]:
    """Return sentences on the estimated errors of annotators and of merged labels."""
    n = np.bincount(given.annotator, minlength=given.n_annotators)
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
    text += (
        "; the results do not count this, but those of labels_merge=noisy do."
        if how == "majority"
        else ": calibrate, report, precision, ensemble and diagnose --by count this; other results "
        "do not."
    )
    return [
        text,
        "This assumes that annotators err independently, and equally often for every class.",
    ]
