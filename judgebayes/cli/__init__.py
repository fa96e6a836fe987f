"""The command line: `judgebayes --help`. Heavy imports wait until a command runs."""

import gc
import inspect
import os
import textwrap
from importlib import metadata
from pathlib import Path
from typing import Annotated, Optional

import typer

from judgebayes.cli.names import CALIBRATORS, INFERENCES, METHODS, completing
from judgebayes.cli.options import (
    AllowDegenerate,
    ClassNames,
    Context,
    DropUnknownLabels,
    Encoding,
    GroupColumn,
    Ignore,
    ItemColumn,
    JudgeColumn,
    LabelColumn,
    LabelNoise,
    LabelsFile,
    Loss,
    Missing,
    OnlyJudge,
    OrderColumn,
    Out,
    Pairwise,
    Plot,
    Repeats,
    SampleColumn,
    Seed,
    SkipRows,
    SplitsOfLabels,
    TaskColumn,
    VoteColumn,
    VotesAs,
    VotesFile,
    Wide,
)
from judgebayes.errors import JudgeBayesError
from judgebayes.io.formats import FORMATS
from judgebayes.io.options import Options, split_names

__all__ = ["app", "main"]

app = typer.Typer(
    name="judgebayes",
    help="Aggregate and calibrate the votes of LLM judges, and reproduce four papers about them.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,  # its tables cut options and words off at 80 columns
    pretty_exceptions_enable=False,
)

DATA_HELP = "Fetch the public data sets that `reproduce` reads, and list them."
data_app = typer.Typer(help=DATA_HELP, short_help=DATA_HELP, no_args_is_help=True)
app.add_typer(data_app, name="data")

Cache = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(help="Folder that gets a folder per data set; the user's cache, if not given."),
]


def _reading(
    missing: str | None, ignore: str | None, encoding: str | None, skip_rows: int | None
) -> Options:
    """Return how the files are to be read."""
    return Options(missing=missing, ignore=ignore, encoding=encoding, skip_rows=skip_rows)


def _named(*lists: str | None) -> tuple[str, ...]:
    """Return the columns of generators or systems, which are no judges'."""
    return tuple(name for names in lists for name in split_names(names or ""))


def _import_help() -> str:
    """Return the help of `judgebayes import`: the formats, a line each."""
    listed = "\n".join(
        textwrap.fill(f"* {name}: {known.says}", 76, subsequent_indent="  ")
        for name, known in FORMATS.items()
    )
    return (
        "Bring votes from other tools' files into a tidy table that every other command reads.\n\n"
        f"FORMAT is one of\n\n\b\n{listed}\n\n"
        "What cannot be read as a vote stays a missing vote, and every record is accounted for."
    )


@app.command()
def reproduce(
    context: Context,
    what: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(
            metavar="[PAPER[/TABLE]]...",
            help="For example `distribution-calibrated` or `distribution-calibrated/table3`; all "
            "papers if none is named.",
        ),
    ] = None,
    data: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            help="Folder of the public data sets. If not given: JUDGEBAYES_DATA, else ../shared/data "
            "beside the checkout, else what `judgebayes data get` fetched."
        ),
    ] = None,
    twins: Annotated[
        bool, typer.Option("--twins", help="Use the embedded twins only, whatever data there are.")
    ] = False,
    splits: Annotated[int, typer.Option(min=2, help="Random calibration/evaluation splits.")] = 100,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="Run a shrunken version of everything, in minutes.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the random splits.")] = 0,
    out: Annotated[
        Path,
        typer.Option(
            help="Folder of the results. A run that was interrupted goes on where it was, if it is "
            "started again with the same options."
        ),
    ] = Path("results"),
    batch_size: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="Splits to fit at once: memory grows with them."),
    ] = None,
    listed: Annotated[
        bool,
        typer.Option("--list", help="Only list the experiments, with their usual time and memory."),
    ] = False,
    costs: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="CSV file for the time, memory and programs that each experiment took."),
    ] = None,
) -> None:
    """Reproduce the papers' tables and figures, beside the paper's numbers and an audit.

    Experiments run in processes of their own. If one fails, the others still run; the failed ones are
    listed with their logs at the end, and the exit status is 1.
    """
    from judgebayes.cli.command import command_line
    from judgebayes.cli.reproducing import list_experiments, reproduce_papers

    names = list(what or [])
    if listed:
        list_experiments(names)
        return
    command = command_line(context)
    complete = reproduce_papers(
        names, data, twins, splits, smoke, seed, out, batch_size, command, costs
    )
    if not complete:
        raise typer.Exit(1)


