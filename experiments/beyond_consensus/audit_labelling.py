"""Audit: chosen labels against random labels, by replay.

Claim: none in the paper, which leaves the choice of what to annotate to future work.
Command: judgebayes reproduce beyond-consensus/audit-labelling --data DIR
Runtime: about 2 minutes (40 replays a setting).
Expected: a new generator of P4 needs clearly fewer chosen labels than random ones, about half of them
for wide intervals, and fewer still compared with labels without votes, at nearly nominal coverage. Six
generators that start without labels gain less. On LLMBar and RTE, with one generator each and no others
to learn from, votes save labels, but the choice saves little. Even if every stratum's validity were
known beforehand, no allocation could save much there at small widths (`neyman-limit`).

A replay hides the labels, reveals them in rounds of 20 and records the 90 % interval before every
round. `acquisition` reveals the items that `Stratified.next_labels` selects, `random` the same number
at random; both intervals are `Stratified`'s, so only the choice differs. `labels-only` uses random
labels without any vote (Agresti & Coull's interval with the finite-population factor). The number of
labels needed for a width is that of the first round whose interval is at most as wide, interpolated;
if no round is, all labels count. Coverage is measured at that round, since stopping when the interval
looks narrow enough could reduce it. Settings: a new generator of P4 when the five others are fully
labelled (six settings, each generator once); P4's six generators without any labels (mean width over
the six); and two binary sets with stronger judges, LLMBar (GPT-4's evaluators in both orders; the
share that A wins) and RTE (ten workers per item).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Float, Int

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.beyond_consensus.common import DATASET, PAPER, item_votes
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import LLMBAR, crowd, llmbar_orders
from judgebayes.generators import stratify, valid_share
from judgebayes.generators.labelling import Strata, Stratified, StratumCounts, labels_by_cell

REPLAYS = 40
ROUND = 20
ROUNDS = 25
DRAWS = 600
WIDTHS = (0.10, 0.08, 0.07, 0.06, 0.05, 0.04)
Z90 = 1.6448536269514722
RESAMPLES = 1000
METHODS = ("acquisition", "random", "labels-only")


@dataclass(frozen=True)
class Setting:
    """Items with scores and labels, and which items are labelled at the start of a replay."""

    dataset: str
    task: str
    strata: Strata
    labels: Int[np.ndarray, " item"]
    generator: Int[np.ndarray, " item"]
    already_labelled: Bool[np.ndarray, " item"]
    targets: Bool[np.ndarray, " generator"]
    between: bool = False
    """Whether the labels are for the difference of the two targets, and not for each of them."""
    more: bool = False
    """Whether the shares are those among more items like these."""

    @property
    def contrasts(self) -> Float[np.ndarray, "contrast generator"]:
        """What the labels are for, as sums of the generators' shares."""
        each = np.eye(len(self.targets))[self.targets]
        return each[:1] - each[1:] if self.between else each

    @property
    def truth(self) -> Float[np.ndarray, " contrast"]:
        """What the labels are for, from all labels."""
        share = np.bincount(self.generator, weights=self.labels) / np.bincount(self.generator)
        return np.asarray(self.contrasts @ share)


def settings(run: Run) -> list[Setting]:
    """Return the settings whose data are there."""
    all_settings = []
    if run.has(DATASET):
        cell = item_votes(run, "fcnhp")
        strata = stratify(valid_share(cell.votes))
        none = np.zeros(len(cell.labels), bool)
        for place, name in run.few(list(enumerate(cell.generators)), 1):
            new = np.arange(6) == place
            already_labelled = ~new[cell.generator]
            task = f"new generator: {name}"
            all_settings.append(
                Setting(DATASET, task, strata, cell.labels, cell.generator, already_labelled, new)
            )
        every = np.ones(6, bool)
        if not run.smoke:
            task = "six generators, no labels"
            all_settings.append(
                Setting(DATASET, task, strata, cell.labels, cell.generator, none, every)
            )
    if run.has(LLMBAR) and not run.smoke:
        votes, coding, labels = llmbar_orders(run)
        strong = [i for i, name in enumerate(coding.judges) if str(name).startswith("GPT-4/")]
        index = np.asarray(votes.index)[:, strong].reshape(votes.n_items, -1)
        # Classes are B, tie, A: a tie counts half for each.
        share = np.where(index < 0, 0.0, index / 2).sum(1) / np.maximum((index >= 0).sum(1), 1)
        all_settings.append(
            _one_generator(LLMBAR, "LLMBar: A wins", share, (labels == 2).astype(int))
        )
    if run.has("crowd_labels") and not run.smoke:
        votes, labels = crowd(run, "rte")
        all_settings.append(_one_generator("crowd_labels", "RTE", valid_share(votes), labels))
    return all_settings


