"""Small valid inputs of every kind, for mutators to damage."""

import copy
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["HOSTILE", "OPTIONS", "TOOLS", "VALID", "Table", "random_table", "with_more_records"]

from judgebayes.io.options import Options

PART = {
    "pass": True,
    "score": 1,
    "reason": "",
    "assertion": {"type": "llm-rubric", "value": "v", "provider": {"id": "g"}},
    "metadata": {"graderError": False},
}
VALID: dict[str, tuple[str, Any]] = {
    "judgebench": (
        "judge_name=a,judge_model=b.jsonl",
        [{"pair_id": "p", "label": "A>B", "judgments": [{"decision": "A>B"}, {"decision": "A=B"}]}],
    ),
    "rewardbench": (
        "m.json",
        {
            "model": "m",
            "id": [1, 2],
            "subset": ["a", "b"],
            "results": [1, None],
            "scores_chosen": [[1], [2]],
            "scores_rejected": [1, 2],
        },
    ),
    "alpaca-eval": (
        "annotations.json",
        [
            {
                "instruction": "i",
                "output_1": "a",
                "generator_1": "x",
                "annotator": "z",
                "preference": 1,
            }
        ],
    ),
    "mt-bench": (
        "j.jsonl",
        [
            {
                "question_id": 1,
                "model_1": "a",
                "model_2": "b",
                "g1_winner": "model_1",
                "g2_winner": "tie",
                "judge": ["g", "p"],
                "turn": 1,
            },
            {
                "question_id": 1,
                "model_a": "a",
                "model_b": "b",
                "winner": "tie",
                "judge": "expert_1",
            },
        ],
    ),
    "inspect": (
        "l.json",
        {
            "status": "success",
            "eval": {
                "eval_id": "e",
                "model": "m",
                "scorers": [{"name": "f", "options": {"model": ["a", "b"]}}],
            },
            "samples": [
                {
                    "id": 1,
                    "epoch": 1,
                    "target": ["A"],
                    "uuid": "u",
                    "metadata": {"h": 1},
                    "scores": {
                        "f": {"value": "C", "answer": "A"},
                        "g": {"value": {"x": 1, "y": [1, 0]}},
                    },
                },
                {"id": 2, "epoch": 1, "error": {"message": "x"}, "scores": None},
            ],
        },
    ),
    "lm-eval": (
        "m/samples_t.jsonl",
        [
            {"doc_id": 0, "target": "A", "filtered_resps": ["A"], "filter": "f", "acc": 1.0},
            {"doc_id": 1, "target": 1, "filtered_resps": [["-1", "False"], ["-2", "True"]]},
        ],
    ),
    "promptfoo": (
        "o.json",
        {
            "results": {
                "results": [
                    {
                        "success": True,
                        "testIdx": 0,
                        "provider": {"id": "p"},
                        "failureReason": 0,
                        "vars": {"h": 1},
                        "testCase": {"description": "d", "metadata": {"h": 2}},
                        "gradingResult": {"componentResults": [PART]},
                    }
                ]
            }
        },
    ),
    "openai-evals": (
        "e.jsonl",
        [
            {"spec": {"completion_fns": ["g"], "eval_name": "n"}},
            {"sample_id": "s", "type": "metrics", "data": {"choice": "Y", "score": 1.0}},
        ],
    ),
}
"""By format, a file's name and content; a list in a `.jsonl` file has one object per line."""


def content_of(path: Path) -> Any:
    """Return the value of a JSON file, and of a JSONL file the list of its values."""
    text = path.read_text()
    return json.loads(text) if path.suffix == ".json" else [*map(json.loads, text.splitlines())]


TOOLS = Path(__file__).parents[1] / "fixtures" / "tools"
"""Exports of tools, named by the format."""
VALID |= {
    path.stem: (path.name, content_of(path))
    for path in sorted(TOOLS.glob("*.json*"))
    if "." not in path.stem
}

OPTIONS: dict[str, tuple[Options, ...]] = {
    "inspect": (Options(label="h"),),
    "promptfoo": (Options(label="h"),),
}

