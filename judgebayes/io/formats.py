"""The formats of vote files by name, with the reader of each."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import Options
from judgebayes.io.records import read_json, read_lines

if TYPE_CHECKING:
    from judgebayes.io.gathering import Imported

FILE = ("ignore", "encoding", "skip_rows")
"""Options for the layout of a table in its file."""
TABLE = ("item", "judge", "sample", "order", "label")


@dataclass(frozen=True)
class Format:
    """A format: a description, the function that reads it, and the options that it takes."""

    says: str
    reader: str
    """`module:function` in `judgebayes.io`, imported on first use."""
    takes: tuple[str, ...] = ()
    """The options beside `missing`, which every format takes."""

    def read(self) -> Callable[[Path, Options], "Imported"]:
        """Return the reader."""
        module, name = self.reader.split(":")
        read_format: Callable[[Path, Options], Imported] = getattr(
            importlib.import_module(f"judgebayes.io.{module}"), name
        )
        return read_format


FORMATS: dict[str, Format] = {
    "tidy": Format(
        "a table with a row per vote, or a folder with a file per judge",
        "tidy:read_tidy",
        (*TABLE, "vote", *FILE),
    ),
    "wide": Format(
        "a table with a row per item and a column per judge",
        "wide:read_wide",
        ("item", "label", *FILE),
    ),
    "text": Format(
        "a table with a judge's raw answer in each row, for the verdict parser",
        "judge_text:read_judge_text",
        (*TABLE, "text", "verdicts", *FILE),
    ),
    "reviews": Format(
        "a table with an answer on several items in each row; the items are in --items FILE",
        "reviews:read_reviews",
        ("item", "judge", "sample", "label", "text", "items", "group", *FILE),
    ),
    "judgebench": Format(
        "JudgeBench's outputs, a JSONL file per judge", "judgebench:read_judgebench"
    ),
    "llmbar": Format("LLMBar's evaluators/MODEL/PROMPT/result.json", "llmbar:read_llmbar"),
    "rewardbench": Format(
        "RewardBench's results, a JSON file per model", "rewardbench:read_rewardbench"
    ),
    "alpaca-eval": Format("AlpacaEval's annotations.json", "alpaca_eval:read_alpaca_eval"),
    "mt-bench": Format(
        "MT-bench judgments: gpt-4_pair.jsonl, gpt-4_single.jsonl, human votes",
        "mt_bench:read_mt_bench",
    ),
    "inspect": Format(
        "logs of Inspect (inspect_ai): .eval or .json",
        "inspect_log:read_inspect",
        ("sample", "label", "votes_from"),
    ),
    "lm-eval": Format(
        "samples of lm-evaluation-harness (samples_TASK_DATE.jsonl)",
        "lm_eval:read_lm_eval",
        ("votes_from",),
    ),
    "promptfoo": Format(
        "results of promptfoo eval: .json or .jsonl", "promptfoo:read_promptfoo", ("label",)
    ),
    "openai-evals": Format(
        "record files of OpenAI evals: .jsonl", "openai_evals:read_openai_evals"
    ),
}
"""Formats by name."""


def format_of(path: Path) -> str | None:
    """Return the format of a log of another tool or of a folder of files; None for a table.

    Logs of Inspect, results of promptfoo, annotations of AlpacaEval, judgments of MT-bench and records
    of OpenAI evals are recognised by their content, and so are folders of logs or of tables.
    """
    if path.is_dir():
        matches = [path.rglob(pattern) for pattern in ("*.eval", "*.json")]
        logs = next((file for files in matches for file in files), None)
        return "tidy" if logs is None else format_of(logs)
    if path.suffix.lower() == ".eval":
        return "inspect"
    if path.suffix.lower() in (".jsonl", ".ndjson") and path.is_file():
        return _format_of_lines(path)
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    content = read_json(path)
    if isinstance(content, dict) and isinstance(content.get("eval"), dict):
        return "inspect"
    if isinstance(content, dict) and "results" in content:
        return "promptfoo"
    if isinstance(content, list) and content and isinstance(content[0], dict):
        return "alpaca-eval" if "preference" in content[0] else None
    return None


def _format_of_lines(path: Path) -> str | None:
    """Return the format of a JSONL file by its first record, None for a table."""
    try:
        first = next((record for _, record in read_lines(path)), {})
    except JudgeBayesError:
        return None  # who reads the table says what is wrong, and knows its encoding
    if isinstance(first.get("spec"), dict) and "eval_name" in first["spec"]:
        return "openai-evals"
    judged = isinstance(first.get("judge"), list) and "question_id" in first
    return "mt-bench" if judged and ("score" in first or "g1_winner" in first) else None


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
    return form.read()(Path(path), options)
