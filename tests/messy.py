"""Thirteen messy files as people have them, for the tests of `judgebayes check`.

The first three are those of the guide; the others were written before the check was.
"""

import csv
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

__all__ = ["MESSY", "Files"]

N = 60


@dataclass(frozen=True)
class Files:
    """The files of a user: votes, and labels if they are in a file of their own."""

    votes: Path
    labels: Path | None = None


def _truth(seed: int, n: int = N) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, n)


def _votes(truth: np.ndarray, accuracy: float, seed: int) -> np.ndarray:
    right = np.random.default_rng(seed).random(len(truth)) < accuracy
    return np.where(right, truth, 1 - truth)


def _write(path: Path, head: list[str], rows: list[list[object]], sep: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=sep)
        writer.writerow(head)
        writer.writerows(rows)
    return path


def prompts_and_costs(folder: Path) -> Files:
    """Prompt text, cost, latency, three attempts each; ids that differ in case and padding."""
    truth = _truth(1)
    rows: list[list[object]] = []
    for judge, model in enumerate(("gpt-4o", "claude-3-opus")):
        for attempt in (1, 2, 3):
            votes = _votes(truth, 0.8, 10 * judge + attempt)
            rows += [
                [
                    f"Q-{i + 1:04d}",
                    f"Explain, in one line,\tthe number {i}.",
                    model,
                    attempt,
                    "good" if votes[i] else "bad",
                    f"{0.001 * (i % 7):.4f}",
                    312 + 7 * i + attempt,
                ]
                for i in range(N)
            ]
    head = ["Prompt Ref", "prompt", "Model", "attempt", "Outcome", "cost_usd", "latency_ms"]
    votes_file = _write(folder / "runs.csv", head, rows)
    labels = _write(
        folder / "human.csv",
        ["prompt ref", "expert says"],
        [[f"q-{i + 1}", "good" if truth[i] else "bad"] for i in range(40)],
    )
    return Files(votes_file, labels)


def inspect_log(folder: Path) -> Files:
    """A log of Inspect with two graders, and labels by sample id."""
    truth = _truth(2)
    graders = {name: _votes(truth, 0.85, k) for k, name in enumerate(("qa_gpt", "qa_claude"))}
    samples = [
        {
            "id": f"sample_{i}",
            "epoch": 1,
            "input": f"question {i}",
            "target": "x",
            "scores": {g: {"value": "C" if votes[i] else "I"} for g, votes in graders.items()},
        }
        for i in range(N)
    ]
    path = folder / "2026-03-01_qa.eval"
    header = {
        "version": 2,
        "status": "success",
        "eval": {"task": "qa", "model": "m", "run_id": "r"},
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
    labels = _write(
        folder / "truth.csv",
        ["id", "human"],
        [[f"sample_{i}", "correct" if truth[i] else "incorrect"] for i in range(45)],
    )
    return Files(path, labels)


def spreadsheet(folder: Path) -> Files:
    """A spreadsheet from a German Excel: a title, a column per judge, notes, a date, labels."""
    truth = _truth(3)
    judges = [_votes(truth, accuracy, k) for k, accuracy in enumerate((0.9, 0.8, 0.7))]
    word = ("no", "yes")
    lines = ["Grading round 3;;;;;;;", ";;;;;;;"]
    lines.append("Item No.;GPT 5;Claude;Llama;Comment;Graded on;Human label;")
    for i in range(N):
        cells = [word[votes[i]] for votes in judges]
        comment = ("größer", "kürzer; knapp", "")[i % 3]
        human = word[truth[i]] if i < 40 else ""
        lines.append(f'{i + 1};{";".join(cells)};"{comment}";{1 + i % 28:02d}.03.2026;{human};')
    path = folder / "Grading März.csv"
    path.write_text("\n".join(lines) + "\n", encoding="cp1252")
    return Files(path)


def arena(folder: Path) -> Files:
    """Battles in JSONL: winner in words of its own, two judge models, a list of tags."""
    truth = np.random.default_rng(4).integers(-1, 2, N)
    word = {1: "model_a", -1: "model_b", 0: "tie"}
    records = []
    for k, judge in enumerate(("gpt-4", "opus")):
        noise = np.random.default_rng(k)
        for i in range(N):
            vote = truth[i] if noise.random() < 0.75 else noise.integers(-1, 2)
            records.append(
                {
                    "battle": f"b{i:03d}",
                    "judge_model": judge,
                    "winner": word[int(vote)],
                    "model_a": "m1",
                    "model_b": "m2",
                    "tags": ["en", "math"],
                    "tstamp": 1700000000 + 60 * i + k,
                }
            )
    path = folder / "battles.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    labels = _write(
        folder / "gold.csv",
        ["battle", "gold"],
        [[f"b{i:03d}", word[int(truth[i])]] for i in range(50)],
    )
    return Files(path, labels)