@app.command()
def collect(
    items: Annotated[
        Path,
        typer.Argument(
            help="What is to be judged, a row each: .csv, .tsv, .jsonl or .parquet, with a prompt and "
            "one response, or two."
        ),
    ],
    judge: Annotated[
        list[str],
        typer.Option(
            metavar="[ALIAS=]NAME@URL",
            help="A model at an OpenAI-compatible address, `NAME@http://localhost:8000/v1` say; again "
            "for every further judge.",
        ),
    ],
    n: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "-n", min=1, help="Votes of a judge on an item, half in each order; 12 by default."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where the answers go, line by line: .jsonl.")
    ] = Path("votes.jsonl"),
    key_env: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="[JUDGE=]NAME",
            help="The environment variable that holds the key, of all judges or of one.",
        ),
    ] = None,
    task: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="ternary (A, tie or B), binary (A or B) or valid (valid or invalid); ternary where "
            "there are two responses, else valid."
        ),
    ] = None,
    template: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            help="Your own prompt: a text file with {prompt}, {response_a} and {response_b}, or "
            "{response}, and any other column in braces."
        ),
    ] = None,
    temperature: Annotated[float, typer.Option(min=0.0, help="Temperature of the judges.")] = 1.0,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest answer, in tokens.")] = 2048,
    body: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="JSON",
            help="Further fields of each request; null takes one away: "
            '`{"max_tokens": null, "max_completion_tokens": 2048}`.',
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(min=1, help="Questions to a judge that wait for answers at one time.")
    ] = 8,
    timeout: Annotated[
        float, typer.Option(min=0.01, help="Seconds to wait for an answer.")
    ] = 180.0,
    retries: Annotated[int, typer.Option(min=0, help="How often a question is asked again.")] = 6,
    budget_calls: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(help="Most answers to pay for, over all runs into the file."),
    ] = None,
    budget_tokens: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(help="Most tokens to pay for, of prompts and answers, over all runs."),
    ] = None,
    until_settled: Annotated[
        bool,
        typer.Option(
            "--until-settled",
            help="Ask on only about items on which more votes are worth their price, under --fit.",
        ),
    ] = False,
    fit: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="A Davidson fit that `judgebayes calibrate --save` kept."),
    ] = None,
    price: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(help="Of a vote, in class steps of loss; chosen by --give-up if not given."),
    ] = None,
    give_up: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            help="How much more loss, on average, settling early may cost; 0.002 by default."
        ),
    ] = None,
    fewest: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--min", min=1, help="Votes before which no item is settled."),
    ] = None,
    answers: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Where to write what --until-settled concludes of every item."),
    ] = None,
    item: ItemColumn = None,
    prompt: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Column of the prompt that was responded to."),
    ] = None,
    response: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Column of the response."),
    ] = None,
    response_a: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Column of the one response."),
    ] = None,
    response_b: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Column of the other response."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask nothing; print a prompt and what would be asked.")
    ] = False,
) -> None:
    """Ask judges for votes, again and again; an interrupted run goes on without paying twice."""
    from judgebayes.cli.collecting import CollectRequest, UntilSettled
    from judgebayes.cli.collecting import collect as collect_from
    from judgebayes.collect.endpoint import Patience
    from judgebayes.collect.sampling import Budget

    given = (fit, price, give_up, fewest, answers)
    if not until_settled and any(option is not None for option in given):
        raise JudgeBayesError(
            "--fit, --price, --give-up, --min and --answers belong to --until-settled, which is missing."
        )
    collect_from(
        CollectRequest(
            items,
            judge,
            key_env or [],
            {
                "item": item,
                "prompt": prompt,
                "response_a": response_a,
                "response_b": response_b,
                "response": response,
            },
            task,
            template,
            n,
            temperature,
            max_tokens,
            body,
            concurrency,
            Patience(timeout, retries),
            Budget(budget_calls, budget_tokens),
            out,
            UntilSettled(*given) if until_settled else None,
            dry_run,
        )
    )