HOSTILE = (
    *("<script>alert(1)</script>", "a&b", '" onload="x', "[bold]", "[/]", "$x$", "%s", "{x}"),
    *('=HYPERLINK("http://x")', "@SUM(1)", "+1+cmd|' /C calc'!A0", "-2+3", "\t=1", "\r=1", "\n=1"),
    *("../../etc/passwd", "/etc/passwd", "C:\\x", "a/b", "con", "~", "a\\b", "..", "."),
    *(
        "\x00",
        "a\x00b",
        "\x1b[2J",
        "a\nb",
        "a\r",
        "\u2028",
        "\u202eevil",
        "\u2067x",
        "שלום",
        "\ufeff",
    ),
    *("NaN", "None", "null", "N/A", "", " ", "\u3000", "True", "false", "--missing=-1", "'", '"'),
    *("0x1F", "1_0", "10", "1e5", "0e12", "0e34", "1e400", "007", "7", "2.1", "2.10", "+7", "-0"),
    *("12345678901234567890123", "12345678901234567890124", "9007199254740993", "1,5", "1;5"),
    *("٣", "𝟙", "ß", "İ", "\ud83d", "👩\u200d🔬", "e\u0301", "A", "B", "tie", "a", "C"),
)
"""Names and cells that are known to break readers."""

NAMES = ("pair_id", "question_id", "id", "doc_id", "sample_id", "instruction", "uuid")


def with_more_records(value: Any, rng: random.Random) -> Any:
    """Return a value with up to four copies added to each list of records, each with a new name."""
    if isinstance(value, dict):
        return {
            n: part if n == "judgments" else with_more_records(part, rng)
            for n, part in value.items()
        }
    if not isinstance(value, list) or not value or not all(isinstance(v, dict) for v in value):
        return copy.deepcopy(value)
    records = [with_more_records(part, rng) for part in value]
    for number in range(rng.randrange(5)):
        record = copy.deepcopy(rng.choice(records))
        for name in NAMES:
            if name in record:
                record[name] = f"{record[name]}-{number}"
        records.append(record)
    return records


@dataclass
class Table:
    """A table as text: a header and rows of cells."""

    header: list[str]
    rows: list[list[str]]


SCALES = (("0", "1"), ("-1", "0", "1"), ("B", "tie", "A"), ("no", "yes"), ("invalid", "valid"))
TITLES = {
    "item": ("item", "Item ID", "question_id", "id"),
    "judge": ("judge", "Judge", "grader", "model"),
    "vote": ("vote", "verdict", "rating"),
    "sample": ("sample", "run"),
    "order": ("order", "swapped"),
    "label": ("label", "gold"),
}


def random_table(rng: random.Random, *, wide: bool, text: bool = False) -> Table:
    """Return a valid table of votes; names may be hostile, and a vote may be missing."""
    scale = rng.choice(SCALES)
    items = [_name(rng, f"i{n}") for n in range(rng.randint(1, 6))]
    judges = [_name(rng, f"j{n}") for n in range(rng.randint(1, 4))]
    label_of = {item: rng.choice(scale) for item in items}

    def vote() -> str:
        cast = "" if rng.random() < 0.1 else rng.choice(scale)
        return rng.choice((f"[[{cast}]]", f"I say {cast}", cast)) if text else cast

    if wide:
        header = [rng.choice(TITLES["item"]), *judges, "label"]
        return Table(header, [[i, *(vote() for _ in judges), label_of[i]] for i in items])
    has_column = {
        "item": True,
        "judge": rng.random() < 0.8,
        "vote": True,
        "sample": rng.random() < 0.3,
        "order": rng.random() < 0.3,
        "label": rng.random() < 0.5,
    }
    titles = [rng.choice(names) for role, names in TITLES.items() if has_column[role]]
    if text:
        titles = ["text" if title in TITLES["vote"] else title for title in titles]
    rows = []
    for item in items:
        for judge in judges if has_column["judge"] else ["judge"]:
            for sample in range(2 if has_column["sample"] else 1):
                for order in ("AB", "BA") if has_column["order"] else ("AB",):
                    cells = {
                        "item": item,
                        "judge": judge,
                        "vote": vote(),
                        "sample": str(sample),
                        "order": order,
                        "label": label_of[item],
                    }
                    rows.append([cells[role] for role in TITLES if has_column[role]])
    return Table(titles, rows)


def _name(rng: random.Random, plain: str) -> str:
    chance = rng.random()
    if chance < 0.75:
        return plain
    if chance < 0.751:
        return plain * 500_000
    return rng.choice(HOSTILE)
