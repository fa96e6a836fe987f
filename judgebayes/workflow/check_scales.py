"""A check of the values of votes: classes, scores, odd values, and the presentation order."""

from dataclasses import replace

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import join_names, option
from judgebayes.votes.classes import canonical, distinct, listing, usual_classes
from judgebayes.workflow.check_draft import Draft, try_open
from judgebayes.workflow.data import encoded
from judgebayes.workflow.scales import (
    MOST_RATINGS,
    are_scores,
    cast_votes,
    classes_of,
    in_order,
    no_order,
)
from judgebayes.workflow.sources import Opened

ABSTENTIONS = ({-1}, {-9}, {-99}, {99}, {999})
"""Numbers that mean no vote where the labels are others."""


def find_scale(draft: Draft, opened: Opened | None) -> Draft:
    """Find the classes of the votes and labels."""
    known = (draft.earlier.classes, draft.tables.classes, draft.tables.bins)
    if opened is None or any(each is not None for each in known):
        return draft
    gold = opened.labels
    labels = pd.Series(dtype=object) if gold is None else gold.table[gold.label]
    for word in (w for w in labels.unique() if isinstance(w, str) and canonical(w) is None):
        n, m = (int((cells == word).sum()) for cells in (opened.votes, labels))
        if word.strip() and n:
            text = f"{n} votes and {m} labels are {word!r}: they are read as missing. If it is a class, "
            draft = draft.saying("scale", f"{text}write another word for it.")
    try:
        classes = classes_of(opened)
    except JudgeBayesError as error:
        sentence, options = _settling(opened, str(error))
        again = draft.request.missing is None and "missing" in options
        draft = draft.with_finding("bad", "scale", sentence, question=str(error), **options)
        return find_scale(draft, try_open(draft)) if again else draft
    marks = [v for v in classes.values if _no_vote(v, numbers=False)]
    if marks and len(classes) - len(marks) > 1 and draft.request.missing is None:
        text = f"Votes of {listing(marks)} are read as missing."
        draft = draft.with_finding("bad", "scale", text, missing=join_names(map(str, marks)))
        return find_scale(draft, try_open(draft))
    for sentence in no_order(classes):
        draft = draft.with_finding("note", "scale", sentence)
    return draft


def _settling(opened: Opened, error: str) -> tuple[str, dict[str, str]]:
    """Return the option that most likely settles the classes, and what it does; else the error."""
    counts = cast_votes(opened)
    amounts = [value for value in counts if isinstance(value, int | float)]
    if np.inf in map(abs, amounts):
        return error, {}
    gold = opened.labels
    labels = [] if gold is None else distinct(gold.table[gold.label].unique())
    scores, (usual, strays) = are_scores(list(counts)), usual_classes(counts)
    graded = len(amounts) == len(counts) and bool(labels) and not are_scores(labels)
    two_of_more = not strays and len(labels) == 2 < len(counts) <= MOST_RATINGS
    code_only = set(counts) - set(labels)
    free = opened.request.undecided is None and len(labels) > 1
    if graded and free and code_only in ABSTENTIONS and not set(labels) - set(counts):
        code = next(iter(code_only))
        return (
            f"{counts[code]} votes are {code}, which no label is: they are read as abstentions, which "
            "are for no class. To read it as a class, name all classes with --set classes=LOW,...,HIGH.",
            {"undecided": str(code)},
        )
    if graded and (scores or set(labels) - set(counts) or two_of_more):
        return (
            f"The votes are {len(counts)} different numbers, and the labels are {listing(labels)}: cut "
            "points that best reproduce the labels are learnt for each judge.",
            {"bins": "learnt"},
        )
    if scores:
        return (
            f"The votes are scores with {len(counts)} different values; five classes with about equal "
            "shares of the votes are made of them.",
            {"bins": "5"},
        )
    if usual is not None and strays and not set(strays) & set(labels):
        shown = ", ".join(f"{value!r} {n}" for value, n in strays.most_common(5))
        row = opened.votes.map(canonical).isin(list(strays)).idxmax()
        return (
            f"{strays.total()} of {counts.total()} votes are not one of {', '.join(usual.names)}: "
            f"{shown} (the first in row {row}); they are read as missing votes. To keep such a class, "
            "name all classes with --set classes=LOW,...,HIGH; to read them as votes for no class, use "
            f"{option('undecided', strays)}.",
            {"missing": join_names(map(str, strays))},
        )
    apart = (
        [v for v in labels if v not in counts],
        [v for v in counts if labels and v not in labels],
    )
    plain = {str(value).casefold() for value in labels} | {"tie"}
    odd = [v for v in apart[1] or counts if str(v).casefold() not in plain]
    numbers = 2 * sum(counts[value] for value in amounts) > counts.total()
    no_votes = [v for v in odd if _no_vote(v, numbers=numbers)]
    if no_votes and len(counts) - len(no_votes) > 1:
        n = sum(counts[value] for value in no_votes)
        return (
            f"{n} votes are {listing(no_votes)}: they are read as missing. To keep such a class, name "
            "all classes with --set classes=LOW,...,HIGH.",
            {"missing": join_names(map(str, no_votes))},
        )
    if all(apart):
        return (
            f"No vote is {listing(apart[0])}, and no label is {listing(apart[1])}: write the same "
            "classes alike in both, or name what means no vote with --set missing=VALUE.",
            {},
        )
    values = list(dict.fromkeys([*counts, *labels]))
    if not values or len(values) > MOST_RATINGS or (labels and usual is not None and not strays):
        return error, {}
    ordered, known = in_order(values)
    listed = ", ".join(map(str, ordered))
    what = f"The order of the classes, {listed}, is that of their values or meaning."
    if not known:
        what = (
            f"The order of the classes {listed} is not known: put them in order, from the lowest to "
            "the highest."
        )
    return what, {"classes": join_names(map(str, ordered))}


