"""Arguments and options that several commands share, worded once."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

__all__ = ["ROLES", "Columns", "Context", "ReadingOptions"]

if TYPE_CHECKING:
    from typer import Context
else:
    Context = typer.Context.__base__  # what Typer passes is of its base class

VotesFile = Annotated[
    Path, Argument(help="Votes: .csv, .tsv, .txt, .jsonl or .parquet, a row each.")
]
LabelsFile = Annotated[
    Path | None, Option(help="Labels, if they are not a column of the votes: a row per item.")
]
ItemColumn = Annotated[str | None, Option(help="Column of the item.")]
JudgeColumn = Annotated[str | None, Option(help="Column of the judge; 'none' if one judged.")]
VoteColumn = Annotated[str | None, Option(help="Column of the vote.")]
SampleColumn = Annotated[
    str | None, Option(help="Column that numbers a judge's repeated votes on an item.")
]
OrderColumn = Annotated[
    str | None, Option(help="Column of the presentation order: AB or BA; 'none' to ignore.")
]
GeneratorColumn = Annotated[
    str | None, Option(help="Column of the generator, in the votes or in the labels.")
]
ClassNames = Annotated[
    str | None,
    Option(
        help="The classes from lowest to highest, separated by commas: 1,2,3,4,5. A name that holds a "
        "comma stands in double quotes."
    ),
]
Pairwise = Annotated[
    bool | None,
    Option(
        "--pairwise/--no-pairwise",
        help="Whether the scale's ends are two responses that could change places.",
    ),
]
Ignore = Annotated[
    str | None,
    Option(help="Columns to leave out, separated by commas: notes,date of a --wide file."),
]
Missing = Annotated[
    str | None,
    Option(
        help="Values that mean no vote (or no label), separated by commas: partial,unsure. Empty "
        "cells always do."
    ),
]
Encoding = Annotated[
    str | None, Option(help="Encoding of text files that are not UTF-8: cp1252, for one.")
]
SkipRows = Annotated[
    int | None,
    Option(min=0, help="Rows above the header of the votes; titles are told by themselves."),
]
DropUnknownLabels = Annotated[
    bool, Option("--drop-unknown-labels", help="Accept labels of items without votes.")
]
AllowDegenerate = Annotated[
    bool, Option("--allow-degenerate", help="Accept labels that are all, or nearly all, the same.")
]
Loss = Annotated[str, Option(help="Loss of a decision: absolute (class steps) or zero-one.")]
Out = Annotated[Path | None, Option(help="Where to write the table: .csv, .tsv, .jsonl, .parquet.")]
Plot = Annotated[Path | None, Option(help="Where to draw the figure: .png, .pdf or .svg.")]

ROLES = ("item", "judge", "vote", "sample", "order", "label", "task", "group")


@dataclass(frozen=True)
class Columns:
    """Columns as the user named them, by `ROLES`; None to guess, "none" where there is none."""

    item: ItemColumn = None
    judge: JudgeColumn = None
    vote: VoteColumn = None
    sample: SampleColumn = None
    repeats: Annotated[
        bool,
        Option(
            "--repeats", help="Rows of one judge on one item are repeated votes, in file order."
        ),
    ] = False
    order: OrderColumn = None
    votes_as: Annotated[
        str | None,
        Option(
            help="With an order: 'shown' if a vote names the response shown first or second, "
            "'original' if it was mapped back already."
        ),
    ] = None
    label: Annotated[str | None, Option(help="Column of the label.")] = None
    task: Annotated[str | None, Option(help="Column of the task, for a hierarchical model.")] = None
    group: Annotated[
        str | None,
        Option(help="Column of what items share (a question, a program): kept together."),
    ] = None

    def named(self) -> dict[str, str | None]:
        """Return the columns by role."""
        return {role: getattr(self, role) for role in ROLES}


@dataclass(frozen=True)
class ReadingOptions:
    """How a file of votes is to be read, beside its columns."""

    only_judge: Annotated[str | None, Option(help="Use the votes of this judge only.")] = None
    wide: Annotated[
        bool, Option("--wide", help="The votes file has a row per item, a column per judge.")
    ] = False
    ignore: Ignore = None
    missing: Missing = None
    encoding: Encoding = None
    skip_rows: SkipRows = None
