"""The formats of vote files by name, with the reader of each, and what files of each have."""

import importlib
import re
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


RAGAS = re.compile(
    r"faithfulness|(answer|response)_(relevancy|correctness|similarity|accuracy|groundedness)|"
    r"((llm|id_based|non_llm)_)?context_\w*(precision|recall|relevance|relevancy|utilization)\w*|"
    r"(factual_correctness|semantic_similarity|noise_sensitivity|nv_|rubrics?_score).*"
)
"""Names of metrics of Ragas."""
UNREAD: dict[str, str] = {
    "custom_id response": "the output of a batch of requests to OpenAI: make a table with the item, "
    "the judge and its raw answer (response.body), for judgebayes import text",
    "request_states adapter_spec": "a scenario of HELM: make a table with a row per instance and "
    "annotator (columns item, judge, vote)",
    "feedback_scores project_id": "a trace of Opik: export a table with a row per trace and a column "
    "per feedback score",
    "annotator_kind span_id": "an annotation of Phoenix: export a table with the columns span_id, name "
    "and label or score, and the rows whose annotator_kind is HUMAN as a file of labels",
    "assessments trace_id": "a trace of MLflow: make a table with a row per assessment (trace_id, "
    "name, value), and of people's a file of labels",
    "op_name started_at": "a call of Weave: export the evaluation as a table with a row per example "
    "and a column per scorer",
    "main_input main_output": "a record of TruLens: save get_records_and_feedback() as a table with a "
    "row per record and a column per feedback",
    "cells nbformat": "a notebook: save the table of votes that it makes as CSV",
}
"""What files of tools that are not read are, and what to export, by keys of their first record."""


def _is_promptfoo(first: Record) -> bool:
    results = first.get("results")
    several = isinstance(results, list) and all(isinstance(each, dict) for each in results)
    return isinstance(results, dict) or several or "gradingResult" in first


def _is_mt_bench(first: Record) -> bool:
    judge = first.get("judge")
    pair = {"winner", "turn"} <= first.keys() and isinstance(judge, str)
    pair = pair and not str(judge).startswith("arena_user")
    judged = isinstance(judge, list) and ("score" in first or "g1_winner" in first)
    return "question_id" in first and (judged or (pair and "model_a" in first))


def _is_langfuse(first: Record) -> bool:
    keys = {re.sub(r"[\s_-]", "", name).lower() for name in first}
    return {"traceid", "name", "source", "value"} <= keys and bool(
        keys & {"datatype", "stringvalue"}
    )


def _is_langsmith(first: Record) -> bool:
    table = any(name.startswith("feedback.") for name in first)
    return table or "feedback_stats" in first or {"key", "score", "feedback_source"} <= first.keys()


def _is_braintrust(first: Record) -> bool:
    scores = isinstance(first.get("scores"), dict) or any(n.startswith("scores.") for n in first)
    return scores and ("span_id" in first or {"input", "output"} <= first.keys())


def _is_ragas(first: Record) -> bool:
    asked = {"user_input", "question"} & first.keys()
    answered = {"response", "answer", "retrieved_contexts", "contexts"} & first.keys()
    return bool(asked and answered) and any(RAGAS.fullmatch(name) for name in first)


