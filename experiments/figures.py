"""Figures in prose: a page's sentences take their numbers from saved results.

A file `figures.toml` has the sentences of a page that state numbers, with a place such as {.2} for each
number, and for each place the query that computes it from the CSV files of a run::

    [[sentence]]
    page = "experiments/betaconform/README.md"
    text = "58.6 labels: {.1} points against {.1}"
    from = [
        "betaconform/table1: mean value; metric=error margin; method=em",
        "betaconform/table1: mean value; metric=error margin; method=binomial",
    ]

A query is `PAPER/RESULT: STATISTIC COLUMN; CONDITION; ...`. The statistic is `only` (of exactly one
row), `mean`, `median`, `min`, `max`, `sum`, `count` (of rows, without a column) or `distinct` (how many
different values). A condition compares a column: `method=em`, `n!=3`, `low>0`, `high<=0.1`, or
`metric~sc minus`, which asks whether the text is contained. Two queries may be joined by ` minus ` or
` over `. A result that no run has is a CSV file of `experiments/`, such as `coverage/coverage`.

A place {.1} has one decimal, {+.1} also a sign, {.0%} is multiplied by 100, and {.0} separates thousands
by commas. Numbers that no result has, such as those that a paper prints, are declared with the reason::

    [[stated]]
    page = "experiments/betaconform/README.md"
    text = "starts at 24.8 % and not at 32.4 %"
    why = "printed in the paper, Table 1"

In a stated text, ` ... ` is anything in between.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from judgebayes.errors import JudgeBayesError

__all__ = [
    "Sentence",
    "Stated",
    "declared",
    "evaluate",
    "located",
    "printed",
    "unbacked",
    "with_figures",
]

PLACE = re.compile(r"\{(\+?)\.(\d)(%?)\}")
NUMBER = r"(?:(?<![\w.])[-+])?\d(?:[\d,]*\d)?(?:\.\d+)?"
CONDITION = re.compile(r"(\w+)\s*(!=|<=|>=|=|<|>|~)\s*(.*)", re.DOTALL)
STATISTICS: Mapping[str, Callable[[pd.Series], float]] = {
    "mean": lambda column: float(column.mean()),
    "median": lambda column: float(column.median()),
    "min": lambda column: float(column.min()),
    "max": lambda column: float(column.max()),
    "sum": lambda column: float(column.sum()),
}
NO_FIGURE = re.compile(
    r"<!-- ([\w ]+) of [\w-]+ -->.*?<!-- end of \1 -->"  # written from saved results already
    r"|```.*?```|`[^`]*`|^ {4,}\S.*?$|\]\([^)]*\)|<[^>]*>"  # code and links
    r"|\b(?:Tables?|Figs?|Figures?|[Ss]ections?|[Ee]qs?|Appendix|Theorems?|Propositions?|Lemma|H)\.? "
    r"\(?[A-Z]?\.?\d+[a-z]?(?:\.\d+)*\)?(?:(?:, | and | to |-)[A-Z]?\.?\d+[a-z]?(?:\.\d+)*)*"
    r"|\b[A-Za-z_]+[-.]?\d[\w.-]*|\bRewardBench 2\b|\b\d+PL\b|\b(?:19|20)\d\d\b",  # names and years
    re.DOTALL | re.MULTILINE,
)
"""What a page says in numerals without stating a figure: written blocks, code, links, names, years."""


class Sentence(NamedTuple):
    """A piece of a page's text with a place for each figure, and their queries."""

    page: str
    text: str
    queries: tuple[str, ...]


class Stated(NamedTuple):
    """A piece of a page's text whose numbers are in no result, and why."""

    page: str
    text: str
    why: str


def declared(path: Path) -> tuple[list[Sentence], list[Stated]]:
    """Return what a `figures.toml` declares.

    Raises
    ------
    JudgeBayesError
        If a sentence has not one query for each place.
    """
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    entries = table.get("sentence", ())
    sentences = [Sentence(entry["page"], entry["text"], tuple(entry["from"])) for entry in entries]
    for sentence in sentences:
        if len(PLACE.findall(sentence.text)) != len(sentence.queries):
            raise JudgeBayesError(f"{path}: not one query for each place of {sentence.text!r}.")
    return sentences, [Stated(**entry) for entry in table.get("stated", ())]


