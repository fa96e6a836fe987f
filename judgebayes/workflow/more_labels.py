"""Forecast what more labels of random items would gain, in numbers and in a sentence."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.learning_curve import Forecast, forecast_loss
from judgebayes.progress import Progress
from judgebayes.sentence import percent
from judgebayes.workflow.comparing import Compared, on_fewer
from judgebayes.workflow.results import ends

LEVEL = 0.8
LEAST_LABELS = 40
"""The least number of labels for a forecast: its smallest fits then have eight."""
MOST_TIMES = 4
"""A forecast reaches to this multiple of the present labels."""
SPLITS = 20
"""The number of splits that are also fitted to fewer labels."""
WORTH = 0.005
"""A gain in NLL that is worth naming: a class with probability .5 would have .5025."""


@dataclass(frozen=True)
class MoreLabels:
    """The expected NLL of the chosen method on new items with more labels."""

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

    @property
    def numbers(self) -> dict[str, Any]:
        """The number of labels, the expected NLL with its interval, and its decrease.

        The decrease has no interval: on real votes, one from the same curve is wrong too often
        (`calibrate-dont-curate/audit-forecast`).
        """
        total, loss, gain = self.forecast
        return {"labels": total, "level": LEVEL, "nll": ends(*loss), "gain": gain.mean}


def check_forecast(more: int | None, labelled: int) -> None:
    """Raise JudgeBayesError if a forecast with this many more labels is not possible."""
    if more is None:
        return
    if labelled < LEAST_LABELS:
        raise JudgeBayesError(
            f"--forecast needs {LEAST_LABELS} labels or more to measure how the results improve with "
            f"their number; there are {labelled}."
        )
    most = (MOST_TIMES - 1) * labelled
    if more > most:
        raise JudgeBayesError(
            f"--forecast is {more}; with {labelled} labels it can be at most {most}, because a "
            f"forecast reaches to {MOST_TIMES} times the present labels."
        )


def more_labels(
    compared: Compared,
    name: str,
    more: int,
    *,
    by_user: bool = False,
    progress: Progress | None = None,
) -> MoreLabels | None:
    """Fit a compared method to a half and a quarter of the labels of some splits, and extrapolate.

    None if the method was certain and wrong on a held-out item, or is certain of every answer.
    """
    assert compared.inputs is not None
    full, now = compared.held_in, int((compared.inputs.labels >= 0).sum())
    sizes = [full // 4, full // 2, full]
    fewer = on_fewer(compared, name, sizes[:-1], progress, splits=SPLITS)
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
