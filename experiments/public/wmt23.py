"""WMT23: side-by-side MQM ratings of translation pairs by people, three raters per pair."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from judgebayes.errors import JudgeBayesError

PAIRS = {
    "ende": (
        ("GPT4-5shot_with_refA", "refA"),
        ("NLLB_MBR_BLEU", "Lan-BridgeMT"),
        ("ONLINE-M", "ONLINE-G"),
        ("ONLINE-W", "GPT4-5shot_with_ONLINE-W"),
        ("ONLINE-Y", "ONLINE-A"),
    ),
    "zhen": (
        ("GPT4-5shot", "Lan-BridgeMT"),
        ("HW-TSC", "ONLINE-A"),
        ("IOL_Research", "ONLINE-B"),
        ("NLLB_MBR_BLEU", "ONLINE-M"),
        ("ONLINE-W", "NLLB_Greedy"),
    ),
}
"""The pairs of systems shown side by side, inferred from the raters' time stamps."""
COLUMNS = {
    "system": "system",
    "globalSegId": "segment",
    "rater": "rater",
    "source": "source",
    "target": "target",
    "category": "category",
    "severity": "severity",
}
"""The columns that are read, with their names here."""
MAJOR, MINOR, PUNCTUATION, NON_TRANSLATION = 5.0, 1.0, 0.1, 25.0
"""The standard MQM weights."""
FREE = ("Source issue", "Accuracy/Creative Reinterpretation")
"""Categories without a penalty, as they are not errors of the translation."""
TEST = "HOTW-test"
"""The severity of a row that tests whether a rater noticed an inserted error."""
TEXT = 700
"""Maximal number of characters of a text."""


def convert(folder: Path) -> dict[str, pd.DataFrame]:
    """Return each rater's penalties and vote, the plurality of three votes, and the texts."""
    ratings, items = [], []
    for language, pairs in PAIRS.items():
        rated = _rated(folder, language)
        marked = rated[rated["severity"] != TEST]
        texts = marked.groupby(["segment", "system"])[["source", "target"]].first()
        penalties = rated.groupby(["segment", "rater", "system"])["penalty"].sum()
        for first, second in pairs:
            both = pd.concat(
                [penalties.xs(name, level="system") for name in (first, second)],
                axis=1,
                join="inner",
                keys=["mqm_penalty_1", "mqm_penalty_2"],
            ).reset_index()
            name = language + "|" + both["segment"] + f"|{first}|{second}"
            ratings.append(both.assign(item=name, lp=language, sys1=first, sys2=second))
            one, other = (texts.xs(system, level="system") for system in (first, second))
            items.append(
                pd.DataFrame(
                    {
                        "item": language + "|" + one.index + f"|{first}|{second}",
                        "source": _cut(one["source"]),
                        "target1": _cut(one["target"]),
                        "target2": _cut(other["target"].reindex(one.index)),
                    }
                )
            )
    table = pd.concat(ratings, ignore_index=True)
    # Penalties are sums of tenths; rounding removes floating-point errors.
    difference = (table["mqm_penalty_2"] - table["mqm_penalty_1"]).round(6)
    table = table.assign(vote=np.sign(difference).astype("int8"))
    names = ["item", "lp", "rater"]
    columns = [*names, "mqm_penalty_1", "mqm_penalty_2", "vote"]
    return {
        "ratings.parquet": table[columns].astype(dict.fromkeys(names, "category")),
        "labels.parquet": _labels(table),
        "items.parquet": pd.concat(items, ignore_index=True),
    }


def _cut(texts: pd.Series) -> pd.Series:
    return texts.str.slice(0, TEXT)


def _labels(table: pd.DataFrame) -> pd.DataFrame:
    keys = ["lp", "item", "sys1", "sys2"]
    counted = table.groupby(keys)["vote"].agg(
        n="size",
        mean="mean",
        pos=lambda v: (v > 0).sum(),
        tie=lambda v: (v == 0).sum(),
        neg=lambda v: (v < 0).sum(),
    )
    counts = counted[["neg", "tie", "pos"]].to_numpy()
    most = counts.max(1)
    strict = (counts == most[:, None]).sum(1) == 1
    counted = counted.assign(
        label=np.where(strict, counts.argmax(1) - 1, 0),
        unanimous=most == counted["n"],
        no_majority=~strict,
    ).reset_index()
    return counted.astype(dict.fromkeys(["pos", "tie", "neg", "label"], "int8"))


def _rated(folder: Path, language: str) -> pd.DataFrame:
    """Return a row per marked error, or per translation without one, with its penalty."""
    table = pd.DataFrame(_rows(folder, language))
    plain = table[["source", "target"]].replace(r"</?v>", "", regex=True)
    category = table["category"]
    weight = table["severity"].map({"Major": MAJOR, "Minor": MINOR}).fillna(0.0)
    weight[(table["severity"] == "Minor") & category.eq("Fluency/Punctuation")] = PUNCTUATION
    weight[category.str.startswith("Non-translation")] = NON_TRANSLATION
    weight[category.str.startswith(FREE)] = 0.0
    return table.assign(source=plain["source"], target=plain["target"], penalty=weight)


def _rows(folder: Path, language: str) -> Iterator[dict[str, str]]:
    """Yield the rows of the only table in an archive, without unpacking it to disk."""
    name = f"sxs_mqm_generalMT2023_{language}.3ratingsPerSegment.tsv"
    path = folder / "generalMT2023" / language / f"{name}.tar.gz"
    with tarfile.open(path, "r:gz") as archive:
        member = archive.next()
        stream = archive.extractfile(member) if member is not None and member.isfile() else None
        if stream is None:
            raise JudgeBayesError(f"{path.name!r} of WMT23 contains no table.")
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
        lines = (line.rstrip("\n").split("\t") for line in text)
        head = next(lines)
        index_of = {name: head.index(name) for name in COLUMNS}
        for cells in lines:
            yield {new: cells[index_of[old]] for old, new in COLUMNS.items()}
