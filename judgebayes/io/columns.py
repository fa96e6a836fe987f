"""Column roles, guessed from common column names.

Records that are identical to an earlier one, and criteria by which a judge votes several times.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import join_names, split_names
from judgebayes.sentence import did_you_mean
from judgebayes.votes.classes import mapped, written

ROLES: dict[str, tuple[str, ...]] = {
    role: tuple(names.split())
    for role, names in {
        "item": (
            "item item_id example example_id pair pair_id question question_id qid prompt_id "
            "instance instance_id id sample_id task_id case_id test_id doc_id doc uid battle "
            "battle_id"
        ),
        "judge": (
            "judge judge_id judge_name judge_model grader evaluator validator annotator rater "
            "worker model"
        ),
        "vote": "vote verdict judgment judgement preference decision rating winner choice",
        "sample": "sample sample_id repetition rep repeat run trial iteration attempt epoch replicate",
        "order": "order presentation_order presentation swapped",
        "label": (
            "label gold gold_label truth ground_truth human human_label reference target "
            "expected correct_answer gold_standard goldstandard"
        ),
        "annotator": (
            "annotator annotator_id rater rater_id labeler labeller worker worker_id workerid "
            "reviewer person"
        ),
        "generator": "generator system producer source candidate model",
    }.items()
}
"""Names by role, the most likely first; case, spaces and hyphens are ignored."""

LIKE: dict[str, str] = {
    "item": r"(?:item|example|pair|question|prompt|instance)_(?:number|no|nr|name|key|ref)\.?",
    "judge": r".*_(?:judge|grader|evaluator|validator|annotator|rater|worker)(?:_name)?",
    "vote": r".*_(?:vote|verdict|judge?ment|preference|decision|winner)",
}
"""Patterns for names without an exact match, if only one column fits: "LLM Judge", "Item No."."""

CRITERION = re.compile(
    r"(?:.*_)?(?:criterion|criteria|rubric|rubric_name|dimension|aspect|metric|metric_name|quality)"
)
"""Names of columns that say by which criterion a judge voted."""
PEOPLE = (
    "human|people|person|expert|teacher|reviewer|annotator|annotation|user"
    "|mensch|humain|humano|umano"
)
"""Words in names of columns with the answers of people."""
SETTLED = re.compile(
    r"(?<![^\W\d_])(?:gold|truth|final|majority|consensus|adjudicated)", re.IGNORECASE
)
"""Words in names of columns in which the answers of several people are one."""
NUMBERED = re.compile(
    r"(?P<judge>.*?)[ _.-]*(?P<word>run|sample|rep|repeat|repetition|replicate|trial|attempt|iteration"
    r"|iter|draw|pass|try|vote|verdict|judge?ment|seed|epoch)?s?[ _.-]*(?P<number>\d+)",
    re.IGNORECASE,
)
"""Names of columns that number the votes of a judge: run 1, gpt_vote_2."""
MODELS = re.compile(
    r"gpt|claude|llama|gemini|gemma|mistral|mixtral|qwen|deepseek|grok|command|judge|model|llm|"
    r"(?<![a-z])ai(?![a-z])|bot|auto|match|regex|classifier",
    re.IGNORECASE,
)
"""Words in names of columns with the answers of models and programs: `gpt4_label`."""
LABELS = re.compile(r"gold.*|.*(?:label|truth|gold)s?")


def guess_columns(
    columns: Iterable[str],
    given: Mapping[str, str | None],
    likely: Mapping[str, Sequence[str]] = ROLES,
    needed: Sequence[str] = (),
    path: Path | None = None,
) -> dict[str, str | None]:
    """Return the column of each role: the given one, else the most likely by name, else None.

    Parameters
    ----------
    columns
        The table's columns.
    given
        The columns that the user named, by role, or None; "none" means that there is no such column.
    likely
        The usual names of each role, the most likely first.
    needed
        The roles that must have a column.
    path
        The file, for the question which of its columns a role has; None if an option names it.

    Raises
    ------
    JudgeBayesError
        If a given column does not exist, or a needed one is not recognised.
    """
    names = list(columns)
    column_of: dict[str, str | None] = {}
    for role, choice in given.items():
        if choice is not None and choice != "none":
            if choice not in names:
                raise JudgeBayesError(
                    f"There is no column {choice!r} for the {role.replace('_', ' ')}; the table has "
                    f"{', '.join(map(repr, names[:20]))}.{did_you_mean(choice, names)}"
                )
            column_of[role] = choice
    for role, choice in given.items():
        if choice is None:
            free = [name for name in names if name not in column_of.values()]
            column_of[role] = most_likely(free, role, likely)
        elif choice == "none":
            column_of[role] = None
        if role in needed and column_of[role] is None:
            raise JudgeBayesError(unrecognised(role, names, path, likely[role]))
    return column_of


def unrecognised(
    role: str, names: Sequence[str], path: Path | None = None, usual: Sequence[str] = ()
) -> str:
    """Return the question which of these columns has a role; in a file, with its usual names."""
    if not names:
        return "The table has no columns; name at least the item and the vote."
    where = "" if path is None else f" of {str(path)!r}"
    option = f"use --{role.replace('_', '-')} NAME"
    use = option if path is None else f"name it {' or '.join(map(repr, usual[-2:]))}"
    return (
        f"Which column{where} is the {role.replace('_', ' ')}? None of "
        f"{', '.join(map(repr, names[:20]))} is a name that is recognised; {use}."
    )


def names_of_items(table: pd.DataFrame, column: str, path: object, advice: str) -> pd.Series:
    """Return the item of each row of a table with a row per item.

    Raises
    ------
    JudgeBayesError
        If a row has no item, or two rows have the same; the message ends with the advice.
    """
    names = mapped(table[column], written)
    if names.isna().any():
        row = names.isna().idxmax()
        raise JudgeBayesError(f"Row {row} of {str(path)!r} has no item in column {column!r}.")
    twice = names[names.duplicated(keep=False)]
    if len(twice):
        one, other = twice.index[twice == twice.iloc[0]][:2]
        raise JudgeBayesError(
            f"Rows {one} and {other} of {str(path)!r} have the same item {twice.iloc[0]!r}; every item "
            f"must have one row{advice}."
        )
    return names


def listed_roles(columns: Mapping[str, str | None]) -> str:
    """Return the column of each role that has one, for a sentence.

    >>> listed_roles({"item": "id", "judge": None, "vote": "v"})
    "item = 'id', vote = 'v'"
    """
    return ", ".join(f"{role} = {name!r}" for role, name in columns.items() if name is not None)


def plain_label(columns: Iterable[str]) -> str | None:
    """Return the label column, if its name cannot be that of a judge ("human" can).

    The name is `label` or a synonym, or else the only name that begins with gold or ends with label,
    truth or gold: "Goldlabel", "Human Labels".
    """
    return _named_like(columns, list(filter(LABELS.fullmatch, ROLES["label"])), LABELS)


def like_a_label(name: str) -> bool:
    """Tell whether a column is named like the answers of people or the truth, not like a judge.

    >>> [like_a_label(name) for name in ("human_ok", "feedback.user_score", "Urteil Mensch", "gpt")]
    [True, True, True, False]
    """
    known = _has_word(
        name,
        f"{PEOPLE}|sme|my|gold|truth|expected|final|majority|consensus|adjudicat[a-z]*"
        "|label|reference|target",
    )
    return known and (_has_word(name, "human|person|expert") or not MODELS.search(name))


def like_a_person(name: str) -> bool:
    """Tell whether a score is named like the answer of a person: `user_score`, not `reference_f1`."""
    return _has_word(name, f"{PEOPLE}|rater|labell?er|manual|thumb")


def _has_word(name: str, words: str) -> bool:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return re.search(rf"(?<![^\W\d_])(?:{words})s?(?![^\W\d_])", spaced, re.IGNORECASE) is not None


def plain_name(name: str) -> str:
    """Return the normalised form of a column's name."""
    return re.sub(r"[\s\-]+", "_", name.casefold().strip(" \t:?"))


