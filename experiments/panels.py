"""Panels of judges on pairs of responses: binary votes, labels, and both ways to orient a pair."""

import hashlib
from dataclasses import dataclass, replace
from typing import Literal

import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Int

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.core import Run
from judgebayes.experiments.data import LLMBAR, RB2
from judgebayes.votes import Votes, encode

Orientation = Literal["true", "correctness"]
"""What class 1 means.

`true`: the first response is the better one, in an order that does not depend on which it is.
`correctness`: the judge is right. The label is then 1 on every item, so that an answer of 1 is right
without any vote.
"""

ORIENTATIONS: tuple[Orientation, Orientation] = ("true", "correctness")
REWARDBENCH = "rewardbench_rm149"
BROKEN = "nectar/llama-2-7b-chat-nectar-700k"
"""Part of the name of the reward model that is wrong on every item of RewardBench."""

Orders = Literal["random", "AB", "BA", "agreeing", "both"]


@dataclass(frozen=True)
class Panel:
    """One binary vote of each judge on each item, labels, item subsets and judge families."""

    dataset: str
    votes: Votes
    labels: Int[np.ndarray, " item"]
    subset: Int[np.ndarray, " item"]
    """The index of each item's subset in `subsets`."""
    subsets: tuple[str, ...]
    judges: tuple[str, ...]
    families: tuple[str, ...]
    """The family of each judge: its maker, or the model behind a prompt."""
    orientation: Orientation = "true"
    variant: str = ""
    """What else distinguishes this panel from others of its data set."""
    group: Int[np.ndarray, " item"] | None = None
    """What each item shares with others, as an index (a prompt, a program); None: nothing."""

    @property
    def key(self) -> tuple[str, ...]:
        """A unique name of the panel."""
        return (self.dataset, self.variant, self.orientation)

    @property
    def name(self) -> str:
        """The data set, with the variant if there is one."""
        return f"{self.dataset}, {self.variant}" if self.variant else self.dataset

    @property
    def correct(self) -> Int[np.ndarray, "item judge"]:
        """1 where a judge is right, 0 where it is wrong, -1 where it gave no vote."""
        index = np.asarray(self.votes.index)[:, :, 0]
        return np.where(index >= 0, index == self.labels[:, None], -1).astype(np.int8)

    @property
    def accuracy(self) -> np.ndarray:
        """The accuracy of each judge over the items that it voted on."""
        correct = self.correct
        return (correct == 1).sum(0) / np.maximum((correct >= 0).sum(0), 1)

    def oriented(self, orientation: Orientation) -> "Panel":
        """Return the panel in another orientation, which gives its classes another meaning.

        Raises
        ------
        JudgeBayesError
            If the panel records correctness: it no longer says which response came first.
        """
        if orientation == self.orientation:
            return self
        if self.orientation == "correctness":
            raise JudgeBayesError(
                "A panel of correct and incorrect votes has no response positions."
            )
        index = jnp.asarray(self.correct[:, :, None])
        return replace(
            self,
            votes=replace(self.votes, index=index),
            labels=np.ones_like(self.labels),
            orientation=orientation,
        )

    def without(self, part_of_name: str, variant: str = "") -> "Panel":
        """Return the panel without the judges whose name contains a given text."""
        return self.of(
            [j for j, name in enumerate(self.judges) if part_of_name not in name], variant
        )

    def of(self, judges: list[int], variant: str) -> "Panel":
        """Return the panel of some judges, by their positions."""
        return replace(
            self,
            votes=self.votes.of_judges(judges),
            judges=tuple(self.judges[j] for j in judges),
            families=tuple(self.families[j] for j in judges),
            variant=variant,
        )

    def among(self, items: np.ndarray, variant: str) -> "Panel":
        """Return the panel on some items, by their positions."""
        return replace(
            self,
            votes=self.votes.take(items),
            labels=self.labels[items],
            subset=self.subset[items],
            variant=variant,
            group=None if self.group is None else self.group[items],
        )


def rewardbench_panel(run: Run, *, broken: bool = False) -> Panel:
    """Return 148 reward models on RewardBench's 2,985 pairs, or 149 with the broken one.

    The data say whether a model scores the chosen response above the rejected one. There are no
    positions, so the true orientation takes seeded ones that come with the data. Items with the same
    prompt, and the same HumanEval problem in six languages, are one group.
    """

    def make() -> Panel:
        votes, labels, items = (_read(run, REWARDBENCH, t) for t in ("votes", "labels", "items"))
        panel = _from_correct(votes, labels, REWARDBENCH, _prompts(labels.merge(items, on="item")))
        return replace(panel, families=tuple(_maker(name) for name in panel.judges))

    whole = run.remember((REWARDBENCH, "panel"), make)
    return replace(whole, variant="with the broken judge") if broken else whole.without(BROKEN)


