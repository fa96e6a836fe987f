"""The column that a role most likely has, by the values of the columns."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence

import pandas as pd
from pandas.api.types import is_numeric_dtype

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import changed
from judgebayes.io.columns import most_likely, plain_label
from judgebayes.io.gathering import MAX_CLASSES
from judgebayes.votes.classes import canonical, infer_classes, usual_classes, written
from judgebayes.workflow.bins_of_files import are_scores
from judgebayes.workflow.item_ids import match_items

ITEM = re.compile(
    r".*(?:\b|_)(?:id|uid|guid|key|ref|case|battle|example|question|prompt|item|pair|sample|task|frage)s?"
    r"(?:_(?:id|no|ref|key|number))?"
)
VOTE = re.compile(
    r".*(?:vote|verdict|outcome|result|score|grade|rating|prefer|correct|pass|valid|answer|decision|judg"
    r"|choice|winner|urteil|bewertung|assessment|accept|label).*"
)
JUDGE = re.compile(r".*(?:judge|grader|rater|evaluator|annotator|model|critic|richter|reviewer).*")
COST = re.compile(r".*(?:cost|price|latency|token|time|duration|_ms|usd|seed|temperature|length).*")
SAMPLE = re.compile(
    r".*(?:attempt|sample|repeat|repetition|run|trial|try|epoch|seed|round|turn|idx|index).*"
)
LONG_TEXT = 60
"""Columns whose texts are longer on average are prose."""
MOST_JUDGES = 200
MOST_SAMPLES = 200


def by_name(names: Sequence[str], role: str, used: Iterable[str | None] = ()) -> str | None:
    """Return the column whose name is usual for a role, None if there is none."""
    taken = set(used)
    free = [name for name in names if name not in taken]
    return (plain_label(free) if role == "label" else None) or most_likely(free, role)


def likely_item(
    table: pd.DataFrame, used: Iterable[str | None] = (), labelled: Iterable[object] | None = None
) -> str | None:
    """Return the column that most likely names the items.

    It contains most of the labelled items, if some are known; else its values are as often there as one
    another, preferably more than once, and its name is like that of an item.
    """
    free = _candidates(table, used)
    if labelled is not None:
        known = list(labelled)
        shares = {name: _share_matched(known, table[name]) for name in free}
        best = max(shares, key=lambda name: shares[name], default=None)
        if best is not None and shares[best] >= 0.5:
            return best
    ranked = []
    for place, name in enumerate(free):
        counts = table[name].value_counts()
        if len(counts) < 2 or pd.api.types.is_float_dtype(table[name].dtype):
            continue
        even = counts.min() == counts.max()
        like = bool(ITEM.fullmatch(_plain(name))) and not JUDGE.fullmatch(_plain(name))
        if not (like or even) or COST.fullmatch(_plain(name)):
            continue
        repeated = counts.median() > 1
        ranked.append(((like, even and repeated, len(counts) > MAX_CLASSES, -place), name))
    return max(ranked)[1] if ranked else None


def likely_vote(table: pd.DataFrame, used: Iterable[str | None] = ()) -> str | None:
    """Return the column that most likely contains the votes: its values are classes or scores."""
    ranked = []
    for place, name in enumerate(_candidates(table, used)):
        kind = _kind_of_votes(table[name])
        like = bool(VOTE.fullmatch(_plain(name))) and not COST.fullmatch(_plain(name))
        if kind == 0 or (kind == 1 and not like):
            continue
        ranked.append(((like, kind, -place), name))
    return _likeliest(ranked)


def likely_judge(table: pd.DataFrame, item: str, used: Iterable[str | None] = ()) -> str | None:
    """Return the column that most likely names the judges, None if there may be one judge only.

    Each item has several of its values, which are texts, few, and not the same on every row.
    """
    if not table[item].duplicated().any():
        return None
    ranked = []
    for place, name in enumerate(_candidates(table, used)):
        texts = not pd.api.types.is_numeric_dtype(table[name].dtype)
        n = table[name].nunique()
        if not texts or not 2 <= n <= MOST_JUDGES:
            continue
        per_item = table.groupby(item)[name].nunique()
        like = bool(JUDGE.fullmatch(_plain(name)))
        if per_item.median() < n / 2 and not like:
            continue
        if per_item.median() > 1:
            ranked.append(((like, -place), name))
    return _likeliest(ranked)


def likely_sample(
    table: pd.DataFrame, keys: Sequence[str], used: Iterable[str | None] = ()
) -> str | None:
    """Return the column that most likely numbers the repeated votes with the same keys.

    With it, no two rows have the same keys, and it has few values.
    """
    ranked = []
    for place, name in enumerate(_candidates(table, used)):
        cells = table[name]
        if cells.isna().any() or cells.nunique() > MOST_SAMPLES:
            continue
        if not table.duplicated([*keys, name]).any():
            like = bool(SAMPLE.fullmatch(_plain(name)))
            ranked.append(
                ((like, not COST.fullmatch(_plain(name)), -cells.nunique(), -place), name)
            )
    return max(ranked)[1] if ranked else None


def _likeliest(ranked: Sequence[tuple[tuple[bool, *tuple[int, ...]], str]]) -> str | None:
    """Return the column of the highest rank; None if it is one of several and its name is unusual."""
    best = max(ranked, default=None)
    if best is None or (not best[0][0] and len(ranked) > 1):
        return None
    return best[1]


def _candidates(table: pd.DataFrame, used: Iterable[str | None]) -> list[str]:
    """Return the columns that are free, with plain cells that are no prose, and no empty name."""
    taken = set(used)
    names = []
    for name in table.columns:
        if name in taken or str(name).startswith("Unnamed: "):
            continue
        cells = table[name].dropna()
        if len(cells) == 0 or not cells.head(100).map(pd.api.types.is_scalar).all():
            continue
        texts = [] if is_numeric_dtype(cells.dtype) else _first_texts(cells)
        if texts and sum(map(len, texts)) > LONG_TEXT * len(texts):
            continue
        names.append(str(name))
    return names


def _first_texts(cells: pd.Series, most: int = 1000) -> list[str]:
    return list(itertools.islice((cell for cell in cells if isinstance(cell, str)), most))


def _kind_of_votes(cells: pd.Series) -> int:
    """Return 3 for values of known classes, 2 for few words, 1 for numbers, 0 for other cells."""
    counts = Counter(changed(cells, canonical).dropna())
    if len(counts) < 2:
        return 0
    try:
        infer_classes(counts, "")
    except JudgeBayesError:
        if usual_classes(counts) is not None:
            return 3
        if len(counts) <= MAX_CLASSES and counts.total() >= 2 * len(counts):
            return 2 if all(isinstance(value, str) for value in counts) else 1
        return 1 if are_scores(list(counts)) else 0
    return 3


def _share_matched(labelled: list[object], cells: pd.Series) -> float:
    matching = match_items(labelled, cells.dropna().unique())
    distinct = len({written(value) for value in matching.item_of.values()})
    return distinct / max(matching.total, 1)


def _plain(name: str) -> str:
    return re.sub(r"[\s\-]+", "_", name.strip().casefold()).strip("?")
