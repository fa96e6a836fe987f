"""Which column is which, from the names that people use."""

import re
from collections.abc import Iterable

from judgebayes.errors import JudgeBayesError

__all__ = ["ROLES", "guess_columns", "plain_label"]

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
    "sample": ("sample", "sample_id", "repetition", "rep", "repeat", "run", "trial", "iteration"),
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
}
"""Names by role, the likeliest first; case, spaces and hyphens do not matter."""

LIKE: dict[str, str] = {
    "item": r"(?:item|example|pair|question|prompt|instance)_(?:number|no|nr|name|key|ref)\.?",
    "judge": r".*_(?:judge|grader|evaluator|validator|annotator|rater|worker)(?:_name)?",
    "vote": r".*_(?:vote|verdict|judge?ment|preference|decision|winner)",
}
"""Names that will do where none is exact and only one is like this: "LLM Judge", "Item No."."""

LABELS = re.compile(r"gold.*|.*(?:label|truth|gold)s?")


def guess_columns(columns: Iterable[str], given: dict[str, str | None]) -> dict[str, str | None]:
    """Return the column of each role: the given one, else the likeliest by name, else None.

    Parameters
    ----------
    columns
        The table's columns.
    given
        What the user said, by role; None where nothing was. "none" says that there is no such
        column.

    Raises
    ------
    JudgeBayesError
        If a given column does not exist, or no item or vote column can be told.
    """
    names = list(columns)
    found: dict[str, str | None] = {}
    for role, wanted in given.items():
        if wanted is not None and wanted != "none":
            if wanted not in names:
                raise JudgeBayesError(
                    f"There is no column {wanted!r} for the {role}; the table has "
                    f"{', '.join(map(repr, names[:20]))}."
                )
            found[role] = wanted
    for role, wanted in given.items():
        if wanted is None:
            free = [name for name in names if name not in found.values()]
            found[role] = _likeliest(free, role)
        elif wanted == "none":
            found[role] = None
    for role in ("item", "vote"):
        if role in given and found.get(role) is None:
            raise JudgeBayesError(
                f"Which column is the {role}? None of {', '.join(map(repr, names[:20]))} is named "
                f"like one; say --{role} NAME."
            )
    return found


def plain_label(columns: Iterable[str]) -> str | None:
    """Return the column of labels by a name that no judge would have ("human" may be one).

    That is `label` or the like, or else the only name that begins with gold or ends with label, truth
    or gold: "Goldlabel", "Human Labels".
    """
    plain = _plain_names(list(columns))
    like = [plain[name] for name in plain if LABELS.fullmatch(name)]
    exact = next(
        (plain[name] for name in ROLES["label"] if name in plain and LABELS.fullmatch(name)), None
    )
    return exact if exact is not None else like[0] if len(like) == 1 else None


def _plain_names(names: list[str]) -> dict[str, str]:
    """Return names by how they are compared; of two that are alike, the first."""
    return {re.sub(r"[\s\-]+", "_", name.strip().casefold()): name for name in reversed(names)}


def _likeliest(names: list[str], role: str) -> str | None:
    plain = _plain_names(names)
    exact = next((plain[name] for name in ROLES.get(role, ()) if name in plain), None)
    like = [plain[name] for name in plain if role in LIKE and re.fullmatch(LIKE[role], name)]
    return exact or (like[0] if len(like) == 1 else None)
