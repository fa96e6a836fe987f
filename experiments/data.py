"""The public data sets that the experiments read, as votes and labels."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Int

from judgebayes.experiments.core import Run
from judgebayes.votes import Coding, SparseVotes, Votes, encode

RB2 = "rb2_k8_scores"
MTBENCH = "mtbench_repetition_9judges"
LLMBAR = "llmbar_evaluators"
MTBENCH_PEOPLE = "mtbench_human_gpt4"
MTBENCH_LLM = "gpt4_pair"
"""The name of the LLM among the judges of `people`."""
WMT23 = "wmt23_sxs_mqm"
CROWDS = "crowd_labels"

CLASSES = (-1, 0, 1)


@dataclass(frozen=True)
class Cell:
    """Votes of one judge on the items of one task (or several), with labels and item groups."""

    dataset: str
    task: str
    judge: str
    votes: Votes
    labels: Int[np.ndarray, " item"]
    groups: Int[np.ndarray, " item"]
    """The question that an item's responses answer: the group that items share."""
    item_names: tuple[str, ...] = ()
    variant: str = ""
    """What else distinguishes this cell: the prompt, the temperature, the twin."""

    @property
    def key(self) -> tuple[str, ...]:
        """A unique name of the cell."""
        return (self.dataset, self.task, self.judge, self.variant)


def _table(run: Run, dataset: str, name: str) -> pd.DataFrame:
    assert run.data is not None
    path: Path = run.data / dataset / f"{name}.parquet"
    return run.remember(path, lambda: pd.read_parquet(path))


def rb2_judges(run: Run) -> list[str]:
    """Return the judges of the repeated RewardBench 2 scores, the strongest first."""
    names = ["gpt-5.4", "claude-haiku-4.5", "gpt-5.4-mini", "claude-sonnet-4.6", "gpt-5.4-nano"]
    return run.few(names)


def rb2_tasks(run: Run) -> list[str]:
    """Return the subsets of RewardBench 2 that have pairs."""
    return run.few(["Factuality", "Focus", "Math", "Precise IF", "Safety"], 2)


def pairs(run: Run, task: str) -> pd.DataFrame:
    """Return the sampled response pairs of a subset: pair, item (the question), gold."""
    table = _table(run, RB2, "pairs")
    return table[table["in_sample1000"] & (table["subset"] == task)]


def rb2(
    run: Run,
    judge: str,
    task: str | None,
    *,
    prompt: str = "base",
    temperature: float = 1.0,
) -> Cell:
    """Return one judge's eight ternary votes on the sampled pairs of one subset, or of all.

    The vote is the sign of the difference of two pointwise scores, so there is no presentation
    order. Its `score`, a stand-in for the confidence that P1 takes from sequence probabilities,
    grows with the size of that difference: 0.5 for a tie, 1 for a difference of nine points.
    """
    return run.remember(
        ("rb2", judge, task, prompt, temperature),
        lambda: _rb2(run, judge, task, prompt, temperature),
    )


def _rb2(run: Run, judge: str, task: str | None, prompt: str, temperature: float) -> Cell:
    votes = _table(run, RB2, "ternary_votes")
    chosen = (
        (votes["model"] == judge)
        & (votes["prompt"] == prompt)
        & np.isclose(votes["temperature"], temperature)
    )
    long = votes[chosen].astype({"pair": str})
    long = long.merge(_table(run, RB2, "pairs"), on="pair")
    if task is not None:
        long = long[long["subset"] == task]
    scores = _table(run, RB2, "scores")
    scores = scores[
        (scores["model"] == judge)
        & (scores["prompt"] == prompt)
        & np.isclose(scores["temperature"], temperature)
    ].astype({"item": str})
    score_table = scores.set_index(["item", "response", "sample"])["score"]
    first, second = (
        score_table.reindex(pd.MultiIndex.from_frame(long[["item", response, "sample"]])).to_numpy(
            float
        )
        for response in ("resp_first", "resp_second")
    )
    long = long.assign(confidence=0.5 + np.abs(first - second) / 18)
    encoded, coding = encode(
        long,
        item="pair",
        judge="model",
        vote="vote",
        sample="sample",
        score="confidence",
        task="subset",
        classes=CLASSES,
    )
    by_pair = long.drop_duplicates("pair").set_index("pair").loc[coding.items]
    return Cell(
        RB2,
        task or "all",
        judge,
        encoded,
        coding.labels(by_pair["gold"]),
        pd.factorize(by_pair["item"])[0],
        tuple(coding.items),
        f"{prompt}, T = {temperature:g}",
    )


def mtbench_orders(run: Run) -> tuple[Votes, Coding]:
    """Return nine judges' three votes in each order on 96 MT-Bench pairs, which have no labels."""
    votes = _table(run, MTBENCH, "votes").astype({"order": str, "item": str, "judge": str})
    votes = votes.assign(order=votes["order"].map({"ref_first": "BA", "ref_second": "AB"}))
    return encode(votes, sample="sample", order="order", votes_as="original", classes=CLASSES)


def llmbar_orders(run: Run) -> tuple[Votes, Coding, Int[np.ndarray, " item"]]:
    """Return 65 evaluators' votes in both orders on LLMBar's 419 items, and the labels."""
    votes = _table(run, LLMBAR, "votes_by_order").astype({"item": str, "judge": str, "vote": str})
    labels = _table(run, LLMBAR, "labels")
    core = labels[labels["subset"].str.startswith("LLMBar/")]
    votes = votes[votes["item"].isin(core["item"])]
    encoded, coding = encode(votes, order="order", votes_as="original", classes=("B", "tie", "A"))
    return encoded, coding, coding.labels(core, label="label_AB")


