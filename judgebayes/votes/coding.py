"""The coding of votes: a mapping from array indices back to the names in a table."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Int

from judgebayes.arrays import AnyArray, AnyProbs, ItemInts, Labels, Weights
from judgebayes.errors import JudgeBayesError
from judgebayes.sentence import percent, sentences
from judgebayes.votes.array import MISSING, Votes
from judgebayes.votes.classes import Classes, canonical, listing
from judgebayes.votes.columns import first_row, label_indices, positions, require_columns

MOST_NAMED = 8
"""The most judges that a sentence names one by one."""


@dataclass(frozen=True)
class Coding:
    """The mapping from array indices back to the names in the user's table."""

    items: pd.Index
    judges: pd.Index
    classes: Classes
    tasks: pd.Index | None = None
    missing: pd.Series = field(default_factory=lambda: pd.Series(dtype=int))
    """The number of votes of each judge that are recorded as missing or unreadable."""
    flipped: int = 0
    """The number of votes that were given in swapped order and reversed."""
    asked: Int[np.ndarray, "item judge"] | None = None
    """The number of rows of each judge on each item in the table, with missing votes: 0 where it was
    never asked. None if this is unknown."""
    undecided: pd.Series = field(default_factory=lambda: pd.Series(dtype=int))
    """The number of votes of each judge that are for no class."""

    def __repr__(self) -> str:
        """Return a short summary."""
        return (
            f"Coding({len(self.items)} items, {len(self.judges)} judges, "
            f"classes {', '.join(self.classes.names)})"
        )

    @property
    def coords(self) -> dict[str, list[Any]]:
        """The names along the axes of a posterior: `fit.to_arviz(coding.coords)`."""
        classes = self.classes.names
        named = {"item": self.items, "judge": self.judges, "class": classes, "vote": classes}
        if self.tasks is not None:
            named["task"] = self.tasks
        return {axis: list(of) for axis, of in named.items()}

    def labels(
        self,
        frame: "pd.DataFrame | pd.Series",
        *,
        item: str = "item",
        label: str = "label",
        unknown_items: Literal["error", "drop"] = "error",
        allow_degenerate: bool = False,
    ) -> ItemInts:
        """Return the class index of every item's label, -1 where it has none.

        Parameters
        ----------
        frame
            A table with a row per item, or per vote with the item's label repeated; or a Series
            of labels with the items as its index.
        item, label
            The names of its columns.
        unknown_items
            What to do with labels of items that have no votes.
        allow_degenerate
            Accept labels that are all the same. A constant label makes every calibrator look
            perfect, so it is an error by default.

        Raises
        ------
        JudgeBayesError
            For a label of an unknown class, two labels of one item, an item without votes, no
            label at all, or constant labels.

        Examples
        --------
        >>> import pandas as pd
        >>> from judgebayes.votes import encode
        >>> table = pd.DataFrame({"item": list("abc"), "judge": "j", "vote": [1, 0, 1]})
        >>> votes, coding = encode(table)
        >>> coding.labels(pd.DataFrame({"item": ["a", "b"], "label": [1, 0]})).tolist()
        [1, 0, -1]
        """
        if isinstance(frame, pd.Series):
            frame = frame.rename("label").rename_axis("item").reset_index()
            item, label = "item", "label"
        require_columns(frame, {"item": item, "label": label})
        given = label_indices(frame[label], self.classes)
        position = positions(self.items, frame[item], item)
        without_votes = (position < 0) & (given >= 0)
        if without_votes.any() and unknown_items == "error":
            names = frame.loc[without_votes, item].unique()
            raise JudgeBayesError(
                f"Column {label!r} labels {len(names)} item(s) that have no votes: "
                f"{listing(names)}. Items with votes are named {listing(self.items, 3)}. Check that "
                "both tables use the same names, or drop these labels "
                "(--set drop_unknown_labels=true, unknown_items='drop')."
            )
        result = np.full(len(self.items), MISSING, np.int32)
        keep = (position >= 0) & (given >= 0)
        result[position[keep]] = given[keep]
        if (row := first_row(keep & (result[position] != given))) is not None:
            raise JudgeBayesError(
                f"Item {canonical(frame[item].iloc[row])!r} has more than one label in column "
                f"{label!r} (row {frame.index[row]} says {canonical(frame[label].iloc[row])!r}); "
                "an item must have one label. If several people labelled it, choose how to merge their "
                "labels: --set labels_merge=majority, adjudicated or noisy."
            )
        if not keep.any():
            raise JudgeBayesError(
                f"No item with votes has a label in column {label!r}; label at least one item of "
                "each class."
            )
        if not allow_degenerate:
            self.refuse_constant(result, label)
        return result

    def refuse_constant(self, labels: Labels, label: str = "label") -> None:
        """Raise an error if all labels are the same.

        Raises
        ------
        JudgeBayesError
            If all labels are the same; the message names their column.
        """
        labels = np.asarray(labels)
        distinct = np.unique(labels[labels >= 0])
        if len(distinct) == 1:
            raise JudgeBayesError(
                f"Every label in column {label!r} is {self.classes.values[distinct[0]]!r}. With a "
                "constant label any calibrator looks perfect by learning that constant. Use an "
                "orientation in which labels differ (for example the response order), or allow "
                "constant labels: --set allow_degenerate=true at the command line, "
                "allow_degenerate=True in Python."
            )

    def decode(
        self,
        log_probs: AnyProbs,
        decisions: Labels | None = None,
        expected_loss: Weights | None = None,
    ) -> pd.DataFrame:
        """Return a table with a row per item: `p(class)` columns, decision and expected loss.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from judgebayes.votes import encode
        >>> table = pd.DataFrame({"item": list("ab"), "judge": "j", "vote": [1, 0]})
        >>> votes, coding = encode(table)
        >>> print(coding.decode(np.log([[0.25, 0.75], [0.5, 0.5]]), np.array([1, 0])))
          item  p(0)  p(1)  decision
        0    a  0.25  0.75         1
        1    b  0.50  0.50         0
        """
        probs = np.exp(np.asarray(log_probs))
        columns = [f"p({name})" for name in self.classes.names]
        if probs.shape != (len(self.items), len(columns)):
            raise JudgeBayesError(
                f"The probabilities have the shape {probs.shape}; this coding has "
                f"{len(self.items)} items and {len(columns)} classes."
            )
        table = pd.DataFrame(probs, index=self.items, columns=columns)
        if decisions is not None:
            table["decision"] = self.values(decisions)
        if expected_loss is not None:
            table["expected_loss"] = np.asarray(expected_loss)
        return table.reset_index()

    def values(self, index: Int[AnyArray, "*any"]) -> list[Any]:
        """Return the class values of indices, None for -1."""
        return [None if i < 0 else self.classes.values[i] for i in np.asarray(index).tolist()]

    def words(self, votes: Votes) -> list[str]:
        """Return sentences on the votes: sizes, missing votes, reversed votes."""
        cast = int((np.asarray(votes.index) >= 0).sum())
        lines = [
            f"{cast} votes of {len(self.judges)} judge(s) on {len(self.items)} items, "
            f"classes {', '.join(self.classes.names)} "
            f"({'low to high' if self.classes.ordered else 'in no order'})."
        ]
        count = int(self.undecided.sum())
        if self.classes.undecided and count:
            given = count + cast
            lines.append(
                f"{count} of {given} votes ({percent(count / given)}) are "
                f"{listing(self.classes.undecided)}, and no label is: they are read as undecided, "
                "neither right nor wrong and for no class. --set undecided=none reads them as a class "
                f"of their own, --set missing={self.classes.undecided[0]} as votes that were not given."
            )
        missing = self.missing[self.missing > 0].sort_values(ascending=False, kind="stable")
        if len(missing):
            lines.append(
                f"Missing or unreadable votes: {int(missing.sum())}, by judge: {_named(missing)}."
            )
        if self.asked is not None:
            on = pd.Series((self.asked > 0).sum(0), index=self.judges)
            part = on[on < len(self.items)].sort_values(kind="stable")
            if len(part):
                lines.append(
                    f"{len(part)} judge(s) were asked on only some of the {len(self.items)} items: "
                    f"{_named(part)}. Items on which a judge was not asked do not count as missing "
                    "votes."
                )
        if votes.order is not None:
            swapped = int(((np.asarray(votes.order) == 1) & (np.asarray(votes.index) >= 0)).sum())
            lines.append(
                f"{swapped} of {cast} votes were given with the responses swapped; "
                + (f"{self.flipped} were reversed." if self.flipped else "none was reversed.")
            )
        return sentences(lines)


def _named(counts: pd.Series) -> str:
    """Return the numbers of the first judges as text, and how many more there are."""
    shown = ", ".join(f"{judge} {n}" for judge, n in counts.head(MOST_NAMED).items())
    rest = len(counts) - MOST_NAMED
    return f"{shown} and {rest} more judges" if rest > 0 else shown
