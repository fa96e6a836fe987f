"""Problems of a user's judges and labels."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd

from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding, count_findings
from judgebayes.panel import diagnostics
from judgebayes.panel.agreement import agreement_table
from judgebayes.panel.by_value import rates_by
from judgebayes.panel.judges import judge_table
from judgebayes.panel.reliability import reliability_table
from judgebayes.sentence import with_interval
from judgebayes.show.page import Block, Findings, Paragraph, Table
from judgebayes.show.tables import judges_figure, judges_table, percent_with_interval
from judgebayes.workflow.asking import data_of
from judgebayes.workflow.data import Study, grouped_words, values_of
from judgebayes.workflow.next_steps import diagnosis_steps
from judgebayes.workflow.options import DiagnoseRequest, Fixed
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import Result, Written

BEYOND = (
    "Kappa, AC1 and alpha: 0 is chance, 1 is always equal. Where nearly all items have one class, kappa "
    "and alpha are low even if judges agree, and AC1 is not."
)
WEIGHT = "Weight: what a vote adds to the log-odds of its class, given the judge's accuracy."


@dataclass(frozen=True, repr=False)
class Diagnosis(Result):
    """Statistics of each judge, and the problems of judges and labels."""

    schema: ClassVar[str] = "judgebayes.diagnosis/1"
    data: Study
    request: DiagnoseRequest
    judges: pd.DataFrame
    """A row per judge, as `judgebayes.judge_table` gives it; without labels also its agreement with the
    other judges and its share of votes by class."""
    grouped: list[str]
    """How groups of items change the intervals, in sentences; empty without groups."""
    findings: list[Finding]
    """The most severe first."""
    agreement: pd.DataFrame
    """Agreement beyond chance, as `judgebayes.panel.reliability.reliability_table` gives it."""
    by: pd.DataFrame | None = None
    """A row per judge and value of the column of `--by`, as `judgebayes.panel.rates_by` gives it."""
    by_words: tuple[str, ...] = ()
    """What the table by values leaves out and counts, in sentences."""

    @property
    def said(self) -> list[str]:
        """What was read, in sentences."""
        labels = self.data.labels
        labelled = f"{int((labels >= 0).sum())} of {len(labels)} items are labelled."
        unused = "pairwise has no effect: nothing here depends on what the classes compare."
        notes = [] if self.request.pairwise is None else [unused]
        return [*self.data.words(), labelled, *notes]

    @property
    def blocks(self) -> list[Block]:
        """What was read, the judges, the effect of groups, and the findings, the most severe first."""
        blocks: list[Block] = [*map(Paragraph, self.said)]
        table = judges_table(self.judges, self.request.judges)
        blocks.append(table)
        if "weight" in table.head:
            blocks.append(Paragraph(WEIGHT))
        if np.isfinite(self.judges["accuracy"]).any():
            blocks.append(judges_figure(self.judges, self.request.judges))
        if len(self.agreement):
            blocks += [_agreement_table(self.agreement, self.request.judges), Paragraph(BEYOND)]
        if self.by is not None and self.request.by is not None:
            blocks.append(_by_table(self.by, self.request.by, self.request.judges))
        blocks += map(Paragraph, (*self.by_words, *self.grouped))
        return [*blocks, Findings(self.findings)]

    @property
    def files(self) -> dict[str, tuple[str, Written]]:
        """The table of all judges, or of all by the values of a column."""
        if self.by is not None:
            return {"out": (f"all judges by {self.request.by!r}", self.by)}
        return {"out": ("all judges", self.judges)}

    @property
    def next_steps(self) -> list[str]:
        """What to mend or to label before calibration."""
        return diagnosis_steps(self.numbers)

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers of items, labels, judges, votes, problems and notes."""
        return self.data.numbers | count_findings(self.findings)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The judges, the findings with severity, topic and judges, and the rates by value."""
        columns = ["severity", "topic", "judges", "sentence"]
        table = pd.DataFrame([*map(vars, self.findings)], columns=columns).astype(object)
        tables = {"judges": self.judges, "findings": table.assign(judges=table["judges"].map(list))}
        tables["agreement"] = self.agreement
        return tables if self.by is None else tables | {"by": self.by}


@with_options
@in_float64
def diagnose(
    request: Annotated[DiagnoseRequest, Fixed({"judges": 20, "out": None, "html": None})],
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
    data = data_of(request, named=() if request.by is None else (request.by,), detect=True)
    labels = data.labels
    judges = judge_table(data.votes, labels, data.coding, groups=data.groups)
    if not (labels >= 0).any() and len(judges) > 1:
        more = agreement_table(data.votes, data.coding.classes.names)
        judges = pd.concat([judges, more.drop(columns=["chance", "agreement_error"])], axis=1)
    grouped: list[str] = []
    if data.groups is not None:
        grouped = _grouped(data, judges, judge_table(data.votes, labels, data.coding))
    findings = diagnostics.diagnose(data.votes, labels, data.coding, seed=request.seed)
    by, words = (None, ()) if request.by is None else _by(data, request.by, request.seed)
    coding = data.coding
    agreement = reliability_table(
        data.votes,
        labels,
        [*map(str, coding.judges)],
        ordered=coding.classes.ordered,
        groups=data.groups,
    )
    return Diagnosis(data, request, judges, grouped, findings, agreement, by, words)


def _agreement_table(agreement: pd.DataFrame, most: int) -> Table:
    """Return the agreement of the judges with one another, and of the first judges with the labels."""
    shown = agreement.head(most + 1)
    ordinal = "alpha_ordinal" in agreement
    alpha = ("alpha_ordinal", "ordinal alpha") if ordinal else ("alpha", "alpha")
    heads = {"kappa": "kappa", "ac1": "AC1", alpha[0]: alpha[1]}
    rows = [
        [row["raters"], *(with_interval(row[[n, f"{n}_low", f"{n}_high"]], ".2f") for n in heads)]
        for _, row in shown.iterrows()
    ]
    few = "" if len(shown) == len(agreement) else f", the first {most} judges"
    return Table(f"Agreement, with 90 % intervals{few}", ["raters", *heads.values()], rows)


def _by(data: Study, column: str, seed: int) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the judges' rates by the values of a column, and what is left out or counted."""
    labels = data.labels
    if data.votes.n_classes != 2:
        raise JudgeBayesError(
            f"--by prints TPR and TNR, which need two classes; the votes have {data.votes.n_classes}."
        )
    value, names = values_of(data, column)
    table = rates_by(
        data.votes,
        labels,
        value,
        names,
        data.coding,
        groups=data.groups,
        evidence=data.evidence,
        seed=seed,
    )
    words = []
    without = int((value[labels >= 0] < 0).sum())
    if without:
        words.append(
            f"{without} of {int((labels >= 0).sum())} labelled items have no value in column {column!r} "
            "and are left out of the rates by value."
        )
    if data.evidence is not None:
        words.append("Rates and intervals by value count that merged labels may be wrong.")
    return table, tuple(words)


