"""What a user can ask of the workflow: options in groups, each worded once, with their defaults.

The functions of this package take these records; the command line makes its options of them
(`judgebayes.cli.records`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from judgebayes.errors import JudgeBayesError
from judgebayes.workflow.names import CALIBRATORS, INFERENCES, METHODS

__all__ = [
    "ROLES",
    "ApplyRequest",
    "CalibrateRequest",
    "Columns",
    "DiagnoseRequest",
    "EnsembleRequest",
    "Fixed",
    "LabelledVotes",
    "Option",
    "PrecisionRequest",
    "ReadRequest",
    "ReadingOptions",
    "known",
]


@dataclass(frozen=True)
class Option:
    """What the command line has to know of an option beside its type and its help."""

    help: str
    names: tuple[str, ...] = ()
    """Its names there, where they are not the field's."""
    least: float | None = None
    values: tuple[str, ...] = ()
    """The values that a shell may complete."""
    positional: bool = False
    type: Any = None
    """Its type there, where it is not the field's: a path, where functions take tables too."""


@dataclass(frozen=True)
class Fixed:
    """Marks a record within a record: these of its fields are no options here, but have a value."""

    values: Mapping[str, object]


Tabular = Any
"""The path of a table, or a table: of pandas, or any with the Arrow interface (polars, PyArrow)."""
VotesFile = Annotated[
    Tabular,
    Option("Votes: .csv, .tsv, .txt, .jsonl or .parquet, a row each.", positional=True, type=Path),
]
ItemColumn = Annotated[str | None, "Column of the item."]
JudgeColumn = Annotated[str | None, "Column of the judge; 'none' if one judged."]
VoteColumn = Annotated[str | None, "Column of the vote."]
SampleColumn = Annotated[str | None, "Column that numbers a judge's repeated votes on an item."]
OrderColumn = Annotated[str | None, "Column of the presentation order: AB or BA; 'none' to ignore."]
GeneratorColumn = Annotated[str | None, "Column of the generator, in the votes or in the labels."]
ClassNames = Annotated[
    str | None,
    "The classes from lowest to highest, separated by commas: 1,2,3,4,5. A name that holds a "
    "comma stands in double quotes.",
]
Pairwise = Annotated[
    bool | None,
    Option(
        "Whether the scale's ends are two responses that could change places.",
        ("--pairwise/--no-pairwise",),
    ),
]
Ignore = Annotated[
    str | None, "Columns to leave out, separated by commas: notes,date of a --wide file."
]
Missing = Annotated[
    str | None,
    "Values that mean no vote (or no label), separated by commas: partial,unsure. Empty "
    "cells always do.",
]
Encoding = Annotated[str | None, "Encoding of text files that are not UTF-8: cp1252, for one."]
SkipRows = Annotated[
    int | None,
    Option("Rows above the header of the votes; titles are told by themselves.", least=0),
]
DropUnknownLabels = Annotated[bool, "Accept labels of items without votes."]
AllowDegenerate = Annotated[bool, "Accept labels that are all, or nearly all, the same."]
Loss = Annotated[str, "Loss of a decision: absolute (class steps) or zero-one."]
OwnLosses = Annotated[
    Any,
    Option(
        "Your own loss of every decision: a table whose first column names the decision, with a column "
        "per class; a row 'person' is the price of asking a person. In Python a matrix too.",
        type=Path | None,
    ),
]
Plugin = Annotated[
    Path | None,
    "A Python file with methods of your own, declared by @judgebayes.aggregator or .calibrator. It "
    "is run.",
]
AbstainCost = Annotated[
    float | None,
    Option(
        "Price of asking a person, in units of the loss: items whose expected loss is higher are sent "
        "to one.",
        least=0,
    ),
]
Out = Annotated[Path | None, "Where to write the table: .csv, .tsv, .jsonl, .parquet."]
Plot = Annotated[Path | None, "Where to draw the figure: .png, .pdf or .svg."]

ROLES = ("item", "judge", "vote", "sample", "order", "label", "task", "group")


@dataclass(frozen=True)
class Columns:
    """Columns as the user named them, by `ROLES`; None to guess, "none" where there is none."""

    item: ItemColumn = None
    judge: JudgeColumn = None
    vote: VoteColumn = None
    sample: SampleColumn = None
    repeats: Annotated[bool, "Rows of one judge on one item are repeated votes, in file order."] = (
        False
    )
    order: OrderColumn = None
    votes_as: Annotated[
        str | None,
        "With an order: 'shown' if a vote names the response shown first or second, "
        "'original' if it was mapped back already.",
    ] = None
    label: Annotated[str | None, "Column of the label."] = None
    task: Annotated[str | None, "Column of the task, for a hierarchical model."] = None
    group: Annotated[
        str | None, "Column of what items share (a question, a program): kept together."
    ] = None

    def named(self) -> dict[str, str | None]:
        """Return the columns by role."""
        return {role: getattr(self, role) for role in ROLES}


@dataclass(frozen=True)
class ReadingOptions:
    """How a file of votes is to be read, beside its columns."""

    only_judge: Annotated[str | None, "Use the votes of this judge only."] = None
    wide: Annotated[bool, "The votes file has a row per item, a column per judge."] = False
    ignore: Ignore = None
    missing: Missing = None
    encoding: Encoding = None
    skip_rows: SkipRows = None


Ungrouped = Annotated[Columns, Fixed({"task": None, "group": None})]


@dataclass(frozen=True, kw_only=True)
class LabelledVotes:
    """The files that most commands read."""

    votes: VotesFile
    labels: Annotated[
        Tabular,
        Option("Labels, if they are not a column of the votes: a row per item.", type=Path | None),
    ] = None


