"""Stacking for its Laplace approximation: parameters as one vector, the design, the prior given tau."""

import math
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from judgebayes.inference.laplace import Block, Predictors
from judgebayes.models.stacking import Form, StackingPrior, shares

Scalar = float | Float[Array, ""]


def places(form: Form) -> dict[str, Int[np.ndarray, "..."]]:
    """Return the positions of the parameters in one vector, by name, in the order of `form.blocks`."""
    shapes = form.blocks()
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
    every = np.split(np.arange(ends[-1]), ends[:-1])
    return {
        name: at.reshape(shape) for (name, shape), at in zip(shapes.items(), every, strict=True)
    }


def n_parameters(form: Form) -> int:
    """Return the number of parameters."""
    return sum(math.prod(shape) for shape in form.blocks().values())


def split(flat: Float[Array, "*draw parameter"], form: Form) -> dict[str, Array]:
    """Return the parameters by name from their vector."""
    return {name: flat[..., place] for name, place in places(form).items()}


def join(named: Mapping[str, Array], form: Form) -> Float[Array, " parameter"]:
    """Return the vector of one draw of the named parameters."""
    return jnp.concatenate([named[name].reshape(-1) for name in form.blocks()])


def prior_precision(
    tau: Scalar, direction: Float[Array, " judge"], prior: StackingPrior, form: Form
) -> tuple[Float[Array, "parameter parameter"], Float[Array, ""]]:
    """Return the inverse of the prior covariance given tau, and its log-determinant."""
    scale = {name: jnp.full(shape, tau) for name, shape in form.blocks().items()}
    for name in scale.keys() & {"offset", "level"}:
        scale[name] = jnp.full(scale[name].shape, getattr(prior, name))
    flat = join(scale, form)
    along = jnp.zeros(flat.shape[0]).at[: form.n_judges].set(direction)
    length = direction @ direction
    shrunk = prior.kappa / (1 + prior.kappa * length) * jnp.outer(along, along)
    precision = (jnp.eye(flat.shape[0]) - shrunk) / jnp.outer(flat, flat)
    return precision, -2 * jnp.log(flat).sum() - jnp.log1p(prior.kappa * length)


def predictors(index: Int[Array, "item judge sample"], form: Form) -> Predictors:
    """Return the design, in which u and each eta are linear in the parameters, in two blocks."""
    vote, absent, share = shares(index, form)
    place = places(form)
    columns, at = [vote], [place["weight"]]
    one = jnp.ones((len(index), 1))
    if not form.symmetric:
        columns += [absent, one]
        at += [place["absent"], place["offset"][None]]
    blocks = [Block(jnp.concatenate(columns, axis=1)[:, None], np.concatenate(at)[None])]
    if form.levels:
        last = jnp.broadcast_to(one[:, None], (len(index), form.levels, 1))
        blocks.append(
            Block(
                jnp.concatenate([share, last], axis=2),
                np.concatenate([place["level_weight"], place["level"][:, None]], axis=1),
            )
        )
    return Predictors(tuple(blocks), n_parameters(form))
