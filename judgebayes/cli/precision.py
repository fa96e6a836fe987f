"""`judgebayes precision`: the share of each generator's items that is valid, printed."""

from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from judgebayes.cli.saying import WARNING, say, show
from judgebayes.errors import JudgeBayesError
from judgebayes.io import check_writable, write_table
from judgebayes.workflow.options import PrecisionRequest
from judgebayes.workflow.precision import SETTLED, Precision, precision_request

__all__ = ["estimate_precision"]

SHOWN = 20


def estimate_precision(request: PrecisionRequest) -> None:
    """Print the tables, and write the requested files.

    Raises
    ------
    JudgeBayesError
        For bad input, or if the generator of an item is unknown.
    """
    console = Console()
    check_writable(request.out)
    check_writable(request.next_out)
    check_writable(request.plot, table=False)
    result = precision_request(request)
    say(console, result.said)
    title = "Generators" if result.systems is None else "Win rates"
    readable = _readable(result.shares, result.noun)
    if result.systems is not None:  # neighbouring pairs need no comparison
        readable = readable.drop(columns="beats next")
    _print(console, readable, title, percent=("estimate", "raw mean"))
    lines = []
    if (result.shares["labelled"] > 0).any():
        exact = (
            "exact (known) where every item is labelled"
            if result.data.log_likelihood is None
            else "where every item is labelled, the interval is that of wrong labels"
        )
        lines.append(
            f"Estimate: corrected for the judges' errors; {exact}. Raw mean: the mean of the votes, "
            "uncorrected."
        )
    if "beats next" in readable:
        lines.append(
            f"Beats next: the probability of being better than the next row; settled if at least "
            f"{SETTLED:g}."
        )
    say(console, lines)
    if result.systems is not None:
        _print(console, _ranking(result.systems), "Systems", percent=("mean win rate",))
    _print(console, result.judges, "Judges", percent=("TPR", "TNR", "voted on"))
    if result.held_out is not None:
        _print_check(console, result.held_out, result.noun)
    good, poor = ("valid", "invalid") if result.systems is None else ("won", "lost")
    say(
        console,
        [
            f"TPR: the share of {good} items that the judge calls {good}; their number is in the "
            f'column "on valid". TNR: the share of {poor} items that it calls {poor}; their '
            'number is in the column "on invalid". Both are over all generators.'
        ],
    )
    say(console, result.warnings, WARNING)
    if result.next_items is not None:
        _print_next_items(console, result, result.next_items)
    if request.out is not None:
        write_table(result.shares, request.out)
    if request.plot is not None:
        title = "Generator precision" if result.systems is None else "Win rates"
        _plot(result.shares, result.noun, request.plot, title)


def _print_check(console: Console, table: pd.DataFrame, noun: str) -> None:
    """Print how well each labelled generator is predicted from the others, by method."""
    shown = table.assign(**{"90 % interval": _ends(table)})
    methods = ["predicted", "raw mean", "logit shift", "Rogan-Gladen"]
    shown = shown[[noun, "labels say", "predicted", "90 % interval", *methods[1:]]]
    shown = shown.rename(columns={"labels say": "labels", "logit shift": "shift"})
    title = f"Check: each labelled {noun}, predicted from the others"
    _print(console, shown, title, percent=("labels", "shift", *methods))
    errors = {name: (table[name] - table["labels say"]).abs().mean() for name in methods}
    best = min((name for name in methods if errors[name] == errors[name]), key=errors.__getitem__)
    line = "Mean error in points: " + ", ".join(
        f"{name} {100 * error:.1f}" for name, error in errors.items() if error == error
    )
    if best != "predicted":
        line += (
            f". On these {len(table)} {noun}s the {best} predicts better; so few cannot tell methods "
            "with close errors apart"
        )
    say(console, [line + "."])


def _print_next_items(console: Console, result: Precision, table: pd.DataFrame) -> None:
    """Print the items to label next, and write them if a file was named."""
    out = result.request.next_out
    title = f"Label next: {len(table)} item(s)"
    _print(console, table.head(SHOWN), title, percent=("valid votes",))
    if len(table) > SHOWN:
        more = " --next-out FILE writes all." if out is None else ""
        say(console, [f"{len(table) - SHOWN} more are not shown.{more}"])
    if out is not None:
        write_table(table[["item", result.noun]].assign(label=""), out)
        say(
            console,
            [
                f"{out} has a row for each item: fill in the label column, add the rows to the labels, "
                "and run again."
            ],
        )


def _print(console: Console, frame: pd.DataFrame, title: str, percent: tuple[str, ...]) -> None:
    table = Table(box=None, pad_edge=False)
    for place, name in enumerate(frame.columns):
        table.add_column(
            str(name),
            justify="left" if place == 0 else "right",
            no_wrap=place > 0,
            overflow="fold",
        )
    for row in frame.itertuples(index=False):
        table.add_row(*(_cell(n, v, percent) for n, v in zip(frame.columns, row, strict=True)))
    show(console, title, table)


def _ends(table: pd.DataFrame) -> list[str]:
    return [
        f"{100 * low:.1f} - {100 * high:.1f}" if high > low + 1e-9 else "known"
        for low, high in zip(table["low"], table["high"], strict=True)
    ]


def _ranking(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of systems with the interval in one column."""
    return pd.DataFrame(
        {
            "system": table["system"],
            "mean win rate": table["mean win rate"],
            "90 % interval": _ends(table),
            "P(better than next)": table["P(better than next)"],
        }
    )


def _readable(table: pd.DataFrame, noun: str) -> pd.DataFrame:
    """Return the table of generators with the interval in one column and short headers."""
    return pd.DataFrame(
        {
            noun: table[noun],
            "estimate": table["estimate"],
            "90 % interval": _ends(table),
            "raw mean": table["raw mean"],
            "labelled": [
                f"{a}/{b}" for a, b in zip(table["labelled"], table["items"], strict=True)
            ],
            "beats next": [
                "" if np.isnan(p) else f"{p:.2f}, {'settled' if settled == 'yes' else 'open'}"
                for p, settled in zip(
                    table["P(better than next)"], table["order settled"], strict=True
                )
            ],
        }
    )


def _cell(name: str, value: object, percent: tuple[str, ...]) -> str:
    if isinstance(value, float) and np.isnan(value):
        return ""
    if isinstance(value, float):
        return f"{value:.1%}" if name in percent else f"{value:.2f}"
    return escape(str(value))


def _plot(table: pd.DataFrame, noun: str, path: Path, title: str) -> None:
    raw = table.assign(value=table["raw mean"], low=np.nan, high=np.nan, series="raw mean")
    ours = table.assign(value=table["estimate"], series="estimate, 90 % interval")
    both = pd.concat([ours, raw])
    value: Float[np.ndarray, " row"] = both[["value", "low", "high"]].to_numpy(float)
    both[["value", "low", "high"]] = 100 * value
    from judgebayes.plots import intervals  # Matplotlib takes half a second to import

    figure = intervals(
        both,
        label=noun,
        series="series",
        xlabel="valid items, %",
        title=title,
    )
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise JudgeBayesError(f"{str(path)!r} cannot be written: {error}.") from error