def _is_argilla(first: Record) -> bool:
    flat = any(name.endswith((".responses", ".suggestion")) for name in first)
    return flat or {"fields", "responses", "suggestions"} <= first.keys()


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
    recognised_by: Callable[[Record], bool] | None = None
    """Whether a file with this first record has this format, so that commands read it directly; of None,
    no file is known by its record."""

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
        recognised_by=lambda first: {"pair_id", "judgments"} <= first.keys(),
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
        recognised_by=lambda first: {"scores_chosen", "scores_rejected"} <= first.keys(),
    ),
    "alpaca-eval": Format(
        "AlpacaEval's annotations.json",
        "alpaca_eval:read_alpaca_eval",
        patterns=("*annotations*.json",),
        called="annotations of AlpacaEval",
        classes=PAIR,
        letters={"1": "A", "2": "B", "1.5": "tie"},
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
        recognised_by=lambda first: {"doc_id", "filtered_resps"} <= first.keys(),
    ),
    "promptfoo": Format(
        "results of promptfoo eval: .json or .jsonl",
        "promptfoo:read_promptfoo",
        ("label",),
        patterns=("*.json", "*.jsonl"),
        called="results of promptfoo",
        recognised_by=_is_promptfoo,
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
    "label-studio": Format(
        "Label Studio's export: tasks with annotations (JSON), or a row per annotation (CSV)",
        "label_studio:read_label_studio",
        ("label", "vote"),
        patterns=("*.json", "*.csv"),
        called="annotations of Label Studio",
        recognised_by=lambda first: (
            {"annotations", "data"} <= first.keys()
            or {"annotation_id", "annotator"} <= first.keys()
        ),
    ),
    "langfuse": Format(
        "scores of Langfuse: JSON, JSONL or CSV",
        "langfuse:read_langfuse",
        ("label",),
        patterns=("*.json", "*.jsonl", "*.csv"),
        called="scores of Langfuse",
        recognised_by=_is_langfuse,
    ),
    "langsmith": Format(
        "LangSmith's experiments (CSV), feedback or runs (JSON or JSONL)",
        "langsmith:read_langsmith",
        ("label",),
        patterns=("*.csv", "*.json", "*.jsonl"),
        called="feedback of LangSmith",
        recognised_by=_is_langsmith,
    ),
    "braintrust": Format(
        "rows of an experiment of Braintrust: JSON, JSONL or CSV",
        "braintrust:read_braintrust",
        ("label",),
        patterns=("*.json", "*.jsonl", "*.csv"),
        called="rows of Braintrust",
        recognised_by=_is_braintrust,
    ),
    "deepeval": Format(
        "test runs of DeepEval: JSON",
        "deepeval:read_deepeval",
        patterns=("*.json",),
        called="test cases of DeepEval",
        recognised_by=lambda first: bool({"metricsData", "metrics_data"} & first.keys()),
    ),
    "ragas": Format(
        "results of Ragas: a table with a column per metric",
        "ragas:read_ragas",
        ("label",),
        patterns=("*.csv", "*.jsonl", "*.json", "*.parquet"),
        called="results of Ragas",
        recognised_by=_is_ragas,
    ),
    "argilla": Format(
        "records of Argilla with responses and suggestions: JSON or JSONL",
        "argilla:read_argilla",
        ("label", "vote"),
        patterns=("*.json", "*.jsonl"),
        called="records of Argilla",
        recognised_by=_is_argilla,
    ),
    "prodigy": Format(
        "annotations of Prodigy: JSONL",
        "prodigy:read_prodigy",
        ("label", "vote"),
        patterns=("*.jsonl",),
        called="annotations of Prodigy",
        recognised_by=lambda first: (
            "answer" in first and bool({"_task_hash", "_input_hash"} & first.keys())
        ),
    ),
    "arena": Format(
        "battles of Chatbot Arena: JSON, JSONL or CSV",
        "arena:read_arena",
        ("label",),
        patterns=("*.json", "*.jsonl", "*.csv"),
        called="battles of Chatbot Arena",
        classes=PAIR,
        always=True,
        recognised_by=lambda first: (
            {"model_a", "model_b"} <= first.keys()
            and bool({"winner", "winner_model_a"} & first.keys())
        ),
    ),
}
"""Formats by name."""


def format_of(path: Path) -> str | None:
    """Return the format of a log of another tool or of a folder of files; None for a table.

    Files are recognised by their first record, and folders by their first log, else as tables.

    Raises
    ------
    JudgeBayesError
        If a JSON file cannot be read, or is of a tool that is not read: then with what to export.
    """
    if path.is_dir():
        matches = [path.rglob(pattern) for pattern in ("*.eval", "*.json")]
        logs = next((file for files in matches for file in files), None)
        return "tidy" if logs is None else format_of(logs)
    if path.suffix.lower() == ".eval":
        return "inspect"
    from judgebayes.io.tools import first_record

    first = first_record(path)
    known = ((name, form.recognised_by) for name, form in FORMATS.items())
    name = next((name for name, recognised in known if recognised and recognised(first)), None)
    unread = next((says for keys, says in UNREAD.items() if {*keys.split()} <= first.keys()), None)
    if name is None and unread is not None:
        raise JudgeBayesError(f"{str(path)!r} is not read. It looks like {unread}.")
    return name


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
    return gather(form.read()(Files(path, files, options)), str(path), form, options)
