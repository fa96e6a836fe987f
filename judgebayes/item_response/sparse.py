"""The 2PL model on a list of votes: memory linear in votes, no table of items by judges.

Everything that Newton's method asks for is a sum over votes, by item or by judge, taken slab by
slab; of a vote nothing is kept but itself. What is left of a step once the items' blocks are
eliminated, a system of the judges alone, is never written out either: conjugate gradients need its
products only, each of them one pass over the votes. The slabs are divided between the devices, and
sums by judge added up over them.
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
from judgebayes.item_response.mode import beginning, joint_mode, learnt_mode, point, surprise
from judgebayes.models.irt import Parameters, Prior
from judgebayes.models.label_noise import noise_matrix
from judgebayes.votes.sparse import SlabShape, SparseVotes

__all__ = ["Listed", "listed_mode"]

ROWS = 2**15
"""So many votes are worked on at a time."""
SPARE = 1.05
"""Slabs have room for so many times as many items as votes of their number are on, on average."""
SLOPPY = 0.1
"""Largest residual of a step's system, relative; it falls with the gradient."""
PRODUCTS = 200


@in_float64
def listed_mode(
    votes: SparseVotes,
    labels: Int[np.ndarray, " item"],
    weight: Float[np.ndarray, " item"],
    prior: Prior | None,
    noise: Scalar = 0.0,
    devices: Sequence[jax.Device] | None = None,
) -> tuple[Parameters, Bool[np.ndarray, " item"], Int[Array, ""]]:
    """Return the mode that votes in an array have, which items were used, and how it ended.

    Items without a label or of weight 0 stay at their prior. `devices` are all of this process by
    default.
    """
    mesh = Mesh(np.asarray(jax.local_devices() if devices is None else devices), (SHARD,))
    listed, parts = Listed.of(votes, labels, weight, noise, mesh)
    mode, used, status = _mode(listed, prior)

    def whole(by_slab: Array) -> np.ndarray:
        given = np.asarray(by_slab).reshape(-1, by_slab.shape[-1])
        return np.concatenate([x[: i.stop - i.start] for x, i in zip(given, parts, strict=False)])

    difficulty, slope = (jnp.asarray(whole(x)) for x in mode[1:])
    return Parameters(mode.ability, difficulty, slope), whole(used), status


def _of_items(votes: SparseVotes, used: Bool[np.ndarray, " item"]) -> SparseVotes:
    """Return the votes on some items; the others keep their numbers and lose their votes."""
    if used.all():
        return votes
    kept = used[np.asarray(votes.item)]
    item, judge, index = (np.asarray(x)[kept] for x in (votes.item, votes.judge, votes.index))
    return replace(votes, item=item, judge=judge, index=index)


