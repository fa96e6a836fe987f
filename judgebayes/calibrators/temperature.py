"""Temperature scaling: one slope for the log-probabilities."""

from dataclasses import dataclass

import jax

from judgebayes.calibrators.base import CLIP, CalibrationData, Map
from judgebayes.calibrators.softmax import FittedSoftmax, fit_softmax, with_constant
from judgebayes.inference.registry import calibrator
from judgebayes.models.calibration_maps import Form


@calibrator("temperature")
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Temperature(Map[FittedSoftmax]):
    r"""Divide the log-probabilities by the temperature with the minimum negative log-likelihood.

    .. math:: q_k \propto p_k^{1 / T}

    Guo et al. (2017). The fitted `slopes` are all 1 / T, at least 0 (T infinite, uniform result).
    For any number of classes; swapping classes mirrors the result, and their order is preserved.

    Parameters
    ----------
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
    >>> print(np.exp(jb.Temperature().fit(log_probs, labels)(log_probs))[:, 1].round(2))
    [0.09 0.15 0.25 0.34 0.58 0.66 0.85 0.91]
    """

    clip: float = CLIP
    label_noise: float = 0.0

    @property
    def form(self) -> Form:
        """The member of the family of maps."""
        return Form(tied=True, intercepts=False, symmetric=True, monotone=True)

    def _fitted(self, data: CalibrationData) -> FittedSoftmax:
        terms = with_constant(None, len(data.labels))
        return fit_softmax(data, terms, self.clip, self.form, label_noise=self.label_noise)
