"""The formats that votes come in, by name, and which reader reads them."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import Options

if TYPE_CHECKING:
    from judgebayes.io.imported import Imported

__all__ = ["FORMATS", "Format", "import_votes"]

FILE = ("ignore", "encoding", "skip_rows")
"""What tells how a table stands in its file."""
TABLE = ("item", "judge", "sample", "order", "label")


@dataclass(frozen=True)
class Format:
    """A format: what it is, which function reads it, and what that function can be told."""

    says: str
    reader: str
    """`module:function` in `judgebayes.io`, imported when it is needed."""
    takes: tuple[str, ...] = ()
    """Beside `missing`, which every one takes."""

    def read(self) -> Callable[[Path, Options], "Imported"]:
        """Return the reader."""
        module, name = self.reader.split(":")
        found: Callable[[Path, Options], Imported] = getattr(
            importlib.import_module(f"judgebayes.io.{module}"), name
        )
        return found


FORMATS: dict[str, Format] = {
    "tidy": Format(
        "a table with a row per vote; a folder is a file per judge",
        "tidy:read_tidy",
        (*TABLE, "vote", *FILE),
    ),
    "wide": Format(
        "a table with a row per item and a column per judge",
        "wide:read_wide",
        ("item", "label", *FILE),
    ),
    "text": Format(
        "a table with a judge's raw answer in each row, put through the verdict parser",
        "judge_text:read_judge_text",
        (*TABLE, "text", "verdicts", *FILE),
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
        "MT-bench judgments: gpt-4_pair.jsonl, gpt-4_single.jsonl, votes of people",
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


def import_votes(name: str, path: Path | str, options: Options = Options()) -> "Imported":  # noqa: B008
    """Return the votes in a file or folder of a format.

    Parameters
    ----------
    name
        A key of `FORMATS`.
    path
        A file, or a folder of such files.
    options
        What the reader cannot tell by itself.

    Raises
    ------
    JudgeBayesError
        If there is no such format, it does not take an option, or the files are not of it.
    """
    if name not in FORMATS:
        raise JudgeBayesError(f"There is no format {name!r}; right would be {', '.join(FORMATS)}.")
    known = FORMATS[name]
    names = (*known.takes, "missing")
    foreign = sorted(options.given() - set(names))
    if foreign:
        takes = ", ".join("--" + option.replace("_", "-") for option in names)
        raise JudgeBayesError(
            f"The format {name} does not take --{foreign[0].replace('_', '-')}; it takes {takes}."
        )
    return known.read()(Path(path), options)