def most_likely(
    names: Iterable[str], role: str, likely: Mapping[str, Sequence[str]] = ROLES
) -> str | None:
    """Return the column with a usual name of a role, else the only one with a similar name."""
    return _named_like(names, likely.get(role, ()), LIKE.get(role))


def _named_like(
    names: Iterable[str], likely: Sequence[str], similar: re.Pattern[str] | str | None
) -> str | None:
    """Return the column with the first likely name, else the only one that matches a pattern.

    Of columns whose normalised names are the same, the first one counts.
    """
    plain: dict[str, str] = {}
    for name in names:
        plain.setdefault(plain_name(name), name)
    exact = [plain[key] for key in map(plain_name, likely) if key in plain]
    matches = [name for each, name in plain.items() if similar and re.fullmatch(similar, each)]
    return exact[0] if exact else matches[0] if len(matches) == 1 else None


COPY = "identical to an earlier record"
"""Why a copy is left out."""


def without_copies(
    table: pd.DataFrame, columns: dict[str, str | None], *, repeats: bool
) -> tuple[pd.DataFrame, int]:
    """Return a long table without copies of records, and how many there were.

    A copy is identical to an earlier record in every column. Where nothing numbers or tells apart the
    repeated votes of a judge on an item, identical records may be repeated votes and stay: with
    `repeats`, or if other records of the judge on the item differ in their vote.
    """
    keys = [columns[role] for role in ("item", "judge", "sample", "order", "vote")]
    used = [name for name in keys if name is not None]
    again = table.duplicated(used, keep=False)
    if not again.any():
        return table, 0
    same = table[again]
    try:
        copy = same.duplicated()
    except TypeError:  # lists and the like
        copy = same.map(repr).duplicated()
    if not copy.any():
        return table, 0
    rest = table.drop(index=copy.index[copy])
    if columns["sample"] is None:
        place = [name for name in used if name != columns["vote"]]
        others = [str(name) for name in table.columns if name not in columns.values()]
        seen = rest[rest.duplicated(place, keep=False)]
        if not _distinguishes(seen, rest, place, others) and (repeats or len(seen)):
            return table, 0
    return rest, int(copy.sum())


