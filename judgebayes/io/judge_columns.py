"""Which columns of a wide table are judges', told from notes, dates and names by what they hold."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.imported import SCORES
from judgebayes.io.in_memory import InMemory
from judgebayes.io.options import option
from judgebayes.votes.classes import Classes, canonical, infer_classes, listing, usual_classes

__all__ = ["refuse_no_judges"]

_NAME_CLASSES = " Then name the classes, from the lowest to the highest: --classes 'LOW,...,HIGH'."


def refuse_no_judges(
    table: pd.DataFrame, judges: list[str], path: Path | InMemory, classes: Classes | None = None
) -> None:
    """Refuse columns of notes, dates or names among those of judges.

    A column is no judge's if fewer than half of its cells hold one of the classes, where they are given,
    or else of those that others vote for: of words, or of numbers where more columns vote so. Where no
    column votes for known classes, judges are the most columns that have their few words in common.

    Raises
    ------
    JudgeBayesError
        If there is such a column, or one without a name.
    """
    counts = {
        judge: Counter(v for v in map(canonical, table[judge]) if v is not None) for judge in judges
    }
    nameless = [judge for judge in judges if judge.startswith("Unnamed: ") and counts[judge]]
    if nameless:
        raise JudgeBayesError(
            f"{str(path)!r} has {len(nameless)} column(s) without a name that are not empty. Name them; "
            "if the header stands below N other rows, say --skip-rows N."
        )
    if classes is not None:
        strange = [judge for judge in judges if _odd(counts[judge], classes)]
        if 0 < len(strange) < sum(map(bool, counts.values())):
            _refuse(strange, _odd(counts[strange[0]], classes)[0], path, classes.names)
        return
    scales = {judge: _scale(counts[judge]) for judge in judges}
    known = [judge for judge in judges if scales[judge] is not None]
    votes: Counter[Hashable] = sum((counts[judge] for judge in known), Counter())
    scale = _scale(votes)
    alike = _alike(counts)
    if len(alike) > len(known):
        cast = Counter(v for judge in judges if judge in alike for v in counts[judge])
        strange = [
            judge
            for judge, found in counts.items()
            if found and judge not in alike and not (len(found) <= SCORES and found.keys() & cast)
        ]
        if strange:
            unknown = "" if _scale(cast) is not None else _NAME_CLASSES
            _refuse(strange, next(iter(counts[strange[0]])), path, list(map(str, cast)), unknown)
        return
    if scale is None or len({scale.index(vote) for vote in votes} - {None}) < 2:
        return
    strange = [judge for judge in judges if _odd(counts[judge], scale)]
    words = [
        j
        for j in strange
        if any(isinstance(v, str) for v in (*_odd(counts[j], scale), *scale.values))
    ]
    if len(strange) - len(words) >= len(judges) - len(strange):
        strange = words  # the others give scores, perhaps
    if strange:
        _refuse(strange, _odd(counts[strange[0]], scale)[0], path, scale.names)


def _refuse(
    strange: list[str], first: Hashable, path: Path | InMemory, votes: Sequence[str], more: str = ""
) -> None:
    others = f", nor are {listing(strange[1:], 20)}" if strange[1:] else ""
    raise JudgeBayesError(
        f"Column {strange[0]!r} of {str(path)!r} holds {first!r}, and is no judge's that votes for "
        f"{', '.join(votes)}{others}. Leave such columns out: {option('ignore', strange)}.{more}"
    )


def _odd(counts: "Counter[Hashable]", scale: Classes) -> list[Hashable]:
    """Return the values that are no classes of a scale, if more than half of the cells hold such."""
    odd = [value for value in counts if scale.index(value) is None]
    return odd if 2 * sum(counts[value] for value in odd) > counts.total() else []


def _alike(counts: "Mapping[str, Counter[Hashable]]") -> set[str]:
    """Return the largest set of columns that have their few words in common, if one is largest."""
    few = {
        name: Counter(str(value).casefold() for value in found.elements())
        for name, found in counts.items()
        if 0 < len(found) <= SCORES and all(isinstance(value, str) for value in found)
    }
    groups: list[set[str]] = []
    for name in few:
        near = [group for group in groups if any(_share(few[name], few[j]) for j in group)]
        groups = [group for group in groups if group not in near] + [{name}.union(*near)]
    sizes = sorted((len(group) for group in groups), reverse=True)
    return max(groups, key=len) if sizes and sizes[0] > max([1, *sizes[1:]]) else set()


def _share(one: "Counter[str]", other: "Counter[str]") -> bool:
    """Tell whether most cells of one of two columns hold words of the other."""
    return any(2 * sum(a[word] for word in b) > a.total() for a, b in ((one, other), (other, one)))


def _scale(counts: "Counter[Hashable]") -> Classes | None:
    """Return the classes that values, or most of them, speak of."""
    usual = usual_classes(counts)
    if usual is not None:
        return usual.classes
    try:
        return infer_classes(counts, "")
    except JudgeBayesError:
        return None
