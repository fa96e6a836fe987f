"""The options of the workflow, in groups, each with its help and default.

The functions of this package take these records; `judgebayes.cli.machine` turns them into the
options of the command line, and the docstring of a command's record is its help.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import split_names

# Names for help, which does not import JAX; a test compares them with the methods.
INFERENCES = ("drps", "ml", "map", "nuts")
PRECISION_METHODS = (
    *("auto", "panel", "strata", "rogan-gladen", "ppi"),
    "labels-only",
)
TOP = {"best-judge": 1, **{f"top-{k}": k for k in (3, 5, 10)}}
"""The k most accurate judges, combined by the one-coin model."""
METHODS = (
    *("auto", "davidson", "one-coin", "dawid-skene", "shared-difficulty", "pool", "stacking"),
    *("vote-share", "hierarchical", "sc", "margin-threshold"),
    *("best-constant", *TOP),
)
CALIBRATORS = ("auto", "none", "beta", "isotonic", "platt", "temperature")


@dataclass(frozen=True)
class Option:
    """How the command line shows an option: its help, names, bounds and completions."""

    help: str
    names: tuple[str, ...] = ()
    """Its names on the command line, if they differ from the field's."""
    least: float | None = None
    values: tuple[str, ...] = ()
    """The values that it can have, if they are few; a shell completes them."""
    others: bool = False
    """Whether it can have other values too: a judge's name, or a method of the user's own."""
    positional: bool = False
    type: Any = None
    """Its type on the command line, if it differs: a path where functions also take tables."""
    metavar: str | None = None
    """What the help writes for its value."""
    writes: Literal["", "table", "file"] = ""
    """What is written to the file that it names."""
    key: bool = False
    """Whether it describes the user's files: at the command line a key of the study (`--set`)."""


Key = partial(Option, key=True)


@dataclass(frozen=True)
class Fixed:
    """Marks a record of a function: these of its fields are not options, but have fixed values."""

    values: Mapping[str, object]


Tabular = Any
"""The path of a table, or a table: pandas, or any with the Arrow interface (polars, PyArrow)."""
VotesFile = Annotated[
    Tabular,
    Option(
        "Votes, one per row: .csv, .tsv, .txt, .jsonl, .parquet or a tool's log; or a study file "
        "(.toml), which says where they are and how they are read.",
        positional=True,
        type=Path,
    ),
]
ItemColumn = Annotated[str | None, "Column of the item."]
SampleColumn = Annotated[str | None, Key("Column that numbers a judge's votes on one item.")]
GeneratorColumn = Annotated[str | None, Key("Column of the generator, in votes or labels.")]
VotesFrom = Annotated[
    str | None,
    Key(
        "In logs: score (scorers are the judges) or answer (the evaluated model is the judge, and the "
        "target is its label).",
        values=("score", "answer"),
    ),
]
Missing = Annotated[
    str | None,
    Key(
        "Values that mean no vote (or no label), separated by commas: partial,unsure. Empty cells "
        "are always missing."
    ),
]
AllowDegenerate = Annotated[bool, Key("Accept labels that are all, or nearly all, the same.")]
Keys = Annotated[
    list[str] | None,
    Option(
        "A key of the study, such as missing=n/a or wide=true. Repeat the option for more.",
        metavar="KEY=VALUE",
    ),
]
Loss = Annotated[
    Any,
    Option(
        "Loss of a decision: absolute (class steps) or zero-one; by default absolute, and zero-one "
        "where classes have no order. absolute:person=0.3, or person=0.3 alone: items with a higher "
        "expected loss are sent to a person, at this cost. Or a file of your own losses: the decision "
        "in the first column, a column per class, and a row 'person' for the cost of asking. In "
        "Python, a table or a matrix is accepted too.",
        values=("absolute", "zero-one"),
        others=True,
        type=Path | None,
        metavar="NAME|FILE",
    ),
]
TARGETS = {"these": "these items", "more": "more items like these"}
"""What intervals are about, in words."""
Target = Annotated[
    str,
    Option(
        "What the intervals are about: more, items like those of the file (new groups, with --group); "
        "or these, the items of the file.",
        values=tuple(TARGETS),
    ),
]
NextLabels = Annotated[
    int | None,
    Option(
        "Propose this many items to label next; --out then writes them, with an empty label column.",
        ("--next",),
        least=1,
    ),
]
Out = Annotated[
    Path | None, Option("Where to write the table: .csv, .tsv, .jsonl, .parquet.", writes="table")
]
Html = Annotated[
    Path | None,
    Option("Where to write a page with all results and their figures (.html).", writes="file"),
]