def _one_generator(dataset: str, task: str, score: np.ndarray, labels: np.ndarray) -> Setting:
    one = np.zeros(len(labels), int)
    nothing = np.zeros(len(labels), bool)
    return Setting(dataset, task, stratify(score), labels, one, nothing, np.ones(1, bool))


@dataclass(frozen=True)
class Replay:
    """Intervals of what the labels are for, and counts of the targets, by replay and round."""

    labels: Float[np.ndarray, "replay round"]
    low: Float[np.ndarray, "replay round contrast"]
    middle: Float[np.ndarray, "replay round contrast"]
    high: Float[np.ndarray, "replay round contrast"]
    valid: Float[np.ndarray, "replay round generator"]
    n: Float[np.ndarray, "replay round generator"]


@in_float64
def replay(setting: Setting, replays: int, *, choose: bool, seed: int) -> Replay:
    """Return intervals and counts before every round, with items chosen or drawn at random."""
    strata = len(setting.strata.position)
    cell = setting.generator * strata + setting.strata.of_item
    keys = jax.random.split(jax.random.key(seed), replays)
    out = _replay(
        keys,
        jnp.asarray(np.eye(len(setting.targets) * strata)[cell]),
        jnp.asarray(setting.labels, float),
        jnp.asarray(setting.already_labelled),
        jnp.asarray(setting.contrasts),
        jnp.asarray(setting.more),
        jnp.asarray(setting.strata.position),
        jnp.asarray(choose),
    )
    quantiles, valid, n, total = (np.asarray(a) for a in out)
    pick = setting.targets
    low, middle, high = (quantiles[:, :, i] for i in range(3))
    return Replay(total, low, middle, high, valid[..., pick], n[..., pick])


@jax.jit
def _replay(
    keys: Array,
    cell: Float[Array, "item cell"],
    labels: Float[Array, " item"],
    already_labelled: Bool[Array, " item"],
    contrasts: Float[Array, "contrast generator"],
    more: Bool[Array, ""],
    position: Float[Array, " stratum"],
    choose: Bool[Array, ""],
) -> tuple[Array, Array, Array, Array]:
    shape = contrasts.shape[1], len(position)
    size = cell.sum(0).reshape(shape).sum(1)
    chance = jax.random.normal(jax.random.key(1), (DRAWS, shape[0]))

    def one(key: Array) -> tuple[Array, Array, Array, Array]:
        order = jnp.argsort(jnp.where(already_labelled, 2.0, jax.random.uniform(key, labels.shape)))
        place = jnp.argsort(order)
        sorted_cells = cell[order] * ~already_labelled[order][:, None]
        before = ((jnp.cumsum(sorted_cells, 0) - sorted_cells) * sorted_cells).sum(1)
        in_cell = jnp.zeros(labels.shape).at[order].set(before)

        def step(requested: Array, _: None) -> tuple[Array, tuple[Array, Array, Array, Array]]:
            total = requested.sum()
            labelled = jnp.where(choose, in_cell < cell @ requested, place < total)
            labelled = already_labelled | (labelled & ~already_labelled)
            valid, n, rest = (
                (w @ cell).reshape(shape)
                for w in (labelled * labels, labelled * 1.0, (~labelled) * 1.0)
            )
            fit = Stratified().fit(StratumCounts(valid, n - valid, rest, position))
            share = fit.sample(DRAWS)
            of_new = share + chance * jnp.sqrt(share * (1 - share) / size)
            drawn = jnp.where(more, of_new, share) @ contrasts.T
            quantiles = jnp.quantile(drawn, jnp.array([0.05, 0.5, 0.95]), axis=0)
            design = fit.design()._replace(contrasts=contrasts, more=more)
            next_items = jax.lax.cond(
                choose,
                lambda: labels_by_cell(design, jnp.asarray(ROUND)),
                lambda: jnp.zeros(requested.shape).at[0].set(ROUND),
            )
            return requested + next_items, (quantiles, valid.sum(1), n.sum(1), total)

        return jax.lax.scan(step, jnp.zeros(cell.shape[1]), None, length=ROUNDS)[1]

    return jax.lax.map(one, keys, batch_size=8)


