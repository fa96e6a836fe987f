"""Logs of Inspect (inspect_ai), as .eval archives or JSON."""

import math
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judgebayes.errors import JudgeBayesError
from judgebayes.io.imported import Imported, Row, emptied, gather
from judgebayes.io.naming import short_names
from judgebayes.io.options import Options
from judgebayes.io.records import field_of, find_files, parse_json, read_json

__all__ = ["read_inspect"]

MEMBER_BYTES = 512 * 2**20
ARCHIVE_BYTES = 8 * 2**30
"""An archive that claims more than this, all or in one member, is refused: no sample is so large."""

PARTIAL = "partial"
GRADES = {"C": "correct", "I": "incorrect", "P": PARTIAL}
NO_ANSWER = "N"
WHY_NO_ANSWER = "no answer (N)"
UNSCORED = "unscored"
WHY_NO_GRADE = "no grade in the grader's answer"
NO_GRADE = "grade not found"
"""How the explanation of Inspect's model graders begins where they found none; the value is then I."""


class _NoGrade:
    """Stands for a grade that was not found."""


@dataclass(frozen=True)
class _Sample:
    """What is used of a sample, and of the log that it stands in."""

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


def read_inspect(path: Path, options: Options = Options()) -> Imported:  # noqa: B008
    """Return the votes in Inspect's logs.

    `votes_from="score"`, the default: an item is one output (sample, and epoch, task and model where
    these differ), each scorer is a judge, and its value the vote; with `sample="epoch"` the epochs are
    repeated votes on the sample instead, for labels of samples. C, I and P become `correct`,
    `incorrect` and `partial`, and labels that are true or false likewise; NaN (unscored), N (no
    answer), a grader's answer without a grade (which Inspect counts as I) and a sample that ended
    with an error are missing votes. A score of several keys is several judges; a list, which the reducer
    `collect` makes of several graders, is repeated votes, because it does not say whose they are.
    Any other reducer keeps one value of all graders: a note tells where. `label` names a key of the
    samples' metadata.

    `votes_from="answer"`: the evaluated model is the judge, its answer the vote, an epoch a sample,
    and the target the label: for benchmarks of judges.

    Samples that stand in two logs (copies, retries) count once. Of an archive only JSON members
    are read, in memory and up to a size; nothing is unpacked.

    Raises
    ------
    JudgeBayesError
        If a file is no such log, or an archive is damaged, too large or encrypted.
    """
    files = find_files(path, ("*.eval", "*.json"), "logs of Inspect")
    samples: list[_Sample] = []
    notes: list[str] = []
    for file in files:
        header, records = _open(file, alone=len(files) == 1)
        if header is None:
            notes.append(f"{file.name} is no log of Inspect and was not read.")
            continue
        found = [_sample(header, record, file, options.label) for record in records]
        samples += found
        notes += _notes(header, found, file)
    unique, copies = _unique(samples)
    answers = options.votes_from == "answer"
    repeated = _epochs_repeat(options)
    read = _answers(unique) if answers else _worded(_scored(unique, repeated=repeated))
    rows = emptied(read, options.missing)
    epochs = {sample.epoch for sample in unique}
    if len(epochs) > 1 and not (answers or repeated):
        notes.append(
            f"There are {len(epochs)} epochs, each another output: an item is SAMPLE|EPOCH, "
            f"{rows[0].item!r} for one. If your labels are of samples, --sample epoch takes the epochs "
            "as repeated votes on the sample."
        )
    spare = [Row(s.name, s.model, dropped="sample stands in another log too") for s in copies]
    partial = sum(row.vote == PARTIAL for row in rows)
    if partial:
        notes.append(
            f"{partial} of {len(rows)} votes are 'partial' (P): with them there are three "
            "classes, incorrect, partial and correct. --missing partial reads them as missing "
            "votes, and leaves two."
        )
    return gather(
        [*rows, *spare],
        str(path),
        missing=options.missing,
        classes=("incorrect", PARTIAL, "correct") if partial else None,
        notes=notes,
    )


def _epochs_repeat(options: Options) -> bool:
    """Tell whether epochs are repeated votes on a sample."""
    if options.sample in (None, "epoch"):
        return options.sample == "epoch"
    raise JudgeBayesError(
        f"--sample {options.sample!r}: Inspect's logs number their repetitions by epoch; right would be "
        "--sample epoch, which takes epochs as repeated votes on a sample."
    )


def _open(file: Path, alone: bool) -> tuple[dict[str, Any] | None, Iterable[Any]]:
    """Return a log's header and samples; a header of None where another JSON file is no log."""
    if file.suffix.lower() == ".eval" or zipfile.is_zipfile(file):
        return _open_archive(file)
    content = read_json(file)
    if not isinstance(content, dict) or not isinstance(content.get("eval"), dict):
        if not alone:
            return None, []
        raise JudgeBayesError(
            f"{str(file)!r} is no log of Inspect: right would be an object with eval and samples."
        )
    samples = content.get("samples") or []
    if not isinstance(samples, list):
        raise JudgeBayesError(f"{str(file)!r} has samples that are no list.")
    return content, samples


