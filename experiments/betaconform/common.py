"""Shared code of P3's tables: the data sets, the estimators, and the runs that draw labels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any
from zlib import crc32

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int

from judgebayes.compiled.float64 import in_float64
from judgebayes.experiments.betaconform.binomial import Binomial
from judgebayes.experiments.betaconform.importance import PriorImportance
from judgebayes.experiments.betaconform.paper_em import Distribution, PaperEM
from judgebayes.experiments.claims import Evidence, Kind, evidence, evidence_of_several
from judgebayes.experiments.core import Run, graded
from judgebayes.inference import MAP
from judgebayes.majority import (
    BetaBinomial,
    Counts,
    MeanLoss,
    SplitCurve,
    Splits,
    Thinning,
    counts_of,
    odd_sizes,
)
from judgebayes.majority.thinning import thin
from judgebayes.models import beta_binomial

PAPER = "betaconform"
COUNTS = "p3_correct_counts"
POINTS = 100
RUNS = 30
LANES = 40
FEW_JUDGES = 3

MARGIN = {
    # Table 2's least gain, 5 % of margins of about ten points.
    "error margin": 0.5,
    # One item in twenty in another place of Fig 3's histogram; the paper prints no distances.
    "distance": 0.05,
    # A tenth of the 40 to 65 labels that Table 1 uses.
    "labels": 5.0,
    # Section 8.1: deviations from eq 11 up to 12.86 labels are slight.
    "deviation from eq 11": 12.86,
    # Half the miss rate that the intervals allow, so 0.85 where 0.9 is nominal.
    "coverage": 0.05,
    # Less explains under 4 % of the variance.
    "correlation": 0.2,
}
"""The smallest difference that matters, by what a claim is about, in its own units."""
RESAMPLES = 200
"""Resampled item sets; each is a run of all estimators on all label subsets."""

LEAST_UNITS = 3

TWINS: dict[str, tuple[tuple[float, float, float], ...]] = {
    "two peaks": ((0.25, 1.0, 3.0), (0.75, 9.0, 1.0)),
    "one peak": ((1.0, 4.0, 1.5),),
    "independent votes": ((1.0, 7e6, 3e6),),
}
"""Simulated judges: share, alpha and beta of each component; 1,000 items with 11 votes."""
TWIN_ITEMS, TWIN_VOTES = 1000, 11


@dataclass(frozen=True)
class DataSet:
    """Correct votes of one ensemble on every item of one data set."""

    dataset: str
    task: str
    judge: str
    correct: Int[np.ndarray, " item"]
    votes: int

    @property
    def name(self) -> str:
        """Return the name: data set, task and judge."""
        return " ".join(x for x in (self.dataset, self.task, self.judge) if x)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the odd numbers of votes, up to the number of votes per item."""
        return odd_sizes(self.votes)

    @property
    def truth(self) -> Float[np.ndarray, " size"]:
        """Return the error of a majority vote over all items, by size."""
        counts = counts_of(self.correct, self.votes)
        return np.asarray(Thinning().fit(counts).estimate(self.sizes))

    def columns(self) -> dict[str, Any]:
        """Return the columns of a result row that identify this data set."""
        return {"dataset": self.dataset, "task": self.task, "judge": self.judge, "n": self.votes}


def all_data_sets(run: Run) -> list[DataSet]:
    """Return every data set of correct counts, or the simulated ones if the data are missing."""
    if not run.has(COUNTS):
        return run.few(simulated(), 2)
    return run.remember((PAPER, "all_data_sets"), lambda: _all_data_sets(run))


