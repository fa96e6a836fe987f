"""The formats of vote files by name, with the reader of each, and what files of each have."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import Files, Options
from judgebayes.io.records import find_files

if TYPE_CHECKING:
    import pandas as pd

    from judgebayes.io.gathering import Imported, Row
    from judgebayes.votes.slots import VotesAs

FILE = ("ignore", "encoding", "skip_rows")
"""Options for the layout of a table in its file."""
TABLE = ("item", "judge", "sample", "order", "label")
TABLES = (
    *("*.csv", "*.tsv", "*.jsonl", "*.ndjson", "*.parquet"),
    *("*.csv.gz", "*.tsv.gz", "*.jsonl.gz"),
)
"""File name patterns of tables."""
PAIR = ("B", "tie", "A")
Record = Mapping[str, Any]
"""The first record of a file; of a table, the names of its columns, each with None."""


def _never(first: Record) -> bool:
    return not isinstance(first, Mapping)


def _is_mt_bench(first: Record) -> bool:
    judged = isinstance(first.get("judge"), list) and "question_id" in first
    return judged and ("score" in first or "g1_winner" in first)


@dataclass(frozen=True)
class Format:
    """A format: a description, the function that reads its rows, and what all of its files have."""

    says: str
    reader: str
    """`module:function` in `judgebayes.io`, imported on first use."""
    takes: tuple[str, ...] = ()
    """The options beside `missing`, which every format takes."""
    patterns: tuple[str, ...] = TABLES
    """Of the names of its files, in a folder; none if a folder cannot be read."""
    called: str = "table"
    """What its files are or hold, for messages."""
    votes_as: "VotesAs | None" = None
    """As in `Imported`."""
    classes: tuple[str, ...] = ()
    """The classes from lowest to highest, if a vote is between these."""
    always: bool = False
    """Whether they are the classes also if no vote is between the lowest and the highest."""
    letters: Mapping[str, str] = field(default_factory=dict)
    """The class that the tool means by a shorter word, in files of labels."""
    recognised_by: Callable[[Record], bool] = _never
    """Whether a file with this first record has this format, so that commands read it directly."""

    def read(self) -> "Callable[[Files], Iterable[Row | pd.DataFrame | str]]":
        """Return the reader: of rows or a table of them, and of sentences for the user."""
        file, name = self.reader.split(":")
        module = importlib.import_module(f"judgebayes.io.{file}")
        read_format: Callable[[Files], Iterable[Row | pd.DataFrame | str]] = getattr(module, name)
        return read_format


FORMATS: dict[str, Format] = {
    "tidy": Format(
        "a table with a row per vote, or a folder with a file per judge",
        "vote_tables:read_tidy",
        (*TABLE, "vote", *FILE),
    ),
    "wide": Format(
        "a table with a row per item and a column per judge",
        "vote_tables:read_wide",
        ("item", "label", *FILE),
        patterns=(),
    ),
    "text": Format(
        "a table with a judge's raw answer in each row, for the verdict parser",
        "vote_tables:read_judge_text",
        (*TABLE, "text", "verdicts", *FILE),
        votes_as="shown",
    ),
    "reviews": Format(
        "a table with an answer on several items in each row; the items are in --items FILE",
        "reviews:read_reviews",
        ("item", "judge", "sample", "label", "text", "items", "group", *FILE),
        classes=("invalid", "valid"),
        always=True,
    ),
    "judgebench": Format(
        "JudgeBench's outputs, a JSONL file per judge",
        "judgebench:read_judgebench",
        patterns=("*.jsonl",),
        called="outputs of JudgeBench",
        votes_as="original",
        classes=PAIR,
        always=True,
    ),
    "llmbar": Format(
        "LLMBar's evaluators/MODEL/PROMPT/result.json",
        "llmbar:read_llmbar",
        patterns=("result.json",),
        called="results of LLMBar's evaluators",
        votes_as="original",
        classes=PAIR,
    ),
    "rewardbench": Format(
        "RewardBench's results, a JSON file per model",
        "rewardbench:read_rewardbench",
        patterns=("*.json", "*.jsonl"),
        called="results of RewardBench",
        classes=PAIR,
    ),
    "alpaca-eval": Format(
        "AlpacaEval's annotations.json",
        "alpaca_eval:read_alpaca_eval",
        patterns=("*annotations*.json",),
        called="annotations of AlpacaEval",
        classes=PAIR,
        letters={"1": "A", "2": "B", "0": "tie", "1.5": "tie"},
        recognised_by=lambda first: "preference" in first and first.get("instruction") is not None,
    ),
    "mt-bench": Format(
        "MT-bench judgments: gpt-4_pair.jsonl, gpt-4_single.jsonl, human votes",
        "mt_bench:read_mt_bench",
        patterns=("*.jsonl",),
        called="MT-bench judgments",
        votes_as="original",
        classes=PAIR,
        always=True,
        recognised_by=_is_mt_bench,
    ),
    "inspect": Format(
        "logs of Inspect (inspect_ai): .eval or .json",
        "inspect_log:read_inspect",
        ("sample", "label", "votes_from"),
        patterns=("*.eval", "*.json"),
        called="samples of Inspect",
        classes=("incorrect", "partial", "correct"),
        letters={"I": "incorrect", "P": "partial", "C": "correct"},
        recognised_by=lambda first: isinstance(first.get("eval"), dict),
    ),
    "lm-eval": Format(
        "samples of lm-evaluation-harness (samples_TASK_DATE.jsonl)",
        "lm_eval:read_lm_eval",
        ("votes_from",),
        patterns=("samples_*.jsonl", "samples_*.jsonl.gz"),
        called="samples of lm-eval",
    ),
    "promptfoo": Format(
        "results of promptfoo eval: .json or .jsonl",
        "promptfoo:read_promptfoo",
        ("label",),
        patterns=("*.json", "*.jsonl"),
        called="results of promptfoo",
        recognised_by=lambda first: isinstance(first.get("results"), dict | list),
    ),
    "openai-evals": Format(
        "record files of OpenAI evals: .jsonl",
        "openai_evals:read_openai_evals",
        patterns=("*.jsonl",),
        called="records of OpenAI evals",
        recognised_by=lambda first: (
            isinstance(first.get("spec"), dict) and "eval_name" in first["spec"]
        ),
    ),
}
"""Formats by name."""


def format_of(path: Path) -> str | None:
    """Return the format of a log of another tool or of a folder of files; None for a table.

    Files are recognised by their first record, and folders by their first log, else as tables.
    """
    if path.is_dir():
        matches = [path.rglob(pattern) for pattern in ("*.eval", "*.json")]
        logs = next((file for files in matches for file in files), None)
        return "tidy" if logs is None else format_of(logs)
    if path.suffix.lower() == ".eval":
        return "inspect"
    from judgebayes.io.tools import first_record

    first = first_record(path)
    return next((name for name, form in FORMATS.items() if form.recognised_by(first)), None)


def import_votes(name: str, path: Path | str, options: Options = Options()) -> "Imported":  # noqa: B008
    """Return the votes in a file or folder of one format.

    Parameters
    ----------
    name
        A key of `FORMATS`.
    path
        A file, or a folder of such files.
    options
        What the reader cannot detect by itself.

    Raises
    ------
    JudgeBayesError
        If the format is unknown or does not take an option, or if the files are not in this format.
    """
    from judgebayes.io.gathering import gather

    if name not in FORMATS:
        raise JudgeBayesError(f"There is no format {name!r}; choose one of: {', '.join(FORMATS)}.")
    form = FORMATS[name]
    option_names = (*form.takes, "missing")
    unsupported = sorted(options.specified() - set(option_names))
    if unsupported:
        takes = ", ".join("--" + option.replace("_", "-") for option in option_names)
        raise JudgeBayesError(
            f"The format {name} does not take --{unsupported[0].replace('_', '-')}; it takes {takes}."
        )
    path = Path(path)
    files = find_files(path, form.patterns, form.called) if form.patterns else [path]
    return gather(form.read()(Files(path, files, options)), str(path), form, options.missing)
