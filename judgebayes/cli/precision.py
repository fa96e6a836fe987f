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

from judgebayes.cli.saying import WARNING, say, show
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.generators import (
    FittedImpression,
    FittedStratified,
    Impression,
    Labelling,
    PrecisionCounts,
    count_votes,
    mean_prediction,
    stratify,
    valid_share,
)
from judgebayes.inference.status import Status
from judgebayes.io import check_writable, write_table
from judgebayes.io.options import split_names
from judgebayes.votes import Votes
from judgebayes.workflow.options import PrecisionRequest
from judgebayes.workflow.reading import (
    Reading,
    classes_of,
    labels_of,
    open_files,
    read_votes,
)
from judgebayes.workflow.systems import Matches, binary_votes, read_matches, system_table

__all__ = ["estimate_precision", "generators_of"]

GENERATOR_NAMES = ("generator", "system", "producer", "source", "candidate")
LEVEL = 0.9
SETTLED = 0.95
FEW_INVALID = 10
WHOLE = 0.9
"""The share of labelled items from which a generator counts as labelled in full."""
SHOWN = 20

Fit = FittedImpression | FittedStratified


@dataclass(frozen=True)
class _Known:
    """Votes, labels and generators of the items, whatever file they came from."""

    read: Reading
    votes: Votes
    labels: Int[np.ndarray, " item"]
    generator: Int[np.ndarray, " item"]
    names: list[str]
    matches: Matches | None
    notes: list[str]

    @property
    def noun(self) -> str:
        """What a row of the main table is."""
        return "generator" if self.matches is None else "pair"

    def labelling(self) -> Labelling:
        """Return the items sorted by their votes, with the labels so far."""
        strata = stratify(valid_share(self.votes))
        return Labelling(strata, self.generator, self.labels, len(self.names))


@in_float64
def estimate_precision(request: PrecisionRequest) -> None:
    """Read votes and labels, estimate, print the tables, write what was asked for.

    Raises
    ------
    JudgeBayesError
        For bad input, or if the generator of an item cannot be told.
    """
    console = Console()
    check_writable(request.out)
    check_writable(request.next_out)
    check_writable(request.plot, table=False)
    known = _known(request)
    counts = count_votes(known.votes, known.labels, known.generator, len(known.names))
    labelling = known.labelling()
    in_part = _in_part(counts)
    fit: Fit = labelling.fit() if in_part else Impression().fit(counts)
    shown = generator_table(known.names, counts, fit, request.seed)
    say(console, known.notes)
    title = "Generators" if known.matches is None else "Win rates"
    readable = _readable(shown, known.noun)
    if known.matches is not None:  # which of two win rates is larger is nobody's question
        readable = readable.drop(columns="beats next")
    _print(console, readable, title, percent=("estimate", "raw mean"))
    lines = []
    if bool(counts.labelled.any()):
        lines.append(
            "Estimate: corrected for the judges' errors; known where every item is labelled. Raw mean: "
            "of the votes as they are."
        )
    if "beats next" in readable:
        lines.append(
            f"Beats next: the probability of being better than the row below, settled from {SETTLED:g}."
        )
    say(console, lines)
    if known.matches is not None:
        draws = np.asarray(fit.draws(key=jax.random.key(request.seed)))
        ranked = system_table(known.matches, draws, LEVEL)
        _print(console, _ranking(ranked), "Systems", percent=("mean win rate",))
    judges = judge_table([str(j) for j in known.read.coding.judges], counts)
    _print(console, judges, "Judges", percent=("TPR", "TNR", "voted on"))
    good, poor = ("valid", "invalid") if known.matches is None else ("won", "lost")
    say(
        console,
        [
            f"TPR: the share of {good} items (on valid) that the judge votes {good} for, TNR: of "
            f"{poor} items (on invalid) {poor}, pooled over generators."
        ],
    )
    say(console, _warnings(counts, fit, in_part), WARNING)
    if request.next_labels is not None:
        _propose(console, known, labelling, request)
    if request.out is not None:
        write_table(shown.rename(columns={"generator": known.noun}), request.out)
    if request.plot is not None:
        _plot(shown, request.plot, "Generator precision" if known.matches is None else "Win rates")


def _known(request: PrecisionRequest) -> _Known:
    named = (*split_names(request.generator or ""), *split_names(request.systems or ""))
    opened = open_files(request.votes, request.labels, request.columns, request.reading, named)
    paired = request.systems is not None
    classes = classes_of(opened, request.classes, pairwise=paired)
    if len(classes.values) != 2 and not paired:
        raise JudgeBayesError(
            f"The votes are of {len(classes.values)} classes; precision needs two, invalid before "
            "valid: --classes invalid,valid names them. If each item compares two systems, name "
            "their columns: --systems A,B."
        )
    read = read_votes(opened, classes)
    labels = labels_of(opened, read, drop_unknown=True, allow_degenerate=True)
    strangers = 0
    if opened.labels is not None:
        gold = opened.labels
        named = gold.table[gold.label].notna()
        items = set(pd.Index(read.coding.items).astype(str))
        strangers = int((named & ~gold.table[gold.item].astype(str).isin(items)).sum())
    if request.systems is None:
        names, generator = generators_of(opened.tables, read, request.generator)
        votes, matches, ties = read.votes, None, 0
    else:
        matches = read_matches(opened.tables, read, request.systems)
        votes, labels, ties = binary_votes(read.votes, labels, classes, matches)
        names, generator = matches.names, matches.of_item
    notes = list(opened.notes)
    notes += _words(votes, labels, generator, len(names), classes.names[-1], matches)
    if strangers:
        notes.append(f"{strangers} label(s) of items without votes are left out.")
    if ties:
        notes.append(f"{ties} vote(s) for a tie count as none: win rates are of decided items.")
    return _Known(read, votes, labels, generator, names, matches, notes)