def scores(folder: Path) -> Files:
    """Scores from 0 to 100 of two judges, and a person's yes or no."""
    draws = np.random.default_rng(5)
    truth = _truth(5)
    rows: list[list[object]] = []
    for judge in ("strict", "lenient"):
        shift = 8 if judge == "lenient" else 0
        values = np.clip(draws.normal(np.where(truth == 1, 65, 45) + shift, 12), 0, 100)
        rows += [[i, judge, round(float(v), 1)] for i, v in enumerate(values)]
    path = _write(folder / "scores.csv", ["item", "grader", "score"], rows)
    labels = _write(
        folder / "labels.csv", ["item", "acceptable"], [[i, int(truth[i])] for i in range(40)]
    )
    return Files(path, labels)


def from_pandas(folder: Path) -> Files:
    """A TSV with pandas' unnamed index column and True/False; labels in the same file."""
    truth = _truth(6)
    rows = []
    for k, judge in enumerate(("alpha", "beta", "gamma")):
        for i, vote in enumerate(_votes(truth, 0.8, k)):
            label = bool(truth[i]) if i < 35 else None
            rows.append(
                {
                    "uid": f"u{i}",
                    "rater_model": judge,
                    "is_correct": bool(vote),
                    "gold_answer": label,
                }
            )
    path = folder / "export.tsv"
    pd.DataFrame(rows).to_csv(path, sep="\t")
    return Files(path)


def criteria(folder: Path) -> Files:
    """Each judge rates three criteria; labels are per item."""
    truth = _truth(7)
    rows: list[list[object]] = []
    for k, judge in enumerate(("gpt", "gemini")):
        for c, criterion in enumerate(("helpful", "harmless", "honest")):
            votes = _votes(truth, 0.6 + 0.1 * c, 10 * k + c)
            rows += [[i, criterion, judge, "pass" if v else "fail"] for i, v in enumerate(votes)]
    path = _write(folder / "rubrics.csv", ["id", "criterion", "judge", "verdict"], rows)
    labels = _write(
        folder / "labels.csv",
        ["id", "label"],
        [[i, "pass" if truth[i] else "fail"] for i in range(40)],
    )
    return Files(path, labels)


def appended_twice(folder: Path) -> Files:
    """A JSONL log that was appended to itself: every record of the first judge is there twice."""
    truth = _truth(8)
    records = [
        {
            "id": f"t{i}",
            "evaluator": judge,
            "decision": "Pass" if vote else "Fail",
            "at": f"2026-01-{1 + i % 28:02d}T00:00:{i % 60:02d}",
        }
        for k, judge in enumerate(("one", "two"))
        for i, vote in enumerate(_votes(truth, 0.8, k))
    ]
    lines = list(map(json.dumps, [*records, *records[:N]]))
    path = folder / "log.jsonl"
    path.write_text("\n".join(lines))
    labels = _write(
        folder / "labels.csv",
        ["id", "truth"],
        [[f"t{i}", "Pass" if truth[i] else "Fail"] for i in range(40)],
    )
    return Files(path, labels)


