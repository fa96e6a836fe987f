"""Problems of a user's judges and labels."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Int

from judgebayes.compiled.float64 import in_float64
from judgebayes.finding import Finding
from judgebayes.panel import diagnostics
from judgebayes.panel.judges import judge_table
from judgebayes.workflow.data import Data, data_of
from judgebayes.workflow.options import DiagnoseRequest, Fixed
from judgebayes.workflow.reading import Reading
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import Result

__all__ = ["Diagnosis", "diagnose", "diagnose_request"]


@dataclass(frozen=True, repr=False)
class Diagnosis(Result):
    """Statistics of each judge, and the problems of judges and labels."""

    schema: ClassVar[str] = "judgebayes.diagnosis/1"
    data: Data
    request: DiagnoseRequest
    judges: pd.DataFrame
    """A row per judge, as `judgebayes.judge_table` gives it."""
    grouped: list[str]
    """How groups of items change the intervals, in sentences; empty without groups."""
    findings: list[Finding]
    """The most severe first."""

    @property
    def said(self) -> list[str]:
        """What was read, in sentences."""
        labels = self.data.labels
        labelled = f"{int((labels >= 0).sum())} of {len(labels)} items are labelled."
        return [*self.data.read.words(), labelled]

    @property
    def sentences(self) -> list[str]:
        """What was read, the effect of groups, and the findings, the most severe first."""
        return [*self.said, *self.grouped, *(each.sentence for each in self.findings)]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The judges, and the findings with severity, topic and judges."""
        columns = ("severity", "topic", "judges", "sentence")
        rows = [[getattr(each, name) for name in columns] for each in self.findings]
        table = pd.DataFrame(rows, columns=list(columns)).astype(object)
        return {"judges": self.judges, "findings": table.assign(judges=table["judges"].map(list))}


@with_options
def diagnose(
    request: Annotated[DiagnoseRequest, Fixed({"judges": 20, "out": None, "plot": None})],
) -> Diagnosis:
    """Find problems of judges and labels: leaks, copies, bias, constant labels, saturation.

    The function behind `judgebayes diagnose`, with the same options; `votes` and `labels` are
    paths or tables, or `votes` is what `read` returned. Votes and labels as arrays are diagnosed by
    `judgebayes.panel.diagnostics.diagnose`.

    Raises
    ------
    JudgeBayesError
        For bad input. Constant labels are a finding, not an error.
    """
    return diagnose_request(request)


@in_float64
def diagnose_request(request: DiagnoseRequest) -> Diagnosis:
    """Do what `diagnose` does, with the options in a record."""
    data = data_of(request, dense=True)
    read, labels = data.table, data.labels
    judges = judge_table(read.votes, labels, read.coding, groups=read.groups)
    grouped: list[str] = []
    if read.groups is not None:
        grouped = _grouped(read, labels, judges, judge_table(read.votes, labels, read.coding))
    findings = diagnostics.diagnose(read.votes, labels, read.coding, seed=request.seed)
    return Diagnosis(data, request, judges, grouped, findings)


def _grouped(
    read: Reading, labels: Int[np.ndarray, " item"], judges: pd.DataFrame, ungrouped: pd.DataFrame
) -> list[str]:
    """Return how groups change the intervals; `ungrouped` is the table of judges without groups."""
    assert read.groups is not None
    labelled = labels >= 0
    text = (
        f"--group: {len(labels)} items in {len(np.unique(read.groups))} groups of column "
        f"{read.columns['group']!r}, and {int(labelled.sum())} labelled items "
        f"in {len(np.unique(read.groups[labelled]))} of them. Items of a group may be similar. This "
        "does not change the estimates, but it changes the intervals"
    )
    wide, narrow = (t["accuracy_high"] - t["accuracy_low"] for t in (judges, ungrouped))
    ratio = (wide / narrow).dropna()
    if len(ratio):
        text += (
            f": the intervals of accuracy are {ratio.median():.2f} times as wide as without groups"
        )
        if len(ratio) > 1:
            text += f" (median; {ratio.min():.2f} to {ratio.max():.2f})"
    return [f"{text}. The findings below treat items as independent."]
