"""What to do next, in sentences that follow from a result's own numbers.

What more labels would gain: the method fitted to fewer of them, and a forecast from these fits.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import ndtri

from judgebayes.evaluate.learning_curve import Forecast, forecast_loss
from judgebayes.evaluate.splits import Splits
from judgebayes.measures.significance import Interval
from judgebayes.progress import Progress, followed
from judgebayes.sentence import of_votes, percent, with_interval
from judgebayes.show.page import Table
from judgebayes.show.tables import readable
from judgebayes.votes.classes import listing
from judgebayes.workflow.comparing import Compared, better_method
from judgebayes.workflow.machine import DiagnosisNumbers
from judgebayes.workflow.methods import FEW_LABELS
from judgebayes.workflow.precision_tables import SETTLED
from judgebayes.workflow.results import Written

LEVEL = 0.8
LEAST_LABELS = 40
"""The least number of labels for a forecast: its smallest fits then have eight."""
LEAST_SIZE, MOST_SIZES = 8, 6
"""The least number of labels of a fit to fewer labels, and the largest number of such fits."""
SPLITS = 20
"""The number of splits that a forecast uses."""
WORTH = 0.005
"""A gain in NLL that is worth naming: a class with probability .5 would have .5025."""


class Growth(NamedTuple):
    """Held-out NLL of one method by number of labels, on the same evaluation parts."""

    labels: tuple[int, ...]
    losses: list[Float[np.ndarray, "split item"]]
    """The NLL of each held-out label."""
    nll: list[Interval]
    """Its mean; not finite if the method was certain and wrong."""


def grow(compared: Compared, name: str, progress: Progress | None = None) -> Growth:
    """Fit a compared method on half, a quarter, ... of the labels of every split.

    The sets of labels are nested, and padded so that all use one compiled program. The results with all
    labels are taken from the comparison.
    """
    assert compared.refit is not None
    sizes, parts = [compared.held_in], compared.parts
    while len(sizes) < MOST_SIZES and sizes[0] // 2 >= LEAST_SIZE:
        sizes.insert(0, sizes[0] // 2)
    place = np.arange(parts.calibration.shape[1])
    losses = [
        compared.nll_of(
            compared.refit(
                name, Splits(np.where(place < size, parts.calibration, -1), parts.evaluation)
            )
        )
        for size in followed(sizes[:-1], "numbers of labels to learn from", progress)
    ]
    losses.append(compared.nll(name))
    return Growth(
        tuple(sizes), losses, [compared.interval(name, each, least=0.0) for each in losses]
    )


def more_labels(
    compared: Compared, name: str, growth: Growth, now: int, more: int, *, seed: int = 0
) -> Forecast | None:
    """Extrapolate the NLL of a method from the fits to all labels of a split, a half and a quarter.

    `now` is the number of labels. None if the method was certain and wrong on a held-out item.
    """
    losses = [each[:SPLITS] for each in growth.losses[-3:]]
    if any(np.isinf(each).any() for each in losses):
        return None
    (forecast,) = forecast_loss(
        losses,
        np.asarray(compared.evaluations[name].items)[:SPLITS],
        growth.labels[-3:],
        now,
        [now + more],
        n_items=compared.n_items,
        groups=compared.groups,
        level=LEVEL,
        seed=seed,
    )
    return forecast


def forecast_words(method: str, now: int, forecast: Forecast, *, by_user: bool) -> str:
    """Return what more labels would gain in a sentence, and whether that is worth their price.

    The decrease has no interval in the sentence: on real votes, one from the same curve is wrong too
    often (`calibrate-dont-curate/audit-forecast`). Intervals were tested for the method that `calibrate`
    chooses, which is said of another one (`by_user`).
    """
    total, loss, gain = forecast
    said = (
        f"With {total - now} more labels of random items ({total} in all), the NLL of "
        f"{method} on new items is expected to be {loss.mean:z.3f} ({percent(LEVEL)} interval "
        f"{loss.low:z.3f} to {loss.high:z.3f}), lower by about {gain.mean:z.3f} than with the "
        f"present {now}"
    )
    if by_user:
        said += " (the interval is tested for the method that calibrate chooses, without --method)"
    if gain.high < WORTH:
        return f"{said}: for the probabilities, the present labels are enough."
    if gain.low < WORTH:
        return f"{said}: whether they are worth their price is not clear from these labels."
    return f"{said}: they make the probabilities better."


MATTERS = 0.005
"""Half a percentage point of error."""
SHOWN = 3
"""The most open orders that are named."""
MOST_ITEMS = 20
"""The most items to label next that are shown."""


def next_table(items: pd.DataFrame | None) -> list[Table]:
    """Return the first of the items to label next, if there are any."""
    if items is None:
        return []
    some = f", of which {MOST_ITEMS} are shown" if len(items) > MOST_ITEMS else ""
    return [Table(f"Label next: {len(items)} item(s){some}", *readable(items.head(MOST_ITEMS)))]


def next_file(items: pd.DataFrame, columns: Sequence[str]) -> tuple[str, Written]:
    """Return the file of the items to label next, with an empty column for the labels."""
    words = (
        "a row for each of these items; fill in the label column, and add the rows to the labels"
    )
    return words, items[list(columns)].assign(label="")


def calibration_steps(
    numbers: DiagnosisNumbers,
    leads: Mapping[str, Interval],
    method: str | None,
) -> list[str]:
    """Return what to do after a calibration.

    `numbers` are those of `items`, `labels` and `problems`; `method` is the one that the user named, if
    any. `leads` are the mean losses of simple rules minus that of the method, as in the comparison. A
    rule is recommended only if its whole interval is below zero, and only if the user named the method:
    otherwise its decisions have been taken already.
    """
    steps, labelled, items = _first_steps(numbers), numbers["labels"], numbers["items"]
    best = better_method(leads)
    if method is not None and best is not None:
        steps.append(
            f"Leave out --method, or use --method {best}: its decisions lose "
            f"{with_interval(leads[best].negative())} less than those of {method} on held-out labels."
        )
    if LEAST_LABELS <= labelled < items:
        more = min(labelled, items - labelled)
        steps.append(f"The page (--html FILE) says what {more} more labels would gain.")
    return steps


def diagnosis_steps(numbers: DiagnosisNumbers) -> list[str]:
    """Return what to do after diagnostics; `numbers` are as in `calibration_steps`."""
    return _first_steps(numbers) or [
        "Run judgebayes calibrate on these files: nothing found here prevents it."
    ]


def majority_steps(
    sizes: Int[np.ndarray, " size"], error: Float[np.ndarray, " size"], panels: pd.DataFrame
) -> list[str]:
    """Return how many votes to use, and which panel.

    Parameters
    ----------
    sizes, error
        Numbers of votes that items have, increasing, and the estimated error of the decision.
    panels
        The error of all votes with its interval: of the named panel first, then of its rivals. A rival
        is recommended only if its interval lies below that of the named panel.
    """
    steps = []
    if len(sizes) > 1:
        enough = int(np.flatnonzero(error <= error.min() + MATTERS)[0])
        if enough < len(sizes) - 1:
            steps.append(
                f"Ask for {of_votes(sizes[enough])} an item: more, up to {sizes[-1]}, lower the "
                "estimated error by less than half a point."
            )
        else:
            steps.append(
                f"Ask for {sizes[-1]} votes an item or more: the estimated error still falls, by "
                f"{100 * (error[-2] - error[-1]):.1f} points from {sizes[-2]} to {sizes[-1]}."
            )
    own, rivals = panels.iloc[0], panels.iloc[1:]
    rivals = rivals[rivals["high"] < own["low"]]
    if len(rivals):
        best = rivals.loc[rivals["error"].idxmin()]
        steps.append(
            f"Use {best['panel']} instead: its interval lies below that of {own['panel']}."
        )
    return steps


def precision_steps(shares: pd.DataFrame, *, these: bool) -> list[str]:
    r"""Return which labels would settle the order of generators.

    A generator is better than the next with probability P in the posterior, and

    .. math:: n \left(\frac{\Phi^{-1}(0.95)}{\Phi^{-1}(P)}\right)^2

    labels of the two settle this at 0.95, if the difference stays and its standard deviation shrinks
    with the square root of their n labels. About these items, labels of all settle it.
    """
    if not (shares["labelled"] > 0).any():
        return [
            f"Label {FEW_LABELS} or more random items of each generator: nothing here is corrected."
        ]
    if "order settled" not in shares or len(shares) < 2:
        return []
    rows: list[dict[str, Any]] = shares.to_dict("records")
    open_pairs = [(a, b) for a, b in itertools.pairwise(rows) if a["order settled"] == "no"]
    if not open_pairs:
        return ["Label no more items to order the generators: all neighbours are settled."]
    steps = [_settled_by(a, b, these=these) for a, b in open_pairs[:SHOWN]]
    if len(open_pairs) > SHOWN:
        rest = [f"{a['generator']} and {b['generator']}" for a, b in open_pairs[SHOWN:]]
        steps.append(f"Open too: {listing(rest)}.")
    return steps


def _settled_by(a: Mapping[str, Any], b: Mapping[str, Any], *, these: bool) -> str:
    """Return the number of labels that settle the order of two neighbours."""
    pair = f"{a['generator']} and {b['generator']}"
    labelled, items = (a[name] + b[name] for name in ("labelled", "items"))
    z = float(ndtri(a["P(better than next)"])) if math.isfinite(a["P(better than next)"]) else 0.0
    needed = labelled * (float(ndtri(SETTLED)) / z) ** 2 if z > 0 else math.inf
    if labelled == 0:
        return f"Label items of {pair}: their order rests on the votes alone."
    if these:
        needed = min(needed, items)
    if needed > items:
        return (
            f"Add items of {pair} if their order matters: labels of all {items} would probably not "
            "settle it."
        )
    return (
        f"Label about {math.ceil(needed - labelled)} more items of {pair} to settle their order, if the "
        f"difference stays; --next 50 --between {a['generator']},{b['generator']} chooses them."
    )


def _first_steps(numbers: DiagnosisNumbers) -> list[str]:
    """Return which problems to mend, and how many labels to add, before anything else."""
    steps = []
    problems, labelled, items = (numbers[name] for name in ("problems", "labels", "items"))
    if problems:
        steps.append(f"Mend the {problems} problem(s) that judgebayes diagnose names first.")
    if labelled < FEW_LABELS:
        which = "labelled" if labelled == items else "random"
        steps.append(
            f"{'Add' if labelled == items else 'Label'} {FEW_LABELS - labelled} or more {which} items: "
            f"with fewer than {FEW_LABELS} labels a choice between methods is not clear."
        )
    return steps
