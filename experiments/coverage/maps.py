"""`python -m judgebayes.experiments.coverage.maps`: intervals of calibrated probabilities.

Does the 90 % interval of `BayesianMap` contain the true probability in 90 of 100 data sets? Labels are
drawn from maps with fixed parameters (too sure, not sure enough, shifted, bent, nearly right), and from
maps drawn for each data set (*any*: log-slopes and intercepts uniform, independent of the fit's prior,
log s between -log 4 and log 4, c between -1.5 and 1.5); 50 and 200 labels, two and three classes. A cell
is a map, number of classes, number of labels, world, input and method, with 500 data sets. The simplest
alternative is included: 200 bootstrap fits of the same map.

No interval that is not randomised covers exactly 90 % at every fixed truth, and a posterior interval
need cover 90 % only on average over its prior. The requirement here is stronger: for every cell of
`BayesianMap` the exact binomial interval of the coverage, at 99 % simultaneously over all cells
(Bonferroni), includes 90 %.

Writes maps.csv and prints its table. Takes ten minutes on two cores.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import cyclopts
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from cyclopts import Parameter
from cyclopts.validators import Number
from jaxtyping import Array, Float
from scipy.special import log_softmax
from scipy.stats import beta, binomtest

from judgebayes import BayesianMap, Beta, Platt, Temperature
from judgebayes.compiled.float64 import in_float64
from judgebayes.inference import NUTS, NormalAtMode
from judgebayes.show.console import say_plainly

LEVEL, TOGETHER = 0.9, 0.99
LABELS = (50, 200)
RESAMPLES = 200
MAPS = {"temperature": Temperature(), "Platt": Platt(), "beta": Beta()}


class Method(NamedTuple):
    """A method for intervals, and the cells in which it is tested."""

    of: Callable[[Any], Any]
    batch: int
    """Number of data sets fitted at once."""
    offered: bool = True
    """Whether the library offers it for such data; if so, its coverage must hold."""
    everywhere: bool = False
    """Whether all numbers of classes and labels are tested; else, for time, only the smallest."""
    all_worlds: bool = True


METHODS = {
    "weighted Laplace": Method(BayesianMap, 10, everywhere=True),
    "NUTS": Method(
        lambda own: BayesianMap(own, NUTS(draws=400, warmup=300, chains=2)),
        100,
        all_worlds=False,
    ),
    "plain Laplace": Method(lambda own: BayesianMap(own, NormalAtMode()), 10, offered=False),
    "bootstrap": Method(lambda own: own, 10, offered=False),
}
INPUTS: dict[int, np.ndarray] = {
    2: np.array([[0.95, 0.05], [0.7, 0.3], [0.2, 0.8]]),
    3: np.array([[0.8, 0.15, 0.05], [0.1, 0.3, 0.6], [0.4, 0.35, 0.25]]),
}
"""Answers at which the calibrated probability of the last class is estimated."""
SPREAD = {2: 2.0, 3: 1.5}
"""Standard deviation of the log-odds, or of the logits, of the answers."""


class World(NamedTuple):
    """Slopes and intercepts of two or three classes; None if they are drawn for each data set."""

    slopes: tuple[float, float, float] | None
    intercepts: tuple[float, float, float] = (0.0, 0.0, 0.0)


WORLDS: Mapping[str, World] = {
    "too sure": World((0.5, 0.5, 0.5)),
    "far too sure": World((0.2, 0.2, 0.2)),
    "not sure enough": World((2.0, 2.0, 2.0)),
    "nearly right": World((1.1, 1.1, 1.1)),
    "shifted": World((1.0, 1.0, 1.0), (0.0, 1.0, 0.5)),
    "bent": World((0.5, 1.5, 1.0), (0.0, 0.5, -0.5)),
    "any": World(None),
}
LEFT_OUT = {
    "temperature": ("shifted", "bent"),
    "Platt": ("far too sure", "bent"),
    "beta": ("far too sure", "shifted"),
}
"""Worlds left out because they are not in the map's family, or for time."""
TWO_WORLDS = ("too sure", "any")