def _all_data_sets(run: Run) -> list[DataSet]:
    assert run.data is not None
    path = run.data / COUNTS / "correct_long.parquet"
    data_sets = []
    long = pd.read_parquet(path)
    grouped = long.groupby(["dataset", "model", "item"], observed=True)["correct"]
    table = grouped.agg(["sum", "count"]).reset_index()
    for (dataset, model), part in table.groupby(["dataset", "model"], observed=True):
        votes = int(part["count"].max())
        name, _, task = (
            str(dataset).partition("-") if str(dataset)[:3] == "rb2" else (dataset, 0, "")
        )
        data_sets.append(DataSet(str(name), str(task), str(model), part["sum"].to_numpy(), votes))
    keep = ("rb2 Math gpt-5.4", "llmbar GPT-4")
    return [j for j in data_sets if j.name in keep] if run.smoke else data_sets


def simulated(seed: int = 0) -> list[DataSet]:
    """Return the simulated judges, always the same."""
    rng = np.random.default_rng(seed)
    twins = []
    for name, components in TWINS.items():
        which = rng.choice(len(components), TWIN_ITEMS, p=[c[0] for c in components])
        alpha, beta = (np.array([c[i] for c in components])[which] for i in (1, 2))
        correct = rng.binomial(TWIN_VOTES, rng.beta(alpha, beta))
        twins.append(DataSet("twin", name, "", correct, TWIN_VOTES))
    return twins


def simulated_sets(seed: int = 1) -> list[DataSet]:
    """Return simulated data sets of one ensemble that differ in their share of hard items."""
    rng = np.random.default_rng(seed)
    data_sets = []
    for hard in (0.2, 0.3, 0.4):
        is_hard = rng.random(TWIN_ITEMS) < hard
        chance = np.where(is_hard, rng.beta(1.0, 3.0, TWIN_ITEMS), rng.beta(9.0, 1.0, TWIN_ITEMS))
        correct = rng.binomial(TWIN_VOTES, chance)
        data_sets.append(DataSet("twin", f"{hard:.0%} hard", "", correct, TWIN_VOTES))
    return data_sets


def subsets(run: Run) -> list[tuple[DataSet, str, list[str]]]:
    """Return data sets that share a judge and have text: each with its domain and its texts.

    The five subsets of LLMBar under each LLM, and the subsets of RewardBench under each panel of
    eleven reward models, whose domain is their category.
    """
    return run.remember((PAPER, "subsets"), lambda: _subsets(run))


def _subsets(run: Run) -> list[tuple[DataSet, str, list[str]]]:
    assert run.data is not None
    long = pd.read_parquet(run.data / COUNTS / "correct_long.parquet")
    subset_list = []
    for dataset, folder in (("llmbar", "llmbar_evaluators"), ("rewardbench", "rewardbench_rm149")):
        labels = pd.read_parquet(run.data / folder / "labels.parquet").astype({"item": str})
        texts = pd.read_parquet(run.data / folder / "items.parquet").astype({"item": str})
        own = long[long["dataset"] == dataset].astype({"item": str, "model": str})
        vote_counts = own.groupby(["model", "item"])["correct"].agg(["sum", "count"]).reset_index()
        table = vote_counts.merge(labels, on="item").merge(texts, on="item")
        for (model, subset), part in table.groupby(["model", "subset"], observed=True):
            domain = dataset if dataset == "llmbar" else str(part["category"].iloc[0])
            data_set = DataSet(
                dataset,
                str(subset).removeprefix("LLMBar/"),
                str(model),
                part["sum"].to_numpy(),
                int(part["count"].max()),
            )
            subset_list.append((data_set, domain, [str(t) for t in part["text"]]))
    return subset_list


