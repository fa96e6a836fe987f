"""Platt's map: logistic regression on the log-odds, P2's residual bias correction."""

from dataclasses import dataclass, field

import jax
from jaxtyping import Float

from judgebayes.arrays import AnyArray, AnyProbs, Labels, Weights
from judgebayes.calibrators.base import CLIP, calibration_data
from judgebayes.calibrators.softmax import FittedSoftmax, fit_softmax, with_constant
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.registry import calibrator
from judgebayes.models.calibration_maps import Form


@calibrator("platt")
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Platt:
    r"""Fit a logistic regression of the label on the log-odds (P2 eqs 2, 3).

    .. math:: \mathrm{logit}\, q = c + b\, \mathrm{logit}\, p + \gamma^T x

    Platt (1999), without his smoothing of the labels; x are item features, if given. For more than
    two classes, :math:`\log q_k = b \log p_k + c_k + \gamma_k^T x - \log Z` with c and gamma of the
    first class 0 (bias-corrected temperature scaling, Alexandari et al. 2020). The slope is free:
    a negative slope reverses an aggregator that is wrong more often than right.

    If the classes are separated, no finite slope is optimal: the fit stops where the objective is
    flat, and its probabilities are nearly 0 and 1.

    Parameters
    ----------
    symmetric
        Whether swapping the responses must mirror the result: for pairs whose orientation is
        arbitrary. For two classes only the slope remains, and features act on it:
        :math:`\mathrm{logit}\, q = (b + \gamma^T x)\, \mathrm{logit}\, p`.
    clip
        Lower probabilities are raised to this value. By default there is no floor: only 0 is raised.
    label_noise
        The known share of the labels that are wrong, any other class alike.

    Examples
    --------
    >>> import numpy as np
    >>> import judgebayes as jb
    >>> p = np.array([0.05, 0.1, 0.2, 0.3, 0.6, 0.7, 0.9, 0.95])
    >>> labels = np.array([0, 0, 1, 0, 1, 0, 1, 1])
    >>> log_probs = np.log(np.stack([1 - p, p], axis=1))
    >>> print(np.exp(jb.Platt().fit(log_probs, labels)(log_probs))[:, 1].round(2))
    [0.09 0.16 0.27 0.37 0.61 0.7  0.87 0.93]
    """

    symmetric: bool = field(default=False, metadata={"static": True})
    clip: float = CLIP
    label_noise: float = 0.0

    @property
    def form(self) -> Form:
        """The member of the family of maps."""
        return Form(tied=True, intercepts=True, symmetric=self.symmetric, monotone=False)

    @in_float64
    def fit(
        self,
        log_probs: AnyProbs,
        labels: Labels,
        *,
        weight: Weights | None = None,
        features: Float[AnyArray, "item feature"] | None = None,
    ) -> FittedSoftmax:
        """Return the map with the minimum negative log-likelihood on the labelled items.

        Parameters
        ----------
        log_probs
            The aggregator's log-probabilities.
        labels
            Class indices, -1 where unknown.
        weight
            Non-negative item weights; 0 equals a dropped item.
        features
            Numbers that describe the items (topic, agreement of the judges), finite on every item
            and of about unit scale.

        Raises
        ------
        JudgeBayesError
            If lengths differ, a label is not a class index, or a value is NaN.
        """
        data = calibration_data(log_probs, labels, weight)
        terms = with_constant(features, len(data.labels))
        return fit_softmax(data, terms, self.clip, self.form, label_noise=self.label_noise)
