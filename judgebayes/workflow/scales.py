"""The classes of votes and labels that a user's files contain."""

from collections import Counter

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.judge_columns import check_judge_columns
from judgebayes.io.options import option, split_names
from judgebayes.votes import Classes, infer_classes
from judgebayes.votes.classes import (
    canonical,
    distinct,
    given_classes,
    listing,
    usual_classes,
)
from judgebayes.votes.scale import SUSPICIOUS_VOTES
from judgebayes.workflow.bins_of_files import are_scores
from judgebayes.workflow.sources import Opened

__all__ = ["classes_of", "vote_values"]

FREQUENT = 0.05
"""An unknown label with a larger share of the labels is probably not a missing label."""


def classes_of(opened: Opened, named: str | None, pairwise: bool | None) -> Classes:
    """Return the classes that the user named, or those of the votes and labels.

    Raises
    ------
    JudgeBayesError
        If the classes cannot be inferred, or votes and labels are of different kinds.
    """
    if named is not None:
        return given_classes(split_names(named), pairwise)
    if opened.classes is not None:
        return given_classes(opened.classes, pairwise)
    what = opened.source.path.name
    votes = _inferred(opened, what)
    if opened.labels is not None:
        gold = opened.labels
        given = gold.table[gold.label].dropna().unique()
        plain = distinct(given)
        if not plain:
            return votes
        _refuse_mixed(votes, {*plain}, int(gold.table[gold.label].count()))
        try:
            votes = infer_classes([*vote_values(opened), *given], f"{what} and the labels")
        except JudgeBayesError as error:
            odd = next(v for v in given if votes.index(v) is None)
            hit = gold.table[gold.label] == odd
            rare = hit.sum() <= FREQUENT * gold.table[gold.label].count()
            none = f"if it means no label, use {option('missing', [odd])}"
            words = f"write the labels as the votes are written, {listing(votes.values)}"
            raise JudgeBayesError(
                f"Row {hit.idxmax()} of the label column {gold.label!r} contains "
                f"{canonical(odd)!r}, but the votes are {', '.join(votes.names)}. Labels and "
                "votes must have the same classes: "
                f"{'; '.join([none, words] if rare else [words, none])}."
            ) from error
    return votes if pairwise is None else Classes(votes.values, pairwise)


def _inferred(opened: Opened, what: str) -> Classes:
    """Return the classes of the votes; the error for a few odd votes names the first row."""
    if opened.source.reading.wide:
        check_judge_columns(opened.table, list(opened.judges), opened.source.path)
    values = vote_values(opened)
    try:
        return infer_classes(values, what)
    except JudgeBayesError:
        if opened.in_pieces:
            raise
        table = opened.table
        cells = (
            table[list(opened.judges)].melt(ignore_index=False)["value"]
            if opened.source.reading.wide
            else table[str(opened.columns["vote"])]
        )
        plain = cells.map(canonical)
        usual = usual_classes(Counter(plain.dropna()))
        if usual is None and are_scores(values):
            raise JudgeBayesError(
                f"The votes of {what} are scores with {len(distinct(values))} different values: "
                "group them into classes with --bins 5 (equal shares of the votes) or --bins learnt "
                "(cut points learnt from labels), or name all classes with --classes."
            ) from None
        if usual is None:
            raise
        odd = plain[plain.isin(list(usual.odd))]
        counts = ", ".join(f"{value!r} {n}" for value, n in usual.odd.most_common(8))
        raise JudgeBayesError(
            f"Row {odd.index[0]} of {what} contains {odd.iloc[0]!r}; {len(odd)} of {len(cells)} votes "
            f"are not one of {', '.join(usual.classes.names)}: {counts}. Correct them, read them as "
            f"missing votes with {option('missing', usual.odd)}, or name all classes in order with "
            "--classes 'LOW,...,HIGH'."
        ) from None


def _refuse_mixed(votes: Classes, labels: set[object], n_labels: int) -> None:
    """Refuse labels 0 and 1 with votes -1, 0, 1, and the reverse."""
    binary_votes = votes.values == (0, 1) and -1 in labels
    binary_labels = votes.values == (-1, 0, 1) and labels == {0, 1} and n_labels >= SUSPICIOUS_VOTES
    if binary_votes or binary_labels:
        kinds = ("binary", "ternary") if binary_votes else ("ternary", "binary")
        raise JudgeBayesError(
            f"The votes look {kinds[0]} ({', '.join(votes.names)}), but the labels look "
            f"{kinds[1]}. Votes and labels must have the same classes. If one scale contains all of "
            "them, name its classes from lowest to highest: --classes=-1,0,1 or --classes=0,1."
        )


def vote_values(opened: Opened) -> list[object]:
    """Return the different values of the votes, in order of appearance."""
    if opened.source.reading.wide:
        return list(pd.unique(opened.table[list(opened.judges)].to_numpy(object).ravel()))
    vote = str(opened.columns["vote"])
    if opened.in_pieces:
        import pyarrow.parquet as pq

        batches = pq.ParquetFile(opened.source.path).iter_batches(columns=[vote])
        return list(
            pd.concat([pd.Series(b.column(0).unique().to_pandas()) for b in batches]).unique()
        )
    return list(opened.table[vote].unique())