@dataclass(frozen=True, kw_only=True)
class ReadRequest(LabelledVotes):
    """What `judgebayes.read` was asked for."""

    columns: Columns = field(default_factory=Columns)
    classes: ClassNames = None
    pairwise: Pairwise = None
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    drop_unknown_labels: DropUnknownLabels = False


@dataclass(frozen=True, kw_only=True)
class CalibrateRequest(LabelledVotes):
    """What `judgebayes calibrate` was asked for."""

    method: Annotated[
        str,
        Option(
            "auto (stacking for a panel, davidson for one judge, unless another that suits the "
            f"votes has clearly less held-out NLL), {', '.join(METHODS[1:-1])} or {METHODS[-1]}.",
            values=METHODS,
        ),
    ] = "auto"
    calibrator: Annotated[
        str,
        Option(
            f"The calibration map behind the method: {', '.join(CALIBRATORS[1:])}; auto puts beta "
            "behind methods that are overconfident.",
            values=CALIBRATORS,
        ),
    ] = "auto"
    inference: Annotated[
        str,
        Option(
            "How davidson is fitted: drps (the paper's), ml, map or nuts; nuts samples "
            "dawid-skene and stacking too.",
            values=INFERENCES,
        ),
    ] = "drps"
    plugin: Plugin = None
    conformal: Annotated[
        float | None, "Add to each item the set of classes that holds the label this often."
    ] = None
    columns: Columns = field(default_factory=Columns)
    classes: ClassNames = None
    pairwise: Pairwise = None
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    label_noise: Annotated[float, "The share of the labels that are wrong, if it is known."] = 0.0
    loss: Loss = "absolute"
    losses: OwnLosses = None
    abstain_cost: AbstainCost = None
    splits: Annotated[int, Option("Splits of the held-out comparison.", least=2)] = 100
    seed: Annotated[int, "Seed of the splits, restarts and draws."] = 0
    out: Out = None
    save: Annotated[Path | None, "Where to keep the fit (JSON), for `judgebayes apply`."] = None
    drop_unknown_labels: DropUnknownLabels = False
    allow_degenerate: AllowDegenerate = False


@dataclass(frozen=True, kw_only=True)
class ApplyRequest:
    """What `judgebayes apply` was asked for."""

    fit: Annotated[Path, Option("A fit that `judgebayes calibrate --save` kept.", positional=True)]
    votes: VotesFile
    columns: Annotated[Columns, Fixed({"label": None, "group": "none"})]
    reading: ReadingOptions
    loss: Loss = "absolute"
    losses: OwnLosses = None
    abstain_cost: AbstainCost = None
    plugin: Plugin = None
    out: Out = None


@dataclass(frozen=True, kw_only=True)
class DiagnoseRequest(LabelledVotes):
    """What `judgebayes diagnose` was asked for."""

    columns: Annotated[Columns, Fixed({"task": None})]
    classes: ClassNames = None
    pairwise: Pairwise = None
    reading: Annotated[ReadingOptions, Fixed({"only_judge": None})]
    judges: Annotated[int, Option("How many judges to print at most.", least=2)] = 20
    seed: Annotated[int, "Seed of the random panels (saturation)."] = 0
    out: Out = None
    plot: Plot = None
    drop_unknown_labels: DropUnknownLabels = False


@dataclass(frozen=True, kw_only=True)
class EnsembleRequest(LabelledVotes):
    """What `judgebayes ensemble` was asked for."""

    k: Annotated[
        str | None, "Numbers of votes: 1:21, or 3,5,11; all odd ones there are by default."
    ] = None
    target_width: Annotated[
        float, "How wide the interval may be: says how many labels it takes."
    ] = 0.05
    level: Annotated[float, "Probability of the intervals."] = 0.9
    these_items: Annotated[
        bool,
        "Ask for the error on the items of the file, not on all items there could be: "
        "narrower where a large share is labelled.",
    ] = False
    columns: Ungrouped
    classes: ClassNames = None
    reading: ReadingOptions
    seed: Annotated[int, "Seed of the posterior draws."] = 0
    out: Out = None
    plot: Plot = None
    drop_unknown_labels: DropUnknownLabels = False


@dataclass(frozen=True, kw_only=True)
class PrecisionRequest(LabelledVotes):
    """What `judgebayes precision` was asked for."""

    columns: Annotated[
        Columns,
        Fixed(
            {"sample": "none", "order": "none"}
            | {"repeats": False, "votes_as": None, "task": None, "group": None}
        ),
    ]
    generator: GeneratorColumn = None
    systems: Annotated[
        str | None, "Two columns, A,B, if each item compares two systems: win rates and a ranking."
    ] = None
    classes: Annotated[
        str | None, "The classes, invalid first: invalid,valid. With --systems: B,tie,A."
    ] = None
    next_labels: Annotated[
        int | None, Option("Say which items to label next, this many.", ("--next",), least=1)
    ] = None
    next_out: Annotated[
        Path | None, "Where to write the items of --next, with an empty label column."
    ] = None
    reading: Annotated[ReadingOptions, Fixed({"only_judge": None})]
    out: Annotated[Path | None, "Where to write the table of generators."] = None
    plot: Annotated[
        Path | None, "Where to draw the generators with their intervals: .png, .pdf, .svg."
    ] = None
    seed: Annotated[int, "Seed of the draws that compare generators."] = 0


def known(name: str, value: str, values: Collection[str]) -> None:
    """Check the value of an option.

    Raises
    ------
    JudgeBayesError
        If it is none of the known ones.
    """
    if value not in values:
        raise JudgeBayesError(
            f"--{name} {value!r} is not known; right would be {', '.join(values)}."
        )
