"""Beta calibration with an elastic net towards the identity: P2's distribution calibration."""

from dataclasses import dataclass, field

import jax

from judgebayes.calibrators.base import CLIP, CalibrationData, Map, require
from judgebayes.calibrators.softmax import FittedSoftmax, fit_softmax, with_constant
from judgebayes.inference.registry import calibrator
from judgebayes.models.calibration_maps import Form


@calibrator("beta")
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Beta(Map[FittedSoftmax]):
    r"""Fit the beta map, with separate slopes near 0 and near 1 (Kull et al. 2017; P2 eq 4).

    .. math:: \mathrm{logit}\, q = a \log p - b \log(1 - p) + c

    by minimising the mean negative log-likelihood plus
    :math:`\lambda (\rho \lVert\delta\rVert_1 + \frac{1 - \rho}{2} \lVert\delta\rVert_2^2)` with
    :math:`\delta = (a - 1, b - 1, c)`, the distance from the identity. For two classes 0 and 1,
    a is `slopes[0, 1]`, b is `slopes[0, 0]` and c is `intercepts[0, 1]` of the fit. More classes:
    :math:`\log q_k = a_k \log p_k + c_k - \log Z` (`judgebayes.calibrators.softmax`).

    P2 uses a light elastic net; its strength is not legible in our copy of the text, so the default is
    our choice. Without a penalty it is Kull's map.

    Parameters
    ----------
    penalty
        lambda, on the scale of the mean negative log-likelihood. None means no penalty: the same result
        as 0, but faster.
    l1_share
        rho, from 0 (ridge) to 1 (lasso).
    free_slopes
        Whether a and b may be negative. By default they are at least 0, and the map is monotone.
        (The `betacal` package instead drops a log-probability whose slope is negative.)
    symmetric
        Whether swapping the responses must mirror the result: a = b and c = 0 for two classes.
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
    >>> print(np.exp(jb.Beta().fit(log_probs, labels)(log_probs))[:, 1].round(2))
    [0.11 0.17 0.27 0.35 0.59 0.68 0.88 0.94]
    """

    penalty: float | None = 1e-3
    l1_share: float = 0.5
    free_slopes: bool = field(default=False, metadata={"static": True})
    symmetric: bool = field(default=False, metadata={"static": True})
    clip: float = CLIP
    label_noise: float = 0.0

    @property
    def form(self) -> Form:
        """The member of the family of maps."""
        return Form(
            tied=False,
            intercepts=True,
            symmetric=self.symmetric,
            monotone=not self.free_slopes,
        )

    def _fitted(self, data: CalibrationData) -> FittedSoftmax:
        rho = self.l1_share
        if self.penalty is not None:
            require("penalty", self.penalty, self.penalty >= 0, "a number of 0 or more, or None")
        require("l1_share", rho, (rho >= 0) & (rho <= 1), "from 0 to 1")
        terms = with_constant(None, len(data.labels))
        return fit_softmax(
            data, terms, self.clip, self.form, self.penalty, self.l1_share, self.label_noise
        )