def draw(
    name: str, world: World, n_classes: int, n_labels: int, replays: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return answers (replay, item, class), labels, and the truth at the inputs (replay, input)."""
    if world.slopes is None:
        slopes = np.exp(rng.uniform(-np.log(4), np.log(4), (replays, n_classes)))
        slopes = slopes if name == "beta" else np.broadcast_to(slopes[:, :1], slopes.shape)
        intercepts = rng.uniform(-1.5, 1.5, (replays, n_classes)) * (np.arange(n_classes) > 0)
        intercepts = intercepts * (name != "temperature")
    else:
        slopes, intercepts = (
            np.broadcast_to(np.asarray(x)[:n_classes], (replays, n_classes))
            for x in (world.slopes, world.intercepts)
        )

    def truth(log_probs: np.ndarray) -> np.ndarray:
        return log_softmax(slopes[:, None] * log_probs + intercepts[:, None], axis=-1)

    logits = SPREAD[n_classes] * rng.normal(size=(replays, n_labels, n_classes))
    if n_classes == 2:
        logits[..., 0] = 0.0
    log_probs = log_softmax(logits, axis=-1)
    noise = rng.gumbel(size=log_probs.shape)
    at_inputs = np.exp(truth(np.log(INPUTS[n_classes])[None]))[..., -1]
    return log_probs, (truth(log_probs) + noise).argmax(-1), at_inputs


def ends(method: Any, n_classes: int, batch: int) -> Callable[..., tuple[Array, Array]]:
    """Return a compiled function from many data sets to their intervals at the inputs."""
    inputs = np.log(INPUTS[n_classes])

    def one(log_probs: Array, labels: Array, key: Array) -> tuple[Array, Array]:
        if isinstance(method, BayesianMap):
            low, high = method.fit(log_probs, labels, key=key).interval(inputs, level=LEVEL)
            return low[:, -1], high[:, -1]
        items = jax.random.randint(key, (RESAMPLES, len(labels)), 0, len(labels))
        weight = jax.vmap(lambda i: jnp.zeros(len(labels)).at[i].add(1.0))(items)

        def again(weight: Float[Array, " item"]) -> Float[Array, " input"]:
            return jnp.exp(method.fit(log_probs, labels, weight=weight)(inputs))[:, -1]

        tails = jnp.array([(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        low, high = jnp.quantile(jax.vmap(again)(weight), tails, axis=0)
        return low, high

    def batched(*data: Array) -> Any:
        return jax.lax.map(lambda lane: one(*lane), data, batch_size=batch)

    return jax.jit(batched)


def tested_worlds(method: Method, name: str, n_classes: int, n_labels: int) -> list[str]:
    """Return the worlds in which a map is tested; for three classes only two, for time."""
    if not method.everywhere and (n_classes, n_labels) != (2, LABELS[0]):
        return []
    chosen = TWO_WORLDS if n_classes > 2 or not method.all_worlds else tuple(WORLDS)
    return [world for world in chosen if world not in LEFT_OUT[name]]


@in_float64
def count_coverage(
    replays: int, seed: int, methods: tuple[str, ...] = tuple(METHODS)
) -> pd.DataFrame:
    """Return a row per cell: how many intervals contain the truth, and their mean width."""
    rows = []
    for method in methods:
        way = METHODS[method]
        for name, own in MAPS.items():
            for n_classes in INPUTS:
                for n_labels in LABELS:
                    worlds = tested_worlds(way, name, n_classes, n_labels)
                    if not worlds:
                        continue
                    function = ends(way.of(own), n_classes, way.batch)
                    for called in worlds:
                        place, world = list(WORLDS).index(called), WORLDS[called]
                        rng = np.random.default_rng([seed, n_classes, n_labels, place])
                        *data, truth = draw(name, world, n_classes, n_labels, replays, rng)
                        keys = jax.random.split(jax.random.key(seed), replays)
                        low, high = map(np.asarray, function(*map(jnp.asarray, data), keys))
                        inside = (low <= truth) & (truth <= high)
                        for i, at in enumerate(INPUTS[n_classes]):
                            rows.append(
                                {
                                    "method": method,
                                    "map": name,
                                    "classes": n_classes,
                                    "labels": n_labels,
                                    "world": called,
                                    "input": at[-1],
                                    "replays": replays,
                                    "inside": int(inside[:, i].sum()),
                                    "below": int((truth < low)[:, i].sum()),
                                    "width": float((high - low)[:, i].mean()),
                                }
                            )
                    sys.stderr.write(f"{method}, {name}, {n_classes} classes, {n_labels} labels\n")
    return pd.DataFrame(rows)


def assess(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells with exact intervals of their coverage, simultaneous over offered methods."""
    tail = (1 - TOGETHER) / 2 / max(sum(METHODS[method].offered for method in cells["method"]), 1)
    inside, missed = cells["inside"], cells["replays"] - cells["inside"]
    low = np.nan_to_num(beta.ppf(tail, inside, missed + 1), nan=0.0)
    high = np.nan_to_num(beta.isf(tail, inside + 1, missed), nan=1.0)
    return cells.assign(
        coverage=inside / cells["replays"],
        low=low,
        high=high,
        p=[binomtest(k, n, LEVEL).pvalue for k, n in zip(inside, cells["replays"], strict=True)],
        excluded=(low > LEVEL) | (high < LEVEL),
    )


def markdown(cells: pd.DataFrame) -> list[str]:
    """Return a row per method, map, classes and labels: coverage over its cells, in per cent."""
    lines = [
        "| method | map | classes | labels | cells | mean coverage | least | most | 90 % excluded | "
        "mean width |",
        "|---" * 10 + "|",
    ]
    keys = ["method", "map", "classes", "labels"]
    for (method, name, n_classes, n_labels), own in cells.groupby(keys, sort=False):
        share = 100 * own["coverage"]
        lines.append(
            f"| {method} | {name} | {n_classes} | {n_labels} | {len(own)} | {share.mean():.1f} | "
            f"{share.min():.1f} | {share.max():.1f} | {own['excluded'].sum()} | "
            f"{own['width'].mean():.3f} |"
        )
    return lines


def write(cells: pd.DataFrame, out: Path) -> list[str]:
    """Write maps.csv, and return its table."""
    out.mkdir(parents=True, exist_ok=True)
    cells.to_csv(out / "maps.csv", index=False, float_format="%.5g", lineterminator="\n")
    return markdown(pd.read_csv(out / "maps.csv"))


def check(
    replays: Annotated[
        int, Parameter(validator=Number(gte=4), help="Number of data sets for each cell.")
    ] = 500,
    seed: Annotated[int, Parameter(help="Seed of all random numbers.")] = 0,
    out: Annotated[Path, Parameter(help="Folder for the results.")] = Path("results/coverage"),
) -> None:
    """Count how often the maps' intervals contain the truth; write maps.csv and print its table."""
    say_plainly("\n".join(write(assess(count_coverage(replays, seed)), out)))


if __name__ == "__main__":
    cyclopts.run(check)
