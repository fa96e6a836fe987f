"""The loss of each decision by true class: a named loss, or the user's own table."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from judgebayes.errors import JudgeBayesError
from judgebayes.io.in_memory import InMemory, file_or_table
from judgebayes.io.tables import read_table
from judgebayes.measures.decide import TIE_TOLERANCE, absolute_loss, zero_one_loss
from judgebayes.votes.classes import Classes, listing
from judgebayes.workflow.options import LossOptions

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


def check_losses(options: LossOptions) -> None:
    """Check the options for losses, before files are read.

    Raises
    ------
    JudgeBayesError
        If the name of the loss is unknown or is set together with a table, or the cost is invalid.
    """
    loss, abstain_cost = options.loss, options.abstain_cost
    if loss is not None and loss not in LOSSES:
        raise JudgeBayesError(f"--loss {loss!r} is unknown; choose one of: {', '.join(LOSSES)}.")
    if options.losses is not None and loss is not None:
        raise JudgeBayesError(
            f"--losses already defines the loss of every decision; omit --loss {loss}."
        )
    if abstain_cost is not None and not 0 <= abstain_cost < np.inf:
        raise JudgeBayesError(
            f"--abstain-cost is {abstain_cost:g}; it must be 0 or more, in units of the loss."
        )


def losses_of(options: LossOptions, classes: Classes) -> Losses:
    """Return the loss of every decision for these classes.

    `losses` is a matrix with a row per decision and a column per class, from the lowest class to the
    highest; or a table, or the path of one, whose first column names the decisions and whose other
    titles name the classes. A further row, called `person` in a table, is the cost of asking a person.
    Without it, `loss` is by default absolute for ordered classes, and zero-one for others.

    Raises
    ------
    JudgeBayesError
        If the classes of the table are not these, a loss is not a number from 0, or class steps are
        asked for where classes have no order.
    """
    check_losses(options)
    loss, losses, abstain_cost = options.loss, options.losses, options.abstain_cost
    if loss == "absolute" and not classes.ordered:
        raise JudgeBayesError(
            f"--loss absolute counts class steps, but the classes {listing(classes.values)} have no "
            "known order: name them from the lowest to the highest with --set classes=LOW,...,HIGH, or "
            "use --loss zero-one."
        )
    if losses is None:
        loss = loss or ("absolute" if classes.ordered else "zero-one")
        of_classes, meaning, mean = LOSSES[loss]
        matrix, person = of_classes(len(classes)), None
    else:
        matrix, person = _of_table(losses, classes)
        loss, meaning, mean = "own", "as given by --losses", ""
    if abstain_cost is not None:
        if person is not None:
            raise JudgeBayesError(
                f"--losses has a row {PERSON!r}, the cost of asking a person; omit --abstain-cost."
            )
        person = np.full(len(classes), float(abstain_cost))
    return Losses(matrix, loss, meaning, mean, person)


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
            f"--losses: the loss of deciding {frame.index[row]!r} if {frame.columns[column]!r} is "
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
            f"--losses is {shape}; it needs a row per decision and a column per class, {k} x {k}, "
            "and may have one more row, the cost of asking a person."
        )
    return pd.DataFrame(values, index=[*names, PERSON][: len(values)], columns=names)


def _by_name(losses: Any, classes: Classes) -> pd.DataFrame:
    names = list(classes.names)
    frame = losses if isinstance(losses, pd.DataFrame) and losses.index.name is None else None
    # The decisions of a DataFrame may be in its index.
    if frame is not None and {*names} <= {_class_name(each, classes) for each in frame.index}:
        losses = frame.rename_axis("decision")
    source = file_or_table(losses, "losses")
    table = read_table(source)
    first, *rest = table.columns
    rows = [_class_name(each, classes) for each in table[first]]
    columns = [_class_name(each, classes) for each in rest]
    _check_names(source, "rows", [name for name in rows if name != PERSON], names)
    _check_names(source, "columns", columns, names)
    if rows.count(PERSON) > 1:
        raise JudgeBayesError(f"--losses {source} has two rows {PERSON!r}.")
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
            f"--losses {source}: its {what} are {', '.join(given) or 'none'}; it needs one for each of "
            f"the classes {', '.join(names)}{further}."
        )
