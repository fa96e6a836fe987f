"""The command line: `judgebayes --help`. Heavy imports wait until a command runs."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from judgebayes.errors import JudgeBayesError

__all__ = ["app", "main"]

app = typer.Typer(
    name="judgebayes",
    help="Aggregate and calibrate the votes of LLM judges, and reproduce four papers about them.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

Column = Optional[str]  # noqa: UP045  (typer reads it)


@app.command()
def reproduce(
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
            help="Folder of the public data sets; JUDGEBAYES_DATA, else ../shared/data beside the "
            "checkout, if not given."
        ),
    ] = None,
    twins: Annotated[
        bool, typer.Option("--twins", help="Use the embedded twins only, whatever data there are.")
    ] = False,
    splits: Annotated[int, typer.Option(min=2, help="Random calibration/evaluation splits.")] = 100,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="Run a shrunken version of everything, in a minute.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the random splits.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
) -> None:
    """Reproduce the papers' tables and figures, beside the paper's numbers and an audit."""
    from judgebayes.cli.reproducing import reproduce_papers

    reproduce_papers(list(what or []), data, twins, splits, smoke, seed, out)


@app.command()
def calibrate(
    votes: Annotated[
        Path, typer.Argument(help="Votes: .csv, .tsv, .jsonl or .parquet, a row each.")
    ],
    labels: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Labels, if they are not a column of the votes: a row per item."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(help="davidson, hierarchical, margin-threshold, sc or best-constant."),
    ] = "davidson",
    inference: Annotated[
        str, typer.Option(help="How davidson is fitted: drps (the paper's), ml, map or nuts.")
    ] = "drps",
    item: Annotated[Column, typer.Option(help="Column of the item.")] = None,
    judge: Annotated[
        Column, typer.Option(help="Column of the judge; 'none' if one judged.")
    ] = None,
    vote: Annotated[Column, typer.Option(help="Column of the vote.")] = None,
    sample: Annotated[
        Column, typer.Option(help="Column that numbers a judge's repeated votes on an item.")
    ] = None,
    repeats: Annotated[
        bool,
        typer.Option(
            "--repeats", help="Rows of one judge on one item are repeated votes, in file order."
        ),
    ] = False,
    order: Annotated[
        Column, typer.Option(help="Column of the presentation order: AB or BA; 'none' to ignore.")
    ] = None,
    votes_as: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            help="With an order: 'shown' if a vote names the response shown first or second, "
            "'original' if it was mapped back already."
        ),
    ] = None,
    label: Annotated[Column, typer.Option(help="Column of the label.")] = None,
    task: Annotated[
        Column, typer.Option(help="Column of the task, for --method hierarchical.")
    ] = None,
    group: Annotated[
        Column,
        typer.Option(help="Column of what items share (a question, a program): kept together."),
    ] = None,
    classes: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="The classes from lowest to highest, separated by commas: 1,2,3,4,5."),
    ] = None,
    pairwise: Annotated[
        Optional[bool],  # noqa: UP045
        typer.Option(
            "--pairwise/--no-pairwise",
            help="Whether the scale's ends are two responses that could change places.",
        ),
    ] = None,
    only_judge: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Use the votes of this judge only; otherwise all judges are pooled."),
    ] = None,
    wide: Annotated[
        bool, typer.Option("--wide", help="The votes file has a row per item, a column per judge.")
    ] = False,
    loss: Annotated[
        str, typer.Option(help="Loss of a decision: absolute (class steps) or zero-one.")
    ] = "absolute",
    splits: Annotated[int, typer.Option(min=2, help="Splits of the held-out comparison.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the splits, restarts and draws.")] = 0,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Where to write probabilities, decision and expected loss of each item."),
    ] = None,
    save: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Where to keep the fit (JSON), for `judgebayes apply`."),
    ] = None,
    drop_unknown_labels: Annotated[
        bool, typer.Option("--drop-unknown-labels", help="Accept labels of items without votes.")
    ] = False,
    allow_degenerate: Annotated[
        bool, typer.Option("--allow-degenerate", help="Accept labels that are all the same.")
    ] = False,
) -> None:
    """Calibrate your own votes: probabilities, a decision and its expected loss for every item."""
    from judgebayes.cli.calibrating import Request, calibrate_votes
    from judgebayes.cli.reading import Columns, Source

    columns = Columns(item, judge, vote, sample, order, label, task, group)
    source = Source(votes, columns, repeats, votes_as, only_judge, wide)
    calibrate_votes(
        Request(
            source,
            labels,
            method,
            inference,
            classes,
            pairwise,
            loss,
            splits,
            seed,
            out,
            save,
            drop_unknown_labels,
            allow_degenerate,
        )
    )


@app.command()
def apply(
    fit: Annotated[Path, typer.Argument(help="A fit that `judgebayes calibrate --save` kept.")],
    votes: Annotated[Path, typer.Argument(help="New votes.")],
    item: Annotated[Column, typer.Option(help="Column of the item.")] = None,
    judge: Annotated[
        Column, typer.Option(help="Column of the judge; 'none' if one judged.")
    ] = None,
    vote: Annotated[Column, typer.Option(help="Column of the vote.")] = None,
    sample: Annotated[
        Column, typer.Option(help="Column that numbers a judge's repeated votes on an item.")
    ] = None,
    repeats: Annotated[
        bool,
        typer.Option(
            "--repeats", help="Rows of one judge on one item are repeated votes, in file order."
        ),
    ] = False,
    order: Annotated[
        Column, typer.Option(help="Column of the presentation order; 'none' to ignore.")
    ] = None,
    votes_as: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="With an order: 'shown' or 'original', as in calibrate."),
    ] = None,
    task: Annotated[
        Column, typer.Option(help="Column of the task, for a hierarchical fit.")
    ] = None,
    only_judge: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Use the votes of this judge only."),
    ] = None,
    wide: Annotated[
        bool, typer.Option("--wide", help="The votes file has a row per item, a column per judge.")
    ] = False,
    loss: Annotated[str, typer.Option(help="absolute or zero-one.")] = "absolute",
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Where to write probabilities, decision and expected loss of each item."),
    ] = None,
) -> None:
    """Apply a kept fit to new votes, and say whether they have drifted from the fitted ones."""
    from judgebayes.cli.calibrating import apply_fit
    from judgebayes.cli.reading import Columns, Source

    columns = Columns(item, judge, vote, sample, order, "none", task, "none")
    apply_fit(fit, Source(votes, columns, repeats, votes_as, only_judge, wide), loss, out)


@app.command()
def precision(
    votes: Annotated[
        Path, typer.Argument(help="Votes: .csv, .tsv, .jsonl or .parquet, a row each.")
    ],
    labels: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Labels, if they are not a column of the votes: a row per item."),
    ] = None,
    item: Annotated[Column, typer.Option(help="Column of the item.")] = None,
    judge: Annotated[Column, typer.Option(help="Column of the judge.")] = None,
    vote: Annotated[Column, typer.Option(help="Column of the vote.")] = None,
    label: Annotated[Column, typer.Option(help="Column of the label.")] = None,
    generator: Annotated[
        Column, typer.Option(help="Column of the generator, in the votes or in the labels.")
    ] = None,
    classes: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="The two classes, invalid first: invalid,valid."),
    ] = None,
    wide: Annotated[
        bool, typer.Option("--wide", help="The votes file has a row per item, a column per judge.")
    ] = False,
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
    source = Source(votes, columns, wide=wide)
    estimate_precision(PrecisionRequest(source, labels, generator, classes, out, plot, seed))


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


def main() -> None:
    """Run the command line; a known error is one sentence, without a traceback."""
    try:
        app()
    except JudgeBayesError as error:
        from rich.console import Console

        Console(stderr=True).print(f"[bold red]Error:[/] {_escaped(str(error))}", soft_wrap=True)
        raise SystemExit(2) from None


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
