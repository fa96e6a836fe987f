"""The 2PL model on a list of votes: memory linear in votes, without a table of items by judges.

All quantities of Newton's method are sums over votes, by item or by judge, computed slab by slab;
nothing else is stored per vote. After the items' blocks are eliminated, a step is a linear system of
the judges. Its matrix is never formed: conjugate gradients need only matrix-vector products, each of
them one pass over the votes. The slabs are divided between the devices, and sums by judge are added
over the devices.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.sparse.linalg import cg
from jax.sharding import Mesh, PartitionSpec
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from judgebayes.arrays import Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference.fast.sharded import SHARD, Group, grouped
from judgebayes.inference.newton import Point
from judgebayes.item_response.mode import (
    empirical_bayes_mode,
    initial_parameters,
    joint_mode,
    negative_log_prior,
    point,
)
from judgebayes.models.irt import Parameters, Prior
from judgebayes.models.label_noise import noise_matrix
from judgebayes.votes.sparse import SlabShape, SparseVotes

__all__ = ["SparseTable", "sparse_mode"]

ROWS = 2**15
"""The number of votes processed at a time."""
SPARE = 1.05
"""The capacity of a slab in items, relative to the average number of items for its votes."""
LOOSE = 0.1
"""The largest relative residual of a step's linear system; it decreases with the gradient."""
PRODUCTS = 200


@in_float64
def sparse_mode(
    votes: SparseVotes,
    labels: Int[np.ndarray, " item"],
    weight: Float[np.ndarray, " item"],
    prior: Prior | None,
    noise: Scalar = 0.0,
    devices: Sequence[jax.Device] | None = None,
) -> tuple[Parameters, Bool[np.ndarray, " item"], Int[Array, ""]]:
    """Return the mode (as for votes in an array), which items were used, and the status.

    Items without a label or with weight 0 stay at their prior. By default, `devices` are all devices of
    this process.
    """
    mesh = Mesh(np.asarray(jax.local_devices() if devices is None else devices), (SHARD,))
    table, parts = SparseTable.of(votes, labels, weight, noise, mesh)
    mode, used, status = _mode(table, prior)

    def concatenated(by_slab: Array) -> np.ndarray:
        slabs = np.asarray(by_slab).reshape(-1, by_slab.shape[-1])
        return np.concatenate([x[: i.stop - i.start] for x, i in zip(slabs, parts, strict=False)])

    difficulty, log_discrimination = (jnp.asarray(concatenated(x)) for x in mode[1:])
    return Parameters(mode.ability, difficulty, log_discrimination), concatenated(used), status


def _of_items(votes: SparseVotes, used: Bool[np.ndarray, " item"]) -> SparseVotes:
    """Return the votes on some items; other items remain, without votes."""
    if used.all():
        return votes
    selected = used[np.asarray(votes.item)]
    item, judge, index = (np.asarray(x)[selected] for x in (votes.item, votes.judge, votes.index))
    return replace(votes, item=item, judge=judge, index=index)


