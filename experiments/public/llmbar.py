"""LLMBar: votes of 65 evaluators in both orders, through this package's reader of the format."""

from pathlib import Path

import pandas as pd

from judgebayes.io.formats import import_votes
from judgebayes.io.records import read_json


def convert(folder: Path) -> dict[str, pd.DataFrame]:
    """Return votes by order, labels and instructions of LLMBar's repository.

    An evaluator that rates each output separately has one vote per pair. The vote is repeated for both
    orders here, so that every evaluator has two.
    """
    imported = import_votes("llmbar", folder / "Dataset")
    assert imported.labels is not None
    votes = imported.votes
    rated = votes.groupby("judge")["order"].transform("nunique") == 1
    repeated = votes[rated].assign(order="BA")
    votes = pd.concat([votes, repeated]).sort_index(kind="stable")
    subset = votes["item"].str.rpartition("#")[0]
    votes = votes.assign(subset=subset).sort_values(["subset", "judge"], kind="stable")
    votes = votes.reset_index(drop=True)
    model = votes["judge"].str.partition("/")
    label = votes["item"].map(imported.labels.set_index("item")["label"])
    is_decided = votes["vote"].isin(["A", "B"])
    table = pd.DataFrame(
        {
            "item": votes["item"],
            "judge": votes["judge"],
            "model": model[0],
            "strategy": model[2],
            "order": votes["order"],
            "vote": votes["vote"],
            "correct": (votes["vote"] == label).astype(float).where(is_decided),
        }
    )
    names = ["item", "judge", "model", "strategy", "order", "vote"]
    labels, items = _pairs(folder)
    return {
        "votes_by_order.parquet": table.astype(dict.fromkeys(names, "category")),
        "labels.parquet": labels,
        "items.parquet": items,
    }


def _pairs(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    labels, items = [], []
    root = folder / "Dataset"
    for file in sorted(root.rglob("dataset.json")):
        subset = file.parent.relative_to(root).as_posix()
        for index, pair in enumerate(read_json(file)):
            item = f"{subset}#{index}"
            items.append({"item": item, "text": pair["input"]})
            labels.append(
                {
                    "item": item,
                    "subset": subset,
                    "label_AB": {1: "A", 2: "B"}[int(pair["label"])],
                    "len_A": len(pair["output_1"]),
                    "len_B": len(pair["output_2"]),
                }
            )
    return pd.DataFrame(labels), pd.DataFrame(items)
