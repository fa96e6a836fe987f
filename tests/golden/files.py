"""The files and arrays that the cases are asked on: simulated panels, slices of public data."""

from pathlib import Path

import numpy as np
import pandas as pd

from judgebayes.votes import Classes, Votes, encode

N = 120


def _panel(classes: int, judges: int, samples: int, missing: float, seed: int) -> pd.DataFrame:
    """Votes that are right with a judge's accuracy, otherwise a neighbouring class; label and task."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, classes, N)
    rows = []
    for j in range(judges):
        accuracy = rng.uniform(0.55, 0.85)
        for s in range(samples):
            right = rng.random(N) < accuracy
            step = np.where(rng.random(N) < 0.5, 1, -1)
            wrong = np.where((label + step) % classes == label, (label + 1) % classes, label + step)
            vote = np.where(right, label, wrong % classes)
            kept = rng.random(N) >= missing
            rows += [(f"i{i:03}", f"j{j}", s, int(vote[i])) for i in np.flatnonzero(kept)]
    table = pd.DataFrame(rows, columns=["item", "judge", "sample", "vote"])
    place = table["item"].str[1:].astype(int)
    table["label"] = np.where(place % 2 == 0, label[place], -1)
    table["task"] = place % 3
    return table


def pairs() -> pd.DataFrame:
    """Two classes, five judges."""
    return _panel(2, 5, 1, 0.0, 1)


def ternary() -> pd.DataFrame:
    """Three ordered classes, one judge with six votes an item."""
    return _panel(3, 1, 6, 0.0, 2)


def five() -> pd.DataFrame:
    """Five classes, four judges with two votes an item, a fifth of them missing."""
    return _panel(5, 4, 2, 0.2, 3)


CLASSES = {"pairs": (0, 1), "ternary": (-1, 0, 1), "five": (1, 2, 3, 4, 5)}


def panel(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One of the three panels: its votes, and the labels of half of its items."""
    table = {"pairs": pairs, "ternary": ternary, "five": five}[name]()
    named = dict(enumerate(CLASSES[name]))
    gold = table[table["label"] >= 0].drop_duplicates("item")[["item", "label"]]
    return table.assign(vote=table["vote"].map(named)), gold.assign(label=gold["label"].map(named))


def arrays(name: str) -> tuple[Votes, np.ndarray, Classes]:
    """One of the three panels as votes, labels (-1 where unknown) and classes."""
    table, gold = panel(name)
    votes, coding = encode(table, sample="sample", task="task", classes=CLASSES[name])
    return votes, np.asarray(coding.labels(gold, label="label")), coding.classes


def generators(folder: Path) -> None:
    """Three generators, four validators, some votes missing, 90 labels."""
    rng = np.random.default_rng(4)
    rows = []
    for g, share in enumerate((0.55, 0.7, 0.85)):
        valid = rng.random(N) < share
        known = rng.random(N) < 0.25
        for j, (tpr, tnr) in enumerate(((0.95, 0.4), (0.9, 0.6), (0.85, 0.7), (0.97, 0.3))):
            vote = np.where(valid, rng.random(N) < tpr, rng.random(N) > tnr).astype(int)
            rows += [
                (f"g{g}-{i}", f"g{g}", f"j{j}", vote[i], int(valid[i]) if known[i] else None)
                for i in np.flatnonzero(rng.random(N) < 0.9)
            ]
    columns = ["item", "generator", "judge", "vote", "label"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "generators.csv", index=False)


def systems(folder: Path) -> None:
    """Pairs of responses of three systems, with three judges' votes A, B or tie."""
    rng = np.random.default_rng(5)
    strength = {"alpha": 0.0, "beta": 0.6, "gamma": 1.1}
    rows = []
    for i in range(2 * N):
        one, other = rng.choice(list(strength), 2, replace=False)
        margin = strength[one] - strength[other] + rng.normal()
        label = "tie" if abs(margin) < 0.4 else "A" if margin > 0 else "B"
        for j in range(3):
            seen = margin + rng.normal(scale=0.8 + 0.2 * j)
            vote = "tie" if abs(seen) < 0.3 else "A" if seen > 0 else "B"
            rows.append((f"i{i:03}", one, other, f"j{j}", vote, label if i % 2 else None))
    columns = ["item", "system_a", "system_b", "judge", "vote", "label"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "systems.csv", index=False)


def llmbar(folder: Path, data: Path) -> None:
    """Every eighth evaluator of LLMBar on its 419 items, as shown in order AB."""
    source = data / "llmbar_evaluators"
    labels = pd.read_parquet(source / "labels.parquet").astype(str)
    labels = labels[labels["subset"].str.startswith("LLMBar/")]
    votes = pd.read_parquet(source / "votes_by_order.parquet").astype({"item": str, "judge": str})
    votes = votes[votes["item"].isin(labels["item"]) & (votes["order"].astype(str) == "AB")]
    judges = sorted(votes["judge"].unique())[::8]
    votes = votes[votes["judge"].isin(judges)].sort_values(["item", "judge"])
    votes = votes.assign(vote=votes["vote"].map({"A": "A", "B": "B"}))
    votes[["item", "judge", "vote"]].to_csv(folder / "llmbar.csv", index=False)
    kept = labels.sort_values("item").iloc[::2].rename(columns={"label_AB": "label"})
    kept[["item", "label"]].to_csv(folder / "llmbar_labels.csv", index=False)


def rb2(folder: Path, data: Path) -> None:
    """Eight votes of one judge of RewardBench 2 on 300 pairs; 150 labels."""
    source = data / "rb2_k8_scores"
    votes = pd.read_parquet(source / "ternary_votes.parquet")
    votes = votes.astype({"pair": str, "model": str, "prompt": str, "temperature": float})
    first = (
        votes[["model", "prompt", "temperature"]]
        .drop_duplicates()
        .sort_values(["model", "prompt", "temperature"])
    )
    model, prompt, temperature = first.iloc[0]
    same = (votes["model"] == model) & (votes["prompt"] == prompt)
    votes = votes[same & (votes["temperature"] == temperature)]
    items = sorted(votes["pair"].unique())[::20][:300]
    votes = votes[votes["pair"].isin(items)].sort_values(["pair", "sample"])
    votes = votes.rename(columns={"pair": "item"}).assign(judge=model)
    votes[["item", "judge", "sample", "vote"]].to_csv(folder / "rb2.csv", index=False)
    gold = pd.read_parquet(source / "pairs.parquet").astype({"pair": str})
    gold = gold[gold["pair"].isin(items[::2])].sort_values("pair")
    gold = gold[["pair", "gold"]].set_axis(["item", "label"], axis=1)
    gold.to_csv(folder / "rb2_labels.csv", index=False)


def write_all(folder: Path, data: Path | None) -> None:
    """Write every file that a case names; those of public data only where they are present."""
    for name in CLASSES:
        table, gold = panel(name)
        table.drop(columns=["label", "task"]).to_csv(folder / f"{name}.csv", index=False)
        gold.to_csv(folder / f"{name}_labels.csv", index=False)
    generators(folder)
    systems(folder)
    if data is not None:
        llmbar(folder, data)
        rb2(folder, data)
