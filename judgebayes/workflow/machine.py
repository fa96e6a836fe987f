"""Results that machines read: one JSON document per command, and requirements on its numbers.

The JSON Schema of the document (`schema`) is derived from the types of the numbers of each answer. A
number that is not known is NaN in Python and null in JSON. The results of commands that answer no
question (import, collect, reproduce, data, example) are objects of their own, and a comparison of
posteriors has no numbers beside its tables.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NotRequired, TypedDict

from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding, FindingCounts, count_findings
from judgebayes.sentence import did_you_mean, sentence

Command = Literal[
    "check",
    "calibrate",
    "apply",
    "diagnose",
    "ensemble",
    "precision",
    "posterior",
    "compare",
    "import",
    "collect",
    "reproduce",
    "data list",
    "data get",
    "example",
]
Number = float | None
Rows = list[dict[str, Any]]
"""A table: a list of rows."""


class Estimate(TypedDict):
    """A number with its interval."""

    estimate: Number
    low: Number
    high: Number


class Said(TypedDict):
    """What every answer says beside its numbers."""

    schema: str
    """The name and version of the answer."""
    sentences: list[str]
    next_steps: list[str]
    """What to do next; empty if nothing follows."""
    tables: dict[str, Rows]


class ReadNumbers(TypedDict):
    """What was read."""

    items: int
    labels: int
    judges: int
    votes: int


class CheckNumbers(ReadNumbers, FindingCounts):
    """How files are read."""

    command: str | None
    """A command that runs on these files; null if they must be mended first."""
    options: dict[str, str | bool | int]
    can: dict[str, bool]
    """Which commands can answer their question."""


class WinRateNumbers(TypedDict):
    """The win rate of `of` over `over`, with the ends of its interval at `level`.

    `naive` is the uncorrected rate of the votes, `better` the probability that `of` wins more items
    than it loses. Without labels only `naive` is known.
    """

    of: str
    over: str
    estimate: Number
    low: Number
    high: Number
    naive: Number
    better: Number
    labels: int
    target: str
    ties: str
    level: float


class HeldOutNumbers(TypedDict):
    """The chosen method on held-out labels, with 95 % intervals."""

    accuracy: Estimate
    loss: Estimate
    nll: NotRequired[Estimate]


class ConformalNumbers(TypedDict):
    """The conformal sets on labelled items, with 95 % intervals."""

    coverage: Estimate
    size: Number
    empty: Number
    least_coverage: Estimate


class CalibrationNumbers(ReadNumbers, FindingCounts):
    """A calibration, and who wins, if there is one pair."""

    win_rate: NotRequired[WinRateNumbers]
    method: str
    map: str
    decisions: dict[str, int]
    held_out: NotRequired[HeldOutNumbers]
    conformal: NotRequired[ConformalNumbers]
    sent_to_a_person: NotRequired[Estimate]
    loss_of_the_others: NotRequired[Estimate]


class AppliedNumbers(TypedDict):
    """A saved fit on new votes."""

    method: str
    items: int
    judges: int
    decisions: dict[str, int]


class DiagnosisNumbers(ReadNumbers, FindingCounts):
    """Judges and labels."""


class EnsembleNumbers(ReadNumbers):
    """The error of a majority, and whether labels are enough for a width."""

    error: Estimate
    width: NotRequired[Number]
    enough: NotRequired[bool]
    next_item: NotRequired[str | float | None]


class PrecisionNumbers(ReadNumbers):
    """How many generators are compared."""

    generators: int


class PosteriorNumbers(TypedDict):
    """A posterior."""

    posterior_file: str | None
    model: str
    variant: str
    seed: int
    chains: int
    draws: int
    reliable: bool


ANSWERS: dict[str, Any] = {
    "check": CheckNumbers,
    "calibrate": CalibrationNumbers,
    "apply": AppliedNumbers,
    "diagnose": DiagnosisNumbers,
    "ensemble": EnsembleNumbers,
    "precision": PrecisionNumbers,
    "posterior": PosteriorNumbers,
}


class FindingRecord(TypedDict):
    """What a diagnostic found."""

    severity: Literal["good", "note", "bad"]
    topic: str
    judges: list[str]
    sentence: str


class Required(TypedDict):
    """A requirement on a number, and whether it holds."""

    requirement: str
    value: Number
    holds: bool


class Document(FindingCounts):
    """What a command writes with --json.

    A new key keeps the version in `schema`; a key that is renamed, removed or of another type does not.
    Numbers that are not known are null.
    """

    schema: Literal["judgebayes.command/1"]
    command: Command
    version: str
    """The version of judgebayes."""
    exit_code: Literal[0, 1, 2, 130, 143]
    error: str | None
    """The sentence that was printed, with the exit codes 2, 130 and 143."""
    result: dict[str, Any] | None
    """Null if the command ended before it had a result."""
    findings: list[FindingRecord]
    required: list[Required]


def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the documents of all commands."""
    import msgspec  # help does not wait for it

    records = [Document, Said, *ANSWERS.values()]
    template = "#/$defs/{name}"
    _, parts = msgspec.json.schema_components(records, ref_template=template)
    said = parts.pop("Said")
    for each in ANSWERS.values():
        own = parts[each.__name__]
        own["properties"] = said["properties"] | own["properties"]
        own["required"] = [*said["required"], *own["required"]]
    whole = parts.pop("Document")
    results = [
        {
            "if": {"properties": {"command": {"const": name}}},
            "then": {
                "properties": {
                    "result": {
                        "anyOf": [{"type": "null"}, {"$ref": template.format(name=each.__name__)}]
                    }
                }
            },
        }
        for name, each in ANSWERS.items()
    ]
    ended = {
        "if": {"properties": {"result": {"type": "null"}}},
        "then": {"properties": {"error": {"type": "string"}, "exit_code": {"enum": [2, 130, 143]}}},
    }
    uri = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": uri, **whole, "allOf": [*results, ended], "$defs": parts}


