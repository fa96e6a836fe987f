"""The share of each generator's items that is valid, and win rates of pairs of systems."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar

import jax
import numpy as np
import pandas as pd
from jaxtyping import Int
from scipy.stats import norm

from judgebayes.aggregators.annotators import NODE_WEIGHTS
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.generators import (
    FittedImpression,
    FittedShares,
    FittedStratified,
    Impression,
    Labelling,
    PrecisionCounts,
    count_votes,
    expected_counts,
    expected_validity,
    logit_shift,
    mean_prediction,
    rogan_gladen,
    shares,
    stratify,
    valid_share,
)
from judgebayes.inference.status import Status
from judgebayes.io.options import split_names
from judgebayes.sentence import percent
from judgebayes.votes import Classes, Votes
from judgebayes.votes.evidence import Evidence
from judgebayes.workflow.data import Data, data_in_request, encoded
from judgebayes.workflow.options import Fixed, PrecisionRequest, check_choice
from judgebayes.workflow.reading import Opened, Reading, classes_of, open_files
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import Result
from judgebayes.workflow.systems import Matches, binary_votes, read_matches, system_table

__all__ = ["LEVEL", "SETTLED", "Precision", "generators_of", "precision", "precision_request"]

GENERATOR_NAMES = ("generator", "system", "producer", "source", "candidate")
LEVEL = 0.9
"""Probability of the intervals."""
SETTLED = 0.95
"""An order of two generators is settled from this probability."""
FEW_INVALID = 10
WHOLE = 0.9
"""A generator counts as fully labelled from this share of labelled items."""

CHECKED = 30
"""A generator with this many labels is predicted from the others, as a check."""
ODD = 0.5
"""A judge's votes on a generator are called unlike the others' from this probability."""
MOST_GENERATORS = 30
"""With more generators, `auto` is a method whose time grows less."""
METHODS = ("auto", "panel", "impression", "strata")

Fit = FittedShares | FittedImpression | FittedStratified


@dataclass(frozen=True)
class _Inputs:
    """Votes, labels and generators of the items."""

    data: Data
    votes: Votes
    labels: Int[np.ndarray, " item"]
    generator: Int[np.ndarray, " item"]
    names: list[str]
    matches: Matches | None
    notes: list[str]
    evidence: Evidence | None = None
    """What the annotators' labels say, if labels may be wrong."""

    def counts(self) -> PrecisionCounts:
        """Return the votes by generator, judge and label, expected if labels may be wrong."""
        if self.evidence is None:
            return count_votes(self.votes, self.labels, self.generator, len(self.names))
        valid = expected_validity(self.votes, self.labels, self.evidence, self.generator)
        return expected_counts(self.votes, valid, self.generator, len(self.names))

    def labelling(self) -> Labelling:
        """Return the items in strata of their votes, with their labels."""
        strata = stratify(valid_share(self.votes))
        return Labelling(strata, self.generator, self.labels, len(self.names))