def _distinguishes(
    seen: pd.DataFrame, rest: pd.DataFrame, place: list[str], others: list[str]
) -> bool:
    """Tell whether a column tells repeated votes apart; if there are none, whether its values differ."""
    for name in others:
        cells = (seen if len(seen) else rest)[name].map(repr)
        if len(seen) == 0:
            if cells.is_unique:
                return True
        elif (~seen.assign(**{name: cells}).duplicated([*place, name])).sum() > (
            ~seen.duplicated(place)
        ).sum():
            return True
    return False


def join_judge(table: pd.DataFrame, named: str | None) -> pd.DataFrame:
    """Return the table with a column for a judge that several columns name (`judge,criterion`)."""
    if named is None or named in table.columns:
        return table
    parts = split_names(named)
    if len(parts) < 2 or not set(parts) <= set(table.columns):
        return table
    joined = table[parts[0]].map(written).astype(object)
    for name in parts[1:]:
        joined = joined + " / " + table[name].map(written).astype(object)
    return table.assign(**{named: joined})


def judge_of_criteria(
    table: pd.DataFrame, columns: dict[str, str | None]
) -> tuple[str, str] | None:
    """Return the judge as several columns, if a criterion tells votes of a judge on an item apart.

    The second value is a sentence about it. None if there is no such column.
    """
    free = [name for name in table.columns if name not in columns.values()]
    criterion = next((name for name in free if CRITERION.fullmatch(plain_name(name))), None)
    if criterion is None:
        return None
    judge = columns["judge"]
    place = [
        name for role in ("item", "judge", "sample", "order") if (name := columns[role]) is not None
    ]
    if not table.groupby(place, dropna=False)[criterion].nunique().gt(1).any():
        return None
    named = criterion if judge is None else join_names([judge, criterion])
    n = table[criterion].nunique()
    example = join_judge(table, named)[named].iloc[0]
    return named, (
        f"Column {criterion!r} has {n} values for the same item: a judge counts as another judge on "
        f"each, such as {example!r}. To use one of them, keep its rows, or use --set only_judge=NAME."
    )


def repeated_columns(names: Sequence[str]) -> dict[str, str]:
    """Return the judge of each column that numbers its votes; nothing if a column does not.

    >>> repeated_columns(["gpt_run1", "gpt_run2"])
    {'gpt_run1': 'gpt', 'gpt_run2': 'gpt'}
    >>> repeated_columns(["judge_1", "judge_2"])
    {}
    """
    numbers: dict[str, list[int]] = {}
    judges: list[str] = []
    for found in map(NUMBERED.fullmatch, names):
        if found is None or (found["judge"] and not found["word"]):
            return {}
        judges.append(found["judge"] or "judge")
        numbers.setdefault(judges[-1], []).append(int(found["number"]))
    for own in numbers.values():
        if len(own) < 2 or sorted(own) != [*range(min(own), min(own) + len(own))] or min(own) > 1:
            return {}
    return dict(zip(names, judges, strict=True))
