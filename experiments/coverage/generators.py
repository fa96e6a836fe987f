"""Intervals of generators and systems, from counts and by strata."""

from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus.audit_regimes import GENERATORS, REGIMES, world
from judgebayes.experiments.beyond_consensus.common import DATASET, item_votes
from judgebayes.experiments.beyond_consensus.impression import Impression
from judgebayes.experiments.coverage.engine import LEVELS, Ends, Setting, Trials, trials
from judgebayes.experiments.data import MTBENCH_PEOPLE, model_pairs
from judgebayes.generators import PrecisionCounts, count_votes, stratify, valid_share
from judgebayes.generators.labelling import Strata, Stratified, StratumCounts, count_strata
from judgebayes.generators.systems import mean_win_rates

SHOWN = 3
"""Number of fully or partly labelled generators."""
PART = 60
"""Number of labels of each partly labelled generator."""
AT_ONCE = 10
ITEMS = 200
MATCH_LABELS = 0.2
SYSTEMS, MATCHES = 5, 80


@in_float64
def impression(setting: Setting) -> list[Trials]:
    """Return trials of a generator without labels, when three others are fully labelled."""
    return [*_impression(setting)]


def _impression(setting: Setting) -> Iterator[Trials]:
    worlds = [world(*regime(setting, i)) for i in range(setting.replays)]
    yield _unlabelled(setting, "simulated: weak and strong judges", worlds, GENERATORS)
    if setting.run.has(DATASET):
        cell = item_votes(setting.run, "fcnhp")
        names = cell.program.max() + 1
        own = cell.program * len(cell.generators) + cell.generator
        every = count_votes(
            cell.votes, jnp.asarray(cell.labels), jnp.asarray(own), names * len(cell.generators)
        )
        parts = jax.tree.map(
            lambda x: np.asarray(x).reshape(names, len(cell.generators), *x.shape[1:]), every
        )
        replays = [
            jax.tree.map(lambda x, t=times: jnp.asarray(np.tensordot(t.astype(float), x, 1)), parts)
            for times in program_draws(setting, cell.program)
        ]
        yield _unlabelled(setting, "feedback on programs", replays, len(cell.generators))


def regime(setting: Setting, replay: int) -> tuple[str, int]:
    """Return the regime and the seed of the simulated world of a replay."""
    regimes = list(REGIMES)
    return regimes[replay % len(regimes)], setting.run.seed + replay


def program_draws(
    setting: Setting, program: Int[np.ndarray, " item"]
) -> list[Int[np.ndarray, " program"]]:
    """Return how often each program is drawn, with replacement, in each replay."""
    rng, names = setting.rng(12), int(program.max()) + 1
    even = np.full(names, 1 / names)
    return [rng.multinomial(names, even) for _ in range(setting.replays)]


def orders(setting: Setting, generators: int) -> Int[np.ndarray, "replay generator"]:
    """Return an order of the generators for each replay: the first ones are labelled in full."""
    rng = setting.rng(13, generators)
    return np.stack([rng.permutation(generators) for _ in range(setting.replays)])


def _unlabelled(
    setting: Setting, name: str, worlds: Sequence[PrecisionCounts], generators: int
) -> Trials:
    order_by_replay = orders(setting, generators)
    masks = np.zeros((len(worlds), generators), bool)
    np.put_along_axis(masks, order_by_replay[:, :SHOWN], True, axis=1)
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *worlds)
    low, high = _impressions(stacked, masks)
    intervals: list[tuple[Ends, float]] = []
    for i, (counts, order) in enumerate(zip(worlds, order_by_replay, strict=True)):
        at = order[-1]
        ends = [(float(a), float(b)) for a, b in zip(low[i, :, at], high[i, :, at], strict=True)]
        intervals.append((ends, float(counts.labelled_precision[at])))
    return trials("generator's precision, others labelled in full", name, intervals)


def _impressions(
    counts: PrecisionCounts, masks: Bool[np.ndarray, "replay generator"]
) -> tuple[np.ndarray, np.ndarray]:
    def one(pair: tuple[PrecisionCounts, Array]) -> tuple[Array, Array]:
        fit = Impression().fit(pair[0].reveal(pair[1]))
        ends = [fit.interval(level) for level in LEVELS]
        return jnp.stack([e[0] for e in ends]), jnp.stack([e[1] for e in ends])

    bounds = jax.jit(lambda x: jax.lax.map(one, x, batch_size=AT_ONCE))(
        (counts, jnp.asarray(masks))
    )
    return np.asarray(bounds[0]), np.asarray(bounds[1])


@in_float64
def stratified(setting: Setting) -> list[Trials]:
    """Return trials of partly labelled and unlabelled generators, and of systems' win rates."""
    return [*_stratified(setting)]


