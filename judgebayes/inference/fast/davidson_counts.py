"""The link of Davidson's model as a linear design, whose scores have analytic derivatives."""

import jax.numpy as jnp

from judgebayes.arrays import ItemValues
from judgebayes.models.davidson import Features, level_of_class, positions


def columns(
    evidence: Features, *, n_classes: int, symmetric: bool = True
) -> list[dict[int, ItemValues]]:
    """Return the coefficients of each parameter in the logit of each class.

    The logits of `link` are linear in the parameters. The parameters are in the order of their
    names: beta, delta (free form only), eta0 by level, gamma by level.
    """
    x = positions(n_classes)
    levels = level_of_class(n_classes, symmetric)
    members = [[k for k in range(n_classes) if levels[k] == m] for m in range(max(levels) + 1)]
    one = jnp.ones_like(evidence.margin)
    leaning = [k for k in range(n_classes) if x[k]]
    beta = {k: x[k] * evidence.margin for k in leaning}
    delta = {k: x[k] * one for k in leaning}
    eta0 = [dict.fromkeys(inside, one) for inside in members]
    gamma = [dict.fromkeys(inside, evidence.tie[:, m]) for m, inside in enumerate(members)]
    return [beta, *([] if symmetric else [delta]), *eta0, *gamma]
