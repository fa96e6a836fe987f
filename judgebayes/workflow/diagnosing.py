"""Problems of a user's judges and labels."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

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
from judgebayes.workflow.machine import DiagnosisNumbers
from judgebayes.workflow.next_steps import diagnosis_steps
from judgebayes.workflow.options import DiagnoseRequest, Fixed
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import Answer, Parts, Written

BEYOND = (
    "Kappa, AC1 and alpha: 0 is chance, 1 is always equal. Where nearly all items have one class, kappa "
    "and alpha are low even if judges agree, and AC1 is not."
)
WEIGHT = "Weight: what a vote adds to the log-odds of its class, given the judge's accuracy."


@dataclass(frozen=True, repr=False, kw_only=True)
class Diagnosis(Answer):
    """Statistics of each judge, and the problems of judges and labels."""

    schema: ClassVar[str] = "judgebayes.diagnosis/1"
    data: Study
    judges: pd.DataFrame
    """A row per judge, as `judgebayes.judge_table` gives it; without labels also its agreement with the
    other judges and its share of votes by class."""
    findings: list[Finding]
    """The most severe first."""
    agreement: pd.DataFrame
    """Agreement beyond chance, as `judgebayes.panel.reliability.reliability_table` gives it."""
    by: pd.DataFrame | None
    """A row per judge and value of the column of `--by`, as `judgebayes.panel.rates_by` gives it."""


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
    findings = diagnostics.diagnose(data.votes, labels, data.coding, seed=request.seed)
    agreement = agreement_of(data)
    numbers: DiagnosisNumbers = {**data.numbers, **count_findings(findings)}
    said = [*data.words(), f"{numbers['labels']} of {len(labels)} items are labelled."]
    if request.pairwise is not None:
        said.append("pairwise has no effect: nothing here depends on what the classes compare.")
    shown = judges_table(judges, request.judges)
    blocks: list[Block] = [*map(Paragraph, said), shown]
    if "weight" in shown.head:
        blocks.append(Paragraph(WEIGHT))
    if np.isfinite(judges["accuracy"]).any():
        blocks.append(judges_figure(judges, request.judges))
    blocks += agreement_blocks(agreement, request.judges)
    by: pd.DataFrame | None = None
    written: tuple[str, Written] = ("all judges", judges)
    if request.by is not None:
        by, words = _by(data, request.by, request.seed)
        written = (f"all judges by {request.by!r}", by)
        blocks += [_by_table(by, request.by, request.judges), *map(Paragraph, words)]
    if data.groups is not None:
        alone = judge_table(data.votes, labels, data.coding)
        blocks += map(Paragraph, _grouped(data, judges, alone))
    columns = ["severity", "topic", "judges", "sentence"]
    table = pd.DataFrame([*map(vars, findings)], columns=columns).astype(object)
    table = table.assign(judges=table["judges"].map(list))
    parts = Parts(
        blocks=[*blocks, Findings(findings)],
        tables={"judges": judges, "findings": table, "agreement": agreement, "by": by},
        numbers=numbers,
        next_steps=diagnosis_steps(numbers),
        files={"out": written},
    )
    return Diagnosis(
        parts=parts, data=data, judges=judges, findings=findings, agreement=agreement, by=by
    )


def agreement_of(data: Study) -> pd.DataFrame:
    """Return the agreement of the judges with one another and with the labels beyond chance."""
    return reliability_table(
        data.votes,
        data.labels,
        [*map(str, data.coding.judges)],
        ordered=data.coding.classes.ordered,
        groups=data.groups,
    )


def agreement_blocks(agreement: pd.DataFrame, most: int) -> list[Block]:
    """Return a table of agreement and what its columns mean; nothing where nobody can agree."""
    return [_agreement_table(agreement, most), Paragraph(BEYOND)] if len(agreement) else []


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


def _by(data: Study, column: str, seed: int) -> tuple[pd.DataFrame, list[str]]:
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
    return table, words


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