def _stratified(setting: Setting) -> Iterator[Trials]:
    rng = setting.rng(14)
    score, labels, generator = outputs()
    sources = [("simulated: one score per output", stratify(score), labels, generator)]
    if setting.run.has(DATASET):
        cell = item_votes(setting.run, "fcnhp")
        strata = stratify(valid_share(cell.votes))
        sources.append(("feedback on programs", strata, cell.labels, cell.generator))
    for name, strata, truth, of_item in sources:
        yield from _in_part(setting, name, strata, truth, of_item, rng)
    wins = [("simulated: Bradley-Terry", *_matches())]
    if setting.run.has(MTBENCH_PEOPLE):
        votes, people, pair, pairs, names = model_pairs(setting.run)
        wins.append(("MT-Bench", stratify(valid_share(votes)), people, pair, pairs, len(names)))
    for name, strata, truth, of_item, pairs, systems in wins:
        yield from _win_rates(setting, name, strata, truth, of_item, pairs, systems, rng)


def _in_part(
    setting: Setting,
    name: str,
    strata: Strata,
    labels: np.ndarray,
    generator: np.ndarray,
    rng: np.random.Generator,
) -> Iterator[Trials]:
    n = int(generator.max()) + 1
    truth = np.bincount(generator, weights=labels) / np.bincount(generator)
    replays, orders = [], []
    for _ in range(setting.replays):
        order = rng.permutation(n)
        own = np.full(len(labels), -1)
        for g in order[:SHOWN]:
            chosen = rng.choice(np.flatnonzero(generator == g), PART, replace=False)
            own[chosen] = labels[chosen]
        replays.append(count_strata(strata, own, generator, n))
        orders.append(order)
    draws = _draws(replays)
    for labelling, at in (("labelled in part", 0), ("others labelled in part", SHOWN)):
        intervals = [
            (_central(draws[i][:, order[at]]), float(truth[order[at]]))
            for i, order in enumerate(orders)
        ]
        yield trials(f"generator's precision, {labelling}", name, intervals)


def _win_rates(
    setting: Setting,
    name: str,
    strata: Strata,
    labels: np.ndarray,
    pair: np.ndarray,
    pairs: list[tuple[int, int]],
    systems: int,
    rng: np.random.Generator,
) -> Iterator[Trials]:
    truth = np.bincount(pair, weights=labels) / np.bincount(pair)
    to_systems = mean_win_rates(pairs, systems)
    strength = 0.5 + to_systems @ (truth - 0.5)
    replays = []
    for _ in range(setting.replays):
        partial_labels = np.where(rng.random(len(labels)) < MATCH_LABELS, labels, -1)
        replays.append(count_strata(strata, partial_labels, pair, len(pairs)))
    draws = _draws(replays)
    of_pair = [
        (_central(d[:, i % len(pairs)]), float(truth[i % len(pairs)])) for i, d in enumerate(draws)
    ]
    yield trials("win rate of a pair", name, of_pair)
    of_system = [
        (
            _central(0.5 + (d - 0.5) @ to_systems[i % systems]),
            float(strength[i % systems]),
        )
        for i, d in enumerate(draws)
    ]
    yield trials("mean win rate of a system", name, of_system)


def _draws(counts: Sequence[StratumCounts]) -> Float[np.ndarray, "replay draw generator"]:
    """Return the posterior draws whose quantiles are `Stratified`'s intervals."""
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *counts)
    one = jax.jit(
        lambda x: jax.lax.map(lambda c: Stratified().fit(c).sample(), x, batch_size=AT_ONCE)
    )
    return np.asarray(one(stacked))


def _central(draws: Float[np.ndarray, " draw"]) -> Ends:
    return [tuple(np.quantile(draws, ((1 - q) / 2, (1 + q) / 2))) for q in LEVELS]


def outputs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return outputs of six generators, 50 to 95 % of them valid, with eight judges' mean vote."""
    rng = np.random.default_rng(14)
    generator = np.repeat(np.arange(6), ITEMS)
    labels = (rng.random(len(generator)) < np.linspace(0.5, 0.95, 6)[generator]).astype(int)
    chance = np.where(labels == 1, rng.beta(4, 2, len(labels)), rng.beta(2, 3, len(labels)))
    return rng.binomial(8, chance) / 8, labels, generator


def _matches() -> tuple[Strata, np.ndarray, np.ndarray, list[tuple[int, int]], int]:
    """Return matches of five systems by their strengths, and votes of a judge that is right in 80 %."""
    rng = np.random.default_rng(15)
    strength = np.linspace(-1, 1, SYSTEMS)
    pairs = [(a, b) for a in range(SYSTEMS) for b in range(a + 1, SYSTEMS)]
    pair = np.repeat(np.arange(len(pairs)), MATCHES)
    gap = np.array([strength[a] - strength[b] for a, b in pairs])[pair]
    labels = (rng.random(len(pair)) < 1 / (1 + np.exp(-gap))).astype(int)
    votes = np.where(rng.random(len(pair)) < 0.8, labels, 1 - labels)
    return stratify(votes.astype(float)), labels, pair, pairs, SYSTEMS
