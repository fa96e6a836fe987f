r"""How many labels an interval of a given width needs: typically, and with assurance.

Preposterior simulation: a curve is drawn from the posterior, labels of all items are drawn from it, n
random items are labelled, the curve is fitted again, and the width of its interval is recorded, for
many n. With N items, the widths follow

.. math:: \log w^2 = \log\bigl(A + B (1/n - 1/N)\bigr) + \sigma e, \qquad A, B \ge 0

where A is what labels of these items cannot remove (0 if the error on these items is asked about).
"""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import nnls
from scipy.stats import norm

from judgebayes.errors import JudgeBayesError
from judgebayes.inference import NormalAtMode
from judgebayes.majority.plurality import Decision
from judgebayes.majority.split_curve import FittedSplitCurve, Measure, SplitCurve, Target
from judgebayes.majority.splits import Splits

__all__ = ["LabelForecast", "label_forecast"]

SIMULATIONS = 48
LEAST = 10
"""Fewest labels of a simulation."""
REFIT = NormalAtMode(draws=1000, weighted=True)


@dataclass(frozen=True)
class LabelForecast:
    """The forecast of the interval's width by number of labels."""

    items: int
    labels: Int[np.ndarray, " simulation"]
    """Numbers of labels that were simulated."""
    width: Float[np.ndarray, " simulation"]
    floor: float
    """A: the squared width with a label on every item."""
    rate: float
    """B."""
    spread: float
    """sigma: the standard deviation of log squared widths around the curve."""

    def needed(self, width: float, assurance: float = 0.5) -> int | None:
        """Return the least number of labels with which the width is met with this probability.

        None if labels of all items would not do. 0.5 gives the typical number.

        Raises
        ------
        JudgeBayesError
            If the width or the probability is not between 0 and 1.
        """
        for name, value in (("width", width), ("assurance", assurance)):
            if not 0 < value < 1:
                raise JudgeBayesError(f"The {name} is {value}; it must be between 0 and 1.")
        goal = width**2 * np.exp(-norm.ppf(assurance) * self.spread)
        left = goal - self.floor
        if left < 0:
            return None
        if self.rate == 0:
            return 1
        return min(int(np.ceil(1 / (left / self.rate + 1 / self.items))), self.items)


def label_forecast(
    fitted: FittedSplitCurve,
    splits: Splits,
    size: int,
    *,
    target: Target = "more",
    measure: Measure = "paper",
    decision: Decision = "random",
    groups: Int[np.ndarray, " item"] | None = None,
    design_effect: float = 1.0,
    level: float = 0.9,
    simulations: int = SIMULATIONS,
    seed: int = 0,
) -> LabelForecast:
    """Forecast the width of the interval of the mean loss at one number of votes.

    Parameters
    ----------
    fitted
        The curve given the labels so far.
    splits
        The votes, and the labels so far.
    size
        The number of votes.
    target, measure, decision, groups, design_effect, level
        As in `FittedSplitCurve.curve`.
    simulations
        The number of simulated data sets.
    seed
        Seed of the simulations.

    Raises
    ------
    JudgeBayesError
        If the fit is a point estimate, which has no posterior to draw from.
    """
    if fitted.n_draws == 1:
        raise JudgeBayesError(
            "A forecast needs a posterior: fit the curve with NormalAtMode or NUTS."
        )
    rng = np.random.default_rng(seed)
    probs = fitted.probs(splits)
    voted = np.flatnonzero(splits.total > 0)
    now = int(splits.labelled.sum())
    least = min(max(now, LEAST), len(voted))
    # Evenly in log n, and in random order, so that n is independent of the draw of the curve.
    spaced = np.geomspace(least, len(voted), simulations + 1)[:-1]
    sizes = np.unique(np.maximum(np.round(spaced).astype(int), 1), return_counts=False)
    sizes = rng.permutation(np.resize(sizes, simulations))
    method = SplitCurve(fitted.method.by_class, REFIT, fitted.method.prior, fitted.method.noise)
    weight = np.full(len(splits.labels), 1 / design_effect)
    draws = rng.choice(fitted.n_draws, simulations, replace=simulations > fitted.n_draws)
    possible = np.array(splits.label_classes)
    widths = []
    for number, (n, draw) in enumerate(zip(sizes, draws, strict=True)):
        up_to = probs[draw].cumsum(1)
        drawn = (rng.random(len(up_to))[:, None] * up_to[:, -1:] > up_to).sum(1)
        complete = np.where(splits.labelled, splits.labels, possible[drawn])
        unlabelled = voted[~splits.labelled[voted]]
        bought = rng.choice(unlabelled, n - min(now, n), replace=False)
        labels = splits.labels.copy()
        labels[bought] = complete[bought]
        simulated = splits.with_labels(labels)
        fit = method.fit(simulated, weight=weight, key=jax.random.key(number))
        curve = fit.curve(
            simulated,
            (size,),
            target=target,
            measure=measure,
            decision=decision,
            groups=groups,
            design_effect=design_effect,
            level=level,
            seed=number,
        )
        widths.append(float(curve.high[0] - curve.low[0]))
    return _fitted(len(voted), sizes, np.array(widths), target)


def _fitted(
    items: int, sizes: Int[np.ndarray, " _"], widths: Float[np.ndarray, " _"], target: Target
) -> LabelForecast:
    """Return the curve through the widths, by least squares of relative squared widths."""
    use = np.isfinite(widths) & (widths > 0)
    labels, squared = sizes[use], widths[use] ** 2
    if not use.any():
        return LabelForecast(items, sizes, widths, 0.0, 0.0, 0.0)
    design = np.column_stack([np.ones(len(labels)), 1 / labels - 1 / items])
    if target == "these":
        design[:, 0] = 0.0
    expected = squared
    for _ in range(5):  # weights from the fit, not from the noisy widths
        coefficients, _ = nnls(design / expected[:, None], squared / expected)
        expected = np.maximum(design @ coefficients, 1e-12)
    ratio = np.log(squared / expected)
    centre = float(np.median(ratio))
    floor, rate = coefficients * np.exp(centre)
    spread = float(np.sqrt(np.mean((ratio - centre) ** 2)))
    return LabelForecast(items, sizes, widths, float(floor), float(rate), spread)
