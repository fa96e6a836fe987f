"""Which questions a user's files can answer, by which command."""

import shlex

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.workflow.check_draft import Draft, words_of
from judgebayes.workflow.data import Study
from judgebayes.workflow.leaves import leaves
from judgebayes.workflow.methods import FEW_LABELS
from judgebayes.workflow.options import (
    CalibrateRequest,
    DiagnoseRequest,
    EnsembleRequest,
    PrecisionRequest,
)
from judgebayes.workflow.systems import EVERY, generators_of

COMMANDS: dict[str, tuple[str, type]] = {
    "calibrate": (
        "What is the probability of each class, and what should I decide?",
        CalibrateRequest,
    ),
    "diagnose": ("What is wrong with my judges or my labels?", DiagnoseRequest),
    "ensemble": ("What is the error of a majority of k votes?", EnsembleRequest),
    "precision": ("What share of each generator's items is valid?", PrecisionRequest),
}
NO_LABELS = "There are no labels: add them with --labels FILE, or name their column with --label."


def answerable(
    data: Study | None, draft: Draft, files: list[str], *, saved: bool = False
) -> pd.DataFrame:
    """Return a row per question: its command with all options, whether it runs, and why not.

    Parameters
    ----------
    data
        What the options read; None if they read nothing.
    draft
        The options.
    files
        The words of the command for the files.
    saved
        Whether these are a study file, which has the options.
    """
    rows = []
    for name, (question, record) in COMMANDS.items():
        has = {leaf.name for leaf in leaves(record, {})}
        options = {} if saved else draft.options()
        lacking = options.keys() - has - {"drop_unknown_labels"}
        can, why = (False, "The files cannot be read.") if data is None else _answer(name, data)
        if can and lacking:
            can, why = False, f"judgebayes {name} has no key {', '.join(sorted(lacking))}."
        words = words_of({key: value for key, value in options.items() if key in has})
        command = shlex.join(["judgebayes", name, *files, *words])
        rows.append((question, name, can, why, command if can else None))
    return pd.DataFrame(rows, columns=["question", "answered by", "can", "why", "command"]).astype(
        {"can": bool}
    )


def _answer(name: str, data: Study) -> tuple[bool, str]:
    """Tell whether a command can answer its question from what was read, and why not or how well."""
    known = data.labels[data.labels >= 0]
    n, distinct = len(known), len(np.unique(known))
    if name == "diagnose":
        return (
            True,
            f"With {n} labels." if n else "Without labels: judges are compared with one another.",
        )
    if name == "precision":
        return _precision(data, n)
    if n == 0:
        return False, NO_LABELS
    if distinct == 1 and name == "calibrate":
        return False, f"All {n} labels are the same class: label items of the others."
    few = ", few: intervals will be wide" if n < FEW_LABELS else ""
    return True, f"With {n} labels{few}."


def _precision(data: Study, n: int) -> tuple[bool, str]:
    classes = data.coding.classes
    if len(classes) != 2:
        return False, (
            f"The votes have {len(classes)} classes, and this needs two; if items compare systems, "
            "judgebayes calibrate --set systems=A,B gives win rates."
        )
    try:
        names, _ = generators_of(data, None)
    except JudgeBayesError as error:
        return False, str(error)
    if names == [EVERY]:
        return (
            True,
            f"All items as one system's, with {n} labels; --set generator=COLUMN names its column.",
        )
    if len(names) < 2:
        return True, f"One generator, {names[0]!r}, with {n} labels."
    return True, f"{len(names)} generators, with {n} labels."