def three_annotators(folder: Path) -> Files:
    """Labels of three people who do not always agree, a row each."""
    truth = _truth(9)
    rows: list[list[object]] = []
    for k, judge in enumerate(("a", "b")):
        rows += [[i, judge, int(v)] for i, v in enumerate(_votes(truth, 0.8, k))]
    path = _write(folder / "votes.csv", ["item", "judge", "vote"], rows)
    gold: list[list[object]] = []
    for k, name in enumerate(("ann", "ben", "eve")):
        gold += [[i, name, int(v)] for i, v in enumerate(_votes(truth[:40], 0.9, 50 + k))]
    labels = _write(folder / "annotations.csv", ["item", "annotator", "label"], gold)
    return Files(path, labels)


def both_orders(folder: Path) -> Files:
    """Pairs shown in both orders; the vote names the response as shown; 'unclear' now and then."""
    truth = _truth(10)
    rows: list[list[object]] = []
    for swapped in (False, True):
        for i, vote in enumerate(_votes(truth, 0.85, int(swapped))):
            first = bool(vote) != swapped
            cell = "unclear" if i % 19 == 4 else ("A" if first else "B")
            rows.append([f"pair-{i}", "yes" if swapped else "no", cell, "BA" if swapped else "AB"])
    path = _write(folder / "pairs.csv", ["pair", "flipped?", "preferred", "presentation"], rows)
    labels = _write(
        folder / "gold.csv",
        ["pair", "gold"],
        [[f"pair-{i}", "A" if truth[i] else "B"] for i in range(40)],
    )
    return Files(path, labels)


def german_words(folder: Path) -> Files:
    """German columns and words, separated by semicolons; labels in the same file."""
    truth = _truth(11)
    rows: list[list[object]] = []
    for k, judge in enumerate(("Sprachmodell 1", "Sprachmodell 2")):
        rows += [
            [
                f"F{i}",
                judge,
                "gut" if v else "schlecht",
                "weil, nun ja",
                "gut" if truth[i] else "schlecht",
            ]
            for i, v in enumerate(_votes(truth, 0.8, k))
        ]
    path = _write(
        folder / "urteile.csv", ["Frage", "Richter", "Urteil", "Begründung", "Goldlabel"], rows, ";"
    )
    return Files(path)


def zero_padded(folder: Path) -> Files:
    """Whole numbers as items in Parquet, zero-padded text in the labels."""
    truth = _truth(12)
    frame = pd.concat(
        pd.DataFrame(
            {"example_id": np.arange(N), "judge": judge, "correct": _votes(truth, 0.8, k) > 0}
        )
        for k, judge in enumerate(("x", "y"))
    )
    path = folder / "judged.parquet"
    frame.to_parquet(path, index=False)
    labels = _write(
        folder / "labels.csv",
        ["example_id", "label"],
        [[f"{i:05d}", int(truth[i])] for i in range(40)],
    )
    return Files(path, labels)


def paths_as_ids(folder: Path) -> Files:
    """Labels by the path of an output file, and one with a typing error."""
    truth = _truth(13)
    rows: list[list[object]] = []
    for k, judge in enumerate(("x", "y")):
        rows += [
            [f"case_{i}", judge, "valid" if v else "invalid"]
            for i, v in enumerate(_votes(truth, 0.8, k))
        ]
    path = _write(folder / "votes.csv", ["case", "validator", "vote"], rows)
    gold: list[list[object]] = [
        [f"outputs/case_{i}.json", "valid" if truth[i] else "invalid"] for i in range(40)
    ]
    gold[7][0] = "outputs/csae_7.json"
    labels = _write(folder / "labels.csv", ["file", "label"], gold)
    return Files(path, labels)


MESSY: tuple[Callable[[Path], Files], ...] = (
    prompts_and_costs,
    inspect_log,
    spreadsheet,
    arena,
    scores,
    from_pandas,
    criteria,
    appended_twice,
    three_annotators,
    both_orders,
    german_words,
    zero_padded,
    paths_as_ids,
)
"""The files, by what is messy about them."""