def _by_table(rates: pd.DataFrame, column: str, most: int) -> Table:
    """Return the rates of the first judges by the values of a column, without rates of no item."""
    judges = rates["judge"].unique()
    there = [
        (rate, noun)
        for rate, noun in (("tpr", "valid"), ("tnr", "invalid"))
        if np.isfinite(rates[rate]).any()
    ]
    rows = []
    for _, row in rates[rates["judge"].isin(judges[:most])].iterrows():
        cells = [(percent_with_interval(row, rate), str(row[noun])) for rate, noun in there]
        rows.append([str(row["judge"]), row["value"], *(cell for pair in cells for cell in pair)])
    shown = " and ".join(rate.upper() for rate, _ in there) or "Rates"
    few = "" if len(judges) <= most else f", {most} of {len(judges)} judges"
    title = f"{shown} by {column!r}, in % with 90 % intervals{few}"
    heads = [head for rate, noun in there for head in (rate.upper(), f"on {noun}")]
    return Table(title, ["judge", column, *heads], rows, words=[1])


def _grouped(data: Study, judges: pd.DataFrame, ungrouped: pd.DataFrame) -> list[str]:
    """Return how groups change the intervals; `ungrouped` is the table of judges without groups."""
    text = (
        "Items of a group may be similar. This does not change the estimates, but it changes the "
        "intervals"
    )
    wide, narrow = (t["accuracy_high"] - t["accuracy_low"] for t in (judges, ungrouped))
    ratio = (wide / narrow).dropna()
    if len(ratio):
        text += (
            f": the intervals of accuracy are {ratio.median():.2f} times as wide as without groups"
        )
        if len(ratio) > 1:
            text += f" (median; {ratio.min():.2f} to {ratio.max():.2f})"
    return grouped_words(data, f"{text}. The findings below treat items as independent.")
