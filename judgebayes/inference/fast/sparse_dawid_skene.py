"""Dawid and Skene's EM on a list of votes: memory linear in votes, on any number of devices.

The items are divided between the devices, and each device's votes into slabs of one shape. A step
goes over the slabs with sums by item (the E-step) and by judge and vote (the M-step), and its
expected counts are added up over the devices: one all-reduce an iteration, of the size of the
confusion matrices. Arithmetic is in float64 inside a slab only, so that no float64 array covers all
items or votes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int

from judgebayes.arrays import Scalar
from judgebayes.inference.fast import dawid_skene
from judgebayes.inference.fast.dawid_skene import (
    SAME_MODE,
    Mode,
    from_columns,
    in_columns,
    responsibilities,
    switched,
    updated,
)
from judgebayes.inference.fast.sharded import SHARD, Group, grouped
from judgebayes.inference.status import Status, worst
from judgebayes.models.dawid_skene import Prior
from judgebayes.votes.sparse import SlabShape, SparseVotes

__all__ = ["Limits", "sparse_mode"]

SLABS_READ = 8
"""The number of slabs per device that are read at a time where the votes are memory maps."""


class _Totals(NamedTuple):
    """Expected counts under each of several parameter values, and the log-likelihoods."""

    likelihood: Float[Array, " start"]
    share: Float[Array, "start class"]
    votes: Float[Array, "start judge class vote"]


class _Parameters(NamedTuple):
    log_pi: Float[Array, "start class"]
    log_confusion: Float[Array, "start judge class vote"]


class Limits(NamedTuple):
    """The stopping rule of EM: the least gain per item, and the most steps."""

    tolerance: float
    max_steps: int


def sparse_mode(
    votes: SparseVotes,
    labels: Int[np.ndarray, " item"],
    weight: Float[np.ndarray, " item"],
    prior: Prior,
    noise: Scalar,
    limits: Limits,
    *,
    devices: Sequence[jax.Device] | None = None,
    rows: int | None = None,
) -> Mode:
    """Return EM's mode of the posterior that `judgebayes.aggregators.dawid_skene.fit_sparse` defines."""
    mesh = Mesh(np.asarray(jax.devices() if devices is None else devices), (SHARD,))
    data = _Data.of(votes, labels, weight, mesh, rows)
    return _maximise(data, prior, noise, limits)