def _in_part(counts: PrecisionCounts) -> bool:
    """Tell whether some generator has labels, but not nearly of all of its items.

    `Impression` takes a generator's labels as those of all its items, give or take chance, and is
    too sure of itself where they are few.
    """
    labelled = np.asarray(counts.valid + counts.invalid)
    share = labelled / np.maximum(labelled + np.asarray(counts.unlabelled), 1)
    return bool(((share > 0) & (share < WHOLE)).any())


def _propose(
    console: Console, known: _Known, labelling: Labelling, request: PrecisionRequest
) -> None:
    """Print and write which items to label next."""
    assert request.next_labels is not None
    items = labelling.propose(request.next_labels, seed=request.seed)
    expected = np.asarray(labelling.fit().validity())
    share = valid_share(known.votes)[items]
    place = known.generator[items]
    table = pd.DataFrame(
        {
            "item": pd.Index(known.read.coding.items)[items],
            known.noun: [known.names[g] for g in place],
            "valid votes": share,
            "P(valid)": expected[place, labelling.strata.of_item[items]],
        }
    )
    title = f"Label next: {len(table)} item(s)"
    _print(console, table.head(SHOWN), title, percent=("valid votes",))
    if len(table) > SHOWN:
        more = " --next-out FILE writes all." if request.next_out is None else ""
        say(console, [f"{len(table) - SHOWN} more are not shown.{more}"])
    if request.next_out is not None:
        write_table(table[["item", known.noun]].assign(label=""), request.next_out)
        say(
            console,
            [
                f"{request.next_out} has a row for each: fill in its label column, add its rows to "
                "the labels, and run again."
            ],
        )


def generators_of(
    tables: list[tuple[pd.DataFrame, str]], read: Reading, named: str | None
) -> tuple[list[str], Int[np.ndarray, " item"]]:
    """Return the generators' names, and each item's generator.

    Parameters
    ----------
    tables
        Where their column may be, each table with its column of the item.
    read
        The votes.
    named
        The column, if the user named it.

    Raises
    ------
    JudgeBayesError
        If no column is like one, an item has two generators, or has none.
    """
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
    names: list[str], counts: PrecisionCounts, fit: Fit, seed: int = 0
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
    # Without labels the order is the votes', and what the prior makes of it.
    some = bool(counts.labelled.any())
    table["order settled"] = [*("yes" if some and p >= SETTLED else "no" for p in above), ""]
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
    votes: Votes,
    labels: Int[np.ndarray, " item"],
    generator: Int[np.ndarray, " item"],
    n_generators: int,
    top: str,
    matches: Matches | None,
) -> list[str]:
    what = "a generator" if matches is None else "a pair of systems"
    meaning = "valid" if matches is None else "a win of the system in the first column"
    labelled = len(np.unique(generator[labels >= 0]))
    return [
        f"{n_generators} {what.removeprefix('a ')}(s), {votes.n_items} items, {votes.n_judges} "
        f"judge(s); a vote for {top!r} is {meaning}.",
        f"{int((labels >= 0).sum())} items of {labelled} {what.removeprefix('a ')}(s) are "
        f"labelled, {int((labels == 0).sum())} of them "
        f"{'invalid' if matches is None else 'lost by the first of the pair'}.",
    ]


def _warnings(counts: PrecisionCounts, fit: Fit, in_part: bool) -> list[str]:
    lines = []
    if int(fit.status) != Status.CONVERGED:
        lines.append(Status(int(fit.status)).sentence)
    labelled = int(counts.labelled.sum())
    if labelled == 0:
        lines.append(
            "No item is labelled: the intervals show what the priors allow, and no more. Label "
            "the items of one generator at least; --next 50 says which to begin with."
        )
    elif labelled == 1:
        lines.append(
            "One generator has labels: how much generators differ in the judges' eyes is taken "
            "from the prior."
        )
    if in_part:
        lines.append(
            "Some generators are labelled in part: precision is estimated by strata of votes, which "
            "holds however their items were chosen. TPR and TNR are those of the labelled items."
        )
    bare = int((~counts.labelled).sum())
    if in_part and bare:
        lines.append(
            f"{bare} generator(s) have no label: their intervals take from the others how votes go "
            "with validity, and are too narrow where generators differ more than those show. A "
            "few labels of each mend that."
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
            noun: table["generator"],
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


def _plot(table: pd.DataFrame, path: Path, title: str) -> None:
    raw = table.assign(value=table["raw mean"], low=np.nan, high=np.nan, series="raw mean")
    ours = table.assign(value=table["estimate"], series="estimate, 90 % interval")
    both = pd.concat([ours, raw])
    value: Float[np.ndarray, " row"] = both[["value", "low", "high"]].to_numpy(float)
    both[["value", "low", "high"]] = 100 * value
    from judgebayes.plots import intervals  # Matplotlib takes half a second to import

    figure = intervals(
        both,
        label="generator",
        series="series",
        xlabel="valid items, %",
        title=title,
    )
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise JudgeBayesError(f"{str(path)!r} cannot be written: {error}.") from error
