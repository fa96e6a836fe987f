"""Classes for the scores of a user's files, by `bins` or by the cut points of a saved fit."""

from dataclasses import replace

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.votes import Classes
from judgebayes.votes.classes import distinct, inferred, listing, written
from judgebayes.workflow.binning import (
    LEARNT,
    MOST_BINS,
    Bins,
    learn_cuts,
    numbers_of,
    quantile_bins,
)
from judgebayes.workflow.scales import are_scores, in_order
from judgebayes.workflow.sources import Opened


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
    scores, gold = _scores(opened), opened.labels
    labels_too = gold is not None and are_scores(list(gold.table[gold.label].unique()))
    if bins is None:
        make = _learnt if how == LEARNT else _quantiles
        bins = make(opened, str(how), scores, labels_too)
    numbers, cut = scores["score"].to_numpy(), np.empty(len(scores), object)
    for judge, rows in scores.groupby("judge").indices.items():
        cut[rows] = bins.of(numbers[rows], str(judge))
    if gold is not None and labels_too:
        classes = bins.of(numbers_of(gold.table[gold.label]))
        gold = replace(gold, table=gold.table.assign(**{gold.label: classes}))
    return replace(
        opened,
        table=opened.table.assign(**{str(opened.votes.name): cut}),
        labels=gold,
        bins=bins,
        classes=tuple(map(str, bins.names)),
        notes=(*opened.notes, *bins.words()),
    )


def _scores(opened: Opened) -> pd.DataFrame:
    """Return a row per vote: item, judge, score."""
    judges = None if opened.judge is None else opened.table[opened.judge]
    return pd.DataFrame(
        {
            "item": opened.items.map(written),
            "judge": "" if judges is None else judges.map(written).fillna(""),
            "score": numbers_of(opened.votes, judges),
        }
    )


def _quantiles(opened: Opened, how: str, scores: pd.DataFrame, labels_too: bool) -> Bins:
    if not how.isascii() or not how.isdigit() or not 2 <= int(how) <= MOST_BINS:
        raise JudgeBayesError(
            f"bins is {how!r}, neither a number of classes from 2 to {MOST_BINS} nor {LEARNT!r}."
        )
    n, names = int(how), None
    if opened.labels is not None and not labels_too:
        labels = _label_classes(opened)
        if len(labels) != n:
            raise JudgeBayesError(
                f"bins={n} makes {n} classes, but the labels have {len(labels)} "
                f"({', '.join(labels.names)}): use --set bins={len(labels)} or --set bins={LEARNT}."
            )
        names = labels.values
    numbers = scores["score"].to_numpy()
    return quantile_bins(numbers[np.isfinite(numbers)], n, names)


def _learnt(opened: Opened, _: str, scores: pd.DataFrame, labels_too: bool) -> Bins:
    gold = opened.labels
    if gold is None:
        raise JudgeBayesError(
            "bins=learnt learns cut points from labels, and there are none; use a number, such as "
            "--set bins=5, or add --labels FILE."
        )
    if labels_too:
        raise JudgeBayesError(
            "bins=learnt needs labels of few classes, and the labels are scores too; use a number, "
            "such as --set bins=5, which cuts both."
        )
    classes = _label_classes(opened)
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


def _label_classes(opened: Opened) -> Classes:
    gold = opened.labels
    assert gold is not None
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
