"""Logs of Inspect (inspect_ai), as .eval archives or JSON."""

import math
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import missing_values
from judgebayes.io.columns import COPY
from judgebayes.io.gathering import Name, Row
from judgebayes.io.options import Files, Options, short_names
from judgebayes.io.records import field_of, parse_json, read_json

if sys.version_info >= (3, 14):  # current logs are packed with Zstandard
    import zipfile

    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError, zipfile

MEMBER_BYTES = 512 * 2**20
PIECE_BYTES = 2**20
ARCHIVE_BYTES = 8 * 2**30
"""Limits on the unpacked size of an archive, per member and in total."""

PARTIAL = "partial"
GRADES = {"C": "correct", "I": "incorrect", "P": PARTIAL}
NO_ANSWER = "N"
WHY_NO_ANSWER = "no answer (N)"
UNSCORED = "unscored"
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
        header, file_samples = _open(file, given.options.label, only_file=len(given.files) == 1)
        if header is None:
            notes.append(f"{file.name} is not an Inspect log and was not read.")
            continue
        samples += file_samples
        notes += _notes(header, file_samples, file)
    unique, copies = _unique(samples)
    votes_are_answers = given.options.votes_from == "answer"
    repeated = _epochs_are_samples(given.options)
    rows = (
        _answer_rows(unique)
        if votes_are_answers
        else _grades_as_words(_score_rows(unique, repeated=repeated))
    )
    epochs = {sample.epoch for sample in unique}
    if len(epochs) > 1 and not (votes_are_answers or repeated):
        notes.append(
            f"There are {len(epochs)} epochs, each a separate output: an item is SAMPLE|EPOCH, "
            f"for example {rows[0].item!r}. If your labels are per sample, use --sample epoch to read "
            "the epochs as repeated votes on the sample."
        )
    copied_rows = [Row(s.name, s.model, dropped=reason) for s, reason in copies]
    left_out = PARTIAL in missing_values(given.options.missing)
    partial_count = 0 if left_out else sum(row.vote == PARTIAL for row in rows)
    if partial_count:
        notes.append(
            f"{partial_count} of {len(rows)} votes are 'partial' (P), so there are three "
            "classes: incorrect, partial and correct. To read them as missing votes, and keep two "
            "classes, use --missing partial."
        )
    return [*rows, *copied_rows, *notes]


def _epochs_are_samples(options: Options) -> bool:
    """Tell whether the epochs are repeated votes on a sample."""
    if options.sample in (None, "epoch"):
        return options.sample == "epoch"
    raise JudgeBayesError(
        f"--sample {options.sample!r}: Inspect logs number repetitions by epoch; use --sample epoch "
        "to read the epochs as repeated votes on a sample."
    )


def _open(
    file: Path, label: str | None, *, only_file: bool
) -> tuple[dict[str, Any] | None, list[_Sample]]:
    """Return a log's header and samples; the header is None if, of several files, this is not a log."""
    if file.suffix.lower() == ".eval" or zipfile.is_zipfile(file):
        return _open_archive(file, label)
    content = read_json(file)
    if not isinstance(content, dict) or not isinstance(content.get("eval"), dict):
        if not only_file:
            return None, []
        raise JudgeBayesError(
            f"{str(file)!r} is not an Inspect log: a log is an object with eval and samples."
        )
    samples = content.get("samples") or []
    if not isinstance(samples, list):
        raise JudgeBayesError(f"{str(file)!r} has samples that are not a list.")
    return content, [_sample(content, record, file, label) for record in samples]


def _open_archive(file: Path, label: str | None) -> tuple[dict[str, Any], list[_Sample]]:
    try:
        with zipfile.ZipFile(file) as archive:
            members = {m.filename: m for m in _check_members(archive.infolist(), file)}
            first = "header.json" if "header.json" in members else "_journal/start.json"
            if first not in members:
                raise JudgeBayesError(
                    f"{str(file)!r} is not an Inspect log: it has no header.json."
                )
            header = parse_json(_unpacked(archive, first), f"{first} in {str(file)!r}")
            if not isinstance(header, dict) or not isinstance(header.get("eval"), dict):
                raise JudgeBayesError(f"{first} in {str(file)!r} has no eval.")
            samples = []
            for name in filter(re.compile(r"samples/[^/]+\.json").fullmatch, members):
                record = parse_json(_unpacked(archive, name), f"{name} in {str(file)!r}")
                samples.append(_sample(header, record, file, label))
    except (zipfile.BadZipFile, zlib.error, ZstdError, EOFError, OSError) as error:
        raise JudgeBayesError(f"{str(file)!r} is a damaged archive: {error}.") from error
    # zipfile raises this for encrypted members and for unknown compression methods.
    except RuntimeError as error:
        raise JudgeBayesError(
            f"{str(file)!r} cannot be read ({error}); save it as JSON: inspect log convert --to json."
        ) from error
    return header, samples


