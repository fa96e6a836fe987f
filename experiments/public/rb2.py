"""RewardBench 2 with eight repeated scores per response: pairs, ternary votes and a panel."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from judgebayes.experiments.public.names import coin, die, rank
from judgebayes.io.records import read_lines

MODELS = {"full": "gpt-5.4", "mini": "gpt-5.4-mini", "nano": "gpt-5.4-nano"}
CLAUDE = {"full": "claude-sonnet-4.6", "mini": "claude-haiku-4.5"}
PAIRED = ("base", "criteria")
"""The prompts whose scores become ternary votes."""
RESPONSES, SAMPLES, SAMPLED = 4, 8, 1000
KEYS = ["model", "prompt", "temperature"]


def convert(folder: Path) -> dict[str, pd.DataFrame]:
    """Return scores, pairs, ternary votes and a binary panel of the repository's raw scores.

    Response 0 is the accepted one. The release has no presentation order and no sample of pairs. The
    order within a pair, the sample of 1,000 pairs per subset, and the rejected response and the position
    in the panel depend only on names (`judgebayes.experiments.public.names`).
    """
    records = [r for f in sorted((folder / "results" / "raw").glob("*.jsonl")) for r in _read(f)]
    wide = pd.DataFrame(records)
    order = wide["item"].map({name: i for i, name in enumerate(sorted(wide["item"].unique()))})
    wide = wide.assign(place=order).sort_values([*KEYS, "place"], kind="stable")
    wide = wide.reset_index(drop=True)
    scores = np.stack(wide.pop("scores").tolist())
    pairs = _pairs(wide)
    labels = _panel_labels(wide)
    return {
        "scores.parquet": _scores(wide, scores),
        "pairs.parquet": pairs,
        "ternary_votes.parquet": _ternary(wide, scores, pairs[pairs["in_sample1000"]]),
        "p2_panel_votes.parquet": _panel(wide, scores, labels),
        "p2_panel_labels.parquet": labels,
    }


def _read(path: Path) -> Iterator[dict[str, object]]:
    models = CLAUDE if "claude" in path.name else MODELS
    _, separator, temperature = path.stem.partition("_t")
    for _, record in read_lines(path):
        for key, model in models.items():
            if f"{key}_scores" in record:
                scores = np.array(record[f"{key}_scores"], float)
                yield {
                    "item": f"{record['subset']}#{record['id']}",
                    "subset": record["subset"],
                    "model": model,
                    "prompt": record["prompt_variant"],
                    "temperature": float(temperature) if separator else 1.0,
                    "scores": scores,
                }


def _scores(wide: pd.DataFrame, scores: np.ndarray) -> pd.DataFrame:
    row, response, sample = np.nonzero(np.isfinite(scores))
    table = wide[["item", "subset", *KEYS]].iloc[row].reset_index(drop=True)
    table = table.astype({"temperature": "float32"})
    table = table.assign(
        response=response.astype("int8"),
        sample=sample.astype("int8"),
        score=scores[row, response, sample].astype("int8"),
    )
    return table.astype(dict.fromkeys(["item", "subset", "model", "prompt"], "category"))


def _pairs(wide: pd.DataFrame) -> pd.DataFrame:
    items = wide.drop_duplicates("item").sort_values("item")
    records = []
    for item, subset in zip(items["item"], items["subset"], strict=True):
        for a in range(RESPONSES):
            for b in range(a + 1, RESPONSES):
                pair = f"{item}|{a}{b}"
                first, second = (a, b) if coin(pair) else (b, a)
                gold = 0 if a > 0 else (1 if first == 0 else -1)
                records.append((pair, item, subset, first, second, gold))
    table = pd.DataFrame(
        records, columns=["pair", "item", "subset", "resp_first", "resp_second", "gold"]
    )
    table = table.astype(dict.fromkeys(["resp_first", "resp_second", "gold"], "int8"))
    drawn = table["pair"].map(rank).groupby(table["subset"]).rank(method="first") <= SAMPLED
    return table.assign(in_sample1000=drawn)


def _ternary(wide: pd.DataFrame, scores: np.ndarray, pairs: pd.DataFrame) -> pd.DataFrame:
    chosen = wide[wide["prompt"].isin(PAIRED)].rename_axis("row").reset_index()
    long = chosen[["row", "item", "model", "prompt", "temperature"]].merge(pairs, on="item")
    long = long.sort_values([*KEYS, "pair"], kind="stable")
    at = long["row"].to_numpy()
    difference = scores[at, long["resp_first"]] - scores[at, long["resp_second"]]
    row, sample = np.nonzero(np.isfinite(difference))
    table = long[["pair", *KEYS]].iloc[row].reset_index(drop=True)
    table = table.astype({"temperature": "float32"})
    table = table.assign(
        sample=sample.astype("int8"), vote=np.sign(difference[row, sample]).astype("int8")
    )
    return table.astype(dict.fromkeys(["pair", "model", "prompt"], "category"))


def _panel_labels(wide: pd.DataFrame) -> pd.DataFrame:
    items = wide.drop_duplicates("item").sort_values("item")
    return pd.DataFrame(
        {
            "item": items["item"].to_numpy(),
            "subset": items["subset"].to_numpy(),
            "rejected_index": [1 + die(name, RESPONSES - 1) for name in items["item"]],
            "seeded_chosen_pos": ["A" if coin(name) else "B" for name in items["item"]],
        }
    )


def _panel(wide: pd.DataFrame, scores: np.ndarray, labels: pd.DataFrame) -> pd.DataFrame:
    """Return whether each judge ranks the accepted response above a rejected one; ties are not votes."""
    rejected = wide["item"].map(labels.set_index("item")["rejected_index"]).to_numpy()
    rows = np.arange(len(wide))
    finite = np.isfinite(scores)
    mean = np.where(finite, scores, 0).sum(2) / np.maximum(finite.sum(2), 1)
    mean = np.where(finite.any(2), mean, np.nan)
    parts = []
    for mode, value in (("k1", scores[:, :, 0]), ("mean8", mean)):
        difference = value[rows, 0] - value[rows, rejected]
        voted = np.isfinite(difference) & (difference != 0)
        voted_rows = wide[voted]
        judge = (
            voted_rows["model"]
            + "/"
            + voted_rows["prompt"]
            + "/t"
            + voted_rows["temperature"].map("{:.1f}".format)
        )
        correct = (difference[voted] > 0).astype("int8")
        parts.append(
            pd.DataFrame(
                {"item": voted_rows["item"], "judge": judge, "mode": mode, "correct": correct}
            )
        )
    table = pd.concat(parts)
    configuration = wide.groupby(KEYS, sort=False).ngroup().reindex(table.index)
    table = table.iloc[np.lexsort((table["mode"], configuration))].reset_index(drop=True)
    return table.astype(dict.fromkeys(["item", "judge", "mode"], "category"))