def llmbar_prompts(run: Run) -> tuple[Votes, Coding, Int[np.ndarray, " item"]]:
    """Return six LLMs' votes on LLMBar, an LLM's prompts being its samples, and the labels."""
    votes = _table(run, LLMBAR, "votes_by_order").astype(str).replace({"vote": {"nan": None}})
    labels = _table(run, LLMBAR, "labels")
    core = labels[labels["subset"].str.startswith("LLMBar/")]
    votes = votes[votes["item"].isin(core["item"])]
    encoded, coding = encode(
        votes,
        judge="model",
        sample="strategy",
        order="order",
        votes_as="original",
        classes=("B", "tie", "A"),
    )
    return encoded, coding, coding.labels(core, label="label_AB")


def shared_items(cells: list[Cell]) -> list[Cell]:
    """Return the cells restricted to the items that all of them have, in the same order."""
    common = set(cells[0].item_names).intersection(*(c.item_names for c in cells[1:]))
    names = [name for name in cells[0].item_names if name in common]
    cut = []
    for cell in cells:
        place = {name: i for i, name in enumerate(cell.item_names)}
        where = np.array([place[name] for name in names])
        cut.append(
            replace(
                cell,
                votes=cell.votes.take(where),
                labels=cell.labels[where],
                groups=cell.groups[where],
                item_names=tuple(names),
            )
        )
    return cut


def wmt23(run: Run, pair: str) -> pd.DataFrame:
    """Return the human ratings of a language pair (`zhen` or `ende`): item, rater, vote."""
    ratings = _table(run, WMT23, "ratings").astype({"item": str, "rater": str, "lp": str})
    return ratings[ratings["lp"] == pair]


def people(run: Run) -> pd.DataFrame:
    """Return the votes of people and of GPT-4 on MT-Bench's pairs: item, judge, vote."""
    votes = _table(run, MTBENCH_PEOPLE, "votes").astype({"item": str, "judge": str})
    voted = votes.loc[votes["judge"] != MTBENCH_LLM, "item"]
    return votes.loc[votes["item"].isin(voted), ["item", "judge", "vote"]]


def crowd(run: Run, name: str) -> tuple[Votes, Int[np.ndarray, " item"]]:
    """Return the votes of a binary crowd-sourced set, and the labels of all of its items."""
    votes = _table(run, CROWDS, "votes").astype({"item": str, "worker": str})
    votes = votes[votes["dataset"] == name].drop_duplicates(["item", "worker"])
    labels = _table(run, CROWDS, "labels").astype({"item": str})
    labels = labels[labels["dataset"] == name]
    labelled = votes["item"].isin(labels["item"])
    encoded, coding = encode(
        votes[labelled].astype({"label": int}), judge="worker", vote="label", classes=(0, 1)
    )
    return encoded, coding.labels(labels.astype({"truth": int}), label="truth")


def crowd_list(
    run: Run,
) -> dict[str, Callable[[], tuple[SparseVotes, Int[np.ndarray, " item"]]]]:
    """Return readers of the votes and labels of each crowd-sourced set, for the items with a label."""
    votes, labels = (_table(run, CROWDS, name) for name in ("votes", "labels"))

    def read(name: str) -> tuple[SparseVotes, Int[np.ndarray, " item"]]:
        truth = labels[labels["dataset"] == name].set_index("item")["truth"]
        one = votes[(votes["dataset"] == name) & votes["item"].isin(truth.index)]
        one = one.drop_duplicates(["item", "worker"]).sort_values("item", kind="stable")
        item, items = pd.factorize(one["item"])
        worker, workers = pd.factorize(one["worker"])
        index = one["label"].to_numpy(int)
        known = truth.loc[items].to_numpy(int)
        classes = int(max(index.max(), known.max())) + 1
        return SparseVotes(item, worker, index, len(items), len(workers), classes), known

    return {name: partial(read, name) for name in sorted(set(votes["dataset"]))}


def model_pairs(
    run: Run,
) -> tuple[
    Votes,
    Int[np.ndarray, " item"],
    Int[np.ndarray, " item"],
    list[tuple[int, int]],
    list[str],
]:
    """Return GPT-4's votes on MT-Bench pairs that people decided, and the models compared.

    1 is a win of the pair's first model, for people and for GPT-4; a tie of GPT-4 is a missing vote.
    The other values are the pair of each item, the two models of each pair, and the models' names.
    """
    table = _table(run, MTBENCH_PEOPLE, "labels")
    table = table[table["label"] != 0].reset_index(drop=True)
    names = sorted(set(table["m1"]) | set(table["m2"]))
    code, keys = pd.factorize(pd.MultiIndex.from_frame(table[["m1", "m2"]]), sort=True)
    long = pd.DataFrame(
        {
            "item": np.arange(len(table)),
            "judge": "gpt-4",
            "vote": table["gpt4"].map({1: 1, -1: 0}).astype(float),
        }
    )
    votes, coding = encode(long, classes=(0, 1))
    order = np.asarray(coding.items, int)
    labels = (table["label"].to_numpy() == 1).astype(int)[order]
    return votes, labels, code[order], [(names.index(a), names.index(b)) for a, b in keys], names