def _unpacked(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a member's content, unpacked piece by piece.

    `ZipFile.read` unpacks all that the packed bytes produce before it compares their number with the
    size that the archive states.
    """
    pieces = []
    with archive.open(name) as file:
        while piece := file.read(PIECE_BYTES):
            pieces.append(piece)
    return b"".join(pieces)


def _check_members(members: list[zipfile.ZipInfo], file: Path) -> list[zipfile.ZipInfo]:
    """Check an archive's members before any is read: sizes and duplicates."""
    for member in members:
        if member.file_size > MEMBER_BYTES:
            raise JudgeBayesError(
                f"{member.filename!r} in {str(file)!r} has {member.file_size / 2**20:,.0f} MiB; "
                f"the limit is {MEMBER_BYTES / 2**20:,.0f} MiB."
            )
    duplicates = [name for name, n in Counter(m.filename for m in members).items() if n > 1]
    if duplicates:
        raise JudgeBayesError(f"{str(file)!r} has two members named {duplicates[0]!r}.")
    total = sum(member.file_size for member in members)
    if total > ARCHIVE_BYTES:
        raise JudgeBayesError(
            f"{str(file)!r} has {total / 2**30:,.1f} GiB when unpacked; the limit is "
            f"{ARCHIVE_BYTES / 2**30:,.0f} GiB."
        )
    return members


def _sample(header: dict[str, Any], record: Any, file: Path, label: str | None) -> _Sample:
    name, run = str(field_of(record, "id", f"A sample of {str(file)!r}")), header["eval"]
    scores, metadata, uuid = (record.get(each) for each in ("scores", "metadata", "uuid"))
    if scores is None and isinstance(record.get("score"), dict):
        scores = {"score": record["score"]}  # logs of the first Inspect versions have one scorer
    gold = metadata.get(label) if isinstance(metadata, dict) and label is not None else None
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


def _notes(header: dict[str, Any], samples: list[_Sample], file: Path) -> list[str]:
    notes = []
    status = header.get("status")
    if status not in (None, "success"):
        notes.append(f"{file.name}: the run's status is {status}; its samples were read.")
    if not samples:
        notes.append(f"{file.name} has no samples.")
    results = header.get("results")
    counted = results.get("completed_samples") if isinstance(results, dict) else None
    if type(counted) is int and counted != len(samples):
        notes.append(f"{file.name} counts {counted} samples, but contains {len(samples)}.")
    scorers = header["eval"].get("scorers")
    for scorer in scorers if isinstance(scorers, list) else []:
        options = scorer.get("options") if isinstance(scorer, dict) else None
        if not isinstance(options, dict):
            continue
        graders = options.get("model") or options.get("models") or options.get("scorers")
        values = [_value(s.scores.get(str(scorer.get("name")))) for s in samples]
        collected = any(isinstance(value, list) for value in values)
        if isinstance(graders, list) and len(graders) > 1 and not collected:
            notes.append(
                f"{file.name}: scorer {scorer.get('name')} had {len(graders)} graders and kept one "
                "value of their votes; the others are lost. List the scorers separately, or use the "
                "reducer collect."
            )
    return notes


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


def _score_rows(samples: list[_Sample], *, repeated: bool) -> list[Row]:
    """Return each judge's vote on each output; with `repeated`, epochs are samples of one item."""
    output_ids = [(s.model, s.task, s.name, "" if repeated else s.epoch) for s in samples]
    runs: dict[tuple[str, ...], set[str]] = {}
    for output_id, sample in zip(output_ids, samples, strict=True):
        runs.setdefault((*output_id, sample.epoch), set()).add(sample.run)
    has_reruns = any(len(run_ids) > 1 for run_ids in runs.values())
    names = short_names(
        [
            (*output_id, s.run if has_reruns else "")
            for output_id, s in zip(output_ids, samples, strict=True)
        ],
        keep=2,
    )
    judges: dict[str, dict[str, None]] = {}  # judges by run, in order
    votes = [dict(_votes(sample.scores)) for sample in samples]
    for sample, judge_values in zip(samples, votes, strict=True):
        judges.setdefault(sample.run, {}).update(dict.fromkeys(judge_values))
    rows: list[Row] = []
    for sample, name, judge_values in zip(samples, names, votes, strict=True):
        if not judges[sample.run]:
            rows.append(Row(name, "scorer", dropped="sample of a log without scores"))
        for judge in judges[sample.run]:
            default_reason = "sample ended with an error" if sample.error else UNSCORED
            values = judge_values.get(judge, [None])
            for number, value in enumerate(values, start=1):
                rows.append(
                    Row(
                        name,
                        judge,
                        None if value == NO_GRADE else _scalar_vote(value),
                        WHY_NO_GRADE if value == NO_GRADE else default_reason,
                        sample=_sample_id(sample.epoch if repeated else None, number, len(values)),
                        label=sample.label,
                    )
                )
    return rows


def _sample_id(epoch: str | None, number: int, count: int) -> str | int | None:
    """Return the sample id of a vote among a judge's votes on an item, or None if there is only one."""
    if epoch is None:
        return number if count > 1 else None
    base = int(epoch) if epoch.isdecimal() else epoch
    return f"{base}.{number}" if count > 1 else base


def _votes(scores: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield each judge with its values: one, or the elements of a list."""
    for scorer, score in scores.items():
        value = _value(score)
        if isinstance(value, dict):
            for key, part in value.items():
                yield f"{scorer}/{key}", part if isinstance(part, list) else [part]
        elif isinstance(value, list):
            yield scorer, value or [None]
        else:
            yield scorer, [NO_GRADE if _lacks_grade(score) else value]


def _lacks_grade(score: Any) -> bool:
    """Tell whether a model grader's answer has no grade, which Inspect counts as incorrect."""
    explanation = score.get("explanation") if isinstance(score, dict) else None
    return isinstance(explanation, str) and explanation.strip().casefold().startswith(NO_GRADE)


def _scalar_vote(value: Any) -> str | int | float | None:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value if math.isfinite(value) else None
    return value.strip() or None if isinstance(value, str) else None


def _grades_as_words(rows: list[Row]) -> list[Row]:
    """Replace Inspect's grades by words, and 1 and 0 too if any judge gives grades."""
    grades = {*GRADES, NO_ANSWER}
    is_graded: dict[Name, bool] = {}
    for row in rows:
        if isinstance(row.vote, str):
            is_graded[row.judge] = is_graded.get(row.judge, True) and row.vote in grades
    any_graded = any(is_graded.values())
    numbers = {row.vote for row in rows if isinstance(row.vote, int | float)}

    def as_word(row: Row) -> Row:
        if any_graded and isinstance(row.label, bool):
            row = replace(row, label=GRADES["C" if row.label else "I"])
        if is_graded.get(row.judge) and row.vote == NO_ANSWER:
            return replace(row, vote=None, missing=WHY_NO_ANSWER)
        if is_graded.get(row.judge) and isinstance(row.vote, str):
            return replace(row, vote=GRADES[row.vote])
        if any_graded and numbers <= {0, 1} and isinstance(row.vote, int | float):
            return replace(row, vote=GRADES["C" if row.vote else "I"])
        return row

    return [as_word(row) for row in rows]


def _answer_rows(samples: list[_Sample]) -> list[Row]:
    return [
        Row(
            (sample.task, sample.name),
            sample.model,
            _answer(sample),
            "sample ended with an error" if sample.error else "no answer",
            sample=int(sample.epoch) if sample.epoch.isdigit() else sample.epoch,
            label=_target(sample.target),
        )
        for sample in samples
    ]


def _answer(sample: _Sample) -> str | None:
    answers = (s.get("answer") for s in sample.scores.values() if isinstance(s, dict))
    return next(
        (answer.strip() for answer in answers if isinstance(answer, str) and answer.strip()), None
    )


def _target(target: Any) -> str | None:
    if isinstance(target, list):
        target = target[0] if len(target) == 1 else None
    return target.strip() or None if isinstance(target, str) else None
