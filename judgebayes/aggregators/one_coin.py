"""The Bayesian one-coin aggregator (P2, step 1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from judgebayes.arrays import ItemCodes, ItemValues, LogProbs, Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.fast import one_coin_counts
from judgebayes.inference.fast.log_softmax import log_softmax_by_class
from judgebayes.inference.fast.one_coin_counts import agreement
from judgebayes.inference.fit import Fit, JaxMethod, Training
from judgebayes.inference.problem import Sites, one_draw
from judgebayes.inference.registry import aggregator
from judgebayes.inference.status import degenerate_status
from judgebayes.measures.scores import labelled_weight
from judgebayes.measures.significance import Interval
from judgebayes.models.one_coin import OneCoinPrior
from judgebayes.votes.array import Votes

ClassPrior = Literal["uniform", "labels"]


@aggregator(
    "one-coin", knows_judges=True, needs_map=True, compared="panel", independent=True, place=20
)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class OneCoin(JaxMethod):
    r"""Weight judges by their accuracy on the labelled items, with the accuracy integrated out.

    .. math:: \log p(y = k \mid \text{votes}) = \log \pi_k
              + \sum_{j: v_j = k} \log \frac{(K - 1)\,\alpha_j}{\beta_j} + \text{const}

    with :math:`\alpha_j = a + \text{correct}_j`, :math:`\beta_j = b + \text{wrong}_j` (P2 eq 1;
    `judgebayes.inference.fast.one_coin_counts` for several votes of one judge). A judge of unknown
    accuracy has weight 0 for K = 2; a judge below chance has a negative weight. The model assumes that
    judges err independently given the label; if they do not, the probabilities are overconfident and
    need a calibration map, or use `Stacking`. Closed form.

    For several human labels of one item, repeat the item once for each, with weights that sum to one.

    Parameters
    ----------
    prior
        The Beta prior of every judge's accuracy, `OneCoinPrior(accuracy=(a, b))`.
    class_prior
        `uniform`, or `labels`: the labels' frequencies, with a pseudo-count of 1 for each class. Use
        uniform for pairs, whose order has no meaning.
    label_noise
        The known share of the labels that are wrong, any other class alike.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 0, -1, -1])
    >>> fit = jb.OneCoin().fit(votes, labels)
    >>> print(np.asarray(fit.method.log_odds(fit))[0].round(2))
    [1.61 0.69 0.  ]
    >>> print(np.exp(fit(votes))[:, 1].round(2))
    [0.91 0.91 0.09 0.29 0.91 0.09]
    """

    prior: OneCoinPrior = field(default_factory=OneCoinPrior)
    class_prior: ClassPrior = field(default="uniform", metadata={"static": True})
    label_noise: float = 0.0
    sums_items: ClassVar[bool] = True
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "alpha": ("judge",),
        "beta": ("judge",),
        "log_prior": ("class",),
    }
    unsampled: ClassVar[str] = (
        "is a posterior in closed form, Beta(alpha, beta) of each judge, and has no draws; "
        "use `judgebayes posterior --model one-coin` to sample it."
    )

    def _fitted(self, data: Training) -> Fit:
        return _fit(self, data)

    def predict(self, values: Sites, given: Votes) -> LogProbs:
        """Return the items' log-probabilities; an item without votes has the classes' prior."""
        by_class = one_coin_counts.log_likelihood_by_class(
            given.index, values["alpha"], values["beta"], n_classes=given.n_classes
        )
        logits = [own + values["log_prior"][k] for k, own in enumerate(by_class)]
        return jnp.stack(log_softmax_by_class(logits), axis=1)

    @in_float64
    def log_odds(self, fit: Fit) -> Float[Array, "draw judge"]:
        """Return the log-odds that one vote of each judge adds to its class."""
        n_classes = fit.draws["log_prior"].shape[-1]
        return one_coin_counts.log_odds(fit.draws["alpha"], fit.draws["beta"], n_classes)

    def reliability(self, fit: Fit, level: float) -> Interval:
        """Return each judge's accuracy: posterior mean and central interval."""
        alpha, beta = (np.asarray(fit.draws[name])[..., 0, :] for name in ("alpha", "beta"))
        return Interval.of_beta(alpha, beta, level=level)


def class_log_prior(
    labels: ItemCodes, weight: ItemValues, kind: ClassPrior, noise: Scalar, *, n_classes: int
) -> Float[Array, " class"]:
    """Return log pi: uniform, or the labels' frequencies (pseudo-count 1), corrected for label noise."""
    if kind == "uniform":
        return jnp.full(n_classes, -np.log(n_classes))
    used = labelled_weight(labels, weight)
    counts = used @ jax.nn.one_hot(labels, n_classes, dtype=used.dtype) + 1.0
    flip_rate = jnp.asarray(noise) / (n_classes - 1)
    share = (counts / counts.sum() - flip_rate) / (1 - noise - flip_rate)
    share = jnp.maximum(share, 1 / counts.sum())
    return jnp.log(share / share.sum())


@jax.jit
def _fit(method: OneCoin, data: Training) -> Fit:
    votes, labels, weight, _ = data
    n_classes = votes.n_classes
    correct, wrong = agreement(votes, labels, weight)
    alpha, beta = one_coin_counts.posterior(
        correct, wrong, method.prior.accuracy, method.label_noise, n_classes=n_classes
    )
    log_prior = class_log_prior(
        labels, weight, method.class_prior, method.label_noise, n_classes=n_classes
    )
    values = {"alpha": alpha, "beta": beta, "log_prior": log_prior}
    return Fit(method, one_draw(values), degenerate_status(labels, weight, n_classes, 1))
