"""How many of each generator's items are valid, and which of two systems wins how often."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar

import jax
import numpy as np
import pandas as pd
from jaxtyping import Int

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
from judgebayes.io.options import split_names
from judgebayes.votes import Classes, Votes
from judgebayes.workflow.data import Data, encoded, read_before
from judgebayes.workflow.options import Fixed, PrecisionRequest
from judgebayes.workflow.reading import Opened, Reading, classes_of, open_files
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import Result
from judgebayes.workflow.systems import Matches, binary_votes, read_matches, system_table

__all__ = ["LEVEL", "SETTLED", "Precision", "generators_of", "precision", "precision_request"]

GENERATOR_NAMES = ("generator", "system", "producer", "source", "candidate")
LEVEL = 0.9
"""Probability of the intervals."""
SETTLED = 0.95
"""The probability of an order from which it is settled."""
FEW_INVALID = 10
WHOLE = 0.9
"""The share of labelled items from which a generator counts as labelled in full."""

Fit = FittedImpression | FittedStratified


@dataclass(frozen=True)
class _Known:
    """Votes, labels and generators of the items, whatever file they came from."""

    data: Data
    votes: Votes
    labels: Int[np.ndarray, " item"]
    generator: Int[np.ndarray, " item"]
    names: list[str]
    matches: Matches | None
    notes: list[str]

    def labelling(self) -> Labelling:
        """Return the items sorted by their votes, with the labels so far."""
        strata = stratify(valid_share(self.votes))
        return Labelling(strata, self.generator, self.labels, len(self.names))


@dataclass(frozen=True, repr=False)
class Precision(Result):
    """What share of each generator's items is valid, or how often a system wins against another."""

    schema: ClassVar[str] = "judgebayes.precision/1"
    data: Data
    request: PrecisionRequest
    counts: PrecisionCounts
    """The votes by generator, judge and label."""
    fit: Fit
    shares: pd.DataFrame
    """A row per generator, or pair of systems, the best first."""
    systems: pd.DataFrame | None
    """A row per system, the best first, where pairs of systems are compared."""
    judges: pd.DataFrame
    """A row per judge: how often it is right on valid and on invalid items."""
    next_items: pd.DataFrame | None
    """The items to label next, if they were asked for."""
    said: list[str]
    """What was read, in sentences."""
    warnings: list[str]

    @property
    def noun(self) -> str:
        """What a row of the main table is: a generator, or a pair of systems."""
        return "generator" if self.systems is None else "pair"

    @property
    def sentences(self) -> list[str]:
        """What was read, and what to beware of."""
        return [*self.said, *self.warnings]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The generators or pairs, the systems, the judges, and the items to label next."""
        named = {
            f"{self.noun}s": self.shares,
            "systems": self.systems,
            "judges": self.judges,
            "next": self.next_items,
        }
        return {name: table for name, table in named.items() if table is not None}


@with_options
def precision(
    request: Annotated[PrecisionRequest, Fixed({"out": None, "next_out": None, "plot": None})],
) -> Precision:
    """Estimate what share of each generator's items is valid, corrected for the judges' bias.

    What `judgebayes precision` does, with its options under the same names; `votes` and `labels` are
    paths or tables, or `votes` is what `read` returned.

    Raises
    ------
    JudgeBayesError
        For bad input, or if the generator of an item cannot be told.
    """
    return precision_request(request)


@in_float64
def precision_request(request: PrecisionRequest) -> Precision:
    """Return what `precision` does, of options in a record."""
    known = _known(request)
    counts = count_votes(known.votes, known.labels, known.generator, len(known.names))
    labelling = known.labelling()
    in_part = _in_part(counts)
    fit: Fit = labelling.fit() if in_part else Impression().fit(counts)
    shares = generator_table(known.names, counts, fit, request.seed)
    noun, systems = "generator", None
    if known.matches is not None:
        draws = np.asarray(fit.draws(key=jax.random.key(request.seed)))
        noun, systems = "pair", system_table(known.matches, draws, LEVEL)
    asked = request.next_labels
    return Precision(
        data=known.data,
        request=request,
        counts=counts,
        fit=fit,
        shares=shares.rename(columns={"generator": noun}),
        systems=systems,
        judges=judge_table([str(j) for j in known.data.read.coding.judges], counts),
        next_items=None
        if asked is None
        else _next_items(known, labelling, noun, asked, request.seed),
        said=known.notes,
        warnings=_warnings(counts, fit, in_part),
    )


def _known(request: PrecisionRequest) -> _Known:
    data = read_before(request)
    if data is None:
        data = _read_files(request)
    else:
        _refuse_others(data.read.coding.classes, paired=request.systems is not None)
    read, opened = data.table, data.opened
    if opened is None:
        raise JudgeBayesError(
            "Of these votes no column of generators or systems was kept; right would be what "
            "judgebayes.read returns."
        )
    if request.systems is None:
        names, generator = generators_of(opened.tables, read, request.generator)
        votes, labels, matches, ties = read.votes, data.labels, None, 0
    else:
        matches = read_matches(opened.tables, read, request.systems)
        votes, labels, ties = binary_votes(read.votes, data.labels, read.coding.classes, matches)
        names, generator = matches.names, matches.of_item
    notes = list(opened.notes)
    top = read.coding.classes.names[-1]
    notes += _words(votes, labels, generator, len(names), top, matches)
    strangers = _strangers(opened, read)
    if strangers:
        notes.append(f"{strangers} label(s) of items without votes are left out.")
    if ties:
        notes.append(f"{ties} vote(s) for a tie count as none: win rates are of decided items.")
    return _Known(data, votes, labels, generator, names, matches, notes)


def _read_files(request: PrecisionRequest) -> Data:
    named = (*split_names(request.generator or ""), *split_names(request.systems or ""))
    opened = open_files(request.votes, request.labels, request.columns, request.reading, named)
    paired = request.systems is not None
    classes = classes_of(opened, request.classes, pairwise=paired)
    _refuse_others(classes, paired=paired)
    return encoded(opened, classes, drop_unknown=True, dense=True, keep=True)


def _refuse_others(classes: Classes, *, paired: bool) -> None:
    """Refuse votes that are not of two classes, where no systems are compared."""
    if len(classes.values) != 2 and not paired:
        raise JudgeBayesError(
            f"The votes are of {len(classes.values)} classes; precision needs two, invalid before "
            "valid: --classes invalid,valid names them. If each item compares two systems, name "
            "their columns: --systems A,B."
        )


def _strangers(opened: Opened, read: Reading) -> int:
    """Return how many labels are of items without votes."""
    gold = opened.labels
    if gold is None:
        return 0
    items = set(pd.Index(read.coding.items).astype(str))
    named = gold.table[gold.label].notna()
    return int((named & ~gold.table[gold.item].astype(str).isin(items)).sum())


def _next_items(
    known: _Known, labelling: Labelling, noun: str, most: int, seed: int
) -> pd.DataFrame:
    """Return a row per item to label next, with what is expected of it."""
    items = labelling.propose(most, seed=seed)
    expected = np.asarray(labelling.fit().validity())
    place = known.generator[items]
    return pd.DataFrame(
        {
            "item": pd.Index(known.data.read.coding.items)[items],
            noun: [known.names[g] for g in place],
            "valid votes": valid_share(known.votes)[items],
            "P(valid)": expected[place, labelling.strata.of_item[items]],
        }
    )


def _in_part(counts: PrecisionCounts) -> bool:
    """Tell whether some generator has labels, but not nearly of all of its items.

    `Impression` takes a generator's labels as those of all its items, give or take chance, and is
    too sure of itself where they are few.
    """
    labelled = np.asarray(counts.valid + counts.invalid)
    share = labelled / np.maximum(labelled + np.asarray(counts.unlabelled), 1)
    return bool(((share > 0) & (share < WHOLE)).any())


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
