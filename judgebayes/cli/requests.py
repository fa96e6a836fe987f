"""What each command can be asked for: its options, worded once, and what they are if not given."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from judgebayes.cli.priors import HELP as PRIORS_HELP
from judgebayes.cli.records import completing
from judgebayes.io.formats import FORMATS
from judgebayes.workflow.names import CALIBRATORS, METHODS
from judgebayes.workflow.options import (
    AllowDegenerate,
    CalibrateRequest,
    ClassNames,
    Columns,
    DropUnknownLabels,
    Encoding,
    GeneratorColumn,
    Ignore,
    ItemColumn,
    JudgeColumn,
    LabelledVotes,
    Missing,
    OrderColumn,
    Pairwise,
    ReadingOptions,
    SampleColumn,
    SkipRows,
    Ungrouped,
    VoteColumn,
)

__all__ = [
    "CollectRequest",
    "ImportRequest",
    "PosteriorRequest",
    "ReportRequest",
    "ReproduceRequest",
    "UntilSettled",
]


@dataclass(frozen=True, kw_only=True)
class ReproduceRequest:
    """What `judgebayes reproduce` was asked for."""

    what: Annotated[
        list[str] | None,
        Argument(
            metavar="[PAPER[/TABLE]]...",
            help="For example `distribution-calibrated` or `distribution-calibrated/table3`; all "
            "papers if none is named.",
        ),
    ] = None
    data: Annotated[
        Path | None,
        "Folder of the public data sets. If not given: JUDGEBAYES_DATA, else ../shared/data "
        "beside the checkout, else what `judgebayes data get` fetched.",
    ] = None
    twins: Annotated[bool, "Use the embedded twins only, whatever data there are."] = False
    splits: Annotated[int, Option(min=2, help="Random calibration/evaluation splits.")] = 100
    smoke: Annotated[bool, "Run a shrunken version of everything, in minutes."] = False
    seed: Annotated[int, "Seed of the random splits."] = 0
    out: Annotated[
        Path,
        "Folder of the results. A run that was interrupted goes on where it was, if it is "
        "started again with the same options.",
    ] = Path("results")
    batch_size: Annotated[
        int | None, Option(min=1, help="Splits to fit at once: memory grows with them.")
    ] = None
    listed: Annotated[
        bool, Option("--list", help="Only list the experiments, with their usual time and memory.")
    ] = False
    costs: Annotated[
        Path | None, "CSV file for the time, memory and programs that each experiment took."
    ] = None


@dataclass(frozen=True, kw_only=True)
class UntilSettled:
    """What `judgebayes collect` is told about stopping early."""

    fit: Annotated[Path | None, "A Davidson fit that `judgebayes calibrate --save` kept."] = None
    price: Annotated[
        float | None, "Of a vote, in class steps of loss; chosen by --give-up if not given."
    ] = None
    give_up: Annotated[
        float | None, "How much more loss, on average, settling early may cost; 0.002 by default."
    ] = None
    fewest: Annotated[
        int | None, Option("--min", min=1, help="Votes before which no item is settled.")
    ] = None
    answers: Annotated[
        Path | None, "Where to write what --until-settled concludes of every item."
    ] = None


@dataclass(frozen=True, kw_only=True)
class JudgedColumns:
    """Columns of what is to be judged."""

    item: ItemColumn = None
    prompt: Annotated[str | None, "Column of the prompt that was responded to."] = None
    response: Annotated[str | None, "Column of the response."] = None
    response_a: Annotated[str | None, "Column of the one response."] = None
    response_b: Annotated[str | None, "Column of the other response."] = None


@dataclass(frozen=True, kw_only=True)
class CollectRequest:
    """What `judgebayes collect` was asked for."""

    items: Annotated[
        Path,
        Argument(
            help="What is to be judged, a row each: .csv, .tsv, .jsonl or .parquet, with a prompt and "
            "one response, or two."
        ),
    ]
    judge: Annotated[
        list[str],
        Option(
            metavar="[ALIAS=]NAME@URL",
            help="A model at an OpenAI-compatible address, `NAME@http://localhost:8000/v1` say; again "
            "for every further judge.",
        ),
    ]
    n: Annotated[
        int | None,
        Option("-n", min=1, help="Votes of a judge on an item, half in each order; 12 by default."),
    ] = None
    out: Annotated[
        Path, Option("--out", "-o", help="Where the answers go, line by line: .jsonl.")
    ] = Path("votes.jsonl")
    key_env: Annotated[
        list[str] | None,
        Option(
            metavar="[JUDGE=]NAME",
            help="The environment variable that holds the key, of all judges or of one.",
        ),
    ] = None
    task: Annotated[
        str | None,
        "ternary (A, tie or B), binary (A or B) or valid (valid or invalid); ternary where "
        "there are two responses, else valid.",
    ] = None
    template: Annotated[
        Path | None,
        "Your own prompt: a text file with {prompt}, {response_a} and {response_b}, or "
        "{response}, and any other column in braces.",
    ] = None
    temperature: Annotated[float, Option(min=0.0, help="Temperature of the judges.")] = 1.0
    max_tokens: Annotated[int, Option(min=1, help="Longest answer, in tokens.")] = 2048
    body: Annotated[
        str | None,
        Option(
            metavar="JSON",
            help="Further fields of each request; null takes one away: "
            '`{"max_tokens": null, "max_completion_tokens": 2048}`.',
        ),
    ] = None
    concurrency: Annotated[
        int, Option(min=1, help="Questions to a judge that wait for answers at one time.")
    ] = 8
    timeout: Annotated[float, Option(min=0.01, help="Seconds to wait for an answer.")] = 180.0
    retries: Annotated[int, Option(min=0, help="How often a question is asked again.")] = 6
    budget_calls: Annotated[int | None, "Most answers to pay for, over all runs into the file."] = (
        None
    )
    budget_tokens: Annotated[
        int | None, "Most tokens to pay for, of prompts and answers, over all runs."
    ] = None
    until_settled: Annotated[
        bool, "Ask on only about items on which more votes are worth their price, under --fit."
    ] = False
    settling: UntilSettled = field(default_factory=UntilSettled)
    columns: JudgedColumns = field(default_factory=JudgedColumns)
    dry_run: Annotated[bool, "Ask nothing; print a prompt and what would be asked."] = False

    @property
    def settled(self) -> UntilSettled | None:
        """What was said about stopping early, if that was asked for."""
        return self.settling if self.until_settled else None


@dataclass(frozen=True, kw_only=True)
class ReportRequest(CalibrateRequest):
    """What `judgebayes report` was asked for: a page instead of a table and a fit."""

    out: Annotated[Path, Option("--out", "-o", help="Where to write the page (HTML).")] = Path(
        "report.html"
    )
    method: Annotated[
        str,
        Option(
            help="As for calibrate; auto compares those that suit the votes.",
            autocompletion=completing(METHODS),
        ),
    ] = "auto"
    calibrator: Annotated[
        str, Option(help="As for calibrate.", autocompletion=completing(CALIBRATORS))
    ] = "auto"
    inference: Annotated[str, "As for calibrate."] = "drps"
    conformal: Annotated[
        float | None, "How often the set of classes of an item should hold the label."
    ] = 0.9
    save: None = None


@dataclass(frozen=True, kw_only=True)
class PosteriorRequest(LabelledVotes):
    """What `judgebayes posterior` was asked for."""

    model: Annotated[
        str,
        "What is sampled: davidson or stacking (labels given votes), dawid-skene or one-coin "
        "(votes given labels), irt (which votes are right), beta-binomial (how many are), "
        "generator-validator (what share of each generator's items is valid).",
    ] = "davidson"
    variant: Annotated[
        str | None,
        "Of beta-binomial: mixture or single. Of generator-validator: leaning or independent "
        "(judges err together, or do not). Of stacking: centred or uncentred. The first by default.",
    ] = None
    prior: Annotated[list[str] | None, Option(metavar="NAME=NUMBERS", help=PRIORS_HELP)] = None
    out: Annotated[
        Path, Option("--out", "-o", help="Where to write the posterior (netCDF, for ArviZ).")
    ] = Path("posterior.nc")
    draws: Annotated[int, Option(min=20, help="Draws of each chain.")] = 1000
    warmup: Annotated[int, Option(min=20, help="Steps of each chain before them.")] = 1000
    chains: Annotated[int, Option(min=2, help="Chains; two at least, to compare them.")] = 4
    target_accept: Annotated[float, "Nearer to 1 the steps are smaller: against divergences."] = 0.9
    table: Annotated[
        Path | None, "Where to write the summary of all parameters: .csv, .parquet, ..."
    ] = None
    plot: Annotated[Path | None, "Folder for the forest, rank and predictive plots."] = None
    plots_as: Annotated[str, "The plots' format: svg or png."] = "svg"
    overwrite: Annotated[bool, "Replace files that exist."] = False
    columns: Ungrouped = field(default_factory=Columns)
    generator: GeneratorColumn = None
    classes: ClassNames = None
    pairwise: Pairwise = None
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    seed: Annotated[int, "Seed of the draws."] = 0
    drop_unknown_labels: DropUnknownLabels = False
    allow_degenerate: AllowDegenerate = False


@dataclass(frozen=True, kw_only=True)
class ImportedColumns:
    """What `judgebayes import` is told of tables, under the names that readers know."""

    item: ItemColumn = None
    judge: JudgeColumn = None
    vote: VoteColumn = None
    sample: SampleColumn = None
    order: OrderColumn = None
    label: Annotated[str | None, "Column of the label; in logs, the key that holds it."] = None
    text: Annotated[str | None, "Column of the judge's raw answer."] = None
    missing: Missing = None
    ignore: Ignore = None
    encoding: Encoding = None
    skip_rows: SkipRows = None


@dataclass(frozen=True, kw_only=True)
class ImportRequest:
    """What `judgebayes import` was asked for."""

    form: Annotated[
        str,
        Argument(
            metavar="FORMAT", help="One of the formats above.", autocompletion=completing(FORMATS)
        ),
    ]
    path: Annotated[Path, Argument(help="A file, or a folder of such files.")]
    out: Annotated[
        Path, Option("--out", "-o", help="Where to write the votes: .parquet, .csv, .jsonl.")
    ]
    labels_out: Annotated[Path | None, "Where to write the labels, where the source has them."] = (
        None
    )
    columns: ImportedColumns
    verdicts: Annotated[
        str | None, "What raw answers judge: pair (A, B or tie), score, or valid."
    ] = None
    votes_from: Annotated[
        str | None,
        "In logs: score (scorers are the judges) or answer (the evaluated model is the judge, "
        "the target its label).",
    ] = None
