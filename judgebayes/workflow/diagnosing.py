"""What is wrong with a user's judges and labels."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Int

from judgebayes.compiled.float64 import in_float64
from judgebayes.finding import Finding
from judgebayes.panel import diagnostics
from judgebayes.panel.judges import judge_table
from judgebayes.workflow.data import Data, encoded, read_before
from judgebayes.workflow.options import DiagnoseRequest, Fixed
from judgebayes.workflow.reading import Reading, classes_of, open_files
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import Result

__all__ = ["Diagnosis", "diagnose", "diagnose_request"]


@dataclass(frozen=True, repr=False)
class Diagnosis(Result):
    """What each judge did, and what is wrong with judges and labels."""

    schema: ClassVar[str] = "judgebayes.diagnosis/1"
    data: Data
    request: DiagnoseRequest
    judges: pd.DataFrame
    """A row per judge, as `judgebayes.judge_table` gives it."""
    grouped: list[str]
    """What the groups of items changed, in sentences; none without groups."""
    findings: list[Finding]
    """The gravest first."""

    @property
    def said(self) -> list[str]:
        """What was read, in sentences."""
        labels = self.data.labels
        labelled = f"{int((labels >= 0).sum())} of {len(labels)} items are labelled."
        return [*self.data.read.words(), labelled]

    @property
    def sentences(self) -> list[str]:
        """What was read, what groups changed, and what is wrong, the gravest first."""
        return [*self.said, *self.grouped, *(each.sentence for each in self.findings)]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The judges, and the findings with how grave they are and whom they are about."""
        columns = ("severity", "topic", "judges", "sentence")
        rows = [[getattr(each, name) for name in columns] for each in self.findings]
        found = pd.DataFrame(rows, columns=list(columns)).astype(object)
        return {"judges": self.judges, "findings": found.assign(judges=found["judges"].map(list))}


@with_options
def diagnose(
    request: Annotated[DiagnoseRequest, Fixed({"judges": 20, "out": None, "plot": None})],
) -> Diagnosis:
    """Find what is wrong with judges and labels: leaks, copies, bias, constant labels, saturation.

    What `judgebayes diagnose` does, with its options under the same names; `votes` and `labels` are
    paths or tables, or `votes` is what `read` returned. Votes and labels as arrays are diagnosed by
    `judgebayes.panel.diagnostics.diagnose`.

    Raises
    ------
    JudgeBayesError
        For bad input. Labels may be constant: that is one of the things to be found.
    """
    return diagnose_request(request)


@in_float64
def diagnose_request(request: DiagnoseRequest) -> Diagnosis:
    """Return what `diagnose` does, of options in a record."""
    data = read_before(request) or _read_files(request)
    read, labels = data.table, data.labels
    judges = judge_table(read.votes, labels, read.coding, groups=read.groups)
    grouped: list[str] = []
    if read.groups is not None:
        grouped = _grouped(read, labels, judges, judge_table(read.votes, labels, read.coding))
    found = diagnostics.diagnose(read.votes, labels, read.coding, seed=request.seed)
    return Diagnosis(data, request, judges, grouped, found)


def _read_files(request: DiagnoseRequest) -> Data:
    opened = open_files(request.votes, request.labels, request.columns, request.reading)
    classes = classes_of(opened, request.classes, request.pairwise)
    return encoded(opened, classes, drop_unknown=request.drop_unknown_labels, dense=True)


def _grouped(
    read: Reading, labels: Int[np.ndarray, " item"], judges: pd.DataFrame, alone: pd.DataFrame
) -> list[str]:
    """Return what the groups of items changed; `alone` is the table of judges without them."""
    assert read.groups is not None
    known = labels >= 0
    said = (
        f"--group: {len(labels)} items in {len(np.unique(read.groups))} groups of column "
        f"{read.columns['group']!r}, the {int(known.sum())} labelled ones in "
        f"{len(np.unique(read.groups[known]))}. Items of a group may be alike. That leaves every "
        "estimate as it is and changes the intervals"
    )
    wide, narrow = (t["accuracy_high"] - t["accuracy_low"] for t in (judges, alone))
    ratio = (wide / narrow).dropna()
    if len(ratio):
        said += f": of accuracy they are {ratio.median():.2f} times as wide as without"
        if len(ratio) > 1:
            said += f" (median; {ratio.min():.2f} to {ratio.max():.2f})"
    return [f"{said}. The findings below count every item for itself."]
