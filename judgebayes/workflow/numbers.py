"""The numbers of each answer, and the JSON Schema of what a command writes, derived from their types.

A number that is not known is NaN in Python and null in JSON. The results of commands that answer no
question (import, collect, reproduce, data, example) are objects of their own, and a comparison of
posteriors has no numbers beside its tables.
"""

from typing import Any, Literal, NotRequired, TypedDict

import msgspec

from judgebayes.finding import FindingCounts

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


class WinNumbers(ReadNumbers):
    """Who wins, if there is one pair."""

    win_rate: NotRequired[WinRateNumbers]


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


class CalibrationNumbers(WinNumbers, FindingCounts):
    """A calibration."""

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
