"""Logs of Inspect (inspect_ai), as .eval archives or JSON."""

import re
import sys
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.columns import COPY
from judgebayes.io.gathering import Name, Row
from judgebayes.io.options import Files, Options, short_names
from judgebayes.io.records import check_members, field_of, parse_json, read_json
from judgebayes.io.tools import answer_in, at, plain

if sys.version_info >= (3, 14):  # current logs are packed with Zstandard
    import zipfile

    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError, zipfile

DAMAGED = (zipfile.BadZipFile, zlib.error, ZstdError, EOFError, OSError, UnicodeError, RuntimeError)
"""A RuntimeError is raised for encrypted members and for unknown compression methods."""
SAMPLE = re.compile(r"samples/[^/]+\.json")
NUMBERS: Mapping[Any, str | None] = {1: "correct", 0: "incorrect"}
GRADES: Mapping[Any, str | None] = {"C": "correct", "I": "incorrect", "P": "partial", "N": None}
"""What Inspect's grades mean; N is no answer."""
NO_GRADE = "grade not found"
"""Start of the explanation by Inspect's model graders if they found no grade; the value is then I."""


@dataclass(frozen=True)
class _Sample:
    """What is used of a sample and its log."""

    file: str
    key: tuple[str, ...]
    item: tuple[str, ...]
    """The model, the task, the name of the sample, its epoch and the run."""
    number: str | int | None
    """The epoch, if epochs are repeated votes."""
    votes: dict[str, list[Any]]
    """The values of each judge: one, or those of a list."""
    missing: str
    label: str | int | float | None


def read_inspect(given: Files) -> list[Row | str]:
    """Return the votes in Inspect's logs.

    `votes_from="score"`, the default: an item is one output (sample, and epoch, task and model where
    these differ), each scorer is a judge, and its value is the vote. With `sample="epoch"` the epochs
    are repeated votes on the sample instead, for labels of samples. C, I and P become `correct`,
    `incorrect` and `partial`; labels that are true or false become `correct` and `incorrect`. NaN
    (unscored), N (no answer), a grader's answer without a grade (which Inspect counts as I) and a
    sample that ended with an error are missing votes. A score with several keys is several judges. A
    list, which the reducer `collect` makes of several graders, is repeated votes, because it does not
    name the graders. Any other reducer keeps one value of all graders, and a note says so. `label`
    names a key of the samples' metadata.

    `votes_from="answer"`, for benchmarks of judges: the evaluated model is the judge, its answer is the
    vote, an epoch is a sample, and the target is the label.

    Samples that are in two logs (copies, retries) count once. Only the JSON members of an archive are
    read, in memory and up to a size limit; nothing is unpacked to disk.

    Raises
    ------
    JudgeBayesError
        If a file is not an Inspect log, or an archive is damaged, too large or encrypted.
    """
    options, rows, notes = given.options, list[Row](), list[str]()
    if options.sample not in (None, "epoch"):
        raise JudgeBayesError(
            f"sample={options.sample!r}: Inspect logs number repetitions by epoch; use --set "
            "sample=epoch to read the epochs as repeated votes on a sample."
        )
    first: dict[tuple[str, ...], _Sample] = {}
    for file in given.files:
        records = _open(file)
        log: Any = next(records, None)
        if isinstance(at(log, "eval"), dict):
            samples = [_sample(log["eval"], each, file, options) for each in records]
            notes += _notes(log, samples, file)
            rows += _rows(samples, first)
        elif len(given.files) > 1:
            notes.append(f"{file.name} is not an Inspect log and was not read.")
        else:
            raise JudgeBayesError(
                f"{str(file)!r} is not an Inspect log: a log is an object with eval and samples."
            )
    epochs = {row.item[3] for row in rows}
    rows = _named(rows)
    if len(epochs) > 1:
        notes.append(
            f"There are {len(epochs)} epochs, each a separate output: an item is SAMPLE|EPOCH, for "
            f"example {rows[0].item!r}. If your labels are per sample, use --set sample=epoch to read "
            "the epochs as repeated votes on the sample."
        )
    return [*(rows if options.votes_from == "answer" else _with_words(rows)), *notes]


def _open(file: Path) -> Iterator[Any]:
    """Yield what may be a log, and then the records of its samples, of an archive one at a time."""
    if file.suffix.lower() != ".eval" and not zipfile.is_zipfile(file):
        log = read_json(file)
        samples = at(log, "samples") or []
        if not isinstance(samples, list):
            raise JudgeBayesError(f"{str(file)!r} has samples that are not a list.")
        yield from (log, *samples)
        return
    try:
        with zipfile.ZipFile(file) as archive:
            members = {member.filename: member.file_size for member in archive.infolist()}
            check_members([(m.filename, m.file_size) for m in archive.infolist()], file)
            first = "header.json" if "header.json" in members else "_journal/start.json"
            for name in (first, *filter(SAMPLE.fullmatch, members)) if first in members else ():
                # `read` unpacks also what exceeds the stated size.
                with archive.open(name) as member:
                    content = member.read(members[name] + 1).decode("utf-8-sig")
                yield parse_json(content, f"{name} in {str(file)!r}")
    except DAMAGED as error:
        raise JudgeBayesError(
            f"{str(file)!r} cannot be read ({error}): it is a damaged archive, or packed in another "
            "way; save it as JSON: inspect log convert --to json."
        ) from error


