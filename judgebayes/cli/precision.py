"""`judgebayes precision`: how many of each generator's items are valid."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from judgebayes.cli.reading import Reading, Source, classes_of, open_source, read_votes
from judgebayes.errors import JudgeBayesError
from judgebayes.float64 import in_float64
from judgebayes.inference.status import Status
from judgebayes.io import write_table
from judgebayes.plots import intervals
from judgebayes.precision import (
    FittedImpression,
    Impression,
    PrecisionCounts,
    count_votes,
    mean_prediction,
)

__all__ = ["PrecisionRequest", "estimate_precision"]

GENERATOR_NAMES = ("generator", "system", "producer", "source", "candidate")
LEVEL = 0.9
SETTLED = 0.95
FEW_INVALID = 10


@dataclass(frozen=True)
class PrecisionRequest:
    """What `judgebayes precision` was asked for."""

    source: Source
    labels: Path | None
    generator: str | None
    classes: str | None
    out: Path | None
    plot: Path | None
    seed: int


@in_float64
def estimate_precision(request: PrecisionRequest) -> None:
    """Read votes and labels, estimate, print both tables, write what was asked for.

    Raises
    ------
    JudgeBayesError
        For bad input, or if the generator of an item cannot be told.
    """
    console = Console()
    opened = open_source(request.source, request.labels)
    classes = classes_of(opened, request.classes, pairwise=False)
    if len(classes.values) != 2:
        raise JudgeBayesError(
            f"The votes are of {len(classes.values)} classes; precision needs two, invalid before "
            "valid: --classes invalid,valid names them."
        )
    read = read_votes(opened, classes)
    tables = [(opened.table, str(opened.columns["item"]))]
    labels = np.full(read.votes.n_items, -1)
    if opened.labels is not None:
        gold = opened.labels
        tables.append((gold.table, gold.item))
        labels = read.coding.labels(
            gold.table,
            item=gold.item,
            label=gold.label,
            unknown_items="drop",
            allow_degenerate=True,
        )
    names, generator = _generators(tables, read, request.generator)
    counts = count_votes(read.votes, labels, generator, len(names))
    fit = Impression().fit(counts)
    shown = generator_table(names, counts, fit, request.seed)
    _say(console, _words(read, labels, counts, classes.names[1]))
    _print(console, _readable(shown), "Generators", percent=("estimate", "raw mean"))
    judges = judge_table([str(j) for j in read.coding.judges], counts)
    _print(console, judges, "Judges", percent=("TPR", "TNR", "voted on"))
    for line in _warnings(counts, fit):
        console.print(f"[yellow]![/] {escape(line)}", soft_wrap=True, highlight=False)
    if request.out is not None:
        write_table(shown, request.out)
    if request.plot is not None:
        _plot(shown, request.plot)


def _generators(
    tables: list[tuple[pd.DataFrame, str]], read: Reading, named: str | None
) -> tuple[list[str], Int[np.ndarray, " item"]]:
    """Return the generators' names, and each item's generator."""
    for table, item in tables:
        columns = {str(c).strip().casefold(): str(c) for c in table.columns}
        wanted = [named] if named is not None else [columns.get(n) for n in GENERATOR_NAMES]
        column = next((c for c in wanted if c is not None and c in table.columns), None)
        if column is None:
            continue
        pairs = table[[item, column]].dropna().drop_duplicates().astype(str)
        twice = pairs[item].duplicated()
        if twice.any():
            raise JudgeBayesError(
                f"Item {pairs[item][twice].iloc[0]!r} has more than one value of {column!r}; an "
                "item has one generator."
            )
        found = pairs.set_index(item)[column].reindex(pd.Index(read.coding.items).astype(str))
        if found.isna().any():
            raise JudgeBayesError(
                f"Item {found.index[found.isna()][0]!r} has no value of {column!r}: every item "
                "needs its generator. If only the labels' table names it, name it in the votes."
            )
        code, names = pd.factorize(found.to_numpy())
        return [str(n) for n in names], code
    raise JudgeBayesError(
        f"Which column is the generator? None is named like one ({', '.join(GENERATOR_NAMES)}); "
        "say --generator NAME."
        if named is None
        else f"There is no column {named!r} for the generator, in the votes or in the labels."
    )


def generator_table(
    names: list[str], counts: PrecisionCounts, fit: FittedImpression, seed: int = 0
) -> pd.DataFrame:
    """Return a row per generator, the best first, and whether it is settled to beat the next.

    The order of two generators is settled where one is better in at least 95 % of the joint
    draws, in which what the two share (the judges) cancels.
    """
    low, high = fit.interval(LEVEL)
    draws = np.asarray(fit.draws(key=jax.random.key(seed)))
    table = pd.DataFrame(
        {
            "generator": names,
            "estimate": np.asarray(fit.estimate()),
            "low": np.asarray(low),
            "high": np.asarray(high),
            "raw mean": np.asarray(mean_prediction(counts)),
            "items": np.asarray(counts.valid + counts.invalid + counts.unlabelled).astype(int),
            "labelled": np.asarray(counts.valid + counts.invalid).astype(int),
        }
    )
    order = np.argsort(-table["estimate"].to_numpy(), kind="stable")
    table = table.iloc[order].reset_index(drop=True)
    above = [float((draws[:, a] > draws[:, b]).mean()) for a, b in pairwise(order)]
    table["P(better than next)"] = [*above, np.nan]
    table["order settled"] = [
        *("yes" if p >= SETTLED else "no" for p in above),
        "",
    ]
    return table


def judge_table(names: list[str], counts: PrecisionCounts) -> pd.DataFrame:
    """Return each judge's pooled rates on labelled items, and the share of items it voted on."""
    rates = counts.rates()
    voted = counts.judged + counts.valid_judged + counts.invalid_judged
    total = (counts.valid + counts.invalid + counts.unlabelled).sum()
    return pd.DataFrame(
        {
            "judge": names,
            "TPR": np.asarray(rates.tpr),
            "TNR": np.asarray(rates.tnr),
            "on valid": np.asarray(counts.valid_judged.sum(0)).astype(int),
            "on invalid": np.asarray(counts.invalid_judged.sum(0)).astype(int),
            "voted on": np.asarray(voted.sum(0) / total),
        }
    )


