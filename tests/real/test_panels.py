"""Diagnostics and the 2PL model on the public panels, against known facts."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from judgebayes.experiments.core import Run
from judgebayes.finding import Finding
from judgebayes.panel.diagnostics import diagnose
from judgebayes.panel.judges import judge_table
from judgebayes.votes import MISSING, Coding, Votes, encode, encode_wide

Panel = tuple[Votes, Coding, np.ndarray]
BROKEN = "net/nfs.cirrascale/allennlp/jacobm/herm/rms/nectar/llama-2-7b-chat-nectar-700k/"


@pytest.fixture(scope="module")
def correct(real: Run) -> pd.DataFrame:
    """Whether each reward model prefers the chosen response: item x judge."""
    assert real.data is not None
    votes = pd.read_parquet(real.data / "rewardbench_rm149" / "votes.parquet")
    votes = votes.astype({"item": str, "judge": str})
    return votes.pivot(index="item", columns="judge", values="correct")


@pytest.fixture(scope="module")
def rewardbench(real: Run, correct: pd.DataFrame) -> Panel:
    """Votes on RewardBench, with a seeded position of the chosen response for each item."""
    assert real.data is not None
    labels = pd.read_parquet(real.data / "rewardbench_rm149" / "labels.parquet")
    place = labels.astype({"item": str}).set_index("item")["seeded_chosen_pos"].astype(str)
    gold = (place.loc[correct.index] == "A").astype(int)
    side = np.where(gold.to_numpy()[:, None] == 1, correct, 1 - correct)
    votes, coding = encode_wide(correct.where(correct.isna(), side), classes=(0, 1))
    return votes, coding, coding.labels(gold)


@pytest.fixture(scope="module")
def llmbar(real: Run) -> Panel:
    """65 evaluators, both orders, ties counted as missing."""
    assert real.data is not None
    votes = pd.read_parquet(real.data / "llmbar_evaluators" / "votes_by_order.parquet")
    labels = pd.read_parquet(real.data / "llmbar_evaluators" / "labels.parquet").astype(str)
    labels = labels[labels["subset"].str.startswith("LLMBar/")]
    votes = votes.astype({"item": str, "judge": str, "vote": str})
    votes = votes[votes["item"].isin(labels["item"])]
    votes = votes.assign(vote=votes["vote"].map({"A": 1, "B": 0}))
    encoded, coding = encode(votes, order="order", votes_as="original", classes=(0, 1))
    gold = labels.assign(label=(labels["label_AB"] == "A").astype(int))
    return encoded, coding, coding.labels(gold)


def about(findings: list[Finding], topic: str) -> list[Finding]:
    return [f for f in findings if f.topic == topic]


def test_the_broken_reward_model_is_named_and_nothing_else_is_bad(rewardbench: Panel) -> None:
    votes, coding, labels = rewardbench
    findings = diagnose(votes, labels, coding)
    assert [f.topic for f in findings if f.severity == "bad"] == ["leak"]
    assert about(findings, "leak")[0].judges == (BROKEN,)
    assert len(about(findings, "parseability")[0].judges) == 16  # the old models without math-prm
    copies = about(findings, "redundancy")[0].judges
    assert {"ContextualAI/archangel_sft-dpo_pythia6-9b_ref_free"} <= set(copies)
    assert about(findings, "saturation")
    # Seeded positions leave no preference for a side: the one-coin model holds.
    assert not about(findings, "one-coin")


def test_accuracies_are_those_of_the_published_file(real: Run, llmbar: Panel) -> None:
    votes, coding, labels = llmbar
    table = judge_table(votes, labels, coding).set_index("judge")
    assert real.data is not None
    theirs = pd.read_csv(real.data / "llmbar_evaluators" / "judge_accuracy_core419.csv")
    theirs = theirs.set_index("judge").loc[table.index]
    assert table["votes"].tolist() == theirs["votes"].tolist()
    # The source counts votes, the table items: equal if a judge voted in both orders on all items.
    full = theirs["votes"] == 838
    np.testing.assert_allclose(table["accuracy"][full], theirs["acc"][full], atol=1e-6)


def test_llmbar_has_many_judges_below_chance_and_biased_ones(llmbar: Panel) -> None:
    votes, coding, labels = llmbar
    findings = diagnose(votes, labels, coding)
    below = about(findings, "below-chance")[0].judges
    assert len(below) == 9
    assert all(name.split("/")[0] in ("ChatGPT", "LLaMA2") for name in below)
    assert "Falcon/CoT" in about(findings, "position-bias")[0].judges
    assert votes.order is not None
    shown = np.where(np.asarray(votes.order) == 0, np.asarray(votes.index), MISSING)
    one_order = diagnose(replace(votes, index=jnp.asarray(shown)), labels, coding)
    assert len(about(one_order, "one-coin")[0].judges) > 20