@dataclass(frozen=True, repr=False)
class Precision(Result):
    """The share of valid items by generator, or win rates by pair of systems."""

    schema: ClassVar[str] = "judgebayes.precision/1"
    data: Data
    request: PrecisionRequest
    counts: PrecisionCounts
    """The votes by generator, judge and label."""
    fit: Fit
    shares: pd.DataFrame
    """A row per generator or pair of systems, the best first."""
    systems: pd.DataFrame | None
    """A row per system, the best first, if pairs of systems are compared; else None."""
    judges: pd.DataFrame
    """A row per judge: its accuracy on valid and on invalid items."""
    held_out: pd.DataFrame | None
    """A row per generator with enough labels: its share, predicted from the others' labels."""
    next_items: pd.DataFrame | None
    """The items to label next, if requested; else None."""
    said: list[str]
    """What was read, in sentences."""
    warnings: list[str]

    @property
    def noun(self) -> str:
        """The unit of the main table: generator, or pair (of systems)."""
        return "generator" if self.systems is None else "pair"

    @property
    def sentences(self) -> list[str]:
        """What was read, and warnings."""
        return [*self.said, *self.warnings]

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The generators or pairs, the systems, the judges, the check, and the items to label next."""
        named = {
            f"{self.noun}s": self.shares,
            "systems": self.systems,
            "judges": self.judges,
            "held out": self.held_out,
            "next": self.next_items,
        }
        return {name: table for name, table in named.items() if table is not None}


@with_options
def precision(
    request: Annotated[PrecisionRequest, Fixed({"out": None, "next_out": None, "plot": None})],
) -> Precision:
    """Estimate what share of each generator's items is valid, corrected for the judges' bias.

    The function behind `judgebayes precision`, with the same options; `votes` and `labels` are
    paths or tables, or `votes` is what `read` returned.

    Raises
    ------
    JudgeBayesError
        For bad input, or if the generator of an item is unknown.
    """
    return precision_request(request)


@in_float64
def precision_request(request: PrecisionRequest) -> Precision:
    """Do what `precision` does, with the options in a record."""
    inputs = _inputs(request)
    counts = inputs.counts()
    labelling = inputs.labelling()
    fit = _fit(request.method, inputs, counts, labelling)
    shares = generator_table(inputs.names, counts, fit, request.seed)
    noun, systems = "generator", None
    if inputs.matches is not None:
        draws = np.asarray(fit.draws(key=jax.random.key(request.seed)))
        noun, systems = "pair", system_table(inputs.matches, draws, LEVEL)
    n_next = request.next_labels
    return Precision(
        data=inputs.data,
        request=request,
        counts=counts,
        fit=fit,
        shares=shares.rename(columns={"generator": noun}),
        systems=systems,
        judges=judge_table([str(j) for j in inputs.data.read.coding.judges], counts),
        held_out=held_out_table(inputs.names, counts, fit).rename(columns={"generator": noun})
        if isinstance(fit, FittedShares) and _checked(counts).sum() > 1
        else None,
        next_items=None
        if n_next is None
        else _next_items(inputs, labelling, noun, n_next, request.seed),
        said=inputs.notes,
        warnings=_warnings(inputs, counts, fit),
    )


def _fit(method: str, inputs: _Inputs, counts: PrecisionCounts, labelling: Labelling) -> Fit:
    check_choice("--method", method, METHODS)
    if method == "auto":
        method = _chosen(counts)
    if method == "strata":
        return labelling.fit()
    if method == "impression":
        if _in_part(counts):
            raise JudgeBayesError(
                "Some generators are labelled in part: --method impression needs all labels of a "
                "generator or none. Use --method panel."
            )
        return Impression().fit(counts)
    return shares(
        inputs.votes,
        inputs.labels,
        inputs.generator,
        len(inputs.names),
        evidence=inputs.evidence,
    )


def _chosen(counts: PrecisionCounts) -> str:
    """Return the method of `auto`: `panel` takes minutes with many generators, as with pairs."""
    if bool(counts.labelled.any()) and len(counts.valid) <= MOST_GENERATORS:
        return "panel"
    return "strata" if _in_part(counts) else "impression"


def _inputs(request: PrecisionRequest) -> _Inputs:
    data = data_in_request(request)
    if data is None:
        data = _read_files(request)
    else:
        _refuse_others(data.read.coding.classes, paired=request.systems is not None)
    read, opened = data.table, data.opened
    if opened is None:
        raise JudgeBayesError(
            "These votes have no columns of generators or systems; pass the result of "
            "judgebayes.read."
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
    unmatched = _unmatched_labels(opened, read)
    if unmatched:
        notes.append(f"{unmatched} label(s) of items without votes are left out.")
    if ties:
        notes.append(
            f"{ties} vote(s) for a tie count as missing: win rates are shares of decided votes."
        )
    return _Inputs(
        data, votes, labels, generator, names, matches, notes, _evidence(data, labels, matches)
    )


def _evidence(
    data: Data, labels: Int[np.ndarray, " item"], matches: Matches | None
) -> Evidence | None:
    """Return the evidence of labels that may be wrong; 0 for items without a label or with a tie."""
    if data.log_likelihood is None:
        return None
    flipped = np.zeros(len(labels), int) if matches is None else matches.flipped
    low, high = data.log_likelihood[..., 0], data.log_likelihood[..., -1]
    low, high = np.where(labels >= 0, low, 0.0), np.where(labels >= 0, high, 0.0)
    return Evidence(np.where(flipped == 1, low - high, high - low), NODE_WEIGHTS)


def _read_files(request: PrecisionRequest) -> Data:
    named = (*split_names(request.generator or ""), *split_names(request.systems or ""))
    opened = open_files(
        request.votes,
        request.labels,
        request.columns,
        request.reading,
        named,
        request.annotators,
    )
    paired = request.systems is not None
    classes = classes_of(opened, request.classes, pairwise=paired)
    _refuse_others(classes, paired=paired)
    return encoded(opened, classes, drop_unknown=True, dense=True, keep=True)


def _refuse_others(classes: Classes, *, paired: bool) -> None:
    """Refuse votes that are not of two classes, unless systems are compared."""
    if len(classes.values) != 2 and not paired:
        raise JudgeBayesError(
            f"The votes have {len(classes.values)} classes; precision needs two. Name them with "
            "--classes invalid,valid. If each item compares two systems, name their columns with "
            "--systems A,B."
        )


def _unmatched_labels(opened: Opened, read: Reading) -> int:
    """Return how many labels are of items without votes."""
    gold = opened.labels
    if gold is None:
        return 0
    items = set(pd.Index(read.coding.items).astype(str))
    named = gold.table[gold.label].notna()
    return int((named & ~gold.table[gold.item].astype(str).isin(items)).sum())


def _next_items(
    inputs: _Inputs, labelling: Labelling, noun: str, most: int, seed: int
) -> pd.DataFrame:
    """Return a row per item to label next, with its probability of being valid."""
    items = labelling.propose(most, seed=seed)
    expected = np.asarray(labelling.fit().validity())
    generator = inputs.generator[items]
    return pd.DataFrame(
        {
            "item": pd.Index(inputs.data.read.coding.items)[items],
            noun: [inputs.names[g] for g in generator],
            "valid votes": valid_share(inputs.votes)[items],
            "P(valid)": expected[generator, labelling.strata.of_item[items]],
        }
    )


def _in_part(counts: PrecisionCounts) -> bool:
    """Return whether some generator has labels for only a part of its items.

    `Impression` treats a generator's labels as those of all its items, and its intervals are too
    narrow if only a part is labelled.
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
        Tables that may contain the column of the generator, each with its column of the item.
    read
        The votes.
    named
        The column of the generator, if the user named it.

    Raises
    ------
    JudgeBayesError
        If there is no such column, or an item has no generator or several.
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
                "item must have one generator."
            )
        generator = pairs.set_index(item)[column].reindex(pd.Index(read.coding.items).astype(str))
        if generator.isna().any():
            raise JudgeBayesError(
                f"Item {generator.index[generator.isna()][0]!r} has no value of {column!r}: every item "
                "needs a generator. If only the labels have this column, add it to the votes."
            )
        code, names = pd.factorize(generator.to_numpy())
        return [str(n) for n in names], code
    raise JudgeBayesError(
        f"Which column is the generator? No column has a usual name ({', '.join(GENERATOR_NAMES)}); "
        "use --generator NAME."
        if named is None
        else f"There is no column {named!r} for the generator, in the votes or in the labels."
    )


