"""Kinds of tables that teams hand round, made after exports in public repositories, and what is right.

Prasanna-ETH/AI-Kavach (people beside judges), paul-rottger/exaggerated-safety (labels of programs and of
people), ELBATTAHAHMED/LLM-Judge-Lab (an item is a prompt and a pair of models),
tascj/kaggle-lmsys-chatbot-arena (a column a class), nus-cts-lab/Qualtrics-Data-Analysis (a column an
item), vanalexgr/ejves-llm-judge (several criteria).
"""

import numpy as np
import pandas as pd

import judgebayes as jb

N = 40
TRUTH = np.random.default_rng(0).integers(0, 2, N)
WORDS = np.array(["refusal", "compliance"])


def noisy(share: float, seed: int) -> np.ndarray:
    """Return the truth, right with this share."""
    return np.where(np.random.default_rng(seed).random(N) < share, TRUTH, 1 - TRUTH)


def read(votes: pd.DataFrame, label: str | None = None) -> tuple[list[str], float]:
    """Return the judges that `check` finds, and how often the labels are the truth."""
    data = jb.check(votes, label=label).data
    assert data is not None
    return list(map(str, data.coding.judges)), float((data.labels == TRUTH).mean())


PEOPLE = pd.DataFrame(
    {
        "Index": np.arange(N),
        "human1": noisy(0.9, 1),
        "human2": noisy(0.9, 2),
        "human_majority": TRUTH,
        "gpt4_cf": noisy(0.8, 3),
        "llama_cf": noisy(0.7, 4),
    }
)


def test_people_beside_their_majority_are_neither_judges_nor_further_labels() -> None:
    assert read(PEOPLE) == (["gpt4_cf", "llama_cf"], 1.0)
    assert read(PEOPLE, label="human_majority") == (["gpt4_cf", "llama_cf"], 1.0)
    assert jb.check(PEOPLE).options["label"] == "human_majority"
    others = [each.others for each in jb.check(PEOPLE).findings if each.others]
    assert {"label": "none"} in others[0]


def test_a_label_of_a_model_is_its_vote() -> None:
    table = pd.DataFrame(
        {
            "id": [f"v2-{i}" for i in range(N)],
            "annotation_1": WORDS[noisy(0.9, 1)],
            "annotation_2": WORDS[noisy(0.9, 2)],
            "final_label": WORDS[TRUTH],
            "gpt4_label": WORDS[noisy(0.9, 3)],
            "strmatch_label": WORDS[noisy(0.6, 4)],
        }
    )
    judges, _ = read(table)
    assert judges == ["gpt4_label", "strmatch_label"]


def test_two_columns_name_the_item_where_people_answered_each_pair_once() -> None:
    letters = np.array(["B", "A"])
    table = pd.DataFrame(
        {
            "prompt_id": np.arange(N) // 4,
            "model_names": [f"gpt vs m{i % 4}" for i in range(N)],
            "human_winner": letters[TRUTH],
            "ai_winner": letters[noisy(0.7, 1)],
        }
    )
    checked = jb.check(table)
    assert checked.options["item"] == "prompt_id,model_names"
    assert checked.options["judge"] == "none"
    assert checked.data is not None
    assert checked.data.numbers == {"items": N, "labels": N, "judges": 1, "votes": N}


def test_a_column_for_each_class_and_items_that_are_columns_are_said() -> None:
    votes = pd.DataFrame({"id": np.arange(N), "judge": "gpt", "verdict": WORDS[TRUTH]})
    flags = pd.DataFrame({"id": np.arange(N), "win_a": TRUTH, "win_b": 1 - TRUTH, "win_tie": 0})
    flags.loc[0, ["win_a", "win_b", "win_tie"]] = 0, 0, 1
    assert "one of them is 1 in each row" in " ".join(jb.check(votes, flags).sentences)
    turned = pd.DataFrame(
        [[f"p{k}", *TRUTH] for k in range(3)], columns=["person", *map(str, range(N))]
    )
    assert "turn this table" in " ".join(jb.check(votes, turned).sentences)


def test_a_column_of_both_files_is_vote_and_label_and_the_others_are_asked_about() -> None:
    criteria = ("tone", "accuracy")
    votes = pd.concat(
        [
            pd.DataFrame({c: noisy(0.8, 9 * k + n) for n, c in enumerate(criteria)}).assign(
                item_id=range(N), judge_name=judge
            )
            for k, judge in enumerate("ab")
        ]
    )
    labels = pd.DataFrame({"item_id": range(N), "tone": TRUTH, "accuracy": TRUTH})
    (asked,) = (
        each
        for each in jb.check(votes, labels).findings
        if "has labels in a column of the same name" in each.sentence
    )
    assert asked.option == "--vote tone --label tone"
    assert asked.others == ({"vote": "accuracy", "label": "accuracy"},)
