"""The conformal set of every item of a calibration, and the coverage of such sets by stratum.

Strata of the items that have conformal thresholds of their own: by agreement, or by a column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int
from scipy import stats

from judgebayes.arrays import ItemInts
from judgebayes.calibrators.conformal import ROUNDING, SplitConformal, coverage_law
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.one_split import Evaluation, predict
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.inference.fit import Method
from judgebayes.measures.significance import independent_trials
from judgebayes.sentence import percent, with_interval
from judgebayes.show.page import Block, Paragraph, Table
from judgebayes.votes import MISSING
from judgebayes.votes.classes import listing
from judgebayes.workflow.comparing import Compared, fit_to_labels
from judgebayes.workflow.data import Study, values_of
from judgebayes.workflow.machine import ConformalNumbers
from judgebayes.workflow.methods import Choice
from judgebayes.workflow.options import CalibrateRequest
from judgebayes.workflow.results import ends

AGREEMENT = "agreement"
"""The value of --conformal-by that means the agreement of the votes."""
STRATA = 3
"""The number of strata of agreement, if there are enough labels."""
FITTED_SHARE = 2 / 3
"""The share of the labels that the method is fitted to; the others give the thresholds."""
SET_DIVISIONS = 20
"""How often the labels are divided to measure the coverage of conformal sets."""
OTHERS = "the others"
"""The name of the stratum that the values with too few labels share."""


class Strata(NamedTuple):
    """The stratum of each item, and the names of the strata."""

    of_item: ItemInts
    names: list[str]


def enough_for(level: float) -> int:
    """Return the least number of labels whose threshold leaves out any class: n >= (n + 1) level.

    >>> enough_for(0.9), enough_for(0.5)
    (9, 1)
    """
    return max(int(np.ceil(level / (1 - level) - ROUNDING)), 1)


def agreement_strata(counts: Int[np.ndarray, "item class"], strata: int = STRATA) -> Strata:
    """Return parts of the items by the share of their votes that the leading class has, equally large.

    Items with the same share are in one stratum, so that there may be fewer. An item without a vote has
    the share 0.
    """
    total = counts.sum(1)
    share = counts.max(1) / np.maximum(total, 1)
    cuts = np.unique(np.quantile(share, np.arange(1, strata) / strata, method="inverted_cdf"))
    cuts = cuts[cuts < share.max()]
    code = np.searchsorted(cuts, share, side="left")
    edges = _distinct_percents(cuts)
    names = [f"at most {edge}" for edge in edges[:1]]
    names += [f"above {a} to {b}" for a, b in pairwise(edges)]
    return Strata(code, [*names, f"above {edges[-1]}"] if edges else ["all"])


def _distinct_percents(shares: Float[np.ndarray, " share"]) -> list[str]:
    """Return shares in per cent, with as many digits as tell them apart."""
    for digits in range(6):
        texts = [percent(share, digits) for share in shares]
        if len(set(texts)) == len(texts):
            break
    return texts


def with_enough(
    strata: Strata, labelled: Int[np.ndarray, " some"], least: int
) -> tuple[Strata, list[str]]:
    """Return strata in which those with fewer than `least` threshold labels are one, and their names.

    This stratum of the others comes last. It is returned also if it has fewer labels.
    """
    labels = np.bincount(strata.of_item[labelled], minlength=len(strata.names))
    enough = labels - np.round(FITTED_SHARE * labels) >= least
    few, kept = np.flatnonzero(~enough), np.flatnonzero(enough)
    if not len(few):
        return strata, []
    code = np.full(len(strata.names), len(kept))
    code[kept] = np.arange(len(kept))
    names = [strata.names[k] for k in few]
    together = OTHERS if len(few) > 1 else names[0]
    return Strata(code[strata.of_item], [*(strata.names[k] for k in kept), together]), names


def strata_by(
    by: str | None,
    strata: Mapping[str, Strata],
    counts: Int[np.ndarray, "item class"],
    labelled: Int[np.ndarray, " some"],
    level: float,
) -> tuple[Strata, list[str]]:
    """Return the strata with thresholds of their own, and the names of those with too few labels.

    Of agreement there are as many as have enough labels each, at most three. Of a column, those with too
    few are together in the last one.
    """
    if by is None:
        return Strata(np.zeros(len(counts), int), ["all"]), []
    least = enough_for(level) + 1  # one more, so that a threshold can be had without an item
    division = strata[by]
    for parts in range(STRATA, 1, -1) if by == AGREEMENT else ():
        division = agreement_strata(counts, parts)
        if not with_enough(division, labelled, least)[1]:
            break
    return with_enough(division, labelled, least)


LEVEL = 0.95
"""The probability of the intervals of coverage."""
COVERAGE_ITEMS = 10_000
"""A number of new items so large that their sampling error hardly matters to the coverage."""


@dataclass(frozen=True)
class ConformalSets:
    """The conformal set of each item, with sentences and a table about their coverage."""

    inside: Bool[np.ndarray, "item class"]
    strata: pd.DataFrame | None
    """Held-out coverage by stratum, as `strata_table` gives it; None without held-out answers."""
    blocks: list[Block]
    """The sentences, and the coverage by stratum."""


def sets_by_stratum(
    log_probs: Float[np.ndarray, "item class"],
    labels: ItemInts,
    held: Int[np.ndarray, " held"],
    level: float,
    strata: Strata,
    *,
    no_empty: bool,
) -> tuple[Bool[np.ndarray, "item class"], list[int]]:
    """Return each item's set by a threshold for each stratum (Mondrian), from the labels of some items.

    `log_probs` are those of a fit without the labels of the items `held`. A stratum with too few labels
    has the threshold of all of them; if there are several, the places of such strata are returned too.
    """
    own = strata.of_item[held]
    rule = SplitConformal(level, no_empty, len(strata.names)).fit(
        log_probs[held], labels[held], groups=own
    )
    whole = SplitConformal(level, no_empty).fit(log_probs[held], labels[held])
    pooled = ~np.isfinite(np.asarray(rule.threshold))
    threshold = jnp.where(pooled, whole.threshold, rule.threshold)
    rule = replace(rule, threshold=threshold, status=whole.status)
    inside = np.asarray(rule(log_probs, groups=strata.of_item))
    return inside, np.flatnonzero(pooled).tolist() if len(strata.names) > 1 else []


def set_words(
    inside: Bool[np.ndarray, "item class"],
    labels: ItemInts,
    held: Int[np.ndarray, " held"],
    level: float,
    strata: Strata,
    *,
    pooled: Sequence[int],
    fitted_on: int,
    few: Sequence[str] = (),
) -> list[str]:
    """Return sentences about the sets that `sets_by_stratum` returned.

    `fitted_on` is the number of labels of the fit, and `few` the names of strata with too few labels,
    which are together in the last one.
    """
    size, alone = inside.sum(1), len(strata.names) == 1
    text = (
        f"Conformal sets at {percent(level)}{'' if alone else ', a threshold per stratum'}: method "
        f"fitted on {fitted_on} labels, threshold{'' if alone else 's'} from the other {len(held)}. "
        f"{int((size == 1).sum())} items have one class, {int((size > 1).sum())} more than one, "
        f"{int((size == 0).sum())} none."
    )
    ranges = []
    for k, name in enumerate(strata.names):
        if k in pooled:
            continue
        own = held[strata.of_item[held] == k]
        law = coverage_law(
            len(own), level, COVERAGE_ITEMS, covered=int(inside[own, labels[own]].sum())
        )
        between = f"between {percent(law.low)} and {percent(law.high)}"
        ranges.append(between if alone else f"{name} ({len(own)} labels) {between}")
    if alone:
        text += f" With {len(held)} labels for the threshold, the coverage is {ranges[0]} (95 %)."
    elif ranges:
        text += f" By the number of labels, the coverage is: {'; '.join(ranges)} (95 %)."
    sentences = [text]
    if len(held) < enough_for(level):
        sentences.append(
            f"{len(held)} labels are too few for a level of {percent(level)}: every set contains all "
            f"classes. A threshold needs {enough_for(level)}."
        )
    elif few:
        sentences.append(
            f"Too few labels for a threshold at {percent(level)}, which needs {enough_for(level) + 1} "
            f"of the {len(held)}, are in {listing(few)}: they have one threshold together"
            + (f", that of all {len(held)}, so that their coverage may differ." if pooled else ".")
        )
    return sentences


def leave_one_out_sets(
    log_probs: Float[np.ndarray, "item class"], labels: ItemInts, of_item: ItemInts, level: float
) -> Bool[np.ndarray, "item class"]:
    r"""Return the set of each labelled item, by the threshold of the other items of its stratum.

    The others are n - 1, and the threshold is the k-th least of their nonconformities,
    :math:`k = \lceil n (1 - \alpha) \rceil`, as in `judgebayes.SplitConformal`. Where these are too few,
    the others are all other items.
    """
    score = -np.expm1(log_probs)
    own = score[np.arange(len(labels)), labels]

    def limits(here: Int[np.ndarray, " some"]) -> Float[np.ndarray, " some"]:
        n, k = len(here), int(np.ceil(len(here) * level - ROUNDING))
        if k > n - 1:
            return np.full(n, np.inf)
        kth, following = np.sort(own[here])[[k - 1, k]]
        return np.where(own[here] <= kth, following, kth)

    limit = limits(np.arange(len(labels)))
    for stratum in np.unique(of_item):
        here = np.flatnonzero(of_item == stratum)
        alone = limits(here)
        limit[here] = np.where(np.isfinite(alone), alone, limit[here])
    return score <= limit[:, None] + ROUNDING


def strata_table(
    evaluation: Evaluation,
    level: float,
    own: Strata,
    strata: Mapping[str, Strata],
    *,
    no_empty: bool,
    groups: ItemInts | None = None,
) -> pd.DataFrame:
    r"""Return the coverage, size and share of empty sets on labelled items, by stratum.

    In every split the method was fitted to some labels, and the set of each of the others follows from
    the threshold of the rest of them. Values are means over an item's splits, then over items. The
    interval is that of Clopper and Pearson for :math:`n` independent items,

    .. math:: 1 / n = 1 / n_\mathrm{items} + \sum_s w_s^2 / (m_s + 2),

    because the coverage c by a threshold of m labels has the variance :math:`c (1 - c) / (m + 2)`;
    :math:`w_s` is the share of the items with the threshold s.

    Parameters
    ----------
    evaluation
        The answers of many splits, on the items that are not in the fit.
    level
        The level of the sets.
    own
        The strata with thresholds of their own; one stratum for one threshold.
    strata
        The strata of the rows, by the names of what divides them.
    no_empty
        Whether empty sets are filled.
    groups
        Groups of related items, which intervals take into account.

    Returns
    -------
    A row for all, and one for each stratum with a label: `by`, `stratum`, `labels`, `coverage` with its
    interval (`coverage_low`, `coverage_high`), `size` (classes in a set), `empty` (share of items where
    no class is probable enough), and `coverage_otherwise` and `size_otherwise`: with empty sets if the
    given ones are filled, or the reverse.
    """
    of_split = []
    for split, items in enumerate(np.asarray(evaluation.items)):
        used = (items >= 0) & (evaluation.labels[split] >= 0)
        labels, log_probs = (
            np.asarray(each[split])[used] for each in (evaluation.labels, evaluation.log_probs)
        )
        stratum, place = own.of_item[items[used]], np.arange(len(labels))
        bare = leave_one_out_sets(log_probs, labels, stratum, level)
        most = log_probs >= log_probs.max(1, keepdims=True) - ROUNDING
        filled = np.where(bare.any(1, keepdims=True), bare, most)
        given, other = (filled, bare) if no_empty else (bare, filled)
        alone = np.bincount(stratum)[stratum] - 1
        columns = {
            "item": items[used],
            "coverage": given[place, labels],
            "size": given.sum(1),
            "empty": ~bare.any(1),
            "coverage_otherwise": other[place, labels],
            "size_otherwise": other.sum(1),
            "others": np.where(alone >= enough_for(level), alone, len(labels) - 1),
        }
        of_split.append(pd.DataFrame(columns))
    of_item = pd.concat(of_split).groupby("item").mean()
    divisions = {"all": Strata(np.zeros(len(own.of_item), int), ["all"])} | dict(strata)
    records = []
    for by, division in divisions.items():
        for k, rows in of_item.groupby(division.of_item[of_item.index]):
            n = float(len(rows))
            if groups is not None:
                covered = rows[["coverage"]].to_numpy()
                every = np.ones(covered.shape, bool)
                n = independent_trials(covered, every, groups[rows.index], level=LEVEL)[0]
            others = rows["others"].groupby(own.of_item[rows.index])
            n = 1 / (1 / n + ((others.size() / len(rows)) ** 2 / (others.mean() + 2)).sum())
            mean = rows.mean().drop("others").to_dict()
            hits, tail = mean["coverage"] * n, (1 - LEVEL) / 2
            record = {"by": by, "stratum": division.names[k], "labels": len(rows)}
            record["coverage"] = mean.pop("coverage")
            record["coverage_low"] = np.nan_to_num(stats.beta.ppf(tail, hits, n - hits + 1))
            high = stats.beta.ppf(1 - tail, hits + 1, n - hits)
            records.append(record | {"coverage_high": np.nan_to_num(high, nan=1.0)} | mean)
    return pd.DataFrame(records)


def set_numbers(table: pd.DataFrame) -> ConformalNumbers:
    """Return coverage, size and share of empty sets of all items, and the least coverage of a row."""
    own, least = table.iloc[0], table.loc[table["coverage"].idxmin()]
    return {
        "coverage": ends(own["coverage"], own["coverage_low"], own["coverage_high"]),
        "size": float(own["size"]),
        "empty": float(own["empty"]),
        "least_coverage": ends(least["coverage"], least["coverage_low"], least["coverage_high"]),
    }


def strata_block(table: pd.DataFrame, *, no_empty: bool) -> Table:
    """Return the table of the strata as text."""
    head = ("items", "labels", "coverage [95 %]", "classes", "filled" if no_empty else "empty")
    rows = [
        (
            "all" if row["by"] == "all" else f"{row['by']}: {row['stratum']}",
            f"{row['labels']:.0f}",
            with_interval(row[["coverage", "coverage_low", "coverage_high"]], ".0f", unit=""),
            f"{row['size']:.2f}",
            percent(row["empty"]),
        )
        for _, row in table.iterrows()
    ]
    return Table("Conformal sets on labelled items, coverage in %", head, rows)


def strata_words(table: pd.DataFrame, *, by: str | None, level: float, no_empty: bool) -> list[str]:
    """Return sentences on the table: its items, strata below the level, the price of filled sets."""
    own = table.iloc[0]
    words = [
        f"Measured on {own['labels']:.0f} labels, in other divisions of them between the fit and the "
        f"threshold: a coverage of {percent(own['coverage'])}, {own['size']:.2f} classes on average."
    ]
    missed = table[(table["by"] != "all") & (table["coverage_high"] < level)]
    if len(missed):
        worst = missed.loc[missed["coverage"].idxmin()]
        words.append(
            f"It is clearly below {percent(level)} in {len(missed)} of the strata, least in "
            f"{worst['by']} {worst['stratum']}: {percent(worst['coverage'])}."
        )
        if worst["by"] != by:
            words.append(f"--conformal-by {worst['by']} gives each stratum a threshold of its own.")
    if own["empty"] > 0:
        now, then = ("filled", "empty") if no_empty else ("empty", "filled")
        words.append(
            f"On {percent(own['empty'], 1)} of these items no class is probable enough: the set is "
            f"{now}. If it were {then} (--set empty_sets={str(no_empty).lower()}), there would be "
            f"{own['size_otherwise']:.2f} classes on average, and a coverage of "
            f"{percent(own['coverage_otherwise'])}."
        )
    return words


def conformal_sets(
    request: CalibrateRequest,
    choice: Choice,
    method: Method,
    given: Study,
    compared: Compared | None,
    decisions: ItemInts,
) -> ConformalSets:
    """Return the conformal set of each item: a fit to some labels, thresholds from the others.

    `decisions` are those of the fit to all labels, of which some may not be in their set.
    """
    level, by = request.conformal, request.conformal_by
    assert level is not None
    labels = given.labels
    labelled = np.flatnonzero(labels >= 0)
    every = strata_of(given, by)
    strata, few = strata_by(by, every, np.asarray(given.votes.pooled_counts()), labelled, level)
    parts = _divided(given, strata, 1, request.seed)
    fitted_on, held = (p[0][p[0] >= 0] for p in (parts.calibration, parts.evaluation))
    own = np.full_like(labels, MISSING)
    own[fitted_on] = labels[fitted_on]
    fitted = fit_to_labels(choice, method, given, own, request.seed)
    log_probs = np.asarray(predict(fitted, given.votes))
    no_empty = not request.empty_sets
    inside, pooled = sets_by_stratum(log_probs, labels, held, level, strata, no_empty=no_empty)
    n = len(fitted_on)
    words = set_words(inside, labels, held, level, strata, pooled=pooled, fitted_on=n, few=few)
    table, blocks = None, list[Block]()
    if compared is not None and compared.refit is not None:
        divisions = min(request.splits or SET_DIVISIONS, SET_DIVISIONS)
        divided = _divided(given, strata, divisions, request.seed)
        evaluation = compared.refit(choice.name, divided)
        shown = every if by is None else every | {by: strata}
        table = strata_table(
            evaluation, level, strata, shown, no_empty=no_empty, groups=given.groups
        )
        words += strata_words(table, by=by, level=level, no_empty=no_empty)
        blocks.append(strata_block(table, no_empty=no_empty))
    out = ~inside[np.arange(len(decisions)), decisions]
    if out.any():
        first = str(given.coding.items[int(np.argmax(out))])
        words.append(
            f"On {int(out.sum())} of {len(out)} items (the first is {first!r}), the decision is not in "
            "the set. A set contains the classes that are probable enough under a fit to fewer labels; "
            "the decision has the least expected loss under the fit to all labels. Use the decision if "
            "you need one answer, and the set if a class outside it must rarely be the label."
        )
    return ConformalSets(inside, table, [*map(Paragraph, words), *blocks])


def _divided(given: Study, strata: Strata, splits: int, seed: int) -> Splits:
    """Return divisions of the labels between the fit and the thresholds."""
    groups = given.groups
    return random_splits(
        len(given.labels),
        splits=splits,
        calibration=FITTED_SHARE,
        strata=strata.of_item if groups is None else None,
        groups=groups,
        among=np.flatnonzero(given.labels >= 0),
        seed=seed,
    )


def strata_of(given: Study, by: str | None) -> dict[str, Strata]:
    """Return the strata of the items by a column, if one is named, and by agreement."""
    strata = {}
    if by is not None and by != AGREEMENT:
        if by == given.opened.label:
            raise JudgeBayesError(
                f"--conformal-by is {by!r}, the column of the labels; name a column that is known for "
                "items without a label too."
            )
        code, names = values_of(given, by)
        if (code < 0).any():
            code, names = np.where(code < 0, len(names), code), [*names, "(none)"]
        strata[by] = Strata(code, names)
    if given.coding.judges.size > 1 or given.votes.n_samples > 1:
        strata[AGREEMENT] = agreement_strata(np.asarray(given.votes.pooled_counts()))
    elif by == AGREEMENT:
        raise JudgeBayesError("--conformal-by agreement needs several votes on an item.")
    return strata
