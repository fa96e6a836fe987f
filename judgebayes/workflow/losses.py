"""The loss of each decision by true class: a named loss, or the user's own table."""

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from judgebayes.errors import JudgeBayesError
from judgebayes.io.in_memory import InMemory, file_or_table
from judgebayes.io.tables import read_table
from judgebayes.measures.scores import TIE_TOLERANCE, absolute_loss, zero_one_loss
from judgebayes.votes.classes import Classes, listing

LOSSES = {
    "absolute": (absolute_loss, "class steps from the label", "; its mean is the MAE"),
    "zero-one": (zero_one_loss, "1 if it is not the label", "; its mean is 1 - accuracy"),
}
"""The loss of each name, its definition in words, and how its mean relates to a metric."""
PERSON = "person"
"""The decision for an item that is sent to a person; in a table of losses, the row of its cost."""


@dataclass(frozen=True, eq=False)
class Losses:
    """The loss of every decision, by class, and the cost of asking a person."""

    matrix: Float[np.ndarray, "action class"]
    name: str
    """`absolute`, `zero-one` or `own`."""
    meaning: str
    """The definition of the loss, in words."""
    mean: str
    """How the mean loss relates to a metric of the comparison; empty if it does not."""
    person: Float[np.ndarray, " class"] | None
    """The cost of asking a person, by true class; None if nobody is asked."""

    def sent(
        self, probs: Float[np.ndarray, "*item class"], expected: Float[np.ndarray, "*item"]
    ) -> Bool[np.ndarray, "*item"]:
        """Return which items are sent to a person: those whose decision has a higher expected cost.

        This is the Bayes action under a loss with one more row, the cost of asking (Chow 1970).

        Parameters
        ----------
        probs
            Probabilities of the classes.
        expected
            Expected loss of the decision on each item.
        """
        if self.person is None:
            return np.zeros(expected.shape, bool)
        return np.asarray(expected > probs @ self.person + TIE_TOLERANCE)

    @property
    def cost(self) -> float | None:
        """The cost of asking a person, if it is the same for all classes; else None."""
        if self.person is None or np.ptp(self.person) > 0:
            return None
        return float(self.person[0])


_NAMED = re.compile(rf"({'|'.join(LOSSES)})?:?(?:{PERSON}=(.*))?")


def check_loss(loss: Any) -> None:
    """Check the name of a loss, before files are read.

    Raises
    ------
    JudgeBayesError
        If it is neither a loss nor a file, or the cost of asking is invalid.
    """
    _named(loss)


def _named(loss: Any) -> tuple[str | None, float | None] | None:
    """Return the name and the cost of asking, each if it is given; None for a file, table or matrix."""
    if loss is not None and not isinstance(loss, str | Path):
        return None
    text = str(loss or "")
    match = _NAMED.fullmatch(text)
    if match is None:
        if Path(text).is_file():
            return None
        raise JudgeBayesError(
            f"--loss {text!r} is neither {', '.join(LOSSES)} (with a cost of asking: "
            f"absolute:{PERSON}=0.3) nor a file."
        )
    name, cost = match.groups()
    if cost is None:
        return name, None
    with suppress(ValueError):
        if 0 <= float(cost) < np.inf:
            return name, float(cost)
    raise JudgeBayesError(
        f"--loss {text}: the cost of asking a person is {cost}; it must be 0 or more, in units of the "
        "loss."
    )


