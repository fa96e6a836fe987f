"""Arguments and options that several commands share, worded once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

__all__ = [
    "AllowDegenerate",
    "ClassNames",
    "Context",
    "DropUnknownLabels",
    "Encoding",
    "GroupColumn",
    "Ignore",
    "ItemColumn",
    "JudgeColumn",
    "LabelColumn",
    "LabelNoise",
    "LabelsFile",
    "Loss",
    "Missing",
    "OnlyJudge",
    "OrderColumn",
    "Out",
    "Pairwise",
    "Plot",
    "Repeats",
    "SampleColumn",
    "Seed",
    "SkipRows",
    "SplitsOfLabels",
    "TaskColumn",
    "VoteColumn",
    "VotesAs",
    "VotesFile",
    "Wide",
]

if TYPE_CHECKING:
    from typer import Context
else:
    Context = typer.Context.__base__  # what Typer passes is of its base class

# Typer reads Optional, not `| None`, on every Python that is supported.
Text = Optional[str]  # noqa: UP045
File = Optional[Path]  # noqa: UP045
Flag = Optional[bool]  # noqa: UP045

VotesFile = Annotated[
    Path, typer.Argument(help="Votes: .csv, .tsv, .txt, .jsonl or .parquet, a row each.")
]
LabelsFile = Annotated[
    File, typer.Option(help="Labels, if they are not a column of the votes: a row per item.")
]
ItemColumn = Annotated[Text, typer.Option(help="Column of the item.")]
JudgeColumn = Annotated[Text, typer.Option(help="Column of the judge; 'none' if one judged.")]
VoteColumn = Annotated[Text, typer.Option(help="Column of the vote.")]
SampleColumn = Annotated[
    Text, typer.Option(help="Column that numbers a judge's repeated votes on an item.")
]
Repeats = Annotated[
    bool,
    typer.Option(
        "--repeats", help="Rows of one judge on one item are repeated votes, in file order."
    ),
]
OrderColumn = Annotated[
    Text, typer.Option(help="Column of the presentation order: AB or BA; 'none' to ignore.")
]
VotesAs = Annotated[
    Text,
    typer.Option(
        help="With an order: 'shown' if a vote names the response shown first or second, "
        "'original' if it was mapped back already."
    ),
]
LabelColumn = Annotated[Text, typer.Option(help="Column of the label.")]
TaskColumn = Annotated[Text, typer.Option(help="Column of the task, for a hierarchical model.")]
GroupColumn = Annotated[
    Text, typer.Option(help="Column of what items share (a question, a program): kept together.")
]
ClassNames = Annotated[
    Text,
    typer.Option(
        help="The classes from lowest to highest, separated by commas: 1,2,3,4,5. A name that holds a "
        "comma stands in double quotes."
    ),
]
Ignore = Annotated[
    Text,
    typer.Option(help="Columns to leave out, separated by commas: notes,date of a --wide file."),
]
Missing = Annotated[
    Text,
    typer.Option(
        help="Values that mean no vote (or no label), separated by commas: partial,unsure. Empty "
        "cells always do."
    ),
]
Encoding = Annotated[
    Text, typer.Option(help="Encoding of text files that are not UTF-8: cp1252, for one.")
]
SkipRows = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(min=0, help="Rows above the header of the votes; titles are told by themselves."),
]
Pairwise = Annotated[
    Flag,
    typer.Option(
        "--pairwise/--no-pairwise",
        help="Whether the scale's ends are two responses that could change places.",
    ),
]
OnlyJudge = Annotated[Text, typer.Option(help="Use the votes of this judge only.")]
Wide = Annotated[
    bool, typer.Option("--wide", help="The votes file has a row per item, a column per judge.")
]
DropUnknownLabels = Annotated[
    bool, typer.Option("--drop-unknown-labels", help="Accept labels of items without votes.")
]
AllowDegenerate = Annotated[
    bool,
    typer.Option("--allow-degenerate", help="Accept labels that are all, or nearly all, the same."),
]
LabelNoise = Annotated[
    float, typer.Option(help="The share of the labels that are wrong, if it is known.")
]
SplitsOfLabels = Annotated[int, typer.Option(min=2, help="Splits of the held-out comparison.")]
Seed = Annotated[int, typer.Option(help="Seed of the splits, restarts and draws.")]
Loss = Annotated[str, typer.Option(help="Loss of a decision: absolute (class steps) or zero-one.")]
Out = Annotated[File, typer.Option(help="Where to write the table: .csv, .tsv, .jsonl, .parquet.")]
Plot = Annotated[File, typer.Option(help="Where to draw the figure: .png, .pdf or .svg.")]