def _sample(run: dict[str, Any], record: Any, file: Path, options: Options) -> _Sample:
    name, epoch = str(field_of(record, "id", f"A sample of {str(file)!r}")), record.get("epoch", 1)
    model, task = str(run.get("model", "model")), str(run.get("task", "task"))
    number = str(run.get("eval_id") or run.get("created") or run.get("run_id"))
    uuid, scores = record.get("uuid"), record.get("scores")
    scores = scores if isinstance(scores, dict) else {}
    item = (model, task, name, "" if options.sample else str(epoch), number)
    votes, missing = dict(_values_of(scores)), "unscored"
    label = at(record, "metadata", str(options.label))
    if options.votes_from == "answer":
        answers = (answer_in(at(score, "answer"))[0] for score in scores.values())
        item, missing = ("", task, name, "", ""), "no answer"
        votes = {model: [next((each for each in answers if each is not None), None)]}
        label, _ = answer_in(record.get("target"))
    return _Sample(
        file.name,
        (uuid,) if isinstance(uuid, str) else (number, name, str(epoch)),
        item,
        None if item[3] else int(epoch) if str(epoch).isdecimal() else str(epoch),
        votes,
        "sample ended with an error" if record.get("error") else missing,
        label if isinstance(label, str | int | float) else None,
    )


def _values_of(scores: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield each judge with its values: one, or the elements of a list."""
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        explained = str(at(score, "explanation")).strip().casefold()
        if explained.startswith(NO_GRADE) and not isinstance(value, dict | list):
            value = NO_GRADE  # Inspect counts the answer of its model grader as incorrect
        parts = {f"{scorer}/{k}": v for k, v in value.items()} if isinstance(value, dict) else None
        for judge, part in ({scorer: value} if parts is None else parts).items():
            yield judge, (part or [None]) if isinstance(part, list) else [part]


def _notes(log: dict[str, Any], samples: list[_Sample], file: Path) -> Iterator[str]:
    if (status := log.get("status")) not in (None, "success"):
        yield f"{file.name}: the run's status is {status}; its samples were read."
    if not samples:
        yield f"{file.name} has no samples."
    counted = at(log, "results", "completed_samples")
    if type(counted) is int and counted != len(samples):
        yield f"{file.name} counts {counted} samples, but contains {len(samples)}."
    scorers = log["eval"].get("scorers")
    for scorer in scorers if isinstance(scorers, list) else []:
        name, options = str(at(scorer, "name")), at(scorer, "options")
        graders = at(options, "model") or at(options, "scorers")
        one = all(len(sample.votes.get(name, ())) < 2 for sample in samples)
        if isinstance(graders, list) and len(graders) > 1 and one:
            yield (
                f"{file.name}: scorer {name} had {len(graders)} graders and kept one value of their "
                "votes; the others are lost. List the scorers separately, or use the reducer collect."
            )


def _rows(samples: list[_Sample], first: dict[tuple[str, ...], _Sample]) -> Iterator[Row]:
    """Yield each judge's votes on each sample of a log, without those that are in `first`."""
    judges = dict.fromkeys(judge for sample in samples for judge in sample.votes)
    for sample in samples:
        earlier = first.setdefault(sample.key, sample)
        dropped = None if judges else "sample of a log without scores"
        if earlier.file != sample.file:
            dropped = "sample is in another log too"
        elif earlier is not sample and earlier == sample:
            dropped = COPY
        if dropped is not None:
            yield Row(sample.item, "scorer", dropped=dropped)
            continue
        for judge in judges:
            for value in sample.votes.get(judge, [None]):
                vote, why = plain(value), sample.missing
                if vote == NO_GRADE:
                    vote, why = None, "no grade in the grader's answer"
                yield Row(sample.item, judge, vote, why, sample=sample.number, label=sample.label)


def _named(rows: list[Row]) -> list[Row]:
    """Name an output by its parts, of which the run is one only if something was run again."""
    outputs, runs = ({(row.item[:n], row.sample) for row in rows} for n in (4, 5))
    parts = 4 if len(outputs) == len(runs) else 5
    names = short_names([row.item[:parts] for row in rows], keep=2)
    return [replace(row, item=name) for row, name in zip(rows, names, strict=True)]


def _with_words(rows: list[Row]) -> list[Row]:
    """Replace Inspect's grades by words, and 1 and 0 too if any judge gives grades."""
    words: dict[Name, set[str]] = {}
    for row in rows:
        if isinstance(row.vote, str):
            words.setdefault(row.judge, set()).add(row.vote)
    graded = {judge for judge, each in words.items() if each <= GRADES.keys()}
    numbers = {row.vote for row in rows if isinstance(row.vote, int | float)}
    binary = NUMBERS if graded and numbers <= NUMBERS.keys() else {}
    worded = []
    for row in rows:
        meaning = {**binary, **GRADES} if row.judge in graded else binary
        vote = meaning.get(row.vote, row.vote)
        why = "no answer (N)" if vote is None and row.vote is not None else row.missing
        label = NUMBERS[row.label] if graded and isinstance(row.label, bool) else row.label
        worded.append(replace(row, vote=vote, missing=why, label=label))
    return worded