def losses_of(loss: Any, classes: Classes) -> Losses:
    """Return the loss of every decision for these classes.

    `loss` is `absolute` or `zero-one`, with the cost of asking a person as in `absolute:person=0.3`; a
    matrix with a row per decision and a column per class, from the lowest class to the highest; or a
    table, or the path of one, whose first column names the decisions and whose other titles name the
    classes. A further row, called `person` in a table, is the cost of asking a person. By default it is
    absolute for ordered classes, and zero-one for others.

    Raises
    ------
    JudgeBayesError
        If the classes of the table are not these, a loss is not a number from 0, or class steps are
        asked for where classes have no order.
    """
    named = _named(loss)
    if named is None:
        matrix, person = _of_table(loss, classes)
        return Losses(matrix, "own", "as given by --loss", "", person)
    name = named[0] or ("absolute" if classes.ordered else "zero-one")
    if name == "absolute" and not classes.ordered:
        raise JudgeBayesError(
            f"--loss absolute counts class steps, but the classes {listing(classes.values)} have no "
            "known order: name them from the lowest to the highest with --set classes=LOW,...,HIGH, or "
            "use --loss zero-one."
        )
    of_classes, meaning, mean = LOSSES[name]
    person = None if named[1] is None else np.full(len(classes), named[1])
    return Losses(of_classes(len(classes)), name, meaning, mean, person)


def _of_table(
    losses: Any, classes: Classes
) -> tuple[Float[np.ndarray, "action class"], Float[np.ndarray, " class"] | None]:
    """Return the losses of the decisions, and the cost of asking a person or None."""
    names = list(classes.names)
    if isinstance(losses, str | Path | InMemory | pd.DataFrame) or hasattr(
        losses, "__arrow_c_stream__"
    ):
        frame = _by_name(losses, classes)
    else:
        frame = _by_place(losses, names)
    values = frame.to_numpy()
    wrong = np.argwhere(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        row, column = wrong[0]
        raise JudgeBayesError(
            f"--loss: the loss of deciding {frame.index[row]!r} if {frame.columns[column]!r} is "
            f"right is {values[row, column]}; it must be a finite number of 0 or more."
        )
    return values[: len(names)], values[len(names)] if len(values) > len(names) else None


def _by_place(losses: Any, names: list[str]) -> pd.DataFrame:
    try:
        values = np.asarray(losses, dtype=float)
    except (TypeError, ValueError):
        values = np.zeros(0)
    k = len(names)
    if values.shape not in {(k, k), (k + 1, k)}:
        shape = " x ".join(map(str, values.shape)) if values.size else "not a matrix of numbers"
        raise JudgeBayesError(
            f"--loss is {shape}; it needs a row per decision and a column per class, {k} x {k}, "
            "and may have one more row, the cost of asking a person."
        )
    return pd.DataFrame(values, index=[*names, PERSON][: len(values)], columns=names)


def _by_name(losses: Any, classes: Classes) -> pd.DataFrame:
    names = list(classes.names)
    frame = losses if isinstance(losses, pd.DataFrame) and losses.index.name is None else None
    # The decisions of a DataFrame may be in its index.
    if frame is not None and {*names} <= {_class_name(each, classes) for each in frame.index}:
        losses = frame.rename_axis("decision")
    source = file_or_table(losses, "loss")
    table = read_table(source)
    first, *rest = table.columns
    rows = [_class_name(each, classes) for each in table[first]]
    columns = [_class_name(each, classes) for each in rest]
    _check_names(source, "rows", [name for name in rows if name != PERSON], names)
    _check_names(source, "columns", columns, names)
    if rows.count(PERSON) > 1:
        raise JudgeBayesError(f"--loss {source} has two rows {PERSON!r}.")
    order = [*names, PERSON] if PERSON in rows else names
    cells = table[rest].set_axis(columns, axis=1).set_axis(rows, axis=0).loc[order, names]
    return cells.apply(pd.to_numeric, errors="coerce").astype(float)


def _class_name(value: object, classes: Classes) -> str:
    """Return the name of the class with this value, or the value as text."""
    index = classes.index(value)
    return str(value).strip() if index is None or index < 0 else classes.names[index]


def _check_names(source: Path | InMemory, what: str, given: list[str], names: list[str]) -> None:
    if sorted(given) != sorted(names):
        further = f", and may have a row {PERSON!r}" if what == "rows" else ""
        raise JudgeBayesError(
            f"--loss {source}: its {what} are {', '.join(given) or 'none'}; it needs one for each of "
            f"the classes {', '.join(names)}{further}."
        )
