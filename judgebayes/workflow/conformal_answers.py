"""The conformal set of every item of a calibration, and the coverage of such sets on its labels."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Bool

from judgebayes.aggregators import Aggregator
from judgebayes.arrays import ItemInts
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.one_fit import predict
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.votes import MISSING, Coding
from judgebayes.workflow.comparing import Compared
from judgebayes.workflow.comparison_plan import fit_to_labels
from judgebayes.workflow.conformal_sets import (
    AGREEMENT,
    FITTED_SHARE,
    ConformalSets,
    Strata,
    agreement_strata,
    sets_of,
    strata_by,
    strata_table,
    strata_words,
    threshold_of,
)
from judgebayes.workflow.data import Data, values_of
from judgebayes.workflow.methods import Choice, compared_methods, fit_on_of
from judgebayes.workflow.options import CalibrateRequest

SET_DIVISIONS = 20
"""How often the labels are divided to measure the coverage of conformal sets."""


def conformal_sets(
    request: CalibrateRequest,
    choice: Choice,
    method: Aggregator,
    given: Data,
    compared: Compared | None,
) -> ConformalSets:
    """Return the conformal set of each item: a fit to some labels, thresholds from the others."""
    level, by = request.conformal, request.conformal_by
    assert level is not None
    read, labels = given.read, given.labels
    labelled = np.flatnonzero(labels >= 0)
    every = strata_of(given, by)
    strata, few = strata_by(by, every, np.asarray(read.votes.pooled_counts()), labelled, level)
    parts = _divided(given, strata, 1, request.seed)
    fitted_on, held = (p[0][p[0] >= 0] for p in (parts.calibration, parts.evaluation))
    own = np.full_like(labels, MISSING)
    own[fitted_on] = labels[fitted_on]
    fitted = fit_to_labels(choice, method, read, own, request.seed)
    log_probs = np.asarray(predict(fitted, read.votes))
    threshold = threshold_of(
        log_probs, labels, held, level, strata=strata, no_empty=request.no_empty_sets
    )
    sets = sets_of(threshold, log_probs, labels, fitted_on=len(fitted_on), few=few)
    if compared is None:
        return sets
    shown = every if by is None else every | {by: strata}
    table = _measured_sets(request, choice, given, strata, shown)
    words = strata_words(table, by=by, level=level, no_empty=request.no_empty_sets)
    return replace(sets, sentences=[*sets.sentences, *words], strata=table)


def _measured_sets(
    request: CalibrateRequest,
    choice: Choice,
    given: Data,
    strata: Strata,
    shown: Mapping[str, Strata],
) -> pd.DataFrame:
    """Return `strata_table` of the labelled items, from repeated divisions of their labels."""
    assert request.conformal is not None
    read, labels = given.read, given.labels
    splits = min(request.splits or SET_DIVISIONS, SET_DIVISIONS)
    parts = _divided(given, strata, splits, request.seed)
    method = compared_methods([choice], read.coding.classes, read.votes)[choice.name]
    evaluation = evaluate_splits(
        method,
        read.votes,
        labels,
        parts,
        fit_on=fit_on_of([choice.name])[choice.name],
        seed=request.seed,
    )
    return strata_table(
        evaluation,
        request.conformal,
        strata,
        shown,
        no_empty=request.no_empty_sets,
        groups=read.groups,
    )


def _divided(given: Data, strata: Strata, splits: int, seed: int) -> Splits:
    """Return divisions of the labels between the fit and the thresholds."""
    groups = given.read.groups
    return random_splits(
        len(given.labels),
        splits=splits,
        calibration=FITTED_SHARE,
        strata=strata.of_item if groups is None else None,
        groups=groups,
        among=np.flatnonzero(given.labels >= 0),
        seed=seed,
    )


def strata_of(given: Data, by: str | None) -> dict[str, Strata]:
    """Return the strata of the items by a column, if one is named, and by agreement."""
    strata = {}
    if by is not None and by != AGREEMENT:
        if given.opened is None:
            raise JudgeBayesError(
                "--conformal-by names a column, and these votes have no other columns; pass files or "
                "tables instead of the result of judgebayes.read."
            )
        if by == given.read.label:
            raise JudgeBayesError(
                f"--conformal-by is {by!r}, the column of the labels; name a column that is known for "
                "items without a label too."
            )
        code, names = values_of(given.opened.tables, given.read, by)
        if (code < 0).any():
            code, names = np.where(code < 0, len(names), code), [*names, "(none)"]
        strata[by] = Strata(code, names)
    if given.read.coding.judges.size > 1 or given.read.votes.n_samples > 1:
        strata[AGREEMENT] = agreement_strata(np.asarray(given.read.votes.pooled_counts()))
    elif by == AGREEMENT:
        raise JudgeBayesError("--conformal-by agreement needs several votes on an item.")
    return strata


def outside_words(
    inside: Bool[np.ndarray, "item class"], decisions: ItemInts, coding: Coding
) -> list[str]:
    """Return sentences about the items whose decision is not in their set."""
    out = ~inside[np.arange(len(decisions)), decisions]
    if not out.any():
        return []
    first = str(coding.items[int(np.argmax(out))])
    return [
        f"On {int(out.sum())} of {len(out)} items (the first is {first!r}), the decision is not in the "
        "set. A set contains the classes that are probable enough under a fit to fewer labels; the "
        "decision has the least expected loss under the fit to all labels. Use the decision if you "
        "need one answer, and the set if a class outside it must rarely be the label."
    ]