def _words(
    read: Reading, labels: Int[np.ndarray, " item"], counts: PrecisionCounts, valid: str
) -> list[str]:
    generators = counts.valid.shape[0]
    return [
        f"{generators} generator(s), {read.votes.n_items} items, {read.votes.n_judges} judge(s); "
        f"a vote for {valid!r} is valid.",
        f"{int((labels >= 0).sum())} items of {int(counts.labelled.sum())} generator(s) are "
        f"labelled, {int((labels == 0).sum())} of them invalid.",
    ]


def _warnings(counts: PrecisionCounts, fit: FittedImpression) -> list[str]:
    lines = []
    if int(fit.status) != Status.CONVERGED:
        lines.append(Status(int(fit.status)).sentence)
    labelled = int(counts.labelled.sum())
    if labelled == 0:
        lines.append(
            "No item is labelled: the intervals show what the priors allow, and no more. Label "
            "the items of one generator at least."
        )
    elif labelled == 1:
        lines.append(
            "One generator has labels: how much generators differ in the judges' eyes is taken "
            "from the prior."
        )
    if labelled and float(counts.invalid.sum()) < FEW_INVALID:
        lines.append(
            f"Only {int(counts.invalid.sum())} labelled items are invalid: whether the judges "
            "notice invalid items can hardly be told."
        )
    if labelled:
        rates = counts.rates()
        youden = np.asarray(rates.tpr + rates.tnr - 1)
        if (youden < 0).any():
            lines.append(
                f"{int((youden < 0).sum())} judge(s) call invalid items valid more often than "
                "valid ones: look whether their votes are turned round."
            )
    return lines


def _say(console: Console, lines: list[str]) -> None:
    for line in lines:
        console.print(escape(line), soft_wrap=True, highlight=False)


def _print(console: Console, frame: pd.DataFrame, title: str, percent: tuple[str, ...]) -> None:
    table = Table(title=title, title_justify="left")
    for place, name in enumerate(frame.columns):
        table.add_column(str(name), justify="left" if place == 0 else "right")
    for row in frame.itertuples(index=False):
        table.add_row(*(_cell(n, v, percent) for n, v in zip(frame.columns, row, strict=True)))
    console.print(table)


def _readable(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of generators with the interval in one column and short headers."""
    ends = [
        f"{low:.1%} to {high:.1%}" for low, high in zip(table["low"], table["high"], strict=True)
    ]
    return pd.DataFrame(
        {
            "generator": table["generator"],
            "estimate": table["estimate"],
            "90 % interval": ends,
            "raw mean": table["raw mean"],
            "labelled": [
                f"{a} of {b}" for a, b in zip(table["labelled"], table["items"], strict=True)
            ],
            "P(> next)": table["P(better than next)"],
            "settled": table["order settled"],
        }
    )


def _cell(name: str, value: object, percent: tuple[str, ...]) -> str:
    if isinstance(value, float) and np.isnan(value):
        return ""
    if isinstance(value, float):
        return f"{value:.1%}" if name in percent else f"{value:.2f}"
    return escape(str(value))


def _plot(table: pd.DataFrame, path: Path) -> None:
    raw = table.assign(value=table["raw mean"], low=np.nan, high=np.nan, series="raw mean")
    ours = table.assign(value=table["estimate"], series="estimate, 90 % interval")
    both = pd.concat([ours, raw])
    value: Float[np.ndarray, " row"] = both[["value", "low", "high"]].to_numpy(float)
    both[["value", "low", "high"]] = 100 * value
    figure = intervals(
        both,
        label="generator",
        series="series",
        xlabel="valid items, %",
        title="Generator precision",
    )
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise JudgeBayesError(f"{str(path)!r} cannot be written: {error}.") from error
