"""P2 on real panels: the measured leads, in both orientations."""

import numpy as np
import pytest

from judgebayes.diagnostics import diagnose
from judgebayes.experiments.calibrate_dont_curate.common import answers, halves
from judgebayes.experiments.core import Run
from judgebayes.experiments.panels import BROKEN, llmbar_panel, rb2_panel, rewardbench_panel


def mean(run: Run, panel: object, method: str, calibrator: str = "beta", **parts: object) -> tuple:
    where = halves(run, panel, **parts)
    found = answers(run, panel, method, (calibrator,), parts=where)[calibrator]
    return float(found.by_split("nll").mean()), float(found.by_split("accuracy").mean())


def test_panels_are_whole(real: Run) -> None:
    sizes = {
        "rewardbench_rm149": (rewardbench_panel(real), (2985, 148)),
        "rb2_k8_scores": (rb2_panel(real), (1763, 22)),
        "llmbar_evaluators": (llmbar_panel(real), (419, 65)),
    }
    for name, (panel, shape) in sizes.items():
        assert panel.dataset == name
        assert panel.correct.shape == shape
        assert 0.4 < panel.labels.mean() < 0.6
    assert len(rewardbench_panel(real, broken=True).judges) == 149
    assert len(llmbar_panel(real, "both").judges) == 130


def test_llmbar_in_both_orientations(real: Run) -> None:
    nll, accuracy = mean(real, llmbar_panel(real), "one-coin")
    assert nll == pytest.approx(0.35, abs=0.02)
    assert accuracy == pytest.approx(0.869, abs=0.01)
    constant = llmbar_panel(real).oriented("correctness")
    for method in ("one-coin", "majority"):
        nll, accuracy = mean(real, constant, method)
        assert nll < 0.03
        assert accuracy == 1.0
    said = diagnose(constant.votes, constant.labels, constant.judges)
    assert [f.severity for f in said if f.topic == "labels"] == ["bad"]


@pytest.mark.parametrize(
    ("method", "nll"),
    [("one-coin", 0.265), ("top-3", 0.135), ("top-5", 0.130), ("top-10", 0.146)],
)
def test_rewardbench_in_the_true_orientation(real: Run, method: str, nll: float) -> None:
    assert mean(real, rewardbench_panel(real), method)[0] == pytest.approx(nll, abs=0.01)


def test_papers_top_k_rows_come_from_the_constant_label(real: Run) -> None:
    """Table 1's RewardBench rows of the top 3, 5 and 10, whose votes are public."""
    constant = rewardbench_panel(real).oriented("correctness")
    for method, nll, accuracy in (
        ("top-3", 0.200, 0.957),
        ("top-5", 0.214, 0.959),
        ("top-10", 0.257, 0.958),
    ):
        ours = mean(real, constant, method, "none")
        assert ours == pytest.approx((nll, accuracy), abs=0.004)


def test_the_broken_judge_is_named(real: Run) -> None:
    panel = rewardbench_panel(real, broken=True)
    said = diagnose(panel.votes, panel.labels, panel.judges)
    leaks = [f for f in said if f.topic == "leak"]
    assert any(BROKEN in name for f in leaks for name in f.judges)
    clean = rewardbench_panel(real)
    assert not [f for f in diagnose(clean.votes, clean.labels, clean.judges) if f.topic == "leak"]


@pytest.mark.slow
@pytest.mark.parametrize(("labels", "nll"), [(50, 0.15), (100, 0.13), (1492, 0.095)])
def test_stacking_needs_few_labels(real: Run, labels: int, nll: float) -> None:
    found = mean(real, rewardbench_panel(real), "stacking", "none", labels=labels, count=20)
    assert found[0] <= nll


def test_stacking_beats_the_one_coin_model_on_llmbar(real: Run) -> None:
    panel = llmbar_panel(real)
    stack = mean(real, panel, "stacking", "none", count=20)
    one = mean(real, panel, "one-coin", count=20)
    assert stack[0] < one[0] - 0.05
    assert np.isfinite(stack).all()
"""Diagnostics and the 2PL model on the public panels, against what is known of them."""

import numpy as np
import pandas as pd
import pytest

from judgebayes.diagnostics import diagnose, judge_table
from judgebayes.experiments.core import Run
from judgebayes.finding import Finding
from judgebayes.inference import Status
from judgebayes.irt import ItemResponse
from judgebayes.votes import Coding, Votes, encode, encode_wide

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
    """The same, each item with a seeded position of the chosen response."""
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


def about(found: list[Finding], topic: str) -> list[Finding]:
    return [f for f in found if f.topic == topic]


def test_the_broken_reward_model_is_named_and_nothing_else_is_bad(rewardbench: Panel) -> None:
    votes, coding, labels = rewardbench
    found = diagnose(votes, labels, coding)
    assert [f.topic for f in found if f.severity == "bad"] == ["leak"]
    assert about(found, "leak")[0].judges == (BROKEN,)
    assert len(about(found, "parseability")[0].judges) == 16  # the old models without math-prm
    copies = about(found, "redundancy")[0].judges
    assert {"ContextualAI/archangel_sft-dpo_pythia6-9b_ref_free"} <= set(copies)
    assert about(found, "saturation")
    # A seeded position knows no preference for a side: the one-coin model holds.
    assert not about(found, "one-coin")


def test_the_correctness_encoding_is_named_as_degenerate(correct: pd.DataFrame) -> None:
    votes, coding = encode_wide(correct, classes=(0, 1))
    found = diagnose(votes, np.ones(votes.n_items, int), coding)
    assert "learns that constant and looks perfect" in about(found, "labels")[0].sentence


def test_accuracies_are_those_of_the_published_file(real: Run, llmbar: Panel) -> None:
    votes, coding, labels = llmbar
    table = judge_table(votes, labels, coding).set_index("judge")
    assert real.data is not None
    theirs = pd.read_csv(real.data / "llmbar_evaluators" / "judge_accuracy_core419.csv")
    theirs = theirs.set_index("judge").loc[table.index]
    assert table["votes"].tolist() == theirs["votes"].tolist()
    # Theirs counts votes, the table items: equal where a judge voted in both orders everywhere.
    full = theirs["votes"] == 838
    np.testing.assert_allclose(table["accuracy"][full], theirs["acc"][full], atol=1e-6)


def test_llmbar_has_many_judges_below_chance_and_biased_ones(llmbar: Panel) -> None:
    votes, coding, labels = llmbar
    found = diagnose(votes, labels, coding)
    below = about(found, "below-chance")[0].judges
    assert len(below) == 9
    assert all(name.split("/")[0] in ("ChatGPT", "LLaMA2") for name in below)
    assert "Falcon/CoT" in about(found, "position-bias")[0].judges
    one_order = diagnose(votes.in_order(0), labels, coding)
    assert len(about(one_order, "one-coin")[0].judges) > 20


def test_abilities_rank_as_accuracies_but_judges_need_not_dominate(llmbar: Panel) -> None:
    # P2 H.5: "the judge share is dominant on every dataset".
    votes, _, labels = llmbar
    fit = ItemResponse().fit(votes, labels)
    assert int(fit.status) == Status.CONVERGED
    assert fit.rank_correlation(votes, labels) > 0.98
    shares = fit.shares()
    assert shares.judge < shares.item