@app.command()
def calibrate(
    context: Context,
    votes: VotesFile,
    labels: LabelsFile = None,
    method: Annotated[
        str,
        typer.Option(
            help="auto (stacking for a panel, davidson for one judge, unless another that suits the "
            "votes has clearly less held-out NLL), davidson, "
            "hierarchical, one-coin, dawid-skene, stacking, top-3, top-5, top-10, vote-share, "
            "accuracy-weighted, log-odds, margin-threshold, sc or best-constant.",
            autocompletion=completing(METHODS),
        ),
    ] = "auto",
    calibrator: Annotated[
        str,
        typer.Option(
            help="The calibration map behind the method: none, temperature, platt, isotonic, beta; "
            "auto puts beta behind methods that are too sure of themselves.",
            autocompletion=completing(CALIBRATORS),
        ),
    ] = "auto",
    inference: Annotated[
        str,
        typer.Option(
            help="How davidson is fitted: drps (the paper's), ml, map or nuts; nuts samples "
            "dawid-skene and stacking too.",
            autocompletion=completing(INFERENCES),
        ),
    ] = "drps",
    conformal: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(help="Add to each item the set of classes that holds the label this often."),
    ] = None,
    item: ItemColumn = None,
    judge: JudgeColumn = None,
    vote: VoteColumn = None,
    sample: SampleColumn = None,
    repeats: Repeats = False,
    order: OrderColumn = None,
    votes_as: VotesAs = None,
    label: LabelColumn = None,
    task: TaskColumn = None,
    group: GroupColumn = None,
    classes: ClassNames = None,
    pairwise: Pairwise = None,
    only_judge: OnlyJudge = None,
    wide: Wide = False,
    ignore: Ignore = None,
    missing: Missing = None,
    encoding: Encoding = None,
    skip_rows: SkipRows = None,
    label_noise: LabelNoise = 0.0,
    loss: Loss = "absolute",
    splits: SplitsOfLabels = 100,
    seed: Seed = 0,
    out: Out = None,
    save: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Where to keep the fit (JSON), for `judgebayes apply`."),
    ] = None,
    drop_unknown_labels: DropUnknownLabels = False,
    allow_degenerate: AllowDegenerate = False,
) -> None:
    """Calibrate your own votes: probabilities, a decision and its expected loss for every item."""
    from judgebayes.cli.calibrating import Request, calibrate_votes
    from judgebayes.cli.command import other_command
    from judgebayes.cli.reading import Columns, Source

    columns = Columns(item, judge, vote, sample, order, label, task, group)
    table = _reading(missing, ignore, encoding, skip_rows)
    calibrate_votes(
        Request(
            Source(votes, columns, repeats, votes_as, only_judge, wide, table),
            labels,
            method,
            calibrator,
            inference,
            conformal,
            classes,
            pairwise,
            loss,
            splits,
            seed,
            out,
            save,
            drop_unknown_labels,
            allow_degenerate,
            label_noise,
        ),
        diagnosing=other_command(context, "diagnose"),
        reporting=other_command(context, "report"),
    )


