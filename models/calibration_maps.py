r"""Temperature scaling, Platt's map and the beta map: models of a label given probabilities.

The story. An aggregator (or any classifier) has given item i log-probabilities l_ik = log p_ik of K
classes, clipped so that they are finite. Its label is drawn from ::

    log q_ik = s_k l_ik + c_k - log Z_i,      c_0 = 0

with a slope s and an intercept c per class. The identity is s = 1, c = 0. Three maps are members:

- **temperature** (Guo et al. 2017): one slope 1 / T > 0, no intercept;
- **Platt** (Platt 1999; for more classes, Alexandari et al. 2020): one slope of any sign, intercepts;
- **beta** (Kull, Silva Filho & Flach 2017; for more classes, Kull et al. 2019): a slope >= 0 for each
  class, intercepts. For two classes, logit q = a log p - b log(1 - p) + c with a = s_1, b = s_0.

The symmetric form ties each class to its mirror image, k and K - 1 - k: for two classes s_0 = s_1 and
c = 0.

Weakly informative priors, whose mode is the identity::

    s_k   ~ Normal(1, 2)      above 0 where the form is monotone, else free
    c_k   ~ Normal(0, 2)      log-odds at p_k = p_0

The density of a positive slope does not vanish at 0, so the prior does not exclude probabilities that
carry no information or are far too confident. (With a standard log-normal slope, 90 % intervals cover
74 % where s = 0.2 and 50 labels are known.) The prior is proper, so that a posterior exists also for
separated or constant labels, and without labels. With more than two classes the first is the reference,
and its intercept has no prior.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from judgebayes.models.base import ProbsData, Scalar, Traits, observe_label


class Form(NamedTuple):
    """A member of the family: which parameters are tied, absent or bounded."""

    tied: bool
    """One slope for all classes."""
    intercepts: bool
    symmetric: bool
    monotone: bool
    """Slopes are at least 0, so that a higher input probability never lowers the output."""


class CalibrationMapPrior(NamedTuple):
    """Standard deviations of the normal priors around the identity, before truncation to slopes >= 0."""

    slope: Scalar = 2.0
    intercept: Scalar = 2.0


def members(form: Form, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return 0/1 matrices (parameter, class): the classes of each slope and of each intercept."""
    k = np.arange(n_classes)
    group = np.minimum(k, n_classes - 1 - k) if form.symmetric else k
    own = (np.unique(group)[:, None] == group).astype(float)
    slope_of = np.ones((1, n_classes)) if form.tied else own
    return slope_of, own[1:] if form.intercepts else own[:0]


@dataclass(frozen=True)
class CalibrationMapModel:
    """The program: slopes and intercepts, then each item's label given its log-probabilities.

    Sites: `slope` (slope group); `intercept` (intercept group) where the form has any; `label` (item).
    """

    n_classes: int
    form: Form
    prior: CalibrationMapPrior = CalibrationMapPrior()
    noise: Scalar = 0.0
    """The known share of the labels that are wrong, any other class alike."""
    traits: ClassVar[Traits] = Traits(("label",), "labelled items")

    def __call__(self, data: ProbsData) -> None:
        """Sample the parameters from their priors, then each item's label from the map."""
        slopes, intercepts = map(len, members(self.form, self.n_classes))
        slope = dist.Normal(1.0, self.prior.slope)
        if self.form.monotone:
            slope = dist.TruncatedNormal(1.0, self.prior.slope, low=0.0)
        with numpyro.plate("slope_group", slopes):
            sites = {"slope": numpyro.sample("slope", slope)}
        if intercepts:
            with numpyro.plate("intercept_group", intercepts):
                intercept = dist.Normal(0.0, self.prior.intercept)
                sites["intercept"] = numpyro.sample("intercept", intercept)
        observe_label(self.predict(sites, data), data.labels, data.weight, self.noise)

    def predict(self, sites: Mapping[str, Array], data: ProbsData) -> Float[Array, "item class"]:
        """Return log q of every item."""
        slope_of, intercept_of = members(self.form, self.n_classes)
        slope, intercept = sites["slope"] @ slope_of, jnp.zeros(self.n_classes)
        if len(intercept_of):
            intercept = sites["intercept"] @ intercept_of
        return jax.nn.log_softmax(slope * data.log_probs + intercept, axis=-1)