def _shape(votes: SparseVotes, devices: int) -> SlabShape:
    """Return a tight shape of slabs, because parameters have the shape of the items."""
    rows, items = votes.slab_shape(min(ROWS, max(-(-len(votes) // devices), 1)))
    share = votes.n_items / max(len(votes), 1)
    return SlabShape(rows, max(min(items, int(SPARE * share * rows)), 1))


@jax.jit
def _mode(
    table: "SparseTable", prior: Prior | None
) -> tuple[Parameters, Bool[Array, "shard slab item"], Int[Array, ""]]:
    used = table.used()
    if prior is None:
        mode, _, status = empirical_bayes_mode(table, used)
    else:
        mode, status = joint_mode(table, prior)
    return mode, used, status


class _Rows(NamedTuple):
    """The votes of a slab, with their logits at the current parameters."""

    votes: SparseVotes
    cell: Int[Array, " row"]
    """item x n_classes + class."""
    weight: Float[Array, " row"]
    """The weight of the item; 0 where the vote is missing."""
    discrimination: Float[Array, " row"]
    logit: Float[Array, " row"]

    def by_item(self, *values: Float[Array, " row"]) -> tuple[Float[Array, " item"], ...]:
        """Return sums over the votes on each item."""
        sums = jax.ops.segment_sum(
            jnp.stack(values, 1), self.votes.item, self.votes.n_items, indices_are_sorted=True
        )
        return tuple(sums[:, k] for k in range(len(values)))

    def by_judge(self, *values: Float[Array, " row"]) -> tuple[Float[Array, " judge"], ...]:
        """Return sums over the votes of each judge."""
        judge = jnp.asarray(self.votes.judge, jnp.int32)
        sums = jax.ops.segment_sum(jnp.stack(values, 1), judge, self.votes.n_judges)
        return tuple(sums[:, k] for k in range(len(values)))

    def classes(
        self, labels: Int[Array, " item"], noise: Scalar
    ) -> tuple[Float[Array, " item"], Float[Array, "item class"]]:
        """Return log p(votes, label), up to a term common to all classes, and the classes' posterior."""
        n_classes = self.votes.n_classes
        each = jnp.where(self.votes.index >= 0, self.logit + np.log(n_classes - 1), 0.0)
        evidence = jax.ops.segment_sum(each, self.cell, self.votes.n_items * n_classes)
        error = jnp.log(noise_matrix(noise, n_classes))[:, jnp.maximum(labels, 0)].T
        joint = error + evidence.reshape(-1, n_classes)
        total = jax.nn.logsumexp(joint, axis=1)
        return total, jnp.exp(joint - total[:, None])

    def error(self, classes: Float[Array, "item class"]) -> Float[Array, " row"]:
        """Return the predicted minus the posterior probability that each vote is right, weighted."""
        return self.weight * (jax.nn.sigmoid(self.logit) - classes.ravel()[self.cell])


class _Items(NamedTuple):
    """The items' part of a step's system: damped inverse blocks, and the classes' posterior."""

    first: Float[Array, "*lead item"]
    both: Float[Array, "*lead item"]
    second: Float[Array, "*lead item"]
    classes: Float[Array, "*lead item class"]

    def solve(
        self, one: Float[Array, " item"], other: Float[Array, " item"]
    ) -> tuple[Float[Array, " item"], Float[Array, " item"]]:
        """Return the inverse blocks times a vector."""
        return self.first * one + self.both * other, self.both * one + self.second * other


def _rows(slab: Group, p: Parameters) -> _Rows:
    votes = slab.votes
    item, present = jnp.asarray(votes.item), jnp.asarray(votes.index) >= 0
    item_weight = jnp.where(slab.labels >= 0, slab.weight, 0.0)
    discrimination = jnp.exp(p.log_discrimination)[item]
    logit = discrimination * (p.ability[votes.judge] - p.difficulty[item])
    cell = item * votes.n_classes + jnp.maximum(votes.index, 0)
    return _Rows(votes, cell, jnp.where(present, item_weight[item], 0.0), discrimination, logit)


def _cross(
    rows: _Rows, classes: Float[Array, "item class"], exact: Scalar
) -> tuple[Float[Array, " row"], Float[Array, " row"], Float[Array, " row"], Float[Array, " row"]]:
    """Return the votes' second derivatives: aa, ab, as, ss (ability a, difficulty b, log-disc. s)."""
    chance = jax.nn.sigmoid(rows.logit)
    spread = rows.weight * chance * (1 - chance)
    cross = spread * rows.logit + exact * rows.error(classes)
    return (
        rows.discrimination**2 * spread,
        -(rows.discrimination**2) * spread,
        rows.discrimination * cross,
        cross * rows.logit,
    )


class _Judges(NamedTuple):
    """The judges' part of a step's system."""

    own: Float[Array, " judge"]
    """Second derivatives of the likelihood by ability."""
    right_hand_side: Float[Array, " judge"]
    """The addition to the right-hand side from eliminating the items."""
    reduction: Float[Array, " judge"]
    """The reduction of the diagonal from eliminating the items."""


class _Propagated(NamedTuple):
    rows: _Rows
    one: Float[Array, " row"]
    two: Float[Array, " row"]
    """Second derivatives of ability with difficulty and with log-discrimination."""
    items: tuple[Float[Array, " item"], Float[Array, " item"]]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SparseTable:
    """The negative log-posterior of votes in slabs; items have the axes shard, slab and item."""

    group: Group
    noise: Scalar
    mesh: Mesh = field(metadata={"static": True})

    @classmethod
    def of(
        cls,
        votes: SparseVotes,
        labels: Int[np.ndarray, " item"],
        weight: Float[np.ndarray, " item"],
        noise: Scalar,
        mesh: Mesh,
    ) -> tuple["SparseTable", list[slice]]:
        """Divide votes into slabs for the devices of a mesh; also return the items of each slab."""
        votes = _of_items(votes, (labels >= 0) & (weight > 0))
        shape = _shape(votes, mesh.size)
        items = [items for _, items in votes.bounds(shape)]
        slabs = -(-len(items) // mesh.size)
        group = grouped(votes.slabs(shape), votes, labels, weight, mesh, shape, slabs)
        return cls(group, noise, mesh), items

    def used(self) -> Bool[Array, "shard slab item"]:
        """Return whether each item has a label and a vote."""

        def one(slab: Group) -> tuple[tuple[()], Array]:
            present = jnp.asarray(slab.votes.index >= 0, float)
            votes = jax.ops.segment_sum(present, slab.votes.item, slab.votes.n_items)
            return (), (votes > 0) & (slab.labels >= 0) & (slab.weight > 0)

        return self._over(one)[1]

    def begin(self, prior: Prior) -> Parameters:
        """Return a start."""

        def one(slab: Group) -> tuple[Array, Array]:
            zeros = jnp.zeros(slab.votes.n_items)
            rows = _rows(slab, Parameters(jnp.zeros(slab.votes.n_judges), zeros, zeros))
            _, classes = rows.classes(slab.labels, self.noise)
            right = rows.weight * classes.ravel()[rows.cell]
            judges, items = rows.by_judge(right, rows.weight), rows.by_item(right, rows.weight)
            return jnp.stack(judges), jnp.stack(items)

        judges, items = self._over(one)
        return initial_parameters(judges, jnp.moveaxis(items, -2, 0), prior)

    def visit(self, p: Parameters, prior: Prior) -> Point:
        """Return value and gradient."""

        def one(slab: Group, ability: Array, *items: Array) -> Any:
            rows = _rows(slab, Parameters(ability, *items))
            total, classes = rows.classes(slab.labels, self.noise)
            item_weight = jnp.where(slab.labels >= 0, slab.weight, 0.0)
            error = rows.error(classes)
            value = (rows.weight * jax.nn.softplus(rows.logit)).sum()
            value -= jnp.where(item_weight > 0, item_weight * total, 0.0).sum()
            by_difficulty, by_discrimination = rows.by_item(
                rows.discrimination * error, error * rows.logit
            )
            (ability,) = rows.by_judge(rows.discrimination * error)
            item_gradients = [
                gradient_of_votes + (values - location) / scale**2
                for gradient_of_votes, values, (location, scale) in zip(
                    (-by_difficulty, by_discrimination), items, prior, strict=True
                )
            ]
            return (value, ability), tuple(item_gradients)

        (value, ability), items = self._over(one, p.ability, items=p[1:])
        gradient = Parameters(ability + p.ability, *items)
        return point(p, value + negative_log_prior(p, prior), gradient)

    def step(self, at: Point, prior: Prior, damping: Scalar, exact: Scalar) -> Parameters:
        """Return the damped Newton step; the judges' system is solved to a tolerance by the gradient."""
        p, gradient = at.x, at.gradient
        # Single precision suffices for the step; the new point is evaluated in double precision.
        judges, items = self._eliminated(at, prior, damping, exact, jnp.float32)
        own = judges.own + 1 + damping
        diagonal, right = own - judges.reduction, judges.right_hand_side - gradient.ability

        def propagate(slab: Group, x: Array, *local: Array) -> _Propagated:
            """Apply the cross block to a step of the judges and solve the items' blocks."""
            rows, blocks = _rows(slab, Parameters(*local[:3])), _Items(*local[3:7])
            _, one, two, _ = _cross(rows, blocks.classes, exact)
            judge_step = x[rows.votes.judge]
            return _Propagated(
                rows, one, two, blocks.solve(*rows.by_item(one * judge_step, two * judge_step))
            )

        def schur_product(slab: Group, x: Array, *local: Array) -> tuple[Array, tuple[()]]:
            rows, one, two, (b, s) = propagate(slab, x, *local)
            (sums,) = rows.by_judge(one * b[rows.votes.item] + two * s[rows.votes.item])
            return sums, ()

        def item_steps(slab: Group, x: Array, *local: Array) -> tuple[tuple[()], tuple[Array, ...]]:
            from_gradient = _Items(*local[3:7]).solve(*local[7:])
            from_judges = propagate(slab, x, *local).items
            return (), tuple(-(x + y) for x, y in zip(from_gradient, from_judges, strict=True))

        constants = p[1:] + tuple(items)
        ability, _ = cg(
            lambda x: own * x - self._over(schur_product, x, p.ability, items=constants)[0],
            right,
            x0=right / diagonal,
            tol=jnp.minimum(LOOSE, jnp.linalg.norm(gradient.ability / jnp.sqrt(own))),
            maxiter=PRODUCTS,
            M=lambda x: x / diagonal,
        )
        _, item_step = self._over(item_steps, ability, p.ability, items=constants + gradient[1:])
        return Parameters(ability, *item_step)

    def variances(self, p: Parameters, prior: Prior) -> tuple[Array, Array]:
        """Return the variances of items' parameters, for fixed abilities."""
        zero_gradient = point(p, jnp.asarray(0.0), jax.tree.map(jnp.zeros_like, p))
        _, items = self._eliminated(zero_gradient, prior, 0.0, 0.0, p.ability.dtype)
        return items.first, items.second

    def _eliminated(
        self, at: Point, prior: Prior, damping: Scalar, exact: Scalar, dtype: DTypeLike
    ) -> tuple[_Judges, _Items]:
        """Return the judges' system after eliminating the items, and the items' inverse blocks."""
        prior_curvature = [1 / scale**2 + damping for _, scale in prior]

        def one(slab: Group, ability: Array, b: Array, s: Array, *gradient: Array) -> Any:
            rows = _rows(slab, Parameters(ability, b, s))
            _, classes = rows.classes(slab.labels, self.noise)
            second_ability, first, second, second_discrimination = _cross(rows, classes, exact)
            h11, h12, h22 = rows.by_item(second_ability, -second, second_discrimination)
            h11, h22 = h11 + prior_curvature[0], h22 + prior_curvature[1]
            det = h11 * h22 - h12**2
            items = _Items(h22 / det, -h12 / det, h11 / det, classes)
            item = rows.votes.item
            solved = [x[item] for x in items.solve(*gradient)]
            reduction = items.first[item] * first**2 + items.second[item] * second**2
            reduction += 2 * items.both[item] * first * second
            judges = rows.by_judge(
                second_ability, first * solved[0] + second * solved[1], reduction
            )
            return _Judges(*judges), jax.tree.map(lambda x: x.astype(dtype), items)

        judges, blocks = self._over(one, at.x.ability, items=at.x[1:] + at.gradient[1:])
        return judges, blocks

    def _over(
        self, one: Callable[..., Any], *shared: Array, items: tuple[Array, ...] = ()
    ) -> tuple[Any, Any]:
        """Map over the slabs: return the sums over all slabs, and the results by item."""

        def on_device(
            group: Group, shared: tuple[Array, ...], items: tuple[Array, ...]
        ) -> tuple[Any, Any]:
            group, items = jax.tree.map(lambda x: x[0], (group, items))

            def slab(total: Any, inputs: Any) -> tuple[Any, Any]:
                group, items = inputs
                added, by_item = one(group, *shared, *items)
                return jax.tree.map(jnp.add, total, added), by_item

            first = jax.tree.map(lambda x: x[0], (group, items))
            shapes = jax.eval_shape(lambda: one(first[0], *shared, *first[1])[0])
            zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
            total, by_item = jax.lax.scan(slab, zero, (group, items))
            total = jax.tree.map(partial(jax.lax.psum, axis_name=SHARD), total)
            return total, jax.tree.map(lambda x: x[None], by_item)

        replicated, sharded = PartitionSpec(), PartitionSpec(SHARD)
        return jax.shard_map(
            on_device,
            mesh=self.mesh,
            in_specs=(sharded, replicated, sharded),
            out_specs=(replicated, sharded),
            check_vma=False,
        )(self.group, shared, items)