@app.command()
def report(
    context: Context,
    votes: VotesFile,
    labels: LabelsFile = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to write the page (HTML).")
    ] = Path("report.html"),
    method: Annotated[
        str,
        typer.Option(
            help="As for calibrate; auto compares those that suit the votes.",
            autocompletion=completing(METHODS),
        ),
    ] = "auto",
    calibrator: Annotated[
        str, typer.Option(help="As for calibrate.", autocompletion=completing(CALIBRATORS))
    ] = "auto",
    inference: Annotated[str, typer.Option(help="As for calibrate.")] = "drps",
    conformal: Annotated[
        float, typer.Option(help="How often the set of classes of an item should hold the label.")
    ] = 0.9,
    item: ItemColumn = None,
    judge: JudgeColumn = None,
    vote: VoteColumn = None,
    sample: SampleColumn = None,
    repeats: Repeats = False,
    order: OrderColumn = None,
    votes_as: VotesAs = None,
    label: LabelColumn = None,
    task: TaskColumn = None,
    group: GroupColumn = None,
    classes: ClassNames = None,
    pairwise: Pairwise = None,
    only_judge: OnlyJudge = None,
    wide: Wide = False,
    ignore: Ignore = None,
    missing: Missing = None,
    encoding: Encoding = None,
    skip_rows: SkipRows = None,
    label_noise: LabelNoise = 0.0,
    loss: Loss = "absolute",
    splits: SplitsOfLabels = 100,
    seed: Seed = 0,
    drop_unknown_labels: DropUnknownLabels = False,
    allow_degenerate: AllowDegenerate = False,
) -> None:
    """Write one HTML page on your votes: what is wrong, who judges well, what to believe and why."""
    from judgebayes.cli.calibrating import Request
    from judgebayes.cli.command import command_line
    from judgebayes.cli.reading import Columns, Source
    from judgebayes.cli.reporting import write_report

    columns = Columns(item, judge, vote, sample, order, label, task, group)
    table = _reading(missing, ignore, encoding, skip_rows)
    request = Request(
        Source(votes, columns, repeats, votes_as, only_judge, wide, table),
        labels,
        method,
        calibrator,
        inference,
        conformal,
        classes,
        pairwise,
        loss,
        splits,
        seed,
        None,
        None,
        drop_unknown_labels,
        allow_degenerate,
        label_noise,
    )
    write_report(request, out, command_line(context))


@app.command()
def apply(
    fit: Annotated[Path, typer.Argument(help="A fit that `judgebayes calibrate --save` kept.")],
    votes: VotesFile,
    item: ItemColumn = None,
    judge: JudgeColumn = None,
    vote: VoteColumn = None,
    sample: SampleColumn = None,
    repeats: Repeats = False,
    order: OrderColumn = None,
    votes_as: VotesAs = None,
    task: TaskColumn = None,
    only_judge: OnlyJudge = None,
    wide: Wide = False,
    ignore: Ignore = None,
    missing: Missing = None,
    encoding: Encoding = None,
    skip_rows: SkipRows = None,
    loss: Loss = "absolute",
    out: Out = None,
) -> None:
    """Apply a kept fit to new votes, and say whether they have drifted from the fitted ones."""
    from judgebayes.cli.calibrating import apply_fit
    from judgebayes.cli.reading import Columns, Source

    columns = Columns(item, judge, vote, sample, order, None, task, "none")
    table = _reading(missing, ignore, encoding, skip_rows)
    apply_fit(fit, Source(votes, columns, repeats, votes_as, only_judge, wide, table), loss, out)


@app.command()
def diagnose(
    votes: VotesFile,
    labels: LabelsFile = None,
    item: ItemColumn = None,
    judge: JudgeColumn = None,
    vote: VoteColumn = None,
    sample: SampleColumn = None,
    repeats: Repeats = False,
    order: OrderColumn = None,
    votes_as: VotesAs = None,
    label: LabelColumn = None,
    group: GroupColumn = None,
    classes: ClassNames = None,
    pairwise: Pairwise = None,
    wide: Wide = False,
    ignore: Ignore = None,
    missing: Missing = None,
    encoding: Encoding = None,
    skip_rows: SkipRows = None,
    judges: Annotated[int, typer.Option(min=2, help="How many judges to print at most.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the random panels (saturation).")] = 0,
    out: Out = None,
    plot: Plot = None,
    drop_unknown_labels: DropUnknownLabels = False,
) -> None:
    """Say what is wrong with judges and labels: leaks, copies, bias, constant labels, saturation."""
    from judgebayes.cli.diagnosing import Request, diagnose_votes
    from judgebayes.cli.reading import Columns, Source

    columns = Columns(item, judge, vote, sample, order, label, "none", group)
    table = _reading(missing, ignore, encoding, skip_rows)
    source = Source(votes, columns, repeats, votes_as, None, wide, table)
    diagnose_votes(
        Request(source, labels, classes, pairwise, judges, out, plot, drop_unknown_labels, seed)
    )