ROLES = ("item", "judge", "vote", "sample", "order", "label", "task", "group")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Column names by `ROLES`; None means to guess, "none" that there is no such column."""

    item: ItemColumn = None
    judge: Annotated[
        str | None,
        "Column of the judge; 'none' if there is one judge. Several columns, separated by commas, make "
        "a judge of each combination: judge,criterion.",
    ] = None
    vote: Annotated[str | None, "Column of the vote."] = None
    sample: SampleColumn = None
    repeats: Annotated[
        bool,
        Key(
            "Several rows of one judge on one item are repeated votes, in file order; so are columns of "
            "a wide file that are numbered, such as gpt_run1."
        ),
    ] = False
    order: Annotated[
        str | None, Key("Column of the presentation order, AB or BA; 'none' to ignore it.")
    ] = None
    votes_as: Annotated[
        str | None,
        Key(
            "With an order column: 'shown' if votes name the response by its position as shown, "
            "'original' if they were already mapped back.",
            values=("shown", "original"),
        ),
    ] = None
    label: Annotated[
        str | None, "Column of the label, or a column per annotator, separated by commas."
    ] = None
    task: Annotated[str | None, Key("Column of the task, for a hierarchical model.")] = None
    group: Annotated[
        str | None,
        "Column of groups of related items, such as answers to one question: intervals count them "
        "as related, and splits keep them together.",
    ] = None

    def named(self) -> dict[str, str | None]:
        """Return the column names by role."""
        return {role: getattr(self, role) for role in ROLES}


@dataclass(frozen=True, kw_only=True)
class ReadingOptions(Columns):
    """How to read a file of votes."""

    only_judge: Annotated[str | None, Key("Use only the votes of this judge.")] = None
    wide: Annotated[bool, Key("The votes file has a row per item and a column per judge.")] = False
    ignore: Annotated[
        str | None, Key("Columns of a wide file to leave out, separated by commas: notes,date.")
    ] = None
    votes_from: VotesFrom = None
    missing: Missing = None
    undecided: Annotated[
        str | None,
        Key(
            "Values of votes that are for no class and that no label has, separated by commas: tie. By "
            "default the middle of three classes, if 20 labels or more and none of them has it; 'none' "
            "reads it as a class."
        ),
    ] = None
    encoding: Annotated[str | None, Key("Encoding of text that is not UTF-8, such as cp1252.")] = (
        None
    )
    skip_rows: Annotated[
        int | None,
        Key(
            "Rows above the header of the votes. Title rows are detected automatically.",
            least=0,
        ),
    ] = None
    bins: Annotated[
        str | None,
        Key(
            "Classes for votes that are scores with many values: a number such as 5 (equal shares of "
            "the votes), or learnt (cut points of each judge that best reproduce the labels)."
        ),
    ] = None
    verdicts: Annotated[
        str | None,
        Key(
            "The votes are raw answers, from which verdicts are read: pair (A, B or tie), score, or "
            "valid.",
            values=("pair", "score", "valid"),
        ),
    ] = None
    match_ids: Annotated[
        str,
        Key(
            "How the items of --labels are matched with those of the votes: exactly as written, or "
            "loosely, without differences in case, spaces, zero padding, file extension or prefix.",
            values=("exactly", "loosely"),
        ),
    ] = "exactly"
    set: Keys = None

    @property
    def left_out(self) -> tuple[str, ...]:
        """The columns that the user leaves out (`ignore`)."""
        return tuple(split_names(self.ignore)) if self.ignore else ()


@dataclass(frozen=True, kw_only=True)
class ReadRequest(ReadingOptions):
    """The options of `judgebayes.read`, which most commands have."""

    votes: VotesFile
    labels: Annotated[
        Tabular,
        Option(
            "Labels, one item per row, if they are not a column of the votes. With labels_merge, an "
            "item can have several rows.",
            type=Path | None,
        ),
    ] = None
    labels_merge: Annotated[
        str | None,
        Key(
            "How different labels of an item are merged: majority (ties are unlabelled), adjudicated "
            "(unlabelled without the adjudicator's label), or noisy (the most probable class, with the "
            "share of wrong labels estimated). By default they are an error.",
            values=("majority", "adjudicated", "noisy"),
        ),
    ] = None
    annotator: Annotated[
        str | None, Key("Column of the annotator in the labels file; 'none' if there is none.")
    ] = None
    adjudicator: Annotated[
        str | None, Key("The annotator whose labels decide, with labels_merge.")
    ] = None
    classes: Annotated[
        str | None,
        Key(
            "The classes from lowest to highest, separated by commas: 1,2,3,4,5. Put a name with a "
            "comma in double quotes."
        ),
    ] = None
    pairwise: Annotated[
        bool | None,
        Key(
            "Whether the lowest and the highest class stand for two responses that could be swapped."
        ),
    ] = None
    drop_unknown_labels: Annotated[
        bool, Key("Leave out labels of items without votes, instead of raising an error.")
    ] = False


@dataclass(frozen=True, kw_only=True)
class CheckRequest(ReadRequest):
    """Check your files: all problems at once, one command that runs, and what it can answer."""

    pairwise: None = None
    items: Annotated[
        Tabular,
        Option(
            "The items that were judged, one per row: it is checked that the votes are on these items.",
            type=Path | None,
        ),
    ] = None
    out: Annotated[
        Path | None,
        Option(
            "Where to write which item each label is of: .csv, .tsv, .jsonl, .parquet.",
            writes="table",
        ),
    ] = None
    save: Annotated[
        Path | None,
        Option(
            "Where to write how the files are read: a study file (.toml), which every command takes in "
            "place of VOTES.",
            writes="file",
        ),
    ] = None
    html: Html = None


@dataclass(frozen=True, kw_only=True)
class WinOptions:
    """What a win rate counts, and what its interval is about."""

    target: Target = "more"
    ties: Annotated[
        str,
        Option(
            "How the win rate of pairwise votes counts ties: half (half a win), excluded (left out), or "
            "separate (neither won nor lost; their share is given).",
            values=("half", "excluded", "separate"),
        ),
    ] = "half"
    systems: Annotated[
        str | None,
        Key(
            "The two columns of the compared systems, A,B, if the items compare several: the win rate "
            "of every pair and a ranking."
        ),
    ] = None
    seed: Annotated[int, "Seed of the draws that rank systems."] = 0


@dataclass(frozen=True, kw_only=True)
class CalibrateRequest(ReadRequest, WinOptions):
    """Calibrate your votes: class probabilities, a decision and its expected loss for every item."""

    method: Annotated[
        str,
        Option(
            "auto (the pool for several judges, davidson for one, unless another suitable method "
            f"has a clearly lower held-out NLL), {', '.join(METHODS[1:-1])} or {METHODS[-1]}; "
            f"davidson:nuts is fitted by {', '.join(INFERENCES)}. FILE.py:NAME is your own.",
            values=METHODS,
            others=True,
        ),
    ] = "auto"
    calibrator: Annotated[
        str,
        Option(
            "The calibration map that is applied to the method's probabilities: "
            f"{', '.join(CALIBRATORS[1:])}; auto adds beta to methods that are overconfident.",
            values=CALIBRATORS,
            others=True,
        ),
    ] = "auto"
    loss: Loss = None
    conformal: Annotated[
        float | None,
        "Add a conformal set of classes to each item, with this coverage, such as 0.9.",
    ] = None
    conformal_by: Annotated[
        str | None,
        "Column whose values have conformal thresholds of their own, so that the coverage holds for "
        "each of them; or 'agreement', for thirds of the items by the agreement of their votes.",
    ] = None
    empty_sets: Annotated[
        bool,
        Key(
            "Leave a conformal set empty where no class fits. By default it has the most probable "
            "class, and the price of this is printed."
        ),
    ] = False
    label_noise: Annotated[float, Key("The share of wrong labels, if it is known.")] = 0.0
    splits: Annotated[
        int | None,
        Option(
            "Number of splits of the held-out comparison. By default 100, or fewer, at least 20, if "
            "they would take longer than about two minutes.",
            least=2,
        ),
    ] = None
    seed: Annotated[int, "Seed of the splits, restarts and draws."] = 0
    out: Out = None
    html: Html = None
    save: Annotated[
        Path | None,
        Option("Where to save the fit (JSON), for `judgebayes apply`.", writes="file"),
    ] = None
    allow_degenerate: AllowDegenerate = False


@dataclass(frozen=True, kw_only=True)
class WinRateRequest(ReadRequest, WinOptions):
    """The options of `judgebayes.win_rate`."""


@dataclass(frozen=True, kw_only=True)
class ApplyRequest(ReadingOptions):
    """Apply a saved fit to new votes, and check whether they have drifted from the fitted ones."""

    fit: Annotated[Path, Option("A fit that `judgebayes calibrate --save` wrote.", positional=True)]
    votes: VotesFile
    label: None = None
    group: str = "none"
    undecided: None = None
    bins: None = None
    match_ids: str = "exactly"
    method: Annotated[
        str | None, "Your own method that was fitted, as FILE.py:NAME. The file is executed."
    ] = None
    loss: Loss = None
    out: Out = None
    html: Html = None


@dataclass(frozen=True, kw_only=True)
class DiagnoseRequest(ReadRequest):
    """Find problems of judges and labels: leaks, copies, bias, constant labels, saturation."""

    task: None = None
    only_judge: None = None
    by: Annotated[
        str | None,
        "Column such as the difficulty or the type of error, in the votes or in the labels: TPR and "
        "TNR of each judge by its values.",
    ] = None
    judges: Annotated[int, Option("Maximum number of judges to print.", least=2)] = 20
    seed: Annotated[int, "Seed of the random panels (saturation)."] = 0
    out: Out = None
    html: Html = None


@dataclass(frozen=True, kw_only=True)
class EnsembleRequest(ReadRequest):
    """Estimate the error of a majority of k votes on your items, and how many labels this needs."""

    pairwise: None = None
    k: Annotated[
        str | None,
        "Numbers of votes: a range such as 1:21, or a list such as 3,5,11; by default all odd ones up "
        "to the largest number of votes on an item. Even ones need --ties.",
    ] = None
    ties: Annotated[
        str | None,
        Option(
            "How a tie is decided. random: each of the tied classes with the same probability (the "
            "default). abstain: no decision; the share of items without one is printed.",
            values=("random", "abstain"),
        ),
    ] = None
    decision: Annotated[
        str,
        Option(
            "How votes become a decision. plurality: the class with the most votes. median: the median "
            "of ordered classes, with its mean distance from the label.",
            values=("plurality", "median"),
        ),
    ] = "plurality"
    judges: Annotated[
        str | None,
        "The judges of the panel, as a list; all judges are compared with it.",
    ] = None
    target_width: Annotated[
        float | None,
        "Target width of the interval, such as 0.05: how many labels it needs (by default for half the "
        "present width), whether labelling may stop, and the next item to label.",
    ] = None
    next_labels: NextLabels = None
    level: Annotated[float, "Coverage probability of the intervals."] = 0.9
    target: Target = "more"
    task: None = None
    seed: Annotated[int, "Seed of the posterior draws."] = 0
    out: Out = None
    html: Html = None


@dataclass(frozen=True, kw_only=True)
class PrecisionRequest(ReadRequest):
    """Estimate the share of each generator's items that is valid, corrected for the judges' bias."""

    pairwise: bool | None = False
    drop_unknown_labels: bool = True
    task: None = None
    only_judge: None = None
    undecided: None = None
    generator: GeneratorColumn = None
    classes: Annotated[str | None, Key("The classes, invalid first: invalid,valid.")] = None
    method: Annotated[
        str,
        Option(
            "The estimator. auto: panel; without any label the raw mean, uncorrected; with more than "
            "30 generators strata (of votes). Without intervals: rogan-gladen. From a generator's own "
            "labels: ppi, labels-only.",
            values=PRECISION_METHODS,
        ),
    ] = "auto"
    target: Target = "more"
    next_labels: NextLabels = None
    between: Annotated[
        str | None,
        "Two generators, A,B: the items of --next are those that best tell which of the two is better.",
    ] = None
    out: Out = None
    html: Html = None
    seed: Annotated[int, "Seed of the draws that compare generators."] = 0


def check_choice(shown: str, value: str, values: Collection[str]) -> None:
    """Check that the value of an option, as it is typed, is one of the allowed values.

    Raises
    ------
    JudgeBayesError
        If it is not.
    """
    if value not in values:
        raise JudgeBayesError(f"{shown} {value!r} is unknown; choose one of: {', '.join(values)}.")