def with_panels(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with two columns for a figure: its panel and the name within the panel.

    A panel is a task of RewardBench 2, or another data set; data sets with few judges share one.
    """
    where = (table["dataset"] + " " + table["task"]).where(
        table["dataset"] == "rb2", table["dataset"]
    )
    sizes = table.assign(where=where).groupby("where")["judge"].nunique()
    few = where.map(sizes) <= FEW_JUDGES
    panel = where.mask(few, "other").where(table["dataset"] != "twin", "twin")
    whole = (
        (table["dataset"] + " " + table["task"] + " " + table["judge"]).str.split().str.join(" ")
    )
    name = table["judge"].mask(few, whole).where(table["dataset"] != "twin", table["task"])
    order = np.argsort(panel == "other", kind="stable")
    return table.assign(panel=panel, name=name).iloc[order]


def methods() -> dict[str, Distribution]:
    """Return the model-based estimators by their name in tables; thinning, model-free, is not one."""
    return {
        "binomial": Binomial(),
        "beta-binomial": BetaBinomial(1, MAP(starts=3)),
        "em-printed": PaperEM("printed"),
        "em": PaperEM("intended"),
        "mixture-map": BetaBinomial(2, MAP(starts=3)),
    }


def posterior(run: Run) -> Distribution:
    """Return the mixture's full posterior: draws from the prior, weighted by each run's labels.

    With five parameters and a few dozen labels this takes seconds, where chains take minutes, and
    all runs share the draws.
    """
    return BetaBinomial(2, PriorImportance(2**12 if run.smoke else 2**16, kept=500))


def orders(run: Run, data_set: DataSet, count: int = RUNS) -> Int[np.ndarray, "split item"]:
    """Return random orders in which items are labelled, the same for every experiment of a run."""
    rng = np.random.default_rng([run.seed, len(data_set.correct)])
    items = np.arange(len(data_set.correct))
    return np.stack([rng.permutation(items) for _ in range(min(count, 4) if run.smoke else count)])


def histograms(
    data_set: DataSet, parts: Sequence[Int[np.ndarray, " _"]]
) -> Float[np.ndarray, "split count"]:
    """Return how many of the labelled items have 0 .. k correct votes, for each run."""
    wide = data_set.votes + 1
    return np.stack([np.bincount(data_set.correct[p], minlength=wide) for p in parts]).astype(float)


def estimates(
    method: Distribution | Thinning, data_set: DataSet, weights: Float[np.ndarray, "split count"]
) -> Float[np.ndarray, "split size"]:
    """Return the estimated error at each odd size from each run's histogram of correct votes."""
    return pmfs(method, data_set.votes, weights).mean(1) @ wrong_majorities(data_set.votes).T


def split_curve_estimates(
    data_set: DataSet, parts: Sequence[Int[np.ndarray, " _"]]
) -> Float[np.ndarray, "split size"]:
    """Return the split curve's estimate of the error on these items at each odd size, for each run.

    It also reads the votes of the items that a run does not label. Votes that are not for the label
    count as votes for one other answer.
    """
    right = data_set.correct
    given = np.stack([right, data_set.votes - right], axis=1)
    values = []
    for part in parts:
        labels = np.full(len(right), -1)
        labels[part] = 0
        splits = Splits(given, labels, (0, 1))
        fit = SplitCurve(by_class=False).fit(splits)
        values.append(fit.curve(splits, data_set.sizes, MeanLoss("these")).error)
    return np.stack(values)


@lru_cache(maxsize=16)
def wrong_majorities(votes: int) -> Float[np.ndarray, "size count"]:
    """Return the probability that a random majority is wrong, by its size and by S = 0 .. k.

    A subset of votes with a Beta-Binomial count also has a Beta-Binomial count, so the error at every
    size follows from the distribution at the largest.
    """
    every = counts_of(np.arange(votes + 1), votes)
    return np.stack([np.asarray(thin(every, size)) for size in odd_sizes(votes)])


def resampled(
    run: Run,
    data_set: DataSet,
    parts: Sequence[Int[np.ndarray, " _"]],
    statistics: Callable[
        [DataSet, Float[np.ndarray, "split count"]], dict[str, Float[np.ndarray, " split"]]
    ],
) -> dict[str, Evidence]:
    """Return joint evidence on the means of numbers over runs, by name, from resampled items and runs.

    Every draw is a whole run on a data set of as many items, drawn with replacement: the actual error
    is that of the drawn items, and the labels are those at the places that each run labels.
    `statistics` returns numbers by name from a data set and the histograms of its labels. LLMs and
    panels that judge the same items have the same draws of items, so that their evidence is joint.
    """
    every = np.arange(len(data_set.correct))

    def means(of_runs: np.ndarray, of_items: np.ndarray) -> np.ndarray:
        items = np.repeat(every, of_items.astype(int))
        drawn = replace(data_set, correct=data_set.correct[items])
        values = statistics(drawn, histograms(drawn, parts))
        return np.stack(list(values.values())) @ of_runs / of_runs.sum()

    # RewardBench 2's judges have their own items, those without a missing vote.
    name = data_set.name if data_set.dataset == "rb2" else data_set.dataset + data_set.task
    several = evidence_of_several(
        means,
        len(parts),
        len(every),
        resamples=50 if run.smoke else RESAMPLES,
        seed=crc32(name.encode()),
    )
    names = statistics(data_set, histograms(data_set, parts))
    return dict(zip(names, several, strict=True))


def mean_claims(
    data_sets: Sequence[DataSet],
    cells: Sequence[tuple[dict[str, Any], Float[np.ndarray, " set"]]],
    *,
    kind: Kind,
    margin: float,
    groups: Sequence[str] | None = None,
    within: bool = False,
) -> list[dict[str, Any]]:
    """Return the rows of a claim on means over data sets, graded together.

    Each cell has its row and a value for every data set. Data sets share judges and items, so both are
    resampled: the item sets (those of RewardBench 2's five tasks, LLMBar, RewardBench and the code
    feedback; or `groups` of them), which are the units, and the judges. The claim is not made on
    simulated data sets, which are no sample of data sets, nor with fewer than three units.
    """
    tasks = [f"{d.dataset} {d.task}" for d in data_sets]
    names, places = np.unique(tasks, return_inverse=True)
    of_task = dict(zip(tasks, groups or tasks, strict=True))
    units, group = np.unique([of_task[name] for name in names], return_inverse=True)
    if data_sets[0].dataset == "twin" or len(units) < LEAST_UNITS:
        return []
    judges = np.unique([f"{d.dataset} {d.judge}" for d in data_sets], return_inverse=True)[1]
    items = np.full((judges.max() + 1, len(names)), -1)
    items[judges, places] = places
    pairs = []
    for record, each in cells:
        values = np.full(items.shape, np.nan)
        values[judges, places] = each
        common = {"dataset": COUNTS, "task": "all", "judge": "", "splits": len(data_sets)}
        pairs.append((common | record, evidence(values, items, len(names), group)))
    return graded(pairs, kind=kind, margin=margin, within=within)


@in_float64
def pmfs(
    method: Distribution | Thinning,
    votes: int,
    weights: Float[np.ndarray, "split count"],
    lanes: int = LANES,
) -> Float[np.ndarray, "split draw count"]:
    """Return P(S = 0 .. k) under every draw, for each run's histogram of correct votes.

    `lanes` runs are fitted at once.
    """
    if isinstance(method, Thinning):
        return (weights / weights.sum(1, keepdims=True))[:, None]
    batches = []
    for first in range(0, len(weights), lanes):
        part = weights[first : first + lanes]
        filled = np.pad(part, ((0, lanes - len(part)), (0, 0)), mode="edge")
        batches.append(np.asarray(_pmfs(method, votes, jnp.asarray(filled)))[: len(part)])
    return np.concatenate(batches)


@partial(jax.jit, static_argnames="votes")
def _pmfs(
    method: Distribution, votes: int, weights: Float[Array, "split count"]
) -> Float[Array, "split draw count"]:
    counts = Counts(jnp.arange(votes + 1), jnp.full(votes + 1, votes), votes)

    def one(weight: Float[Array, " count"]) -> Float[Array, "draw count"]:
        theta = method.fit(counts, weight=weight).theta
        return jnp.exp(jax.vmap(lambda draw: beta_binomial.log_pmf(draw, votes))(theta))

    return jax.vmap(one)(weights)