def _shape(votes: SparseVotes, devices: int) -> SlabShape:
    """Return a shape of slabs with little to spare: parameters have the shape of the items."""
    rows, items = votes.slab_shape(min(ROWS, max(-(-len(votes) // devices), 1)))
    share = votes.n_items / max(len(votes), 1)
    return SlabShape(rows, max(min(items, int(SPARE * share * rows)), 1))


@jax.jit
def _mode(
    listed: "Listed", prior: Prior | None
) -> tuple[Parameters, Bool[Array, "shard slab item"], Int[Array, ""]]:
    used = listed.used()
    if prior is None:
        mode, _, status = learnt_mode(listed, used)
    else:
        mode, status = joint_mode(listed, prior)
    return mode, used, status


class _Rows(NamedTuple):
    """The votes of a slab as they stand at a point."""

    votes: SparseVotes
    cell: Int[Array, " row"]
    """item x n_classes + class."""
    weight: Float[Array, " row"]
    """Of the item; 0 where the vote is missing."""
    slope: Float[Array, " row"]
    logit: Float[Array, " row"]

    def by_item(self, *values: Float[Array, " row"]) -> tuple[Float[Array, " item"], ...]:
        """Return sums over the votes on each item."""
        found = jax.ops.segment_sum(
            jnp.stack(values, 1), self.votes.item, self.votes.n_items, indices_are_sorted=True
        )
        return tuple(found[:, k] for k in range(len(values)))

    def by_judge(self, *values: Float[Array, " row"]) -> tuple[Float[Array, " judge"], ...]:
        """Return sums over the votes of each judge."""
        judge = jnp.asarray(self.votes.judge, jnp.int32)
        found = jax.ops.segment_sum(jnp.stack(values, 1), judge, self.votes.n_judges)
        return tuple(found[:, k] for k in range(len(values)))

    def classes(
        self, labels: Int[Array, " item"], noise: Scalar
    ) -> tuple[Float[Array, " item"], Float[Array, "item class"]]:
        """Return log p(votes, label) but for what all classes share, and the classes' posterior."""
        n_classes = self.votes.n_classes
        each = jnp.where(self.votes.index >= 0, self.logit + np.log(n_classes - 1), 0.0)
        told = jax.ops.segment_sum(each, self.cell, self.votes.n_items * n_classes)
        error = jnp.log(noise_matrix(noise, n_classes))[:, jnp.maximum(labels, 0)].T
        joint = error + told.reshape(-1, n_classes)
        total = jax.nn.logsumexp(joint, axis=1)
        return total, jnp.exp(joint - total[:, None])

    def error(self, classes: Float[Array, "item class"]) -> Float[Array, " row"]:
        """Return how much likelier a right vote was than it is right."""
        return self.weight * (jax.nn.sigmoid(self.logit) - classes.ravel()[self.cell])


class _Items(NamedTuple):
    """The items' part of a step's system: blocks damped and inverted, and the classes' posterior."""

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
    item, given = jnp.asarray(votes.item), jnp.asarray(votes.index) >= 0
    known = jnp.where(slab.labels >= 0, slab.weight, 0.0)
    slope = jnp.exp(p.log_discrimination)[item]
    logit = slope * (p.ability[votes.judge] - p.difficulty[item])
    cell = item * votes.n_classes + jnp.maximum(votes.index, 0)
    return _Rows(votes, cell, jnp.where(given, known[item], 0.0), slope, logit)


def _cross(
    rows: _Rows, classes: Float[Array, "item class"], exact: Scalar
) -> tuple[Float[Array, " row"], Float[Array, " row"], Float[Array, " row"], Float[Array, " row"]]:
    """Return votes' second derivatives: of the ability, with the item's two, of its slope alone."""
    chance = jax.nn.sigmoid(rows.logit)
    spread = rows.weight * chance * (1 - chance)
    bent = spread * rows.logit + exact * rows.error(classes)
    return rows.slope**2 * spread, -(rows.slope**2) * spread, rows.slope * bent, bent * rows.logit


class _Judges(NamedTuple):
    """The judges' part of a step's system."""

    own: Float[Array, " judge"]
    """Second derivatives of the likelihood by ability."""
    pulled: Float[Array, " judge"]
    """What eliminating the items adds to the right-hand side."""
    lost: Float[Array, " judge"]
    """What it takes from the diagonal."""


class _Moved(NamedTuple):
    rows: _Rows
    one: Float[Array, " row"]
    two: Float[Array, " row"]
    """Second derivatives of ability with difficulty and with log-discrimination."""
    items: tuple[Float[Array, " item"], Float[Array, " item"]]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Listed:
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
    ) -> tuple["Listed", list[slice]]:
        """Divide votes into slabs for the devices of a mesh; also return the items of each slab."""
        votes = _of_items(votes, (labels >= 0) & (weight > 0))
        shape = _shape(votes, mesh.size)
        items = [items for _, items in votes.bounds(shape)]
        slabs = -(-len(items) // mesh.size)
        group = grouped(votes.slabs(shape), votes, labels, weight, mesh, shape, slabs)
        return cls(group, noise, mesh), items

    def used(self) -> Bool[Array, "shard slab item"]:
        """Return which items have a label and a vote."""

        def one(slab: Group) -> tuple[tuple[()], Array]:
            given = jnp.asarray(slab.votes.index >= 0, float)
            votes = jax.ops.segment_sum(given, slab.votes.item, slab.votes.n_items)
            return (), (votes > 0) & (slab.labels >= 0) & (slab.weight > 0)

        return self._over(one)[1]

    def begin(self, prior: Prior) -> Parameters:
        """Return a start."""

        def one(slab: Group) -> tuple[Array, Array]:
            nothing = jnp.zeros(slab.votes.n_items)
            rows = _rows(slab, Parameters(jnp.zeros(slab.votes.n_judges), nothing, nothing))
            _, classes = rows.classes(slab.labels, self.noise)
            right = rows.weight * classes.ravel()[rows.cell]
            judges, items = rows.by_judge(right, rows.weight), rows.by_item(right, rows.weight)
            return jnp.stack(judges), jnp.stack(items)

        judges, items = self._over(one)
        return beginning(judges, jnp.moveaxis(items, -2, 0), prior)

    def visit(self, p: Parameters, prior: Prior) -> Point:
        """Return value and gradient."""

        def one(slab: Group, ability: Array, *items: Array) -> Any:
            rows = _rows(slab, Parameters(ability, *items))
            total, classes = rows.classes(slab.labels, self.noise)
            known = jnp.where(slab.labels >= 0, slab.weight, 0.0)
            error = rows.error(classes)
            value = (rows.weight * jax.nn.softplus(rows.logit)).sum()
            value -= jnp.where(known > 0, known * total, 0.0).sum()
            pulled, stretched = rows.by_item(rows.slope * error, error * rows.logit)
            (ability,) = rows.by_judge(rows.slope * error)
            own = [
                found + (values - location) / scale**2
                for found, values, (location, scale) in zip(
                    (-pulled, stretched), items, prior, strict=True
                )
            ]
            return (value, ability), tuple(own)

        (value, ability), items = self._over(one, p.ability, items=p[1:])
        gradient = Parameters(ability + p.ability, *items)
        return point(p, value + surprise(p, prior), gradient)

    def step(self, at: Point, prior: Prior, damping: Scalar, exact: Scalar) -> Parameters:
        """Return the damped Newton step, its system of the judges solved as far as it pays."""
        p, gradient = at.x, at.gradient
        # Of a step, half the digits are more than enough; what it leads to is judged with all.
        judges, items = self._eliminated(at, prior, damping, exact, jnp.float32)
        own = judges.own + 1 + damping
        diagonal, right = own - judges.lost, judges.pulled - gradient.ability

        def moved(slab: Group, x: Array, *here: Array) -> _Moved:
            """Take a step of the judges to their votes, and from there to the items' own."""
            rows, blocks = _rows(slab, Parameters(*here[:3])), _Items(*here[3:7])
            _, one, two, _ = _cross(rows, blocks.classes, exact)
            there = x[rows.votes.judge]
            return _Moved(rows, one, two, blocks.solve(*rows.by_item(one * there, two * there)))

        def back(slab: Group, x: Array, *here: Array) -> tuple[Array, tuple[()]]:
            rows, one, two, (b, s) = moved(slab, x, *here)
            (found,) = rows.by_judge(one * b[rows.votes.item] + two * s[rows.votes.item])
            return found, ()

        def follow(slab: Group, x: Array, *here: Array) -> tuple[tuple[()], tuple[Array, ...]]:
            alone = _Items(*here[3:7]).solve(*here[7:])
            others = moved(slab, x, *here).items
            return (), tuple(-(x + y) for x, y in zip(alone, others, strict=True))

        held = p[1:] + tuple(items)
        ability, _ = cg(
            lambda x: own * x - self._over(back, x, p.ability, items=held)[0],
            right,
            x0=right / diagonal,
            tol=jnp.minimum(SLOPPY, jnp.linalg.norm(gradient.ability / jnp.sqrt(own))),
            maxiter=PRODUCTS,
            M=lambda x: x / diagonal,
        )
        _, rest = self._over(follow, ability, p.ability, items=held + gradient[1:])
        return Parameters(ability, *rest)

    def variances(self, p: Parameters, prior: Prior) -> tuple[Array, Array]:
        """Return those of items' parameters, abilities being as they are."""
        level = point(p, jnp.asarray(0.0), jax.tree.map(jnp.zeros_like, p))
        _, items = self._eliminated(level, prior, 0.0, 0.0, p.ability.dtype)
        return items.first, items.second

    def _eliminated(
        self, at: Point, prior: Prior, damping: Scalar, exact: Scalar, dtype: DTypeLike
    ) -> tuple[_Judges, _Items]:
        """Return the system that is left of the judges once the items are eliminated, and these."""
        least = [1 / scale**2 + damping for _, scale in prior]

        def one(slab: Group, ability: Array, b: Array, s: Array, *gradient: Array) -> Any:
            rows = _rows(slab, Parameters(ability, b, s))
            _, classes = rows.classes(slab.labels, self.noise)
            bent, first, second, slope = _cross(rows, classes, exact)
            h11, h12, h22 = rows.by_item(bent, -second, slope)
            h11, h22 = h11 + least[0], h22 + least[1]
            det = h11 * h22 - h12**2
            items = _Items(h22 / det, -h12 / det, h11 / det, classes)
            item = rows.votes.item
            pulled = [x[item] for x in items.solve(*gradient)]
            lost = items.first[item] * first**2 + items.second[item] * second**2
            lost += 2 * items.both[item] * first * second
            judges = rows.by_judge(bent, first * pulled[0] + second * pulled[1], lost)
            return _Judges(*judges), jax.tree.map(lambda x: x.astype(dtype), items)

        judges, blocks = self._over(one, at.x.ability, items=at.x[1:] + at.gradient[1:])
        return judges, blocks

    def _over(
        self, one: Callable[..., Any], *shared: Array, items: tuple[Array, ...] = ()
    ) -> tuple[Any, Any]:
        """Go over the slabs: return what is summed up over all of them, and what is by item."""

        def on_device(
            group: Group, shared: tuple[Array, ...], items: tuple[Array, ...]
        ) -> tuple[Any, Any]:
            group, items = jax.tree.map(lambda x: x[0], (group, items))

            def slab(total: Any, here: Any) -> tuple[Any, Any]:
                group, items = here
                added, by_item = one(group, *shared, *items)
                return jax.tree.map(jnp.add, total, added), by_item

            first = jax.tree.map(lambda x: x[0], (group, items))
            form = jax.eval_shape(lambda: one(first[0], *shared, *first[1])[0])
            zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), form)
            total, by_item = jax.lax.scan(slab, zero, (group, items))
            total = jax.tree.map(partial(jax.lax.psum, axis_name=SHARD), total)
            return total, jax.tree.map(lambda x: x[None], by_item)

        whole, parts = PartitionSpec(), PartitionSpec(SHARD)
        return jax.shard_map(
            on_device,
            mesh=self.mesh,
            in_specs=(parts, whole, parts),
            out_specs=(whole, parts),
            check_vma=False,
        )(self.group, shared, items)
