"""Stacking for its Laplace approximation: the design without its zeros, and the prior given tau."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.inference.laplace import Block, Predictors
from judgebayes.models.davidson import level_of_class, positions
from judgebayes.models.stacking import Form, StackingPrior

Scalar = float | Float[Array, ""]


def prior_precision(
    tau: Scalar, direction: Float[Array, " judge"], prior: StackingPrior, form: Form
) -> tuple[Float[Array, "parameter parameter"], Float[Array, ""]]:
    """Return the inverse of the prior covariance given tau, and its log-determinant."""
    scale = {name: jnp.full(shape, tau) for name, shape in form.blocks().items()}
    for name in scale.keys() & {"offset", "level"}:
        scale[name] = jnp.full(scale[name].shape, getattr(prior, name))
    flat = form.join(scale)
    along = jnp.zeros(flat.shape[0]).at[: form.n_judges].set(direction)
    length = direction @ direction
    shrunk = prior.kappa / (1 + prior.kappa * length) * jnp.outer(along, along)
    precision = (jnp.eye(flat.shape[0]) - shrunk) / jnp.outer(flat, flat)
    return precision, -2 * jnp.log(flat).sum() - jnp.log1p(prior.kappa * length)


def predictors(index: Int[Array, "item judge sample"], form: Form) -> Predictors:
    """Return the design of `judgebayes.models.stacking.features` in two blocks: u, and the levels."""
    given = index >= 0
    cast = given.sum(-1)
    share = 1 / jnp.maximum(cast, 1)
    at = jnp.asarray(positions(form.n_classes))[jnp.maximum(index, 0)]
    vote = jnp.where(given, at, 0.0).sum(-1) * share
    level = jnp.asarray(level_of_class(form.n_classes, form.symmetric))[jnp.maximum(index, 0)]
    place = form.places()
    columns, places = [vote], [place["weight"]]
    one = jnp.ones((len(index), 1))
    if not form.symmetric:
        columns += [(cast == 0).astype(vote.dtype), one]
        places += [place["absent"], place["offset"][None]]
    blocks = [Block(jnp.concatenate(columns, axis=1)[:, None], np.concatenate(places)[None])]
    if form.levels:
        of_level = given & (level == jnp.arange(form.levels)[:, None, None, None])
        votes = jnp.moveaxis(of_level.sum(-1) * share, 0, 1)
        last = jnp.broadcast_to(one[:, None], (len(index), form.levels, 1))
        blocks.append(
            Block(
                jnp.concatenate([votes, last], axis=2),
                np.concatenate([place["level_weight"], place["level"][:, None]], axis=1),
            )
        )
    return Predictors(tuple(blocks), form.size)
