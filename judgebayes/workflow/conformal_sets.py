"""Conformal sets of a user's items, and their coverage, size and share of empty sets by stratum."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from judgebayes.calibrators.conformal import ROUNDING, SplitConformal, coverage_law
from judgebayes.evaluate.one_split import Evaluation
from judgebayes.inference import Status
from judgebayes.measures.significance import share_interval
from judgebayes.sentence import percent

__all__ = [
    "AGREEMENT",
    "ConformalSets",
    "Strata",
    "agreement_strata",
    "leave_one_out_sets",
    "sets_of",
    "strata_rows",
    "strata_table",
    "strata_words",
]

AGREEMENT = "agreement"
"""The value of --conformal-by that means the agreement of the votes."""
STRATA = 3
DRAWS = 20
"""How often one of the held-out answers of each item is drawn for the table of strata."""
COVERAGE_ITEMS = 10_000
"""A number of new items so large that their sampling error hardly matters to the coverage."""


class Strata(NamedTuple):
    """The stratum of each item, and the names of the strata."""

    of_item: Int[np.ndarray, " item"]
    names: list[str]

    def take(self, items: Int[np.ndarray, " some"]) -> "Strata":
        """Return the strata of some items."""
        return Strata(self.of_item[items], self.names)


@dataclass(frozen=True)
class ConformalSets:
    """The conformal set of each item, with sentences and a table about their coverage."""

    inside: Bool[np.ndarray, "item class"]
    sentences: list[str]
    threshold_labels: int
    strata: pd.DataFrame | None = None
    """Held-out coverage by stratum, as `strata_table` gives it; None without held-out answers."""


def agreement_strata(counts: Int[np.ndarray, "item class"]) -> Strata:
    """Return thirds of the items by the share of their votes that the leading class has.

    Items with the same share are in one stratum, so that there may be fewer than three.
    """
    total = counts.sum(1)
    share = counts.max(1) / np.maximum(total, 1)
    cuts = np.unique(np.quantile(share, np.arange(1, STRATA) / STRATA, method="inverted_cdf"))
    cuts = cuts[cuts < share.max()] if len(share) else cuts
    code = np.searchsorted(cuts, share, side="left")
    edges = [percent(cut) for cut in cuts]
    names = [f"at most {edge}" for edge in edges[:1]]
    names += [f"above {a} to {b}" for a, b in pairwise(edges)]
    return Strata(code, [*names, f"above {edges[-1]}"] if edges else ["all"])


def sets_of(
    log_probs: Float[np.ndarray, "item class"],
    labels: Int[np.ndarray, " item"],
    held: Int[np.ndarray, " held"],
    level: float,
    *,
    no_empty: bool,
    by: Strata | None,
    fitted_on: int,
) -> ConformalSets:
    """Return the set of each item, with thresholds from the held-out labels.

    `log_probs` are those of a fit without these labels. With `by`, each stratum has its own threshold
    (Mondrian); in a stratum with too few labels every set contains all classes.
    """
    strata = Strata(np.zeros(len(labels), int), ["all"]) if by is None else by
    of_item = strata.of_item
    threshold = SplitConformal(level, no_empty, len(strata.names)).fit(
        log_probs[held], labels[held], groups=of_item[held]
    )
    inside = np.asarray(threshold(log_probs, groups=of_item))
    size = inside.sum(1)
    text = (
        f"Conformal sets at {percent(level)}{'' if by is None else ', a threshold per stratum'}: method "
        f"fitted on {fitted_on} labels, threshold from the other {len(held)}. {int((size == 1).sum())} "
        f"items have one class, {int((size > 1).sum())} more than one, {int((size == 0).sum())} none."
    )
    ranges, few = [], []
    for k, name in enumerate(strata.names):
        own = held[of_item[held] == k]
        covered = int(inside[own, labels[own]].sum())
        law = coverage_law(len(own), level, COVERAGE_ITEMS, covered=covered)
        between = f"between {percent(law.low)} and {percent(law.high)}"
        ranges.append(between if by is None else f"{name} ({len(own)} labels) {between}")
        if not np.isfinite(np.asarray(threshold.threshold)[k]):
            few.append(f"{len(own)} labels" if by is None else f"{len(own)} in stratum {name}")
    if by is None:
        sentences = [
            f"{text} With {len(held)} labels for the threshold, the coverage is {ranges[0]} (95 %)."
        ]
    else:
        sentences = [f"{text} The coverage is, by stratum, {'; '.join(ranges)} (95 %)."]
    if few and int(threshold.status) != Status.CONVERGED:
        where = "every set" if by is None else "every set there"
        sentences.append(
            f"{' and '.join(few)} are too few for a level of {percent(level)}: {where} contains all "
            "classes."
        )
    return ConformalSets(inside, sentences, len(held))


def leave_one_out_sets(
    log_probs: Float[np.ndarray, "item class"],
    labels: Int[np.ndarray, " item"],
    of_item: Int[np.ndarray, " item"],
    level: float,
) -> Bool[np.ndarray, "item class"]:
    r"""Return the set of each labelled item, by the threshold of the other items of its stratum.

    The others are n - 1, and the threshold is the k-th least of their nonconformities,
    :math:`k = \lceil n (1 - \alpha) \rceil`, as in `judgebayes.SplitConformal`.
    """
    score = -np.expm1(log_probs)
    own = score[np.arange(len(labels)), labels]
    limit = np.full(len(labels), np.inf)
    for stratum in np.unique(of_item):
        here = np.flatnonzero(of_item == stratum)
        n, k = len(here), int(np.ceil(len(here) * level - ROUNDING))
        if k > n - 1:
            continue
        order = np.argsort(own[here], kind="stable")
        rank = np.argsort(order, kind="stable")
        in_order = own[here][order]
        limit[here] = np.where(rank < k, in_order[min(k, n - 1)], in_order[k - 1])
    return score <= limit[:, None] + ROUNDING


def strata_table(
    evaluation: Evaluation,
    level: float,
    strata: Mapping[str, Strata],
    *,
    by: str | None,
    no_empty: bool,
    seed: int,
    interval: float = 0.9,
) -> pd.DataFrame:
    """Return the coverage of the sets of held-out items: a row for all, and one for each stratum.

    Each labelled item has an answer from a fit without its label, one of its held-out splits, drawn 20
    times; its set follows from the thresholds of the other items. Columns: `by`, `stratum`, `labels`,
    `coverage` with its interval (`coverage_low`, `coverage_high`), `size` (classes in a set), `empty`
    (share of empty sets), and `coverage_filled`, `size_filled` of sets without empty ones.

    Parameters
    ----------
    evaluation
        The held-out answers of the method.
    level
        The level of the sets.
    strata
        The strata of all items, by the names of what divides them.
    by
        The one whose strata have thresholds of their own; None for one threshold.
    no_empty
        Whether an empty set is filled with the most probable class.
    seed, interval
        The seed of the draws, and the probability of the intervals.
    """
    items = np.asarray(evaluation.items).ravel()
    labels = np.asarray(evaluation.labels).ravel()
    answers = np.asarray(evaluation.log_probs)
    answers = answers.reshape(-1, answers.shape[-1])
    used = np.flatnonzero((items >= 0) & (labels >= 0))
    rng = np.random.default_rng(seed)
    total: dict[str, np.ndarray] = {}
    for _ in range(DRAWS):
        drawn = rng.permutation(used)
        item, first = np.unique(items[drawn], return_index=True)
        rows = drawn[first]
        truth, log_probs = labels[rows], answers[rows]
        groups = np.zeros(len(item), int) if by is None else strata[by].of_item[item]
        inside = leave_one_out_sets(log_probs, truth, groups, level)
        filled = np.where(
            inside.any(1, keepdims=True), inside, log_probs == log_probs.max(1, keepdims=True)
        )
        place = np.arange(len(item))
        each = {
            "coverage": (filled if no_empty else inside)[place, truth],
            "size": (filled if no_empty else inside).sum(1),
            "empty": ~(filled if no_empty else inside).any(1),
            "coverage_filled": filled[place, truth],
            "size_filled": filled.sum(1),
        }
        total = {name: total.get(name, 0) + value / DRAWS for name, value in each.items()}
    divisions = {"all": Strata(np.zeros(len(item), int), ["all"])} | {
        name: own.take(item) for name, own in strata.items()
    }
    records = []
    for name, own in divisions.items():
        for k, stratum in enumerate(own.names):
            here = own.of_item == k
            if not here.any():
                continue
            n = int(here.sum())
            means = {column: float(value[here].mean()) for column, value in total.items()}
            low, high = share_interval(
                np.array(means["coverage"] * n), np.array(float(n)), level=interval
            )
            record = {"by": name, "stratum": stratum, "labels": n} | means
            records.append(record | {"coverage_low": float(low), "coverage_high": float(high)})
    columns = ["by", "stratum", "labels", "coverage", "coverage_low", "coverage_high"]
    table = pd.DataFrame(records)
    return table[[*columns, *(name for name in table.columns if name not in columns)]]


def strata_rows(table: pd.DataFrame) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the heading and the rows of the table as text."""
    head = ("sets", "labels", "coverage [90 %]", "classes", "empty")
    rows: list[tuple[str, ...]] = [
        (
            "all" if row["by"] == "all" else f"{row['by']}: {row['stratum']}",
            f"{row['labels']:.0f}",
            f"{100 * row['coverage']:.0f} [{100 * row['coverage_low']:.0f}, "
            f"{100 * row['coverage_high']:.0f}]",
            f"{row['size']:.2f}",
            percent(row["empty"]),
        )
        for _, row in table.iterrows()
    ]
    return head, rows


def strata_words(table: pd.DataFrame, *, no_empty: bool) -> list[str]:
    """Return sentences on the table: what it is of, and the price of sets that are never empty."""
    own = table.iloc[0]
    words = [
        "Coverage of the sets of labelled items, from fits without their labels and thresholds from the "
        "other labels."
    ]
    if no_empty:
        words.append(
            f"No set is empty (--no-empty-sets): where none of the classes is probable enough, the set "
            f"is the most probable class. The sets have {own['size']:.2f} classes on average."
        )
    elif own["empty"] > 0:
        words.append(
            f"{percent(own['empty'], 1)} of the sets are empty. --no-empty-sets fills them with the "
            f"most probable class: {own['size_filled']:.2f} classes on average instead of "
            f"{own['size']:.2f}, and a coverage of {percent(own['coverage_filled'])} instead of "
            f"{percent(own['coverage'])}."
        )
    return words
