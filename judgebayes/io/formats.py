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
    from judgebayes.io.gathering import Imported, Row
    from judgebayes.votes.columns import VotesAs

    Reader = Callable[[Files], Iterable[Row | str]]

TABLES = (
    *("*.csv", "*.tsv", "*.jsonl", "*.ndjson", "*.parquet"),
    *("*.csv.gz", "*.tsv.gz", "*.jsonl.gz"),
)
"""File name patterns of tables."""
MODULES = {
    "annotations": ("argilla", "label-studio", "prodigy"),
    "benchmarks": ("alpaca-eval", "arena", "judgebench", "mt-bench", "rewardbench"),
    "harnesses": ("lm-eval", "openai-evals", "promptfoo"),
    "repair": ("reviews",),
    "scores": ("braintrust", "deepeval", "langfuse", "langsmith", "ragas"),
}
"""The modules of readers, imported on first use; others are named like their format."""
PAIR = ("B", "tie", "A")
RAGAS = re.compile(
    r"faithfulness|(answer|response)_(relevancy|correctness|similarity|accuracy|groundedness)|"
    r"((llm|id_based|non_llm)_)?context_\w*(precision|recall|relevance|relevancy|utilization)\w*|"
    r"(factual_correctness|semantic_similarity|noise_sensitivity|nv_|rubrics?_score).*"
)
"""Names of metrics of Ragas."""
UNREAD: dict[str, str] = {
    "custom_id response": "the output of a batch of requests to OpenAI: make a table with the item, "
    "the judge and its raw answer (response.body), and use --set verdicts=pair",
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


def parts_of(first: Mapping[str, Any]) -> list[str]:
    """Return the keys of a record, those within its objects, and what its lists and texts are.

    >>> parts_of({"spec": {"eval": 1}, "judge": "gpt", "tags": [1]})
    ['spec', 'spec/', 'spec/eval', 'judge', 'judge=gpt', 'tags', 'tags[]']
    """
    parts: list[str] = []
    for key, value in first.items():
        inner = value[0] if isinstance(value, list) and value else value
        within = (
            [f"{key}/", *(f"{key}/{name}" for name in inner)] if isinstance(inner, dict) else []
        )
        other = f"{key}[]" if isinstance(value, list) else f"{key}={value}"
        parts += [key, *(within or [other])]
    return parts


def has_parts(first: Mapping[str, Any], *patterns: str) -> bool:
    """Tell whether a record has a part for each word (a regular expression) of one of the patterns."""
    parts = parts_of(first)
    return any(
        all(any(re.fullmatch(word, part, re.DOTALL) for part in parts) for word in pattern.split())
        for pattern in patterns
    )


@dataclass(frozen=True)
class Format:
    """A format: a description, the function that reads its rows, and what all of its files have."""

    says: str
    takes: tuple[str, ...] = ()
    """The options beside `missing`, which every format takes."""
    patterns: tuple[str, ...] = TABLES
    """Of the names of its files, in a folder."""
    votes_as: "VotesAs | None" = None
    """As in `Imported`."""
    classes: tuple[str, ...] = ()
    """The classes from lowest to highest, if a vote is between these."""
    always: bool = False
    """Whether they are the classes also if no vote is between the lowest and the highest."""
    letters: Mapping[str, str] = field(default_factory=dict)
    """The class that the tool means by a shorter word, in files of labels."""
    parts: tuple[str, ...] = ()
    """By which `has_parts` of its first record a file is known, so that commands read it directly."""


FORMATS: dict[str, Format] = {
    "reviews": Format(
        "a table with an answer on several items in each row; the items are in --items FILE",
        ("items",),
        classes=("invalid", "valid"),
        always=True,
    ),
    "judgebench": Format(
        "JudgeBench's outputs, a JSONL file per judge",
        patterns=("*.jsonl",),
        votes_as="original",
        classes=PAIR,
        always=True,
        parts=("pair_id judgments",),
    ),
    "rewardbench": Format(
        "RewardBench's results, a JSON file per model",
        patterns=("*.json", "*.jsonl"),
        classes=PAIR,
        parts=("scores_chosen scores_rejected",),
    ),
    "alpaca-eval": Format(
        "AlpacaEval's annotations.json",
        patterns=("*annotations*.json",),
        classes=PAIR,
        letters={"1": "A", "2": "B", "1.5": "tie"},
        parts=("preference instruction=(?!None$).*",),
    ),
    "mt-bench": Format(
        "MT-bench judgments: gpt-4_pair.jsonl, gpt-4_single.jsonl, human votes",
        ("label",),
        patterns=("*.jsonl",),
        votes_as="original",
        classes=PAIR,
        always=True,
        parts=(
            r"question_id judge\[\] score|g1_winner",
            "question_id model_a winner turn judge=(?!arena_user|None$).*",
        ),
    ),
    "inspect": Format(
        "logs of Inspect (inspect_ai): .eval or .json",
        ("sample", "label", "votes_from"),
        patterns=("*.eval", "*.json"),
        classes=("incorrect", "partial", "correct"),
        letters={"I": "incorrect", "P": "partial", "C": "correct"},
        parts=("eval/",),
    ),
    "lm-eval": Format(
        "samples of lm-evaluation-harness (samples_TASK_DATE.jsonl)",
        patterns=("samples_*.jsonl", "samples_*.jsonl.gz"),
        parts=("doc_id filtered_resps",),
    ),
    "promptfoo": Format(
        "results of promptfoo eval: .json or .jsonl",
        ("label",),
        patterns=("*.json", "*.jsonl"),
        parts=("gradingResult|testIdx",),
    ),
    "openai-evals": Format(
        "record files of OpenAI evals: .jsonl",
        patterns=("*.jsonl",),
        parts=("spec/eval_name",),
    ),
    "label-studio": Format(
        "Label Studio's export: tasks with annotations (JSON), or a row per annotation (CSV)",
        ("label", "vote"),
        patterns=("*.json", "*.csv"),
        parts=("annotations data", "annotation_id annotator"),
    ),
    "langfuse": Format(
        "scores of Langfuse: JSON, JSONL or CSV",
        ("label",),
        patterns=("*.json", "*.jsonl", "*.csv"),
        parts=("(?i:trace.?id) (?i:name) (?i:source) (?i:value) (?i:data.?type|string.?value)",),
    ),
    "langsmith": Format(
        "LangSmith's experiments (CSV), feedback or runs (JSON or JSONL)",
        ("label",),
        patterns=("*.csv", "*.json", "*.jsonl"),
        parts=(r"feedback\..*|feedback_stats", "key score feedback_source"),
    ),
    "braintrust": Format(
        "rows of an experiment of Braintrust: JSON, JSONL or CSV",
        ("label",),
        patterns=("*.json", "*.jsonl", "*.csv"),
        parts=("scores[./].* span_id", "scores[./].* input output"),
    ),
    "deepeval": Format(
        "test runs of DeepEval: JSON",
        patterns=("*.json",),
        parts=("metricsData|metrics_data",),
    ),
    "ragas": Format(
        "results of Ragas: a table with a column per metric",
        ("label",),
        patterns=("*.csv", "*.jsonl", "*.json", "*.parquet"),
        parts=(f"user_input|question response|answer|(retrieved_)?contexts {RAGAS.pattern}",),
    ),
    "argilla": Format(
        "records of Argilla with responses and suggestions: JSON or JSONL",
        ("label", "vote"),
        patterns=("*.json", "*.jsonl"),
        parts=(r".*\.(responses|suggestion)", "fields responses suggestions"),
    ),
    "prodigy": Format(
        "annotations of Prodigy: JSONL",
        ("label", "vote"),
        patterns=("*.jsonl",),
        parts=("answer _task_hash|_input_hash",),
    ),
    "arena": Format(
        "battles of Chatbot Arena: JSON, JSONL or CSV",
        ("label",),
        patterns=("*.json", "*.jsonl", "*.csv"),
        classes=PAIR,
        always=True,
        parts=("model_a model_b winner|winner_model_a",),
    ),
}
"""Formats by name."""


def format_of(path: Path) -> str | None:
    """Return the format of a log of another tool or of a folder of logs; None for tables.

    Files are recognised by their first record, and folders by their first log.

    Raises
    ------
    JudgeBayesError
        If a JSON file cannot be read, or is of a tool that is not read: then with what to export.
    """
    if path.is_dir():
        matches = [path.rglob(pattern) for pattern in ("*.eval", "*.json")]
        logs = next((file for files in matches for file in files), None)
        return None if logs is None else format_of(logs)
    if path.suffix.lower() == ".eval":
        return "inspect"
    from judgebayes.io.columns import like_a_label
    from judgebayes.io.tools import first_record

    first = first_record(path)
    name = next((name for name, form in FORMATS.items() if has_parts(first, *form.parts)), None)
    unread = next((says for keys, says in UNREAD.items() if has_parts(first, keys)), None)
    if name == "arena" and any(map(like_a_label, first)):  # a table of the user's own
        return None
    if name is None and unread is not None:
        raise JudgeBayesError(f"{str(path)!r} is not read. It looks like {unread}.")
    return name


def import_votes(
    name: str,
    path: Path | str,
    options: Options = Options(),  # noqa: B008
) -> "Imported":
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
        raise JudgeBayesError(
            f"The format {name} does not take {unsupported[0]}; it takes {', '.join(option_names)}."
        )
    path = Path(path)
    files = find_files(path, form.patterns, name)
    return gather(reader_of(name)(Files(path, files, options)), str(path), form, options)


def reader_of(name: str) -> "Reader":
    """Return the reader of a format: of rows, and of sentences for the user."""
    module = next((module for module, names in MODULES.items() if name in names), name)
    function = f"read_{name}".replace("-", "_")
    read: Reader = getattr(importlib.import_module(f"judgebayes.io.{module}"), function)
    return read