def _prompts(items: pd.DataFrame) -> pd.Series:
    """Return the prompt of each item, by item; HumanEval's problems are in order in each language."""
    table = items.iloc[items["item"].astype(int).argsort()].set_index("item")
    place = table.groupby("subset").cumcount().astype(str)
    return table["text"].mask(table["subset"].str.startswith("hep-"), "HumanEval " + place)


def _maker(judge: str) -> str:
    maker = judge.split("/")[0].lower()
    return {"net": "allenai", "hendrydong": "rlhflow", "sfairxc": "rlhflow"}.get(maker, maker)


def rb2_panel(run: Run) -> Panel:
    """Return 22 judges' first votes on RewardBench 2: one rejected response against the accepted.

    Votes compare two pointwise scores; equal scores are missing votes. Positions are seeded.
    """

    def make() -> Panel:
        votes = _read(run, RB2, "p2_panel_votes")
        votes = votes[votes["mode"] == "k1"]
        panel = _from_correct(votes, _read(run, RB2, "p2_panel_labels"), RB2)
        return replace(panel, families=tuple(name.split("/")[0] for name in panel.judges))

    return run.remember((RB2, "panel"), make)


def llmbar_panel(run: Run, orders: Orders = "random") -> Panel:
    """Return 65 evaluators' votes on LLMBar's 419 items, whose labels are balanced.

    Every evaluator saw both presentation orders. `random`: one order per item, drawn by the item's
    name and the same for all judges, as the paper shows its pairs (Appendix H.1). `AB`, `BA`: one
    order for all items. `agreeing`: the verdict of the two orders where they agree, else missing.
    `both`: the two orders as two judges, 130 in all. Rating ties and unreadable verdicts are
    missing.
    """
    return run.remember((LLMBAR, "panel", orders), lambda: _llmbar(run, orders))


def _llmbar(run: Run, orders: Orders) -> Panel:
    votes, labels = _read(run, LLMBAR, "votes_by_order"), _read(run, LLMBAR, "labels")
    labels = labels[labels["subset"].str.startswith("LLMBar/")].reset_index(drop=True)
    votes = votes[votes["item"].isin(labels["item"]) & votes["vote"].isin(["A", "B"])]
    if orders == "random":
        order_of_item = {name: "AB" if _coin(name) else "BA" for name in labels["item"]}
        votes = votes[votes["order"] == votes["item"].map(order_of_item)]
    elif orders in ("AB", "BA"):
        votes = votes[votes["order"] == orders]
    elif orders == "both":
        votes = votes.assign(judge=votes["judge"] + ", " + votes["order"])
    else:
        same = votes.groupby(["item", "judge"])["vote"].agg(["size", "nunique"])
        agreeing = same[(same["size"] == 2) & (same["nunique"] == 1)].index
        by_name = votes.drop_duplicates(["item", "judge"]).set_index(["item", "judge"])
        votes = by_name.loc[agreeing].reset_index()
    panel = _encoded(votes, labels, "label_AB", LLMBAR)
    families = tuple(name.split("/")[0] for name in panel.judges)
    return replace(
        panel, families=families, variant="" if orders == "random" else f"order {orders}"
    )


def _coin(name: str) -> bool:
    """Return a fair coin flip that depends on the name only."""
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 0


def _from_correct(
    votes: pd.DataFrame, labels: pd.DataFrame, dataset: str, prompts: pd.Series | None = None
) -> Panel:
    """Return a panel, given which votes are correct and the position of the better response."""
    chosen = votes["item"].map(labels.set_index("item")["seeded_chosen_pos"]).astype(str)
    other = chosen.map({"A": "B", "B": "A"})
    return _encoded(
        votes.assign(vote=chosen.where(votes["correct"] == 1, other)),
        labels,
        "seeded_chosen_pos",
        dataset,
        prompts,
    )


def _encoded(
    votes: pd.DataFrame,
    labels: pd.DataFrame,
    label: str,
    dataset: str,
    prompts: pd.Series | None = None,
) -> Panel:
    encoded, coding = encode(votes, classes=("B", "A"))
    by_item = labels.set_index("item").loc[coding.items]
    subset, names = pd.factorize(by_item["subset"])
    return Panel(
        dataset,
        encoded,
        coding.labels(labels, label=label, unknown_items="drop"),
        subset,
        tuple(names),
        tuple(coding.judges),
        (),
        group=None if prompts is None else pd.factorize(prompts.loc[list(coding.items)])[0],
    )


def _read(run: Run, dataset: str, name: str) -> pd.DataFrame:
    """Return a table with its categories as plain text."""
    assert run.data is not None
    path = run.data / dataset / f"{name}.parquet"

    def read() -> pd.DataFrame:
        table = pd.read_parquet(path)
        texts = table.select_dtypes("category").columns
        return table.astype(dict.fromkeys(texts, object))

    return run.remember(("panels", path), read)