SCHEMA = "judgebayes.command/1"
"""The name and version of the document: a new key keeps it, one renamed or removed does not."""
NOT_ALL_HOLDS, BAD_INPUT, INTERRUPTED, TERMINATED = 1, 2, 130, 143
"""The exit codes beside 0."""
ROWS = 200
"""The rows of each table whose paths are compared with a misspelt one."""


@dataclass(frozen=True)
class CommandResult:
    """What a command hands to a machine."""

    values: Mapping[str, Any]
    """The results: numbers, sentences and tables, as `Result.to_dict` gives them."""
    findings: Sequence[Finding] = ()
    exit_code: int = 0
    """1 if the command ran, but not all that was asked is done; 2 if no command can read the files that
    were checked; 130 if it was interrupted."""


def plain(value: Any) -> Any:
    """Return a value as JSON has it: numbers that are not finite become None, paths text.

    >>> from pathlib import Path
    >>> plain({"low": float("nan"), "path": Path("a.csv"), "sizes": (1, 3)})
    {'low': None, 'path': 'a.csv', 'sizes': [1, 3]}
    """
    if hasattr(value, "tolist"):  # an array or a scalar of NumPy or JAX
        value = value.tolist()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    return value if isinstance(value, str) else str(value)


def document(
    command: str,
    version: str,
    result: CommandResult | None,
    *,
    exit_code: int,
    error: str | None = None,
    required: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the document of a command: its result and findings, or the error that ended it."""
    findings = () if result is None else result.findings
    return {
        "schema": SCHEMA,
        "command": command,
        "version": version,
        "exit_code": exit_code,
        "error": error,
        **count_findings(findings),
        "result": None if result is None else plain(result.values),
        "findings": [
            {
                "severity": each.severity,
                "topic": each.topic,
                "judges": [str(judge) for judge in each.judges],
                "sentence": sentence(each.sentence),
            }
            for each in findings
        ],
        "required": [plain(each) for each in required],
    }


def to_json(content: Mapping[str, Any]) -> str:
    """Return a document as text: ASCII, without NaN, and with a line end."""
    return json.dumps(content, allow_nan=False, indent=1) + "\n"


COMPARISONS = {
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}


@dataclass(frozen=True)
class Requirement:
    """A comparison of a number of the document with a constant, such as `error.high<0.2`."""

    path: str
    comparison: str
    bound: float

    def __str__(self) -> str:
        """Return the requirement as it is written."""
        return f"{self.path}{self.comparison}{self.bound:g}"

    def check(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value at the path and whether the requirement holds; null never does.

        Raises
        ------
        JudgeBayesError
            If the document has no number at the path.
        """
        value = self._number(content)
        holds = value is not None and COMPARISONS[self.comparison](value, self.bound)
        return {"requirement": str(self), "value": value, "holds": bool(holds)}

    def _number(self, content: Mapping[str, Any]) -> float | None:
        result, there = content.get("result") or {}, False
        for path, value in chain(
            _nodes(result, toward=self.path), _nodes(content, toward=self.path)
        ):
            if path == self.path and (value is None or _is_number(value)):
                return value
            there |= path == self.path
        what = f"{self.path!r} is not a number" if there else f"the JSON has no {self.path!r}"
        every = _nodes({**result, **content, "result": None}, most=ROWS)
        paths = [path for path, value in every if _is_number(value)]
        raise JudgeBayesError(
            f"--require {str(self)!r}: {what}.{did_you_mean(self.path, paths)} The JSON has "
            f"{', '.join(map(repr, dict.fromkeys([*result, *content])))}."
        )


def read_requirement(text: str) -> Requirement:
    """Return the requirement that a text such as `error.high<0.2` states.

    >>> read_requirement("win_rate.low > 0.5")
    Requirement(path='win_rate.low', comparison='>', bound=0.5)

    Raises
    ------
    JudgeBayesError
        If it is not a path, a comparison and a number.
    """
    parts = re.fullmatch(rf"([^<>=!]+)({'|'.join(COMPARISONS)})([^<>=!]+)", text)
    bound = math.nan
    if parts is not None:
        with suppress(ValueError):
            bound = float(parts[3])
    if parts is None or not parts[1].strip() or not math.isfinite(bound):
        raise JudgeBayesError(
            f"--require {text!r} is not a path, one of {', '.join(COMPARISONS)}, and a number; write "
            "for example --require 'held_out.accuracy.low>0.7', and repeat the option for more."
        )
    return Requirement(parts[1].strip(), parts[2], bound)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _nodes(
    node: Any, path: str = "", most: int | None = None, toward: str | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield everything in a document with its path of names joined by dots, the whole before its parts.

    In a table (a list of rows) the names are the values of the first columns, as many as it takes to
    find one row, or the number of a row, from 0. Of each table, `most` rows are read.
    What does not lead `toward` a path is yielded without its parts.
    """
    yield path, node
    if toward is not None and path and not f"{toward}.".startswith(f"{path}."):
        return
    parts = node.items() if isinstance(node, dict) else ()
    for name, part in _rows(node[:most]) if isinstance(node, list) else parts:
        yield from _nodes(part, f"{path}.{name}" if path else str(name), most, toward)


def _rows(rows: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a table by the text of their first cell, without it if several have it."""
    named: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if isinstance(row, dict) and row:
            named.setdefault(str(next(iter(row.values()))), []).append(row)
    for name, own in named.items():
        yield name, own[0] if len(own) == 1 else [dict([*row.items()][1:]) for row in own]
    yield from ((str(number), row) for number, row in enumerate(rows))