@app.command()
def ensemble(
    votes: VotesFile,
    labels: LabelsFile = None,
    k: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Numbers of votes: 1:21, or 3,5,11; all odd ones there are by default."),
    ] = None,
    target_width: Annotated[
        float, typer.Option(help="How wide the interval may be: says how many labels it takes.")
    ] = 0.05,
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.9,
    these_items: Annotated[
        bool,
        typer.Option(
            "--these-items",
            help="Ask for the error on the items of the file, not on all items there could be: "
            "narrower where a large share is labelled.",
        ),
    ] = False,
    item: ItemColumn = None,
    judge: JudgeColumn = None,
    vote: VoteColumn = None,
    sample: SampleColumn = None,
    repeats: Repeats = False,
    order: OrderColumn = None,
    votes_as: VotesAs = None,
    label: LabelColumn = None,
    classes: ClassNames = None,
    only_judge: OnlyJudge = None,
    wide: Wide = False,
    ignore: Ignore = None,
    missing: Missing = None,
    encoding: Encoding = None,
    skip_rows: SkipRows = None,
    seed: Annotated[int, typer.Option(help="Seed of the posterior draws.")] = 0,
    out: Out = None,
    plot: Plot = None,
    drop_unknown_labels: DropUnknownLabels = False,
) -> None:
    """Tell how wrong a majority vote of k is on your items, and how many labels to know it."""
    from judgebayes.cli.ensembling import EnsembleRequest, ensemble_error
    from judgebayes.cli.reading import Columns, Source

    columns = Columns(item, judge, vote, sample, order, label, "none", "none")
    table = _reading(missing, ignore, encoding, skip_rows)
    ensemble_error(
        EnsembleRequest(
            Source(votes, columns, repeats, votes_as, only_judge, wide, table),
            labels,
            k,
            target_width,
            level,
            these_items,
            classes,
            seed,
            out,
            plot,
            drop_unknown_labels,
        )
    )


@app.command()
def precision(
    votes: VotesFile,
    labels: LabelsFile = None,
    item: ItemColumn = None,
    judge: JudgeColumn = None,
    vote: VoteColumn = None,
    label: LabelColumn = None,
    generator: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Column of the generator, in the votes or in the labels."),
    ] = None,
    systems: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="Two columns, A,B, if each item compares two systems: win rates and a ranking."
        ),
    ] = None,
    classes: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="The classes, invalid first: invalid,valid. With --systems: B,tie,A."),
    ] = None,
    next_labels: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--next", min=1, help="Say which items to label next, this many."),
    ] = None,
    next_out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Where to write the items of --next, with an empty label column."),
    ] = None,
    wide: Wide = False,
    ignore: Ignore = None,
    missing: Missing = None,
    encoding: Encoding = None,
    skip_rows: SkipRows = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Where to write the table of generators."),
    ] = None,
    plot: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Where to draw the generators with their intervals: .png, .pdf, .svg."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draws that compare generators.")] = 0,
) -> None:
    """Tell what share of each generator's items is valid, corrected for the judges' bias."""
    from judgebayes.cli.precision import PrecisionRequest, estimate_precision
    from judgebayes.cli.reading import Columns, Source

    columns = Columns(item, judge, vote, "none", "none", label)
    table = _reading(missing, ignore, encoding, skip_rows)
    source = Source(votes, columns, wide=wide, options=table, ignored=_named(generator, systems))
    estimate_precision(
        PrecisionRequest(
            source,
            labels,
            generator,
            systems,
            classes,
            next_labels,
            next_out,
            out,
            plot,
            seed,
        )
    )