def labels_only(
    replays: Replay, size: Float[np.ndarray, " generator"], setting: Setting
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of Agresti and Coull's intervals of random labels, for a finite population.

    That of a difference has the root of the sum of their squares.
    """
    n = replays.n + Z90**2
    share = (replays.valid + Z90**2 / 2) / n
    unlabelled_factor = 1.0 if setting.more else np.sqrt(np.clip(1 - replays.n / size, 0, 1))
    half = Z90 * np.sqrt(share * (1 - share) / n) * unlabelled_factor
    if setting.between:
        share, half = share[..., :1] - share[..., 1:], np.sqrt((half**2).sum(-1, keepdims=True))
    return share - half, share + half


def needed(
    width: Float[np.ndarray, "replay round"],
    labels: Float[np.ndarray, "replay round"],
    goal: float,
) -> Float[np.ndarray, " replay"]:
    """Return the number of labels each replay needed for a width; all labels if never reached."""
    needed_labels = []
    for w, n in zip(width, labels, strict=True):
        there = w <= goal
        k = int(np.argmax(there))
        if not there.any():
            needed_labels.append(n[-1])
        elif k == 0:
            needed_labels.append(n[0])
        else:
            needed_labels.append(
                n[k - 1] + (n[k] - n[k - 1]) * (w[k - 1] - goal) / (w[k - 1] - w[k])
            )
    return np.array(needed_labels)


@experiment(
    PAPER,
    "audit-labelling",
    "Audit: which outputs to label next",
    "labels chosen by expected variance reduction need at most 70 % of random ones",
    needs=(DATASET,),
)
def main(run: Run) -> Output:
    """Return labels needed, their ratio to those of random choice, coverage and mean widths."""
    records: list[dict[str, Any]] = []
    pooled: Pooled = {}
    for setting in settings(run):
        run.say(setting.task)
        of_setting, counts = compared(setting, min(REPLAYS, run.splits), run.seed, WIDTHS)
        limit = {"method": "neyman-limit", "metric": "ratio of labels"} | _limit(setting)
        records += [*of_setting, {"dataset": setting.dataset, "task": setting.task} | limit]
        if setting.task.startswith("new"):
            add(pooled, counts)
    records += ratios(pooled, "new generator", run.seed)
    table = rows(PAPER, "audit-labelling", records)
    return Output(table, notes=_notes(table))


Counts = dict[float, dict[str, np.ndarray]]
"""Labels that each method needs in each replay, by width."""
Pooled = dict[float, dict[str, list[np.ndarray]]]
"""The same in several settings."""


def add(pooled: Pooled, counts: Counts) -> None:
    """Add the counts of one setting."""
    for goal, by_method in counts.items():
        for name, needed_labels in by_method.items():
            pooled.setdefault(goal, {}).setdefault(name, []).append(needed_labels)


def compared(
    setting: Setting, replays: int, seed: int, goals: Sequence[float]
) -> tuple[list[dict[str, Any]], Counts]:
    """Return a setting's widths, coverage and labels needed, and the latter by replay."""
    truth = setting.truth
    size = np.bincount(setting.generator).astype(float)[setting.targets]
    replay_by_method = {
        "acquisition": replay(setting, replays, choose=True, seed=seed),
        "random": replay(setting, replays, choose=False, seed=seed),
    }
    ends = {name: (f.low, f.high) for name, f in replay_by_method.items()}
    ends["labels-only"] = labels_only(replay_by_method["random"], size, setting)
    labels = {
        name: replay_by_method[name if name in replay_by_method else "random"].labels
        for name in METHODS
    }
    base = {"dataset": setting.dataset, "task": setting.task, "splits": replays}
    width = {name: (high - low).mean(2) for name, (low, high) in ends.items()}
    records: list[dict[str, Any]] = []
    for name in METHODS:
        low, high = ends[name]
        inside = ((low <= truth + 1e-12) & (truth <= high + 1e-12)).mean(2)
        for k in range(ROUNDS):
            spread = 1.96 * width[name][:, k].std() / np.sqrt(replays)
            mean = float(width[name][:, k].mean())
            row = base | {"n": k * ROUND, "method": name, "metric": "width"}
            records.append(row | {"value": mean, "low": mean - spread, "high": mean + spread})
        if setting.more:
            continue  # the true share of new items is unknown
        start = 1 if name == "labels-only" else 0
        records.append(
            base | {"method": name, "metric": "coverage", "value": float(inside[:, start:].mean())}
        )
    counts: Counts = {}
    for goal in goals:
        if (width["random"][:, 0] <= goal).all():
            continue  # nothing to label for
        needs = {name: needed(width[name], labels[name], goal) for name in METHODS}
        if (needs["random"] >= labels["random"][:, -1]).mean() > 0.5:
            continue  # most replays ran out of labels, so the ratio is unknown
        records += _needs(base, goal, needs, ends, width, None if setting.more else truth)
        counts[goal] = needs
    return records, counts


def _limit(setting: Setting) -> dict[str, float]:
    """Return the smallest possible ratio of labels at small widths, if every cell's validity is known.

    It is the variance of a stratified mean under Neyman's allocation, divided by the variance under
    proportional allocation, to which random choice with an estimate by strata is equivalent.
    """
    ratios = []
    for place in np.flatnonzero(setting.targets):
        own = setting.generator == place
        size = np.bincount(setting.strata.of_item[own]).astype(float)
        valid = np.bincount(setting.strata.of_item[own], weights=setting.labels[own])
        share = (valid + 0.5) / (size + 1)
        spread = np.sqrt(share * (1 - share))
        part = size / size.sum()
        ratios.append((part @ spread) ** 2 / (part @ spread**2))
    return {"value": float(np.mean(ratios))}


def _needs(
    base: dict[str, Any],
    goal: float,
    counts: dict[str, np.ndarray],
    ends: dict[str, tuple[np.ndarray, np.ndarray]],
    width: dict[str, np.ndarray],
    truth: np.ndarray | None,
) -> list[dict[str, Any]]:
    """Return labels needed for a width, their ratio to random choice, and coverage at the stop."""
    records = []
    row = base | {"judge": f"width {100 * goal:.0f} points"}
    for name, n in counts.items():
        records.append(row | {"method": name, "metric": "labels needed", "value": n.mean()})
        if truth is None:
            continue
        low, high = ends[name]
        stop = np.where((width[name] <= goal).any(1), (width[name] <= goal).argmax(1), ROUNDS - 1)
        at = np.arange(len(stop)), stop
        inside = (low[at] <= truth + 1e-12) & (truth <= high[at] + 1e-12)
        records.append(
            row | {"method": name, "metric": "coverage on stopping", "value": inside.mean()}
        )
    for other in ("random", "labels-only"):
        ratio, low_end, high_end = _ratio([counts["acquisition"]], [counts[other]], 0)
        records.append(
            row
            | {
                "method": f"acquisition / {other}",
                "metric": "ratio of labels",
                "value": ratio,
                "low": low_end,
                "high": high_end,
            }
        )
    return records


def _ratio(
    ours: list[np.ndarray], theirs: list[np.ndarray], seed: int
) -> tuple[float, float, float]:
    """Return the ratio of mean labels over settings, with its bootstrap interval over replays."""
    rng = np.random.default_rng(seed)

    def once(pick: bool) -> float:
        parts = []
        for group in (ours, theirs):
            each = [x[rng.integers(0, len(x), len(x))] if pick else x for x in group]
            parts.append(np.mean([x.mean() for x in each]))
        return float(parts[0] / parts[1]) if parts[1] > 0 else np.nan

    ratios = [once(True) for _ in range(RESAMPLES)]
    low, high = np.quantile(ratios, [0.025, 0.975])
    return once(False), float(low), float(high)


def ratios(pooled: Pooled, task: str, seed: int, of: int = 6) -> list[dict[str, Any]]:
    """Return the label ratios over all settings that reach a width."""
    records = []
    for goal, by_method in sorted(pooled.items(), reverse=True):
        for other in ("random", "labels-only"):
            ratio, low, high = _ratio(by_method["acquisition"], by_method[other], seed)
            records.append(
                {
                    "dataset": DATASET,
                    "task": f"{task}, {len(by_method['random'])} of {of}",
                    "judge": f"width {100 * goal:.0f} points",
                    "method": f"acquisition / {other}",
                    "metric": "ratio of labels",
                    "value": ratio,
                    "low": low,
                    "high": high,
                }
            )
    return records


def _notes(table: pd.DataFrame) -> list[str]:
    ratio = table[(table["metric"] == "ratio of labels") & table["task"].str.startswith("new gen")]
    ratio = ratio[ratio["task"].str.endswith("of 6") & ratio["method"].str.endswith("random")]
    return [
        f"{row.task}, {row.judge}: {100 * row.value:.0f} % of the labels that random choice needs "
        f"({100 * row.low:.0f} to {100 * row.high:.0f})."
        for row in ratio.itertuples()
    ]