def evaluate(query: str, read: Callable[[str], pd.DataFrame]) -> float:
    """Compute a query; `read` returns the rows of a result such as "betaconform/table1", as text.

    Raises
    ------
    JudgeBayesError
        If the query cannot be read, no row meets its conditions, or not exactly one under `only`.
    """
    for joint, apply in ((" minus ", float.__sub__), (" over ", float.__truediv__)):
        first, sign, second = query.rpartition(joint)
        if sign and ": " in second:
            return float(apply(evaluate(first, read), evaluate(second, read)))
    result, _, rest = query.partition(": ")
    statistic, *conditions = (part.strip() for part in rest.split("; "))
    name, _, column = statistic.partition(" ")
    rows = read(result)
    for condition in conditions:
        rows = rows[_met(rows, condition, query)]
    if name == "count":
        return float(len(rows))
    if column not in rows:
        raise JudgeBayesError(f"{query!r}: there is no column {column!r}.")
    if name == "distinct":
        return float(rows[column].nunique())
    if rows.empty or (name == "only" and len(rows) > 1):
        raise JudgeBayesError(f"{query!r}: {len(rows)} rows meet the conditions.")
    if name != "only" and name not in STATISTICS:
        raise JudgeBayesError(f"{query!r}: there is no statistic {name!r}.")
    return STATISTICS["mean" if name == "only" else name](pd.to_numeric(rows[column]))


def _met(rows: pd.DataFrame, condition: str, query: str) -> pd.Series:
    match = CONDITION.fullmatch(condition)
    if match is None or match[1] not in rows:
        raise JudgeBayesError(f"{query!r}: {condition!r} compares no column.")
    column, sign, value = rows[match[1]], match[2], match[3]
    if sign == "~":
        return column.str.contains(value, regex=False)
    if sign in ("=", "!="):
        return (column == value) == (sign == "=")
    number = pd.to_numeric(column)
    return {
        "<": number < float(value),
        ">": number > float(value),
        "<=": number <= float(value),
        ">=": number >= float(value),
    }[sign]


def printed(text: str, values: Iterable[float]) -> list[str]:
    """Return the figures as the places of a sentence print them."""
    shown = []
    for (sign, decimals, percent), value in zip(PLACE.findall(text), values, strict=True):
        shown.append(f"{value * (100 if percent else 1):{sign},.{decimals}f}")
    return [re.sub(r"^-(?=[0.]*$)", "", figure) for figure in shown]


def located(page: str, text: str, where: str) -> re.Match[str]:
    """Return the one place of a page where a text stands; white space and line ends are alike.

    Raises
    ------
    JudgeBayesError
        If it does not stand there exactly once.
    """
    parts = PLACE.split(text)[::4]
    words = [r"\s+".join(re.escape(word) for word in re.split(r"\s+", part)) for part in parts]
    pattern = f"({NUMBER})".join(words).replace(r"\s+\.\.\.\s+", r"\s.*?\s")
    matches = list(re.finditer(pattern, page, re.DOTALL))
    if len(matches) != 1:
        raise JudgeBayesError(f"{where} has {text!r} {len(matches)} times and not once.")
    return matches[0]


def with_figures(page: str, sentences: Iterable[Sentence], values: Mapping[str, float]) -> str:
    """Return a page with its sentences' figures written from the values of their queries.

    Raises
    ------
    JudgeBayesError
        If a query has no value, or a sentence does not stand on the page exactly once.
    """
    for sentence in sentences:
        if missing := [query for query in sentence.queries if query not in values]:
            raise JudgeBayesError(f"The saved figures lack {missing[0]!r}.")
        match = located(page, sentence.text, sentence.page)
        figures = printed(sentence.text, (values[query] for query in sentence.queries))
        for group, figure in reversed(list(enumerate(figures, 1))):
            page = page[: match.start(group)] + figure + page[match.end(group) :]
    return page


def unbacked(page: str, texts: Iterable[str], where: str) -> list[str]:
    """Return the words around each number of a page that no declared text contains."""
    covered = [located(page, text, where).span() for text in texts]
    covered += [match.span() for match in NO_FIGURE.finditer(page)]
    return [
        " ".join(page[max(0, match.start() - 40) : match.end() + 20].split())
        for match in re.finditer(NUMBER, page)
        if not any(start <= match.start() and match.end() <= end for start, end in covered)
    ]