@app.command()
def posterior(
    context: Context,
    votes: VotesFile,
    labels: LabelsFile = None,
    model: Annotated[
        str,
        typer.Option(
            help="What is sampled: davidson or stacking (labels given votes), dawid-skene or one-coin "
            "(votes given labels), irt (which votes are right), beta-binomial (how many are), "
            "generator-validator (what share of each generator's items is valid)."
        ),
    ] = "davidson",
    variant: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="Of beta-binomial: mixture or single. Of generator-validator: leaning or independent "
            "(judges err together, or do not). Of stacking: centred or uncentred. The first by default."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to write the posterior (netCDF, for ArviZ).")
    ] = Path("posterior.nc"),
    draws: Annotated[int, typer.Option(min=20, help="Draws of each chain.")] = 1000,
    warmup: Annotated[int, typer.Option(min=20, help="Steps of each chain before them.")] = 1000,
    chains: Annotated[int, typer.Option(min=2, help="Chains; two at least, to compare them.")] = 4,
    target_accept: Annotated[
        float, typer.Option(help="Nearer to 1 the steps are smaller: against divergences.")
    ] = 0.9,
    table: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Where to write the summary of all parameters: .csv, .parquet, ..."),
    ] = None,
    plot: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Folder for the forest, rank and predictive plots."),
    ] = None,
    plots_as: Annotated[str, typer.Option(help="The plots' format: svg or png.")] = "svg",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that exist.")
    ] = False,
    item: ItemColumn = None,
    judge: JudgeColumn = None,
    vote: VoteColumn = None,
    sample: SampleColumn = None,
    repeats: Repeats = False,
    order: OrderColumn = None,
    votes_as: VotesAs = None,
    label: LabelColumn = None,
    generator: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Column of the generator, in the votes or in the labels."),
    ] = None,
    classes: ClassNames = None,
    pairwise: Pairwise = None,
    only_judge: OnlyJudge = None,
    wide: Wide = False,
    ignore: Ignore = None,
    missing: Missing = None,
    encoding: Encoding = None,
    skip_rows: SkipRows = None,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    drop_unknown_labels: DropUnknownLabels = False,
    allow_degenerate: AllowDegenerate = False,
) -> None:
    """Sample a model's posterior, check it against the data in words, and keep it for ArviZ."""
    from judgebayes.cli.command import command_line
    from judgebayes.cli.reading import Columns, Source
    from judgebayes.cli.sampling import PosteriorRequest, sample_posterior
    from judgebayes.inference import NUTS

    columns = Columns(item, judge, vote, sample, order, label, "none", "none")
    layout = _reading(missing, ignore, encoding, skip_rows)
    sample_posterior(
        PosteriorRequest(
            Source(
                *(votes, columns, repeats, votes_as, only_judge, wide, layout),
                ignored=_named(generator),
            ),
            labels,
            model,
            variant,
            generator,
            classes,
            pairwise,
            NUTS(draws=draws, warmup=warmup, chains=chains, target_accept=target_accept),
            seed,
            out,
            table,
            plot,
            plots_as,
            overwrite,
            drop_unknown_labels,
            allow_degenerate,
        ),
        command_line(context),
    )


@app.command("posterior-compare")
def posterior_compare(
    files: Annotated[
        list[Path], typer.Argument(help="Two or more files that `judgebayes posterior` wrote.")
    ],
    foretell: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="What they are to foretell: label, votes or correct; all that they share if not given."
        ),
    ] = None,
) -> None:
    """Say which posterior foretells an item better from all the others (PSIS-LOO)."""
    from judgebayes.cli.sampling import compare_posteriors

    compare_posteriors(files, foretell)


