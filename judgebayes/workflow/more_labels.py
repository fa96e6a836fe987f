"""What more labels would gain: the method fitted to fewer of them, and a forecast from these fits."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from judgebayes.evaluate.learning_curve import Forecast, forecast_loss
from judgebayes.evaluate.splits import Splits
from judgebayes.measures.significance import Interval
from judgebayes.progress import Progress, followed
from judgebayes.sentence import percent
from judgebayes.workflow.comparing import Compared

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
