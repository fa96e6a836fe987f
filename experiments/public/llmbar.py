"""LLMBar: votes of 65 evaluators in both orders, from the results of each in its repository."""

from pathlib import Path
from typing import Any

import pandas as pd

from judgebayes.io.records import read_json
from judgebayes.io.tools import plain

SIDES = {"1": "A", "2": "B"}
ORDERS = {"swap = False": "AB", "swap = True": "BA"}


def convert(folder: Path) -> dict[str, pd.DataFrame]:
    """Return votes by order, labels and instructions of LLMBar's repository.

    The last step of an evaluator counts, and its `winner` names the outputs, whatever the order. An
    evaluator that rates each output separately has one vote per pair, a tie where its ratings are equal.
    The vote is repeated for both orders here, so that every evaluator has two. (LLMBar counts equal
    ratings, and ratings that are not numbers, for output 1 in one order and for output 2 in the other;
    here the latter are missing votes.)
    """
    rows = []
    for file in sorted((folder / "Dataset").rglob("result.json")):
        subset = file.parents[3].relative_to(folder / "Dataset").as_posix()
        model, strategy = file.parts[-3:-1]
        for number, record in enumerate(read_json(file)):
            last = record["results"][-1]
            for key, order in ORDERS.items():
                vote = _rated(last) if "score_1" in last else SIDES.get(str(last[key]["winner"]))
                place = f"{subset}#{number}", f"{model}/{strategy}", model, strategy, order, vote
                rows.append((*place, SIDES[str(record["label"])], subset))
    names = ["item", "judge", "model", "strategy", "order", "vote"]
    votes = pd.DataFrame(rows, columns=[*names, "label", "subset"])
    votes = votes.sort_values(["subset", "judge"], kind="stable", ignore_index=True)
    is_decided = votes["vote"].isin(["A", "B"])
    correct = (votes["vote"] == votes["label"]).astype(float).where(is_decided)
    table = votes[names].astype("category").assign(correct=correct)
    labels, items = _pairs(folder)
    return {
        "votes_by_order.parquet": table,
        "labels.parquet": labels,
        "items.parquet": items,
    }


def _rated(step: dict[str, Any]) -> str | None:
    one, two = (plain(step[f"score_{n}"][0]) for n in (1, 2))
    if not isinstance(one, int) or not isinstance(two, int):
        return None
    return "tie" if one == two else "A" if one > two else "B"


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