@dataclass(frozen=True)
class _Data:
    """Votes divided into slabs for the devices of this process: held there, or read in each pass."""

    votes: SparseVotes
    labels: Int[np.ndarray, " item"]
    weight: Float[np.ndarray, " item"]
    mesh: Mesh
    shape: SlabShape
    slabs: int
    """The number of slabs per device, the same for all."""
    on_device: list[Group] | None

    @classmethod
    def of(
        cls,
        votes: SparseVotes,
        labels: Int[np.ndarray, " item"],
        weight: Float[np.ndarray, " item"],
        mesh: Mesh,
        rows: int | None,
    ) -> "_Data":
        """Divide the votes; keep them on the devices unless they are memory maps."""
        n_devices = len(mesh.local_devices)
        if rows is None and n_devices > 1:
            rows = min(SparseVotes.slab_shape(votes).rows, -(-len(votes) // n_devices))
        shape = SlabShape(*_largest(*votes.slab_shape(rows)))
        (slabs,) = _largest(-(-sum(1 for _ in votes.bounds(shape)) // n_devices))
        data = cls(votes, labels, weight, mesh, shape, slabs, None)
        if isinstance(votes.index, np.memmap):
            return data
        return cls(votes, labels, weight, mesh, shape, slabs, list(data.read(slabs)))

    def groups(self) -> Iterator[Group]:
        """Yield the votes, some slabs of every device at a time."""
        yield from self.read(SLABS_READ) if self.on_device is None else self.on_device

    def read(self, at_once: int) -> Iterator[Group]:
        """Put the slabs on the devices, `at_once` of every device at a time."""
        n_devices = len(self.mesh.local_devices)
        source = self.votes.slabs(self.shape)
        for start in range(0, self.slabs, at_once):
            some = min(at_once, self.slabs - start)
            some_slabs = islice(source, n_devices * some)
            yield grouped(
                some_slabs, self.votes, self.labels, self.weight, self.mesh, self.shape, some
            )


def _largest(*sizes: int) -> tuple[int, ...]:
    """Return the largest of each size over the processes, so that all compile the same program."""
    if jax.process_count() == 1:
        return sizes
    from jax.experimental.multihost_utils import process_allgather

    return tuple(int(n) for n in np.asarray(process_allgather(np.array(sizes))).max(0))


def _maximise(data: _Data, prior: Prior, noise: Scalar, limits: Limits) -> Mode:
    """Run EM from both starts until neither improves, as the dense fit does; return the higher mode."""
    initial = _over(data, _begin, 2)
    labelled_votes, cast = initial.votes[0], initial.votes[1].sum((1, 2))
    log_pi, log_confusion = (np.array(x) for x in _starts(initial))
    enough = float(limits.tolerance) * max(float(initial.share[1].sum()), 1.0)
    value, gain, steps = np.full(2, -np.inf), np.full(2, np.inf), np.zeros(2, int)
    while True:
        active = np.flatnonzero((steps < limits.max_steps) & (gain > enough))
        if len(active) == 0:
            break
        current = _Parameters(jnp.asarray(log_pi[active]), jnp.asarray(log_confusion[active]))
        log_posterior, updates = _step(data, current, prior, noise)
        log_pi[active], log_confusion[active] = updates
        gain[active] = np.where(steps[active] < 1, np.inf, log_posterior - value[active])
        value[active] = log_posterior
        steps[active] += 1
    at = _Parameters(jnp.asarray(log_pi), jnp.asarray(log_confusion))
    ends = _over(data, _expect, 2, at, noise)
    value = np.asarray(_improved(ends, at, prior)[0])
    best = int(value[1] > value[0] + SAME_MODE * abs(value[0]))
    status = Status.CONVERGED if gain[best] <= enough else Status.MAX_STEPS
    status = status if np.isfinite(value[best]) else Status.NONFINITE
    named = switched(at.log_confusion[best], labelled_votes, cast)
    return Mode(
        log_pi=at.log_pi[best],
        log_confusion=at.log_confusion[best],
        votes_by_class=ends.votes[best].sum(-1),
        value=jnp.asarray(value[best]),
        steps=jnp.asarray(steps[best]),
        status=worst(jnp.asarray(int(status)), named),
    )


@jax.jit
def _starts(initial: _Totals) -> _Parameters:
    starts = (
        dawid_skene.start_from(initial.votes[0]),
        dawid_skene.majority_start_from(initial.share[1], initial.votes[1]),
    )
    return _Parameters(*(jnp.stack(x) for x in zip(*starts, strict=True)))


def _step(
    data: _Data, at: _Parameters, prior: Prior, noise: Scalar
) -> tuple[Float[np.ndarray, " start"], _Parameters]:
    """Return the log posterior of each parameter value, and the values after one EM step."""
    totals = _over(data, _expect, len(at.log_pi), at, noise)
    value, updates = _improved(totals, at, prior)
    return np.asarray(value), updates


@jax.jit
def _improved(
    totals: _Totals, at: _Parameters, prior: Prior
) -> tuple[Float[Array, " start"], _Parameters]:
    value = totals.likelihood + jax.vmap(dawid_skene.log_prior, (0, 0, None))(*at, prior)
    return value, _Parameters(*jax.vmap(updated, (0, 0, None))(totals.share, totals.votes, prior))


Pass = Callable[..., _Totals]
"""Arguments, and the votes, labels and weights of a slab -> its part of the totals."""


def _over(data: _Data, one: Pass, starts: int, *arguments: object) -> _Totals:
    """Return the totals of a pass over all votes: summed on each device, then over devices."""
    n_judges, n_classes = data.votes.n_judges, data.votes.n_classes
    ends = starts * np.cumsum([1, n_classes, n_judges * n_classes**2])
    flat = None
    for group in data.groups():
        part = _of_group(one, int(ends[-1]), data.mesh, arguments, group)
        flat = part if flat is None else flat + part
    added = np.asarray(_added(data.mesh, flat))
    likelihood, share, votes = (jnp.asarray(x) for x in np.split(added, ends[:-1]))
    return _Totals(
        likelihood,
        share.reshape(starts, n_classes),
        votes.reshape(starts, n_judges, n_classes, n_classes),
    )


@partial(jax.jit, static_argnames="mesh")
def _added(mesh: Mesh, flat: Float[Array, "shard total"]) -> Float[Array, " total"]:
    """Return the sum over the devices, on all of them: the all-reduce."""
    return jax.lax.with_sharding_constraint(flat.sum(0), NamedSharding(mesh, PartitionSpec()))


@partial(jax.jit, static_argnames=("one", "size", "mesh"))
def _of_group(
    one: Pass, size: int, mesh: Mesh, arguments: tuple[object, ...], group: Group
) -> Float[Array, "shard total"]:
    """Return each device's flattened sum over its slabs."""

    def on_device(arguments: tuple[object, ...], group: Group) -> Float[Array, "1 total"]:
        def add(total: Float[Array, " total"], slab: Group) -> tuple[Array, None]:
            return total + ravel_pytree(one(*arguments, *slab))[0], None

        own = jax.tree.map(lambda x: x[0], group)
        return jax.lax.scan(add, jnp.zeros(size), own)[0][None]

    spread = PartitionSpec(SHARD)
    return jax.shard_map(
        on_device, mesh=mesh, in_specs=(PartitionSpec(), spread), out_specs=spread, check_vma=False
    )(arguments, group)


def _begin(
    votes: SparseVotes, labels: Int[Array, " item"], weight: Float[Array, " item"]
) -> _Totals:
    """Return the counts for the two starts: from labelled items, and from majorities."""
    n_classes = votes.n_classes
    labelled = dawid_skene.labelled_responsibilities(labels, weight, n_classes)
    pooled = votes.pooled_counts().astype(float)
    majority = dawid_skene.majority_responsibilities(pooled, labels, weight)
    return _totals(votes, jnp.zeros(2), jnp.stack([labelled, majority], axis=1))


def _expect(
    at: _Parameters,
    noise: Scalar,
    votes: SparseVotes,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
) -> _Totals:
    """Return the expected counts of a slab under each parameter value (the E-step)."""
    starts, n_classes = at.log_pi.shape
    evidence = votes.item_sums(in_columns(at.log_confusion)).reshape(-1, starts, n_classes)
    clamped = dawid_skene.clamp(labels, noise, n_classes)
    joint = [at.log_pi[:, k] + evidence[..., k] + clamped[:, k, None] for k in range(n_classes)]
    each, own = responsibilities(joint)
    expected = weight[:, None, None] * jnp.stack(own, axis=-1)
    likelihood = jnp.where(weight[:, None] > 0, weight[:, None] * each, 0.0).sum(0)
    return _totals(votes, likelihood, expected)


def _totals(
    votes: SparseVotes,
    likelihood: Float[Array, " start"],
    expected: Float[Array, "item start class"],
) -> _Totals:
    _, starts, n_classes = expected.shape
    columns = votes.cell_sums(expected.reshape(-1, starts * n_classes))
    return _Totals(likelihood, expected.sum(0), from_columns(columns, starts, n_classes))
