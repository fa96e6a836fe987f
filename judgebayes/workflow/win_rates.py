"""Who wins: the win rate of A over B in pairwise votes, or of every pair of systems, with intervals."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from judgebayes.arrays import ItemFloats
from judgebayes.errors import JudgeBayesError
from judgebayes.generators.logit_mixture import Verdicts, verdicts
from judgebayes.generators.win_rate import WinRates, win_rates, win_scores
from judgebayes.io.options import split_names
from judgebayes.sentence import percent, with_interval
from judgebayes.show.page import Block, Paragraph, Table
from judgebayes.show.tables import readable
from judgebayes.workflow.asking import data_of
from judgebayes.workflow.data import Study
from judgebayes.workflow.machine import WinRateNumbers
from judgebayes.workflow.options import TARGETS, WinOptions, WinRateRequest
from judgebayes.workflow.reading import SIDES
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import Answer, Parts, ends
from judgebayes.workflow.systems import Matches, read_matches, system_table

LEVEL = 0.9
ENDS = ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2)
RULES = {
    "half": "a tie is half a win",
    "excluded": "ties are left out",
    "separate": "ties are counted apart",
}
LITTLE = 0.5
"""With a smaller probability that the votes say who wins, a sentence says that they say little."""


@dataclass(frozen=True, repr=False, kw_only=True)
class WinRate(Answer):
    """The win rate of A over B, or of every pair of systems, from votes and labels."""

    schema: ClassVar[str] = "judgebayes.win_rate/1"
    data: Study
    fit: WinRates | None
    """None without labels."""
    pairs: pd.DataFrame
    """A row per pair: its win rate with an interval, its naive rate of votes, and its numbers."""
    systems: pd.DataFrame | None
    """A row per system, the best first, if columns of systems were named."""
    lead: list[str]
    """Who wins, in sentences: the answer, its assumption, and what the votes alone say."""
    lead_blocks: list[Block]
    """Who wins, and, of several pairs, the tables of pairs and systems."""
    rate: WinRateNumbers
    """The win rate of the first pair by name: of, over, estimate, low, high, naive, and the rules."""


def _lead(
    data: Study,
    request: WinOptions,
    fit: WinRates | None,
    pairs: pd.DataFrame,
    systems: pd.DataFrame | None,
) -> list[str]:
    """Return who wins, in sentences."""
    rule, about = RULES[request.ties], TARGETS[request.target]
    if len(pairs) == 1:
        return _one_pair(data, request, fit, pairs.iloc[0])
    start = f"Win rates of {len(pairs)} pairs of systems ({rule})"
    if fit is None:
        return [f"{start}: of the votes alone, uncorrected, because no item is labelled."]
    assert systems is not None
    best = systems.iloc[0]
    return [
        f"{start}, of {about}, with {percent(LEVEL)} intervals. Best: "
        f"{best['system']}, with probability {best['P(best)']:.2f}; its mean win rate is "
        f"{_share(best, 'mean win rate', 'low', 'high')}.",
        _assumption(data, ""),
    ]


def _one_pair(data: Study, request: WinOptions, fit: WinRates | None, row: pd.Series) -> list[str]:
    rule, about = RULES[request.ties], TARGETS[request.target]
    naive = "unknown" if np.isnan(row["naive"]) else percent(row["naive"], 1)
    if fit is None:
        return [
            f"Votes for {row['pair']}: {naive} ({rule}). This naive rate is not "
            "corrected for the judges' errors, because no item is labelled: label some at random."
        ]
    if np.isnan(row["estimate"]):
        return [f"No win rate of {row['pair']}: every item is a tie, and {rule}. Use --ties half."]
    known = row["labelled"] == row["items"] and request.target == "these"
    estimate = percent(row["estimate"], 1) if known else _share(row, "estimate", "low", "high")
    how = "every item is labelled" if known else f"{percent(LEVEL)} interval"
    lines = [
        f"Win rate of {row['pair']}: {estimate} of {about} ({how}; {rule}). Naive rate of the votes, "
        f"uncorrected: {naive}. P({row['pair'].replace(' over ', ' better than ')}) = "
        f"{row['P(better)']:.2f}."
    ]
    if request.ties == "separate":
        shares = (
            f"{word} {_share(row, word, f'{word}_low', f'{word}_high')}" for word in ("tie", "loss")
        )
        lines.append(f"The other items: {', '.join(shares)}.")
    little = "The votes say little about who wins: the interval is that of the labels."
    return (
        lines if known else [*lines, _assumption(data, little if fit.from_votes < LITTLE else "")]
    )


def _assumption(data: Study, little: str) -> str:
    """Return what the interval rests on, and how much the votes add: the second sentence, if given."""
    n = int((data.labels >= 0).sum())
    line = f"The {n} labelled items are taken for a random sample of the items"
    if data.groups is not None:
        line = f"The groups of the {n} labelled items are taken for a random sample of the groups"
    used = f"{line}, and the votes on all {len(data.labels)} items are used."
    return f"{line}. {little}" if little else used


def _share(row: pd.Series, *columns: str) -> str:
    return with_interval(row[[*columns]], ".1f", unit=" %")


@with_options
def win_rate(request: WinRateRequest) -> WinRate:
    """Estimate the win rate of A over B, or of every pair of systems, from votes and labels.

    `calibrate` leads with it. `votes` and `labels` are paths or tables, or `votes` is what
    `read` returned. Without labels, only the naive rate of the votes is given.

    Raises
    ------
    JudgeBayesError
        For bad input, or if the votes do not compare two responses.
    """
    data = data_of(request, named=tuple(split_names(request.systems or "")), detect=True)
    result = win_rate_of(data, request)
    if result is None:
        named = ", ".join(map(str, data.coding.classes.names))
        raise JudgeBayesError(
            f"The votes have the classes {named}, which do not compare two responses, so that there is "
            "no win rate. If the lowest and the highest stand for two responses, --set pairwise=true."
        )
    return result


def check_ties(request: WinOptions, data: Study) -> None:
    """Refuse options of win rates for votes that have none.

    Raises
    ------
    JudgeBayesError
        If a pair is needed and the votes do not compare two responses.
    """
    ties = "--ties" if request.ties != "half" else None
    option = "systems" if request.systems is not None else ties
    if option is not None and not _paired(data, request.systems):
        raise JudgeBayesError(
            f"{option} is for votes that compare two responses; these have the classes "
            f"{', '.join(data.coding.classes.names)}."
        )


def _paired(data: Study, systems: str | None) -> bool:
    classes = data.coding.classes
    return classes.pairwise or (systems is not None and len(classes) <= 3)


def win_rate_of(data: Study, request: WinOptions) -> WinRate | None:
    """Return the win rate in votes that were read; None if they do not compare two responses."""
    ties, target, systems = request.ties, request.target, request.systems
    battles, sides = data.opened.table, {*SIDES.values()} <= {*data.coding.classes.names}
    if systems is None and sides and SIDES.keys() <= {*battles}:
        two = len(np.unique(battles[[*SIDES]].astype(str))) == 2
        systems = ",".join(SIDES) if two else None  # the two systems of a log have names
    if not _paired(data, systems):
        return None
    coding, given = data.coding, verdicts(data.votes)
    outcome = _outcomes(data)
    matches = None
    if systems is not None:
        matches = read_matches(data, systems)
        flipped = matches.flipped == 1
        given, outcome = given.swapped(flipped), np.where(flipped, 1 - outcome, outcome)
    classes = coding.classes.names
    names = [f"{classes[-1]} over {classes[0]}"] if matches is None else matches.names
    of_item = np.zeros(len(outcome), int) if matches is None else matches.of_item
    fit = None
    if np.isfinite(outcome).any():
        fit = win_rates(
            win_scores(given, outcome),
            outcome,
            ties=ties,
            target=target,
            groups=data.groups,
            pairs=((0, 1),) if matches is None else matches.pairs,
            pair=of_item,
            can_tie=len(coding.classes) % 2 == 1,
        )
    pairs = _pair_table(names, of_item, given, outcome, fit, ties)
    ranking = None if matches is None else _ranking(matches, pairs, fit, request.seed)
    lead = _lead(data, request, fit, pairs, ranking)
    blocks: list[Block] = [*map(Paragraph, lead)]
    if len(pairs) > 1:
        shown = pairs[[n for n in pairs if not n.endswith(("_low", "_high"))]]
        blocks.append(Table("Win rates", *readable(shown.rename(columns={"naive": "naive rate"}))))
    if ranking is not None and len(pairs) > 1:
        blocks.append(Table("Systems", *readable(ranking)))
    row = pairs.iloc[0]
    of, over = names[0].split(" over ", 1)
    rate: WinRateNumbers = {
        "of": of,
        "over": over,
        **ends(*(row.get(name, np.nan) for name in ("estimate", "low", "high"))),
        "naive": float(row["naive"]),
        "better": float(row.get("P(better)", np.nan)),
        "labels": int(row["labelled"]),
        "target": target,
        "ties": ties,
        "level": LEVEL,
    }
    parts = Parts(
        blocks=[*blocks, *map(Paragraph, data.said)],
        tables={"win rates": pairs, "systems": ranking},
        numbers={**data.numbers, **({"win_rate": rate} if len(pairs) == 1 else {})},
    )
    return WinRate(
        parts=parts,
        data=data,
        fit=fit,
        pairs=pairs,
        systems=ranking,
        lead=lead,
        lead_blocks=blocks,
        rate=rate,
    )


def _outcomes(data: Study) -> ItemFloats:
    """Return 1 where the label is for A, 0.5 at the middle class, 0 where it is for B, NaN unknown."""
    middle = (len(data.coding.classes) - 1) / 2
    side = np.sign(data.labels - middle)
    return np.where(data.labels >= 0, (side + 1) / 2, np.nan)


def _pair_table(
    names: list[str],
    of_item: np.ndarray,
    given: Verdicts,
    outcome: ItemFloats,
    fit: WinRates | None,
    ties: str,
) -> pd.DataFrame:
    """Return a row per pair; without the columns of estimates if there are no labels."""
    columns: dict[str, Any] = {"pair": names}
    if fit is not None:
        low, middle, high = fit.quantiles(ENDS)
        columns |= {"estimate": middle, "low": low, "high": high}
        columns["P(better)"] = fit.better(ties)
    own = [of_item == place for place in range(len(names))]
    columns["naive"] = [Verdicts(given.mean[use], given.counts[use]).rate(ties) for use in own]
    columns["labelled"] = [int(np.isfinite(outcome[use]).sum()) for use in own]
    columns["items"] = [int(use.sum()) for use in own]
    if fit is not None and ties == "separate":
        for rate, word in ((2, "tie"), (3, "loss")):
            low, middle, high = fit.quantiles(ENDS, rate)
            columns |= {word: middle, f"{word}_low": low, f"{word}_high": high}
    return pd.DataFrame(columns)


def _ranking(
    matches: Matches, pairs: pd.DataFrame, fit: WinRates | None, seed: int
) -> pd.DataFrame | None:
    """Return a row per system, without a fit by its naive rate alone; None if a pair has no rate."""
    draws = pairs["naive"].to_numpy(float)[None] if fit is None else fit.draws(seed=seed)
    if not np.isfinite(draws).all():
        return None
    table = system_table(matches, draws, LEVEL)
    points = {"system": "system", "mean win rate": "naive mean win rate"}
    return table if fit is not None else table[[*points]].rename(columns=points)
