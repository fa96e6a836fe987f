"""Conformal sets, and the range of their coverage in `calibrate --conformal` and `report`."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from judgebayes import OneCoin
from judgebayes.calibrators.conformal import SplitConformal, coverage, coverage_law
from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.coverage import populations
from judgebayes.experiments.coverage.engine import LEVELS, Setting, Trials, trials

HELD = 19
"""(n + 1) times every level is an integer, so that without ties the sets are exact."""
LEVEL = 0.9
JUDGES = 5
INSIDE, OUTSIDE = (0.0, 1.0), (2.0, 3.0)
FITTED = 100


def conformal(setting: Setting) -> Iterator[Trials]:
    """Yield trials of sets from 19 labels for one more item, and of the range of their coverage."""
    pools = [("simulated: continuous scores", *_continuous())]
    for population in (
        populations.llmbar(setting.run),
        populations.rewardbench(setting.run),
    ):
        if population is not None:
            few = population.judges(np.arange(JUDGES))
            for name, one in ((population.name, population), (f"{population.name}, ties", few)):
                fit = OneCoin().fit(one.votes(slice(FITTED)), one.labels[:FITTED])
                pools.append((name, np.asarray(fit(one.votes()))[FITTED:], one.labels[FITTED:]))
    for place, (name, log_probs, labels) in enumerate(pools):
        yield _sets(setting, name, log_probs, labels, place)
        yield _ranges(setting, name, log_probs, labels, place)


def _continuous() -> tuple[Float[np.ndarray, "item class"], Int[np.ndarray, " item"]]:
    rng = np.random.default_rng(13)
    logits = rng.normal(0, 1.5, (3000, 3))
    log_probs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    labels = (rng.random((3000, 1)) > np.exp(log_probs).cumsum(1)).sum(1).clip(max=2)
    return log_probs, labels


def _sets(
    setting: Setting, name: str, log_probs: np.ndarray, labels: np.ndarray, place: int
) -> Trials:
    """Return trials of sets; fixed ends inside or outside represent whether the label is in the set."""
    rng, n = setting.rng(6, place), len(labels)
    items = np.stack([rng.choice(n, HELD + 1, replace=False) for _ in range(setting.replays)])
    covered = np.stack([_covered(log_probs, labels, items, level)[1] for level in LEVELS], axis=1)
    intervals = [([INSIDE if inside else OUTSIDE for inside in row], 0.5) for row in covered]
    return trials("conformal set", name, intervals)


def _ranges(
    setting: Setting, name: str, log_probs: np.ndarray, labels: np.ndarray, place: int
) -> Trials:
    rng, rest = setting.rng(7, place), len(labels) - HELD
    items = np.stack([rng.permutation(len(labels)) for _ in range(setting.replays)])
    own, shares = _covered(log_probs, labels, items, LEVEL)
    intervals = []
    for covered, share in zip(np.round(HELD * own).astype(int), shares, strict=True):
        laws = [
            coverage_law(HELD, LEVEL, rest, interval=level, covered=int(covered))
            for level in LEVELS
        ]
        intervals.append(([(law.low, law.high) for law in laws], float(share)))
    return trials("coverage of conformal sets", name, intervals)


@in_float64
def _covered(
    log_probs: Float[np.ndarray, "item class"],
    labels: Int[np.ndarray, " item"],
    items: Int[np.ndarray, "replay some"],
    level: float,
) -> tuple[Float[np.ndarray, " replay"], Float[np.ndarray, " replay"]]:
    """Return the shares of the first and of the later items whose sets contain their labels.

    The threshold comes from the first items.
    """

    @jax.jit
    def one(chosen: jax.Array) -> tuple[jax.Array, jax.Array]:
        own, label = jnp.asarray(log_probs)[chosen], jnp.asarray(labels)[chosen]
        fit = SplitConformal(level).fit(own[:HELD], label[:HELD])
        sets = fit(own)
        return coverage(sets[:HELD], label[:HELD]), coverage(sets[HELD:], label[HELD:])

    held_coverage, new_coverage = jax.lax.map(one, jnp.asarray(items), batch_size=50)
    return np.asarray(held_coverage), np.asarray(new_coverage)
