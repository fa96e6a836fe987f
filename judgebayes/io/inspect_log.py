"""Logs of Inspect (inspect_ai), as .eval archives or JSON."""

import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import missing_values
from judgebayes.io.columns import COPY
from judgebayes.io.gathering import Name, Row
from judgebayes.io.options import Files, Options, short_names
from judgebayes.io.records import check_members, field_of, parse_json, read_json
from judgebayes.io.tools import at, plain

if sys.version_info >= (3, 14):  # current logs are packed with Zstandard
    import zipfile

    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError, zipfile

SAMPLE = re.compile(r"samples/[^/]+\.json")
PARTIAL = "partial"
GRADES = {"C": "correct", "I": "incorrect", "P": PARTIAL}
NO_ANSWER = "N"
WHY_NO_ANSWER = "no answer (N)"
UNSCORED, FAILED = "unscored", "sample ended with an error"
WHY_NO_GRADE = "no grade in the grader's answer"
NO_GRADE = "grade not found"
"""Start of the explanation by Inspect's model graders if they found no grade; the value is then I."""


@dataclass(frozen=True)
class _Sample:
    """The fields of a sample and its log that are used."""

    file: str
    run: str
    model: str
    task: str
    name: str
    epoch: str
    scores: dict[str, Any]
    error: bool
    uuid: str | None
    target: Any
    label: Any


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
    samples: list[_Sample] = []
    notes: list[str] = []
    for file in given.files:
        records = _open(file)
        log: Any = next(records, None)
        if isinstance(at(log, "eval"), dict):
            own = [_sample(log, record, file, given.options.label) for record in records]
            samples += own
            notes += _notes(log, own, file)
        elif len(given.files) > 1:
            notes.append(f"{file.name} is not an Inspect log and was not read.")
        else:
            raise JudgeBayesError(
                f"{str(file)!r} is not an Inspect log: a log is an object with eval and samples."
            )
    unique, copies = _unique(samples)
    answers, repeated = given.options.votes_from == "answer", _epochs_are_samples(given.options)
    rows = _answer_rows(unique) if answers else _grades_as_words(_score_rows(unique, repeated))
    epochs = {sample.epoch for sample in unique}
    if len(epochs) > 1 and not (answers or repeated):
        notes.append(
            f"There are {len(epochs)} epochs, each a separate output: an item is SAMPLE|EPOCH, "
            f"for example {rows[0].item!r}. If your labels are per sample, use --set sample=epoch to "
            "read the epochs as repeated votes on the sample."
        )
    partial_count = sum(row.vote == PARTIAL for row in rows)
    if partial_count and PARTIAL not in missing_values(given.options.missing):
        notes.append(
            f"{partial_count} of {len(rows)} votes are 'partial' (P), so there are three "
            "classes: incorrect, partial and correct. To read them as missing votes, and keep two "
            "classes, use --set missing=partial."
        )
    return [*rows, *(Row(s.name, s.model, dropped=reason) for s, reason in copies), *notes]


def _epochs_are_samples(options: Options) -> bool:
    """Tell whether the epochs are repeated votes on a sample."""
    if options.sample in (None, "epoch"):
        return options.sample == "epoch"
    raise JudgeBayesError(
        f"sample={options.sample!r}: Inspect logs number repetitions by epoch; use --set sample=epoch "
        "to read the epochs as repeated votes on a sample."
    )


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
            check_members([(m.filename, m.file_size) for m in archive.infolist()], file)
            members = {member.filename: member for member in archive.infolist()}
            first = "header.json" if "header.json" in members else "_journal/start.json"
            for name in (first, *filter(SAMPLE.fullmatch, members)) if first in members else ():
                with archive.open(
                    name
                ) as member:  # `read` unpacks also what exceeds the stated size
                    content = member.read(members[name].file_size + 1).decode("utf-8-sig")
                yield parse_json(content, f"{name} in {str(file)!r}")
    except (zipfile.BadZipFile, zlib.error, ZstdError, EOFError, OSError, UnicodeError) as error:
        raise JudgeBayesError(f"{str(file)!r} is a damaged archive: {error}.") from error
    # zipfile raises this for encrypted members and for unknown compression methods.
    except RuntimeError as error:
        raise JudgeBayesError(
            f"{str(file)!r} cannot be read ({error}); save it as JSON: inspect log convert --to json."
        ) from error


def _sample(log: dict[str, Any], record: Any, file: Path, label: str | None) -> _Sample:
    name, run = str(field_of(record, "id", f"A sample of {str(file)!r}")), log["eval"]
    scores, uuid = record.get("scores"), record.get("uuid")
    gold = at(record, "metadata", str(label))
    if scores is None and isinstance(record.get("score"), dict):
        scores = {"score": record["score"]}  # logs of the first Inspect versions have one scorer
    return _Sample(
        file.name,
        str(run.get("eval_id") or run.get("created") or run.get("run_id")),
        str(run.get("model", "model")),
        str(run.get("task", "task")),
        name,
        str(record.get("epoch", 1)),
        scores if isinstance(scores, dict) else {},
        bool(record.get("error")),
        uuid if isinstance(uuid, str) else None,
        record.get("target"),
        gold if isinstance(gold, str | int | float) else None,
    )


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
        name, options = at(scorer, "name"), at(scorer, "options")
        kinds = ("model", "models", "scorers")
        graders = next((given for kind in kinds if (given := at(options, kind))), None)
        collected = any(isinstance(_value(s.scores.get(str(name))), list) for s in samples)
        if isinstance(graders, list) and len(graders) > 1 and not collected:
            yield (
                f"{file.name}: scorer {name} had {len(graders)} graders and kept one value of their "
                "votes; the others are lost. List the scorers separately, or use the reducer collect."
            )


