"""The options of each command, with help and defaults; a record's docstring is the command's help."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from judgebayes.io.formats import FORMATS
from judgebayes.workflow.options import ItemColumn, Keys, Missing, Option, SampleColumn, VotesFrom


@dataclass(frozen=True, kw_only=True)
class CollectRequest:
    """Ask judges for votes, several times per item; an interrupted run resumes without paying twice."""

    items: Annotated[
        Path,
        Option(
            "The items to judge, one per row: .csv, .tsv, .jsonl or .parquet, with a prompt and "
            "one or two responses.",
            positional=True,
        ),
    ]
    judge: Annotated[
        list[str],
        Option(
            "A model at an OpenAI-compatible address, such as `NAME@http://localhost:8000/v1`; "
            "repeat the option for further judges.",
            metavar="[ALIAS=]NAME@URL",
        ),
    ]
    n: Annotated[
        int | None,
        Option(
            "Votes of each judge on each item, half in each order; 12 by default.", ("-n",), least=1
        ),
    ] = None
    out: Annotated[
        Path,
        Option("Where to write the judges' answers, one per line: .jsonl.", ("--out", "-o")),
    ] = Path("votes.jsonl")
    key_env: Annotated[
        list[str] | None,
        Option(
            "The environment variable with the API key, for all judges or for one.",
            metavar="[JUDGE=]NAME",
        ),
    ] = None
    task: Annotated[
        str | None,
        "ternary (A, tie or B), binary (A or B) or valid (valid or invalid); by default ternary "
        "for two responses, valid for one.",
    ] = None
    template: Annotated[
        Path | None,
        "Your own prompt: a text file with {prompt}, {response_a} and {response_b}, or "
        "{response}; other columns can be used in the same way.",
    ] = None
    body: Annotated[
        str | None,
        Option(
            "Fields of each request, by default temperature 1 and max_tokens 2048; null removes a "
            'field: `{"temperature": 0.7, "max_tokens": null, "max_completion_tokens": 2048}`.',
            metavar="JSON",
        ),
    ] = None
    concurrency: Annotated[int, Option("Number of simultaneous requests to a judge.", least=1)] = 8
    timeout: Annotated[float, Option("Seconds to wait for an answer.", least=0.01)] = 180.0
    retries: Annotated[
        int, Option("Maximum number of times that a failed request is sent again.", least=0)
    ] = 6
    budget_calls: Annotated[
        int | None,
        Option(
            "Maximum number of paid answers, over all runs that write to the same file.", least=1
        ),
    ] = None
    budget_tokens: Annotated[
        int | None,
        Option(
            "Maximum number of paid tokens (prompts and answers), over all runs that write to "
            "the same file.",
            least=1,
        ),
    ] = None
    until_settled: Annotated[
        bool,
        "Stop early: request another vote on an item only if it is worth its price according "
        "to --fit.",
    ] = False
    fit: Annotated[Path | None, "A Davidson fit that `judgebayes calibrate --save` wrote."] = None
    give_up: Annotated[
        float, "Accepted increase of the mean loss from stopping early, in class steps."
    ] = 0.002
    item: ItemColumn = None
    prompt: Annotated[str | None, "Column of the prompt that the responses answer."] = None
    response: Annotated[str | None, "Column of the response."] = None
    response_a: Annotated[str | None, "Column of the first response."] = None
    response_b: Annotated[str | None, "Column of the second response."] = None
    dry_run: Annotated[bool, "Send no requests; print a prompt and the plan."] = False


@dataclass(frozen=True, kw_only=True)
class ImportRequest:
    """Convert votes from other tools' files into a tidy table that every other command reads.

    FORMAT is one of

    {formats}

    An answer that cannot be read as a vote becomes a missing vote. The counts of all records are
    printed.
    """

    form: Annotated[
        str,
        Option(
            "One of the formats above.",
            metavar="FORMAT",
            values=tuple(FORMATS),
            others=True,
            positional=True,
        ),
    ]
    path: Annotated[Path, Option("A file, or a folder of such files.", positional=True)]
    out: Annotated[
        Path, Option("Where to write the votes: .parquet, .csv, .jsonl.", ("--out", "-o"))
    ]
    labels_out: Annotated[Path | None, "Where to write the labels, if the source has them."] = None
    vote: Annotated[str | None, "The question whose answers are the votes."] = None
    sample: SampleColumn = None
    label: Annotated[str | None, "The question, or the key, of the label."] = None
    items: Annotated[
        Path | None,
        "For answers on several items: a table of the items, with group, line and text.",
    ] = None
    votes_from: VotesFrom = None
    missing: Missing = None
    set: Keys = None