def _open_archive(file: Path) -> tuple[dict[str, Any], Iterable[Any]]:
    try:
        with zipfile.ZipFile(file) as archive:
            members = {m.filename: m for m in _checked(archive.infolist(), file)}
            first = "header.json" if "header.json" in members else "_journal/start.json"
            if first not in members:
                raise JudgeBayesError(f"{str(file)!r} is no log of Inspect: it has no header.json.")
            header = parse_json(archive.read(first), f"{first} in {str(file)!r}")
            if not isinstance(header, dict) or not isinstance(header.get("eval"), dict):
                raise JudgeBayesError(f"{first} in {str(file)!r} has no eval.")
            samples = [
                _cut(parse_json(archive.read(member), f"{name} in {str(file)!r}"))
                for name, member in members.items()
                if re.fullmatch(r"samples/[^/]+\.json", name)
            ]
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise JudgeBayesError(f"{str(file)!r} is a damaged archive: {error}.") from error
    # What zipfile raises for encrypted members, and (a kind of it) for a compression it does not know.
    except RuntimeError as error:
        raise JudgeBayesError(
            f"{str(file)!r} cannot be read ({error}); save it as JSON: inspect log convert --to json."
        ) from error
    return header, samples


def _checked(members: list[zipfile.ZipInfo], file: Path) -> list[zipfile.ZipInfo]:
    """Refuse an archive that is not what Inspect writes, before anything of it is read."""
    for member in members:
        parts = re.split(r"[/\\]", member.filename)
        if ".." in parts or member.filename.startswith(("/", "\\")) or ":" in parts[0]:
            raise JudgeBayesError(
                f"{str(file)!r} has a member that points out of the archive, {member.filename!r}."
            )
        if member.file_size > MEMBER_BYTES:
            raise JudgeBayesError(
                f"{member.filename!r} in {str(file)!r} is {member.file_size / 2**20:,.0f} MiB large; "
                f"the limit is {MEMBER_BYTES / 2**20:,.0f} MiB."
            )
    twice = [name for name, n in Counter(m.filename for m in members).items() if n > 1]
    if twice:
        raise JudgeBayesError(
            f"{str(file)!r} has two members named {twice[0]!r}; which of them counts?"
        )
    total = sum(member.file_size for member in members)
    if total > ARCHIVE_BYTES:
        raise JudgeBayesError(
            f"{str(file)!r} is {total / 2**30:,.1f} GiB large when unpacked; the limit is "
            f"{ARCHIVE_BYTES / 2**30:,.0f} GiB."
        )
    return members


def _cut(sample: Any) -> Any:
    """Drop what is large and unused: messages and events."""
    if isinstance(sample, dict):
        for name in ("messages", "events", "attachments", "input", "output", "store"):
            sample.pop(name, None)
    return sample


def _sample(header: dict[str, Any], record: Any, file: Path, label: str | None) -> _Sample:
    where = f"A sample of {str(file)!r}"
    run = header["eval"]
    scores = record.get("scores") if isinstance(record, dict) else None
    if scores is None and isinstance(record, dict) and isinstance(record.get("score"), dict):
        scores = {"score": record["score"]}  # logs of the first versions had one scorer
    metadata = record.get("metadata") if isinstance(record, dict) else None
    uuid = record.get("uuid") if isinstance(record, dict) else None
    gold = metadata.get(label) if isinstance(metadata, dict) and label is not None else None
    return _Sample(
        file.name,
        str(run.get("eval_id") or run.get("created") or run.get("run_id")),
        str(run.get("model", "model")),
        str(run.get("task", "task")),
        str(field_of(record, "id", where)),
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
        notes.append(f"{file.name}: the run's status is {status}; what it has was read.")
    if not samples:
        notes.append(f"{file.name} has no samples.")
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
                "value of their votes; the others are lost. List the scorers one by one, or reduce "
                "them with collect."
            )
    return notes


def _unique(samples: list[_Sample]) -> tuple[list[_Sample], list[_Sample]]:
    """Return the samples once each, and the copies that other logs have of them."""
    seen: dict[tuple[str, ...], str] = {}
    kept: list[_Sample] = []
    copies: list[_Sample] = []
    for sample in samples:
        key = (sample.uuid,) if sample.uuid else (sample.run, sample.name, sample.epoch)
        first = seen.setdefault(key, sample.file)
        (kept if first == sample.file else copies).append(sample)
    return kept, copies


