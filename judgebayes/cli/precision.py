"""`judgebayes precision`: the share of each generator's items that is valid, printed."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float

from judgebayes.cli.console import WARNING, Console, say, say_next, show_rows
from judgebayes.cli.ensembling import show_next_items
from judgebayes.io.tables import check_writable, write_table
from judgebayes.sentence import percent
from judgebayes.workflow.machine import CommandResult
from judgebayes.workflow.options import TARGETS, PrecisionRequest
from judgebayes.workflow.precision import precision
from judgebayes.workflow.precision_tables import LEVEL, SETTLED, check_words


def estimate_precision(request: PrecisionRequest) -> CommandResult:
    """Print the tables, write the requested files, and return the results.

    Raises
    ------
    JudgeBayesError
        For bad input, or if the generator of an item is unknown.
    """
    console = Console()
    check_writable(request.out)
    check_writable(request.next_out)
    check_writable(request.plot, table=False)
    result = precision(request)
    say(console, *result.said)
    title, percents = (
        "Generators" if result.noun == "generator" else "Win rates",
        ("estimate", "raw mean"),
    )
    if "estimate" not in result.shares:
        title += " (raw means, not corrected)"
    if result.target:
        title += f", with {percent(LEVEL)} intervals about {TARGETS[result.target]}"
    readable = _readable(result.shares, result.noun)
    if result.noun == "pair":  # neighbouring pairs need no comparison
        readable = readable.drop(columns="beats next", errors="ignore")
    _print(console, readable, title, percents)
    lines = []
    if result.legend and (result.shares["labelled"] > 0).any():
        certain = result.target == "these" and result.data.log_likelihood is None
        known = " Known: every item is labelled." if certain else ""
        lines.append(f"{result.legend}{known} Raw mean: the mean of the votes, uncorrected.")
    if "beats next" in readable:
        never = (
            "" if (result.shares["labelled"] > 0).all() else " and both have labels of their own"
        )
        lines.append(
            f"Beats next: the probability of being better than the next row; settled if at least "
            f"{SETTLED:g}{never}."
        )
    say(console, *lines)
    if result.systems is not None:
        rates = ("mean win rate", "raw mean win rate")
        _print(console, _ranking(result.systems), "Systems", percent=rates)
    _print(console, result.judges, "Judges", percent=("TPR", "TNR", "voted on"))
    if result.held_out is not None:
        _print_check(console, result.held_out, result.noun)
    good, poor = ("valid", "invalid") if result.noun == "generator" else ("won", "lost")
    say(
        console,
        f"TPR: the share of {good} items that the judge calls {good}; their number is in the "
        f'column "on valid". TNR: the share of {poor} items that it calls {poor}; their '
        'number is in the column "on invalid". Both are over all generators.',
    )
    say(console, *result.warnings, mark=WARNING)
    if result.next_items is not None:
        show_next_items(
            console,
            result.next_items,
            lambda some, title: _print(console, some, title, percent=("valid votes",)),
            request.next_out,
            ("item", result.noun),
        )
    if request.out is not None:
        write_table(result.shares, request.out)
    if request.plot is not None:
        title = "Generator precision" if result.noun == "generator" else "Win rates"
        _plot(result.shares, result.noun, request.plot, title)
    say_next(console, result.next_steps)
    return result.for_machines()


def _print_check(console: Console, table: pd.DataFrame, noun: str) -> None:
    """Print how well each labelled generator is predicted from the others, by method."""
    shown = table.assign(interval=_ends(table))
    simple = ["raw mean", "logit shift", "Rogan-Gladen", "PPI"]
    shown = shown[[noun, "labels say", "predicted", "interval", *simple]]
    shown = shown.dropna(axis="columns", how="all")
    # Short heads, so that the names of generators have a line each.
    heads = {"labels say": "labels", "logit shift": "shift", "Rogan-Gladen": "Rogan-\nGladen"}
    shown = shown.rename(columns=heads)
    title = f"Check: each labelled {noun}, predicted from the others"
    shares = ("labels say", "predicted", *simple)
    _print(console, shown, title, percent=tuple(heads.get(name, name) for name in shares))
    say(console, *check_words(table, noun))


def _print(console: Console, frame: pd.DataFrame, title: str, percent: tuple[str, ...]) -> None:
    rows = (
        [_cell(name, value, percent) for name, value in zip(frame.columns, row, strict=True)]
        for row in frame.itertuples(index=False)
    )
    show_rows(console, title, list(map(str, frame.columns)), rows)


def _ends(table: pd.DataFrame) -> list[str]:
    return [
        ""
        if np.isnan(low)
        else f"{100 * low:.1f} - {100 * high:.1f}"
        if high > low + 1e-9
        else "known"
        for low, high in zip(table["low"], table["high"], strict=True)
    ]


def _ranking(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of systems with the interval, if any, in one column."""
    if "low" not in table:
        return table
    shown = table.assign(**{"90 % interval": _ends(table)})
    return shown[["system", "mean win rate", "90 % interval", "P(better than next)"]]


def _readable(table: pd.DataFrame, noun: str) -> pd.DataFrame:
    """Return the table of generators with the interval in one column and short headers."""
    columns: dict[str, Sequence[object]] = {noun: table[noun]}
    if "estimate" in table:
        columns["estimate"] = table["estimate"]
    if "low" in table:
        columns["90 % interval"] = _ends(table)
    columns["raw mean"] = table["raw mean"]
    columns["labelled"] = [
        f"{a}/{b}" for a, b in zip(table["labelled"], table["items"], strict=True)
    ]
    if "order settled" in table:
        orders = zip(table["P(better than next)"], table["order settled"], strict=True)
        columns["beats next"] = [
            "" if np.isnan(p) else f"{p:.2f}, {'settled' if settled == 'yes' else 'open'}"
            for p, settled in orders
        ]
    return pd.DataFrame(columns)


def _cell(name: str, value: object, percent: tuple[str, ...]) -> str:
    if isinstance(value, float) and np.isnan(value):
        return ""
    if isinstance(value, float):
        return f"{value:.1%}" if name in percent else f"{value:.2f}"
    return str(value)


def _plot(table: pd.DataFrame, noun: str, path: Path, title: str) -> None:
    parts = [table.assign(value=table["raw mean"], low=np.nan, high=np.nan, series="raw mean")]
    if "low" in table:
        parts.insert(0, table.assign(value=table["estimate"], series="estimate, 90 % interval"))
    elif "estimate" in table:
        ours = table.assign(value=table["estimate"], low=np.nan, high=np.nan, series="estimate")
        parts.insert(0, ours)
    both = pd.concat(parts)
    value: Float[np.ndarray, " row"] = both[["value", "low", "high"]].to_numpy(float)
    both[["value", "low", "high"]] = 100 * value
    from judgebayes.plots.series import intervals  # Matplotlib takes half a second to import

    figure = intervals(
        both,
        label=noun,
        series="series",
        xlabel="valid items, %",
        title=title,
    )
    figure.savefig(path, dpi=150)