@app.command("import", help=_import_help())
def import_(
    form: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="One of the formats above.",
            autocompletion=completing(FORMATS),
        ),
    ],
    path: Annotated[Path, typer.Argument(help="A file, or a folder of such files.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where to write the votes: .parquet, .csv, .jsonl.")
    ],
    labels_out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Where to write the labels, where the source has them."),
    ] = None,
    item: ItemColumn = None,
    judge: JudgeColumn = None,
    vote: VoteColumn = None,
    sample: SampleColumn = None,
    order: OrderColumn = None,
    label: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Column of the label; in logs, the key that holds it."),
    ] = None,
    text: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Column of the judge's raw answer."),
    ] = None,
    missing: Missing = None,
    ignore: Ignore = None,
    encoding: Encoding = None,
    skip_rows: SkipRows = None,
    verdicts: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="What raw answers judge: pair (A, B or tie), score, or valid."),
    ] = None,
    votes_from: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="In logs: score (scorers are the judges) or answer (the evaluated model is the judge, "
            "the target its label)."
        ),
    ] = None,
) -> None:
    from judgebayes.cli.importing import import_file

    given = Options(
        *(item, judge, vote, sample, order, label, text, missing),
        ignore=ignore,
        encoding=encoding,
        skip_rows=skip_rows,
    )
    import_file(form, path, out, labels_out, given.choosing(verdicts, votes_from))


def _data_names(incomplete: str) -> list[str]:
    from judgebayes.public import SOURCES

    return completing([*SOURCES, "all"])(incomplete)


@data_app.command("list")
def data_list(cache: Cache = None) -> None:
    """List the data sets: what they are, which are here, licence and source."""
    from judgebayes.cli.getting import list_data

    list_data(cache)


@data_app.command("get")
def data_get(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Which: `judgebayes data list` names them; `all` is all of them.",
            autocompletion=_data_names,
        ),
    ],
    cache: Cache = None,
    local: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--from",
            help="A clone of the data set's repository, or a folder with its files, to read instead "
            "of the network.",
        ),
    ] = None,
) -> None:
    """Fetch data sets at their pinned commits, check every file, and convert them.

    What is here and whole is not fetched again; a download that broke goes on where it ended.
    """
    from judgebayes.cli.getting import get_data

    get_data(names, cache, local)


@app.command()
def example(
    folder: Annotated[Path, typer.Argument(help="Where to write votes.csv and labels.csv.")] = Path(
        "example"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the simulated votes.")] = 0,
) -> None:
    """Write small simulated votes and labels to try the other commands on."""
    from judgebayes.cli.examples import write_example

    write_example(folder, seed)


@app.command()
def version() -> None:
    """Print the version."""
    from judgebayes import __version__

    typer.echo(f"judgebayes {__version__}")


def _list_whole_summaries(*apps: typer.Typer) -> None:
    """Let lists of commands show each one's first sentence whole, not what fits on a line."""
    for command in (command for each in apps for command in each.registered_commands):
        words = command.help or inspect.getdoc(command.callback) or ""
        command.short_help = " ".join(words.partition("\n\n")[0].split())


_list_whole_summaries(app, data_app)


def main() -> None:
    """Run the command line; a known error is one sentence, without a traceback."""
    _set_environment()
    # To look for rubbish every 700 objects takes a tenth of the time in which programs are traced.
    gc.set_threshold(100_000, 20, 100)
    try:
        app()
    except JudgeBayesError as error:
        from rich.console import Console

        console = Console(stderr=True)
        said = f"[bold red]Error:[/] {_escaped(str(error))}"
        console.print(said, soft_wrap=not console.is_terminal)
        raise SystemExit(2) from None


def _set_environment() -> None:
    """Let JAX keep compiled programs in the user's cache folder, unless told otherwise.

    The second call of a command then starts in a fraction of the time; small programs are kept
    too, because there are a hundred of them. Factorisations are small and many, so that threads
    inside one would only wait for one another. Queued execution gains nothing where every method
    has a thread of its own. The compiler's log is silenced: some versions print a page for every
    program taken from the cache, about features of the processor that are no features. The newer
    of two code generators of JAX 0.9, the last for Python 3.11, takes a quarter longer to compile
    programs that are no faster; later versions have no such choice.
    """
    from platformdirs import user_cache_dir

    folder = os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", user_cache_dir("judgebayes"))
    os.environ.setdefault("JUDGEBAYES_PROGRAMS", str(Path(folder) / "programs"))
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_CPU_ENABLE_ASYNC_DISPATCH", "false")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if metadata.version("jaxlib").startswith("0.9."):
        os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false")


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