def _value(score: Any) -> Any:
    return score.get("value") if isinstance(score, dict) else score


def _scored(samples: list[_Sample], *, repeated: bool) -> list[Row]:
    """Return a vote of every judge on every output; `repeated` takes epochs as one item's votes."""
    where = [(s.model, s.task, s.name, "" if repeated else s.epoch) for s in samples]
    runs: dict[tuple[str, ...], set[str]] = {}
    for place, sample in zip(where, samples, strict=True):
        runs.setdefault((*place, sample.epoch), set()).add(sample.run)
    again = any(len(found) > 1 for found in runs.values())
    names = short_names(
        [(*place, s.run if again else "") for place, s in zip(where, samples, strict=True)], keep=2
    )
    judges: dict[str, dict[str, None]] = {}  # by run, in order
    votes = [dict(_votes(sample.scores)) for sample in samples]
    for sample, found in zip(samples, votes, strict=True):
        judges.setdefault(sample.run, {}).update(dict.fromkeys(found))
    rows: list[Row] = []
    for sample, name, found in zip(samples, names, votes, strict=True):
        if not judges[sample.run]:
            rows.append(Row(name, "scorer", dropped="sample of a log without scores"))
        for judge in judges[sample.run]:
            why = "sample ended with an error" if sample.error else UNSCORED
            values = found.get(judge, [None])
            for number, value in enumerate(values, start=1):
                vote = _plain(value)
                own = WHY_NO_GRADE if isinstance(value, _NoGrade) else why
                rows.append(
                    Row(
                        name,
                        judge,
                        vote,
                        own if vote is None else "",
                        sample=_number(sample.epoch if repeated else None, number, len(values)),
                        label=sample.label,
                    )
                )
    return rows


def _number(epoch: str | None, number: int, among: int) -> str | int | None:
    """Return what tells a vote from the judge's others on the item."""
    if epoch is None:
        return number if among > 1 else None
    own = int(epoch) if epoch.isdecimal() else epoch
    return f"{own}.{number}" if among > 1 else own


def _votes(scores: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield each judge with its values: one, or those of a list."""
    for scorer, score in scores.items():
        value = _value(score)
        if isinstance(value, dict):
            for key, part in value.items():
                yield f"{scorer}/{key}", part if isinstance(part, list) else [part]
        elif isinstance(value, list):
            yield scorer, value or [None]
        else:
            yield scorer, [_NoGrade() if _without_grade(score) else value]


def _without_grade(score: Any) -> bool:
    """Tell whether a model grader's answer held no grade, which Inspect counts as incorrect."""
    told = score.get("explanation") if isinstance(score, dict) else None
    return isinstance(told, str) and told.strip().casefold().startswith(NO_GRADE)


def _plain(value: Any) -> str | int | float | None:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value if math.isfinite(value) else None
    return value.strip() or None if isinstance(value, str) else None


def _worded(rows: list[Row]) -> list[Row]:
    """Return the rows with Inspect's grades as words; where there are grades, 1 and 0 as well."""
    known = {*GRADES, NO_ANSWER}
    words: dict[str, bool] = {}
    for row in rows:
        if isinstance(row.vote, str):
            words[row.judge] = words.get(row.judge, True) and row.vote in known
    graded = any(words.values())
    numbers = {row.vote for row in rows if isinstance(row.vote, int | float)}

    def word(row: Row) -> Row:
        if graded and isinstance(row.label, bool):
            row = replace(row, label=GRADES["C" if row.label else "I"])
        if words.get(row.judge) and row.vote == NO_ANSWER:
            return replace(row, vote=None, missing=WHY_NO_ANSWER)
        if words.get(row.judge) and isinstance(row.vote, str):
            return replace(row, vote=GRADES[row.vote])
        if graded and numbers <= {0, 1} and isinstance(row.vote, int | float):
            return replace(row, vote=GRADES["C" if row.vote else "I"])
        return row

    return [word(row) for row in rows]


def _answers(samples: list[_Sample]) -> list[Row]:
    names = short_names([(s.task, s.name) for s in samples], keep=1)
    return [
        Row(
            name,
            sample.model,
            _answer(sample),
            "sample ended with an error" if sample.error else "no answer",
            sample=int(sample.epoch) if sample.epoch.isdigit() else sample.epoch,
            label=_target(sample.target),
        )
        for name, sample in zip(names, samples, strict=True)
    ]


def _answer(sample: _Sample) -> str | None:
    given = (s.get("answer") for s in sample.scores.values() if isinstance(s, dict))
    return next(
        (answer.strip() for answer in given if isinstance(answer, str) and answer.strip()), None
    )


def _target(target: Any) -> str | None:
    if isinstance(target, list):
        target = target[0] if len(target) == 1 else None
    return target.strip() or None if isinstance(target, str) else None
