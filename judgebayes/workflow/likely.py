"""The column that a role most likely has, by the values of the columns."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from judgebayes.io.columns import like_a_label, most_likely, plain_label, plain_name
from judgebayes.io.gathering import MAX_CLASSES
from judgebayes.votes.classes import canonical, mapped, usual_classes
from judgebayes.workflow.item_ids import match_items
from judgebayes.workflow.scales import are_scores

ITEM = re.compile(
    r".*(?:\b|_)(?:id|uid|guid|key|ref|case|battle|example|question|prompt|item|pair|sample|task|frage|idx|index|nr|no)s?"
    r"(?:_(?:id|no|ref|key|number))?"
)
VOTE = re.compile(
    r".*(?:vote|verdict|outcome|result|score|grade|rating|prefer|correct|pass|valid|answer|decision|judg"
    r"|choice|winner|urteil|bewertung|assessment|accept|label).*"
)
JUDGE = re.compile(r".*(?:judge|grader|rater|evaluator|annotator|model|critic|richter|reviewer).*")
COST = re.compile(r".*(?:cost|price|latency|token|time|duration|_ms|usd|seed|temperature|length).*")
MEASURE = re.compile(
    r"(?:.*_)?(?:n|num|count|turns?|flags?|difficulty|level|length|tokens?|words|cost|price|latency|ms|seconds"
    r"|duration|seed|index|idx|rank|page|line|year|age)(?:_.*)?"
)
"""Names of columns with numbers that nobody voted."""
SAMPLE = re.compile(
    r".*(?:attempt|sample|repeat|repetition|run|trial|try|epoch|seed|round|turn|idx|index).*"
)
LONG_TEXT = 60
"""Columns whose texts are longer on average are prose."""
MOST_JUDGES = 200
MOST_SAMPLES = 200
Rank = tuple[int, ...]
"""How likely a column is, first whether its name is usual."""


def by_name(names: Sequence[str], role: str) -> str | None:
    """Return the column whose name is usual for a role, None if there is none."""
    return (plain_label(names) if role == "label" else None) or most_likely(names, role)


@dataclass(frozen=True)
class Candidates:
    """The columns of a table that may have a role, but for those that are used already."""

    table: pd.DataFrame
    used: Iterable[str | None] = ()

    @cached_property
    def free(self) -> list[str]:
        """The columns that are not used, with plain cells that are no prose, and no empty name."""
        taken = set(self.used)
        names = []
        for name in self.table.columns:
            if name in taken or str(name).startswith("Unnamed: "):
                continue
            cells = self.table[name].dropna()
            if len(cells) == 0 or not cells.head(100).map(pd.api.types.is_scalar).all():
                continue
            texts = [cell for cell in cells.head(1000) if isinstance(cell, str)]
            if texts and sum(map(len, texts)) > LONG_TEXT * len(texts):
                continue
            names.append(str(name))
        return names

    def item(self, labelled: Iterable[object] | None = None) -> str | None:
        """Return the column that most likely names the items.

        It contains most of the labelled items, if some are known; else its values are as often there as
        one another, preferably more than once, and its name is like that of an item.
        """
        table = self.table
        if labelled is not None:
            known = list(labelled)
            shares = {n: match_items(known, table[n].dropna().unique()).share for n in self.free}
            best = max(shares, key=lambda n: (shares[n], -table[n].nunique()), default=None)
            if best is not None and shares[best] >= 0.5:
                return best

        def rank(name: str) -> Rank | None:
            counts, plain = table[name].value_counts(), plain_name(name)
            if len(counts) < 2 or pd.api.types.is_float_dtype(table[name].dtype):
                return None
            even = counts.min() == counts.max()
            like = bool(ITEM.fullmatch(plain)) and not JUDGE.fullmatch(plain)
            if not (like or even) or COST.fullmatch(plain):
                return None
            return like, bool(even and counts.median() > 1), len(counts) > MAX_CLASSES

        return self._likeliest(rank, sure=True)

    def vote(self, item: str | None = None) -> str | None:
        """Return the column that most likely contains the votes: its values are classes or scores.

        If items have several rows, a column with one value for each item is none.
        """
        several = item is not None and bool(self.table[item].duplicated().any())

        def rank(name: str) -> Rank | None:
            if like_a_label(name) or (several and self._most_of_item(name, item) <= 1):
                return None
            kind, plain = _kind_of_votes(self.table[name]), plain_name(name)
            like = bool(VOTE.fullmatch(plain)) and not COST.fullmatch(plain)
            return None if kind == 0 or (kind == 1 and not like) else (like, kind)

        return self._likeliest(rank)

    def judge(self, item: str) -> str | None:
        """Return the column that most likely names the judges, None if there may be one judge only.

        Each item has several of its values, which are texts, few, and not the same on every row.
        """
        table = self.table
        if not table[item].duplicated().any():
            return None

        def rank(name: str) -> Rank | None:
            n = table[name].nunique()
            if pd.api.types.is_numeric_dtype(table[name].dtype) or not 2 <= n <= MOST_JUDGES:
                return None
            of_item = table.groupby(item)[name].nunique().median()
            like = bool(JUDGE.fullmatch(plain_name(name)))
            return (like,) if of_item > 1 and (like or of_item >= n / 2) else None

        return self._likeliest(rank)

    def sample(self, keys: Sequence[str]) -> str | None:
        """Return the column that most likely numbers the repeated votes with the same keys.

        With it, no two rows have the same keys, and it has few values.
        """

        def rank(name: str) -> Rank | None:
            cells, plain = self.table[name], plain_name(name)
            if cells.isna().any() or cells.nunique() > MOST_SAMPLES:
                return None
            if self.table.duplicated([*keys, name]).any():
                return None
            return bool(SAMPLE.fullmatch(plain)), not COST.fullmatch(plain), -cells.nunique()

        return self._likeliest(rank, sure=True)

    def order(self) -> str | None:
        """Return the only column whose cells are all AB or BA, if it has both."""
        few = (n for n in self.free if self.table[n].head(1000).nunique() <= 2)
        cells = {n: {str(v).strip().upper() for v in self.table[n].unique()} for n in few}
        names = [name for name, orders in cells.items() if orders == {"AB", "BA"}]
        return names[0] if len(names) == 1 else None

    def label(self, item: str, vote: str) -> str | None:
        """Return the only column with values of the votes, one for each item.

        If items have one row each, its name is like that of people's answers.
        """
        several = bool(self.table[item].duplicated().any())
        votes = set(mapped(self.table[vote], canonical).dropna())
        if not 2 <= len(votes) <= MAX_CLASSES:
            return None
        names = []
        for name in self.free:
            values = set(mapped(self.table[name], canonical).dropna())
            fits = len(values) > 1 and values <= votes and self._most_of_item(name, item) <= 1
            names += [name] if fits and (several or like_a_label(name)) else []
        return names[0] if len(names) == 1 else None

    def _most_of_item(self, name: str, item: str | None) -> int:
        """Return the most different values of a column that an item has."""
        return int(self.table.groupby(item)[name].nunique().max())

    def _likeliest(self, rank: Callable[[str], Rank | None], *, sure: bool = False) -> str | None:
        """Return the first free column of the highest rank, if any has one.

        Unless it is `sure`, None also if it is one of several and its name is unusual.
        """
        ranks = {name: own for name in self.free if (own := rank(name)) is not None}
        best = max(ranks, key=lambda name: ranks[name], default=None)
        if best is None or sure or ranks[best][0] or len(ranks) == 1:
            return best
        return None


def _kind_of_votes(cells: pd.Series) -> int:
    """Return 3 for values of known classes, 2 for few words, 1 for numbers, 0 for other cells."""
    counts = Counter(mapped(cells, canonical).dropna())
    if len(counts) < 2:
        return 0
    if usual_classes(counts)[0] is not None:
        return 3
    if len(counts) <= MAX_CLASSES and counts.total() >= 2 * len(counts):
        return 2 if all(isinstance(value, str) for value in counts) else 1
    return 1 if are_scores(list(counts)) else 0