def _no_vote(value: object, *, numbers: bool) -> bool:
    """Tell whether a value is no class: punctuation, or a word among numbers."""
    return isinstance(value, str) and (numbers or not any(map(str.isalnum, value)))


def find_order(draft: Draft, opened: Opened) -> Draft:
    """Find out whether votes in swapped order name responses as shown."""
    if opened.columns["order"] is None or opened.request.votes_as is not None:
        return draft
    try:
        classes = draft.earlier.classes or classes_of(opened)
        request = replace(opened.request, votes_as="original")
        data = encoded(replace(opened, request=request), classes)
    except JudgeBayesError:
        return draft
    index, order = np.asarray(data.votes.index), np.asarray(data.votes.order)
    cast, labels = index >= 0, data.labels[:, None, None]
    kinds = {"shown": np.where(order == 1, len(classes) - 1 - index, index), "original": index}
    compared = cast & (order == 1) & (labels >= 0)
    if compared.any():
        values = {kind: (votes == labels)[compared].mean() for kind, votes in kinds.items()}
        what = "agreement with the labels in swapped order"
    else:
        values = {kind: _consistency(votes, cast, order) for kind, votes in kinds.items()}
        what = "agreement of a judge's votes in both orders"
    best = "original" if values["original"] > values["shown"] else "shown"
    name = str(opened.columns["order"])
    as_shown, mapped_back = (f"{values[kind]:.2f}" for kind in ("shown", "original"))
    agreements = f"{what} is {as_shown} if as shown, {mapped_back} if already mapped back."
    return draft.with_finding(
        "bad",
        "order",
        f"Column {name!r} is the presentation order, and votes are read as naming the response "
        + ("as shown" if best == "shown" else "as in the labels")
        + f": {agreements}",
        votes_as=best,
        order=name,
    )


def _consistency(votes: np.ndarray, cast: np.ndarray, order: np.ndarray) -> float:
    """Return how often the mean votes of a judge on an item in both orders are on the same side."""
    in_order = [cast & (order == k) for k in (0, 1)]
    counts = [each.sum(2) for each in in_order]
    both = (counts[0] > 0) & (counts[1] > 0)
    means = [
        (votes * each).sum(2)[both] / n[both] for each, n in zip(in_order, counts, strict=True)
    ]
    return float((means[0] == means[1]).mean()) if both.any() else float("nan")