def generator_table(
    names: list[str], counts: PrecisionCounts, fit: Fit, seed: int = 0
) -> pd.DataFrame:
    """Return a row per generator, the best first, and whether it is better than the next.

    The order of two generators is settled if one is better in at least 95 % of the joint draws, in
    which the uncertainty about the judges, which they share, cancels. Equal draws count half.
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
            "items": np.rint(counts.valid + counts.invalid + counts.unlabelled).astype(int),
            "labelled": np.rint(counts.valid + counts.invalid).astype(int),
        }
    )
    order = np.argsort(-table["estimate"].to_numpy(), kind="stable")
    table = table.iloc[order].reset_index(drop=True)
    above = [
        float((draws[:, a] > draws[:, b]).mean() + (draws[:, a] == draws[:, b]).mean() / 2)
        for a, b in pairwise(order)
    ]
    table["P(better than next)"] = [*above, np.nan]
    # Without labels, the order depends on the votes and the prior only.
    some = bool(counts.labelled.any())
    table["order settled"] = [*("yes" if some and p >= SETTLED else "no" for p in above), ""]
    return table


def _checked(counts: PrecisionCounts) -> np.ndarray:
    """Return which generators have enough labels for a check."""
    return np.asarray(counts.valid + counts.invalid) >= CHECKED


def held_out_table(names: list[str], counts: PrecisionCounts, fit: FittedShares) -> pd.DataFrame:
    """Return each labelled generator's share of valid labels, predicted from the other generators.

    Beside the estimate and its interval are the raw mean of the votes, the logit shift and Rogan and
    Gladen's correction, each from the same labels.
    """
    low, estimate, high = (
        [float(np.interp(level, fit.levels, row)) for row in fit.held_out]
        for level in ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2)
    )
    records = []
    for place in np.flatnonzero(_checked(counts)):
        others = counts.reveal(np.arange(len(names)) != place)
        records.append(
            {
                "generator": names[place],
                "labels say": float(counts.labelled_precision[place]),
                "predicted": estimate[place],
                "low": low[place],
                "high": high[place],
                "raw mean": float(mean_prediction(others)[place]),
                "logit shift": float(logit_shift(others)[place]),
                "Rogan-Gladen": float(rogan_gladen(others)[place]),
            }
        )
    return pd.DataFrame(records)


def judge_table(names: list[str], counts: PrecisionCounts) -> pd.DataFrame:
    """Return each judge's rates over all labelled items, and the share of items it voted on."""
    rates = counts.rates()
    voted = counts.judged + counts.valid_judged + counts.invalid_judged
    total = (counts.valid + counts.invalid + counts.unlabelled).sum()
    return pd.DataFrame(
        {
            "judge": names,
            "TPR": np.asarray(rates.tpr),
            "TNR": np.asarray(rates.tnr),
            "on valid": np.rint(counts.valid_judged.sum(0)).astype(int),
            "on invalid": np.rint(counts.invalid_judged.sum(0)).astype(int),
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
        f"judge(s); a vote for {top!r} means {meaning}.",
        f"{int((labels >= 0).sum())} items of {labelled} {what.removeprefix('a ')}(s) are "
        f"labelled, {int((labels == 0).sum())} of them "
        f"{'invalid' if matches is None else 'lost by the first of the pair'}.",
    ]


def _warnings(inputs: _Inputs, counts: PrecisionCounts, fit: Fit) -> list[str]:
    lines = []
    if int(fit.status) != Status.CONVERGED:
        lines.append(Status(int(fit.status)).sentence)
    labelled = int(counts.labelled.sum())
    if labelled == 0:
        lines.append(
            "No item is labelled: the intervals only reflect the priors. Label the items of at "
            "least one generator; --next 50 proposes the first items to label."
        )
    elif labelled == 1:
        lines.append(
            "Only one generator has labels. The variation of the judges' errors between "
            "generators is therefore taken from the prior."
        )
    unlabelled = int((~counts.labelled).sum())
    if isinstance(fit, FittedStratified) and unlabelled:
        lines.append(
            f"{unlabelled} generator(s) have no label: their intervals assume that votes relate "
            "to validity as they do on the other generators. If they do not, the intervals are "
            "too narrow. Label a few items of each."
        )
    if labelled and float(counts.invalid.sum()) < FEW_INVALID:
        lines.append(
            f"Only {round(float(counts.invalid.sum()))} labelled items are invalid, too few to estimate "
            "how often the judges notice invalid items."
        )
    if inputs.evidence is not None and not isinstance(fit, FittedShares):
        lines.append(
            "This method takes the merged labels as right: its intervals do not count wrong labels. "
            "--method panel counts them."
        )
    if isinstance(fit, FittedShares):
        lines += _odd_judges(inputs, counts, fit)
    for place in np.flatnonzero(_reversed(counts)):
        name = inputs.data.read.coding.judges[place]
        lines.append(
            f"Judge {str(name)!r} calls invalid items valid more often than valid ones: check "
            "whether its votes are reversed."
        )
    return lines


def _odd_judges(inputs: _Inputs, counts: PrecisionCounts, fit: FittedShares) -> list[str]:
    """Return a sentence for each judge whose votes have lost their weight."""
    voted = np.asarray(counts.judged + counts.valid_judged + counts.invalid_judged) > 0
    odd = (np.asarray(fit.panel.odd).max(0) >= ODD) & voted
    share = np.asarray(counts.matrix)
    lines = []
    for place in np.flatnonzero(odd.any(0)):
        own = share[odd[:, place], place]
        calls = percent(own.min())
        if percent(own.max()) != calls:
            calls += f" to {percent(own.max())}"
        name = str(inputs.data.read.coding.judges[place])
        lines.append(
            f"Judge {name!r} votes unlike the others on {int(odd[:, place].sum())} of "
            f"{int(voted[:, place].sum())} generator(s), of whose items it calls {calls} valid: these "
            "votes have hardly any weight."
        )
    return lines


def _reversed(counts: PrecisionCounts) -> np.ndarray:
    """Return which judges have a Youden index below 0 with a probability of at least 95 %.

    The posteriors of both rates are Jeffreys' Beta distributions; their difference is taken as normal.
    """
    mean, variance = 0.0, 0.0
    for accepted, judged, sign in (
        (counts.true_accepted, counts.valid_judged, 1.0),
        (counts.false_accepted, counts.invalid_judged, -1.0),
    ):
        k, n = np.asarray(accepted.sum(0)), np.asarray(judged.sum(0))
        rate = (k + 0.5) / (n + 1)
        mean, variance = mean + sign * rate, variance + rate * (1 - rate) / (n + 2)
    return norm.cdf(-mean / np.sqrt(variance)) >= SETTLED
