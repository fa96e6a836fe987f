"""Forecast what more labels of random items would gain, in a sentence."""

from dataclasses import dataclass

import numpy as np

from judgebayes.evaluate.learning_curve import Forecast, forecast_loss
from judgebayes.sentence import percent
from judgebayes.workflow.comparing import Compared, on_fewer

LEVEL = 0.8
LEAST_LABELS = 40
"""The least number of labels for a forecast: its smallest fits then have eight."""
SPLITS = 20
"""The number of splits that are also fitted to fewer labels."""
WORTH = 0.005
"""A gain in NLL that is worth naming: a class with probability .5 would have .5025."""


@dataclass(frozen=True)
class MoreLabels:
    """The expected NLL of the chosen method on new items with more labels.

    The decrease has no interval in the sentence: on real votes, one from the same curve is wrong too
    often (`calibrate-dont-curate/audit-forecast`).
    """

    method: str
    now: int
    forecast: Forecast
    by_user: bool = False
    """Whether the user named the method: intervals were tested for the one that `calibrate` chooses."""

    @property
    def sentence(self) -> str:
        """What more labels would gain, and whether that is worth their price."""
        total, loss, gain = self.forecast
        said = (
            f"With {total - self.now} more labels of random items ({total} in all), the NLL of "
            f"{self.method} on new items is expected to be {loss.mean:z.3f} ({percent(LEVEL)} interval "
            f"{loss.low:z.3f} to {loss.high:z.3f}), lower by about {gain.mean:z.3f} than with the "
            f"present {self.now}"
        )
        if self.by_user:
            said += (
                " (the interval is tested for the method that calibrate chooses, without --method)"
            )
        if gain.high < WORTH:
            return f"{said}: for the probabilities, the present labels are enough."
        if gain.low < WORTH:
            return f"{said}: whether they are worth their price is not clear from these labels."
        return f"{said}: they make the probabilities better."


def more_labels(
    compared: Compared,
    name: str,
    more: int,
    *,
    by_user: bool = False,
) -> MoreLabels | None:
    """Fit a compared method to a half and a quarter of the labels of some splits, and extrapolate.

    None if the method was certain and wrong on a held-out item, or is certain of every answer.
    """
    assert compared.inputs is not None
    full, now = compared.held_in, int((compared.inputs.labels >= 0).sum())
    sizes = [full // 4, full // 2, full]
    fewer = on_fewer(compared, name, sizes[:-1], None, splits=SPLITS)
    losses = [*map(compared.nll_of, fewer), compared.nll(name)[:SPLITS]]
    if any(np.isinf(each).any() for each in losses):
        return None
    (forecast,) = forecast_loss(
        losses,
        np.asarray(compared.evaluations[name].items)[:SPLITS],
        sizes,
        now,
        [now + more],
        n_items=compared.n_items,
        groups=compared.groups,
        level=LEVEL,
        seed=compared.inputs.seed,
    )
    return MoreLabels(name, now, forecast, by_user)