def _unique(samples: list[_Sample]) -> tuple[list[_Sample], list[tuple[_Sample, str]]]:
    """Return the samples without copies, and the copies with the reason why they are left out."""
    first: dict[tuple[str, ...], _Sample] = {}
    unique: list[_Sample] = []
    copies: list[tuple[_Sample, str]] = []
    for sample in samples:
        key = (sample.uuid,) if sample.uuid else (sample.run, sample.name, sample.epoch)
        earlier = first.setdefault(key, sample)
        if earlier.file != sample.file:
            copies.append((sample, "sample is in another log too"))
        elif earlier is not sample and earlier == sample:
            copies.append((sample, COPY))
        else:
            unique.append(sample)
    return unique, copies


def _value(score: Any) -> Any:
    return score.get("value") if isinstance(score, dict) else score


def _score_rows(samples: list[_Sample], repeated: bool) -> list[Row]:
    """Return each judge's vote on each output; with `repeated`, epochs are samples of one item."""
    outputs = [(s.model, s.task, s.name, "" if repeated else s.epoch) for s in samples]
    runs: dict[tuple[str, ...], set[str]] = {}
    judges: dict[str, dict[str, None]] = {}  # judges by run, in order
    votes = [dict(_votes(sample.scores)) for sample in samples]
    for output, sample, values_of in zip(outputs, samples, votes, strict=True):
        runs.setdefault((*output, sample.epoch), set()).add(sample.run)
        judges.setdefault(sample.run, {}).update(dict.fromkeys(values_of))
    reruns = any(len(each) > 1 for each in runs.values())
    parts = [(*o, s.run if reruns else "") for o, s in zip(outputs, samples, strict=True)]
    rows: list[Row] = []
    for sample, name, values_of in zip(samples, short_names(parts, keep=2), votes, strict=True):
        if not judges[sample.run]:
            rows.append(Row(name, "scorer", dropped="sample of a log without scores"))
        for judge in judges[sample.run]:
            for value in values_of.get(judge, [None]):
                lacking, reason = value == NO_GRADE, FAILED if sample.error else UNSCORED
                vote, why = (None, WHY_NO_GRADE) if lacking else (plain(value), reason)
                number = _epoch(sample) if repeated else None
                rows.append(Row(name, judge, vote, why, sample=number, label=sample.label))
    return rows


def _epoch(sample: _Sample) -> str | int:
    return int(sample.epoch) if sample.epoch.isdecimal() else sample.epoch


def _votes(scores: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield each judge with its values: one, or the elements of a list."""
    for scorer, score in scores.items():
        value, explained = _value(score), str(at(score, "explanation")).strip().casefold()
        if explained.startswith(NO_GRADE) and not isinstance(value, dict | list):
            value = NO_GRADE  # Inspect counts the answer of its model grader as incorrect
        parts = {f"{scorer}/{k}": v for k, v in value.items()} if isinstance(value, dict) else None
        for judge, part in ({scorer: value} if parts is None else parts).items():
            yield judge, (part or [None]) if isinstance(part, list) else [part]


def _grades_as_words(rows: list[Row]) -> list[Row]:
    """Replace Inspect's grades by words, and 1 and 0 too if any judge gives grades."""
    words: dict[Name, set[str]] = {}
    for row in rows:
        if isinstance(row.vote, str):
            words.setdefault(row.judge, set()).add(row.vote)
    graded = {judge for judge, each in words.items() if each <= {*GRADES, NO_ANSWER}}
    binary = {row.vote for row in rows if isinstance(row.vote, int | float)} <= {0, 1}

    def as_word(row: Row) -> Row:
        if isinstance(row.label, bool):
            row = replace(row, label=GRADES["C" if row.label else "I"])
        if row.judge in graded and row.vote == NO_ANSWER:
            return replace(row, vote=None, missing=WHY_NO_ANSWER)
        if row.judge in graded and isinstance(row.vote, str):
            return replace(row, vote=GRADES[row.vote])
        if binary and isinstance(row.vote, int | float):
            return replace(row, vote=GRADES["C" if row.vote else "I"])
        return row

    return [as_word(row) for row in rows] if graded else rows


def _answer_rows(samples: list[_Sample]) -> list[Row]:
    return [
        Row(
            (sample.task, sample.name),
            sample.model,
            next(filter(None, (_text(at(s, "answer")) for s in sample.scores.values())), None),
            FAILED if sample.error else "no answer",
            sample=_epoch(sample),
            label=_text(sample.target),
        )
        for sample in samples
    ]


def _text(value: Any) -> str | None:
    """Return a text, or the only one of a list."""
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else None
    return value.strip() or None if isinstance(value, str) else None
