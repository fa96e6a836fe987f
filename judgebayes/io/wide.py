"""Check by their cells that the columns of a wide table are judges, not notes, dates or names."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.gathering import MAX_CLASSES
from judgebayes.io.in_memory import InMemory
from judgebayes.io.options import option
from judgebayes.votes.classes import (
    Classes,
    canonical,
    classes_of_most,
    listing,
)

_NAME_CLASSES_HINT = " Then name the classes from lowest to highest: --set classes=LOW,...,HIGH."


class NotJudgesError(JudgeBayesError):
    """Some columns of a wide table do not contain the votes of judges."""

    def __init__(self, message: str, columns: Sequence[str]) -> None:
        """Keep the names of the columns."""
        super().__init__(message)
        self.columns = list(columns)


def check_judge_columns(
    table: pd.DataFrame, judges: list[str], path: Path | InMemory, classes: Classes | None = None
) -> None:
    """Check that each column contains the votes of a judge, not notes, dates or names.

    With `classes`, a column is not a judge if fewer than half of its cells contain one of them. Without,
    the classes are inferred from the other columns: words, or numbers if more columns vote in numbers.
    If no column votes for known classes, the judges are the largest group of columns with common words.

    Raises
    ------
    JudgeBayesError
        If a column is not a judge, or has cells but no name.
    """
    counts = {
        judge: Counter(v for v in map(canonical, table[judge]) if v is not None) for judge in judges
    }
    nameless = [judge for judge in judges if judge.startswith("Unnamed: ") and counts[judge]]
    if nameless:
        raise JudgeBayesError(
            f"{str(path)!r} has {len(nameless)} column(s) without a name that are not empty. Name them; "
            "if the header is below N other rows, use --set skip_rows=N."
        )
    odd, votes, hint = _not_votes(counts, classes)
    if odd:
        columns = list(odd)
        others = f"; neither are {listing(columns[1:], 20)}" if columns[1:] else ""
        raise NotJudgesError(
            f"Column {columns[0]!r} of {str(path)!r} contains {odd[columns[0]][0]!r}, which is not one "
            f"of the votes {', '.join(votes)}, so it is not read as a judge{others}. Ignore such "
            f"columns: {option('ignore', columns)}.{hint}",
            columns,
        )


def _not_votes(
    counts: "Mapping[str, Counter[Hashable]]", classes: Classes | None
) -> tuple[dict[str, list[Hashable]], Sequence[str], str]:
    """Return the values of columns that are not judges, the votes of the others, and a hint."""
    if classes is not None:
        odd = _outside_scale(counts, classes)
        every = len(odd) == sum(map(bool, counts.values()))
        return {} if every else odd, classes.names, ""
    scales = {judge: classes_of_most(cells) for judge, cells in counts.items()}
    with_scale = [judge for judge in counts if scales[judge] is not None]
    scale_votes: Counter[Hashable] = sum((counts[judge] for judge in with_scale), Counter())
    scale = classes_of_most(scale_votes)
    group = _largest_vocabulary_group(counts)
    if len(group) > len(with_scale):
        group_votes = Counter(v for judge in counts if judge in group for v in counts[judge])
        odd = {
            judge: list(cells)
            for judge, cells in counts.items()
            if cells
            and judge not in group
            and not (len(cells) <= MAX_CLASSES and cells.keys() & group_votes)
        }
        hint = "" if classes_of_most(group_votes) is not None else _NAME_CLASSES_HINT
        return odd, list(map(str, group_votes)), hint
    if scale is None or len({scale.index(vote) for vote in scale_votes} - {None}) < 2:
        return {}, (), ""
    odd = _outside_scale(counts, scale)
    with_words = {
        judge: values
        for judge, values in odd.items()
        if any(isinstance(v, str) for v in (*values, *scale.values))
    }
    if len(odd) - len(with_words) >= len(counts) - len(odd):
        odd = with_words  # the others may be scores
    return odd, scale.names, ""


def _outside_scale(
    counts: "Mapping[str, Counter[Hashable]]", scale: Classes
) -> dict[str, list[Hashable]]:
    """Return the values outside a scale of each column, if more than half of its cells contain one."""
    outside = {j: [v for v in cells if scale.index(v) is None] for j, cells in counts.items()}
    return {
        judge: values
        for judge, values in outside.items()
        if 2 * sum(counts[judge][value] for value in values) > counts[judge].total()
    }


def _largest_vocabulary_group(counts: "Mapping[str, Counter[Hashable]]") -> set[str]:
    """Return the largest set of columns with common words, each with few; empty if it is not unique."""
    vocabularies = {
        name: Counter(str(value).casefold() for value in values.elements())
        for name, values in counts.items()
        if 0 < len(values) <= MAX_CLASSES and all(isinstance(value, str) for value in values)
    }
    groups: list[set[str]] = []
    for name in vocabularies:
        overlapping = [
            group
            for group in groups
            if any(_share_vocabulary(vocabularies[name], vocabularies[j]) for j in group)
        ]
        groups = [group for group in groups if group not in overlapping] + [
            {name}.union(*overlapping)
        ]
    sizes = sorted((len(group) for group in groups), reverse=True)
    return max(groups, key=len) if sizes and sizes[0] > max([1, *sizes[1:]]) else set()


def _share_vocabulary(one: "Counter[str]", other: "Counter[str]") -> bool:
    """Tell whether most cells of one column contain words of the other."""
    return any(2 * sum(a[word] for word in b) > a.total() for a, b in ((one, other), (other, one)))
