"""RewardBench: which of 149 reward models score the chosen response above the rejected one."""

from pathlib import Path

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.public.names import coin

HOME = Path("data/rewardbench_data/processed")
CATEGORIES = {
    "chat": (
        "alpacaeval-easy",
        "alpacaeval-hard",
        "alpacaeval-length",
        "mt-bench-easy",
        "mt-bench-med",
    ),
    "chat_hard": (
        "llmbar-adver-GPTInst",
        "llmbar-adver-GPTOut",
        "llmbar-adver-manual",
        "llmbar-adver-neighbor",
        "llmbar-natural",
        "mt-bench-hard",
    ),
    "reasoning": (
        "hep-cpp",
        "hep-go",
        "hep-java",
        "hep-js",
        "hep-python",
        "hep-rust",
        "math-prm",
    ),
    "safety": (
        "donotanswer",
        "refusals-dangerous",
        "refusals-offensive",
        "xstest-should-refuse",
        "xstest-should-respond",
    ),
}
"""RewardBench's four categories and their subsets."""


def convert(folder: Path) -> dict[str, pd.DataFrame]:
    """Return which model is right on which pair, and each pair's subset and prompt.

    Reward models score each response separately, so there are no positions; the position of the chosen
    response is drawn from the pair's name.

    Raises
    ------
    JudgeBayesError
        If a prompt does not name its subset.
    """
    wide = pd.read_csv(folder / HOME / "response_matrix.csv", index_col="model")
    long = wide.stack().dropna()  # noqa: PD013  (melt has another order)
    votes = long.rename("correct").rename_axis(["judge", "item"]).reset_index()
    votes = votes[["item", "judge", "correct"]].astype({"correct": "int8"})
    content = pd.read_csv(folder / HOME / "item_content.csv", dtype={"item_id": str})
    parts = content["content"].str.extract(r"\A\[(?P<subset>[^\]]+)\] (?P<text>.*)\Z", flags=16)
    category_of = {
        subset: category for category, subsets in CATEGORIES.items() for subset in subsets
    }
    unknown = content[~parts["subset"].isin(list(category_of))]
    if len(unknown):
        raise JudgeBayesError(
            f"Item {unknown['item_id'].iloc[0]!r} of RewardBench does not begin with the name of one "
            "of its 23 subsets in brackets."
        )
    items = content["item_id"]
    labels = pd.DataFrame(
        {
            "item": items,
            "subset": parts["subset"],
            "category": parts["subset"].map(category_of),
            "label": "chosen",
            "seeded_chosen_pos": ["A" if coin(f"rewardbench#{name}") else "B" for name in items],
        }
    )
    return {
        "votes.parquet": votes.astype({"item": "category", "judge": "category"}),
        "labels.parquet": labels,
        "items.parquet": pd.DataFrame({"item": items, "text": parts["text"]}),
    }
