"""Column roles, guessed from common column names."""

import re
from collections.abc import Iterable

from judgebayes.errors import JudgeBayesError
from judgebayes.sentence import did_you_mean

ROLES: dict[str, tuple[str, ...]] = {
    "item": (
        "item",
        "item_id",
        "example",
        "example_id",
        "pair",
        "pair_id",
        "question",
        "question_id",
        "qid",
        "prompt_id",
        "instance",
        "instance_id",
        "id",
    ),
    "judge": (
        "judge",
        "judge_id",
        "judge_name",
        "judge_model",
        "grader",
        "evaluator",
        "validator",
        "annotator",
        "rater",
        "worker",
        "model",
    ),
    "vote": (
        "vote",
        "verdict",
        "judgment",
        "judgement",
        "preference",
        "decision",
        "rating",
        "winner",
        "choice",
    ),
    "sample": (
        "sample",
        "sample_id",
        "repetition",
        "rep",
        "repeat",
        "run",
        "trial",
        "iteration",
        "attempt",
        "epoch",
        "replicate",
    ),
    "order": ("order", "presentation_order", "presentation", "swapped"),
    "label": (
        "label",
        "gold",
        "gold_label",
        "truth",
        "ground_truth",
        "human",
        "human_label",
        "reference",
        "target",
    ),
    "annotator": (
        "annotator",
        "annotator_id",
        "rater",
        "rater_id",
        "labeler",
        "labeller",
        "worker",
        "worker_id",
        "person",
    ),
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
LABELS = re.compile(r"gold.*|.*(?:label|truth|gold)s?")


def guess_columns(columns: Iterable[str], given: dict[str, str | None]) -> dict[str, str | None]:
    """Return the column of each role: the given one, else the most likely by name, else None.

    Parameters
    ----------
    columns
        The table's columns.
    given
        The columns that the user named, by role, or None; "none" means that there is no such column.

    Raises
    ------
    JudgeBayesError
        If a given column does not exist, or no item or vote column is recognised.
    """
    names = list(columns)
    column_of: dict[str, str | None] = {}
    for role, choice in given.items():
        if choice is not None and choice != "none":
            if choice not in names:
                raise JudgeBayesError(
                    f"There is no column {choice!r} for the {role}; the table has "
                    f"{', '.join(map(repr, names[:20]))}.{did_you_mean(choice, names)}"
                )
            column_of[role] = choice
    for role, choice in given.items():
        if choice is None:
            free = [name for name in names if name not in column_of.values()]
            column_of[role] = _most_likely(free, role)
        elif choice == "none":
            column_of[role] = None
    for role in ("item", "vote"):
        if role in given and column_of.get(role) is None:
            if not names:
                raise JudgeBayesError(
                    "The table has no columns; name at least the item and the vote."
                )
            raise JudgeBayesError(
                f"Which column is the {role}? None of {', '.join(map(repr, names[:20]))} is a "
                f"name that is recognised; use --{role} NAME."
            )
    return column_of


def plain_label(columns: Iterable[str]) -> str | None:
    """Return the label column, if its name cannot be that of a judge ("human" can).

    The name is `label` or a synonym, or else the only name that begins with gold or ends with label,
    truth or gold: "Goldlabel", "Human Labels".
    """
    by_plain_name = plain_names(list(columns))
    similar = [by_plain_name[name] for name in by_plain_name if LABELS.fullmatch(name)]
    exact = next(
        (
            by_plain_name[name]
            for name in ROLES["label"]
            if name in by_plain_name and LABELS.fullmatch(name)
        ),
        None,
    )
    return exact if exact is not None else similar[0] if len(similar) == 1 else None


def criterion_column(columns: Iterable[str]) -> str | None:
    """Return the first column that is named like a criterion or a rubric, if there is one."""
    by_plain_name = plain_names(list(columns))
    return next((by_plain_name[n] for n in reversed(by_plain_name) if CRITERION.fullmatch(n)), None)


def plain_names(names: list[str]) -> dict[str, str]:
    """Return names by their normalised form; if two normalise alike, the first one."""
    return {re.sub(r"[\s\-]+", "_", name.strip().casefold()): name for name in reversed(names)}


def _most_likely(names: list[str], role: str) -> str | None:
    by_plain_name = plain_names(names)
    exact = next(
        (by_plain_name[name] for name in ROLES.get(role, ()) if name in by_plain_name), None
    )
    similar = [
        by_plain_name[name]
        for name in by_plain_name
        if role in LIKE and re.fullmatch(LIKE[role], name)
    ]
    return exact or (similar[0] if len(similar) == 1 else None)
