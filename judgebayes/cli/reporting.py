"""`judgebayes report`: one HTML page on a user's votes."""

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Int
from rich.console import Console

from judgebayes.cli.requests import ReportRequest
from judgebayes.cli.saying import say
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.store import atomically
from judgebayes.finding import Finding
from judgebayes.io import check_writable
from judgebayes.progress import Progress, shown
from judgebayes.report import Block, Facts, Findings, Page, Paragraph, Section, Table, render
from judgebayes.report.abstaining import risk_drawing
from judgebayes.report.decisions import decisions_section
from judgebayes.report.held_out import HeldOut, probabilities_section, with_interval
from judgebayes.report.labels import Curve, labels_section
from judgebayes.report.origin import method_section, rerun_section
from judgebayes.report.reading import data_section, diagnostics_section, judges_section
from judgebayes.report.text import presentable
from judgebayes.report.versions import versions
from judgebayes.votes import Classes
from judgebayes.votes.sparse import counts_by_item
from judgebayes.workflow.abstaining import risk_curve
from judgebayes.workflow.answers import decide
from judgebayes.workflow.calibrating import (
    LEAST_FOR_SPLITS,
    Calibration,
    answer,
    read_request,
    read_words,
)
from judgebayes.workflow.comparing import (
    HEAD,
    comparison_rows,
    comparison_words,
    grow,
)
from judgebayes.workflow.data import Data
from judgebayes.workflow.methods import traits_of
from judgebayes.workflow.reading import Listing

__all__ = ["write_report"]


@in_float64
def write_report(request: ReportRequest, command: Sequence[str]) -> None:
    """Calibrate, measure what fewer labels would have given, and write the page.

    Raises
    ------
    JudgeBayesError
        For bad input, as `judgebayes calibrate`, or if the page cannot be written.
    """
    console = Console()
    check_writable(request.out, table=False)
    if request.conformal is not None and request.labels is None and request.method == "sc":
        request = replace(request, conformal=None)
    given = _presentable(read_request(request))
    if (given.labels >= 0).sum() < LEAST_FOR_SPLITS:
        request = replace(request, conformal=None)
    say(console, read_words(given))
    with shown() as progress:
        found = answer(request, given, progress)
        curve = None if found.compared is None else _curve(request, found, progress)
    page = _page(request, given, found, curve, command)
    with atomically(request.out) as beside:
        beside.write_text(render(page), encoding="utf-8")
    say(console, [f"The report is in {request.out}: method {found.choice.name}, {found.counted}."])


def _presentable(given: Data) -> Data:
    """Return what was read with names of judges and classes that sentences and figures can bear."""
    coding = given.read.coding
    values, named = coding.classes.values, presentable(coding.classes.names)
    shown = Classes(
        tuple(n if isinstance(v, str) else v for v, n in zip(values, named, strict=True)),
        coding.classes.pairwise,
    )
    judges = pd.Index(presentable(coding.judges), name=coding.judges.name)
    missing, recorded = (
        each.set_axis(judges[: len(each)]) for each in (coding.missing, coding.recorded)
    )
    coding = replace(coding, judges=judges, classes=shown, missing=missing, recorded=recorded)
    return replace(given, read=replace(given.read, coding=coding))


def _curve(request: ReportRequest, found: Calibration, progress: Progress) -> Curve:
    assert found.compared is not None
    name, loss = found.choice.name, found.losses.matrix
    growth = grow(
        found.compared,
        name,
        found.method,
        found.table.votes,
        found.labels,
        loss,
        seed=request.seed,
        progress=progress,
    )
    compared, constant = found.compared, "best-constant"
    level = (
        compared.means[constant]["nll"],
        compared.interval(constant, compared.evaluations[constant].losses(loss)).mean,
    )
    return Curve(*growth, None if name == constant else level)


def _page(
    request: ReportRequest,
    given: Data,
    found: Calibration,
    curve: Curve | None,
    command: Sequence[str],
) -> Page:
    """Return the whole page."""
    coding, votes = given.read.coding, given.read.votes
    names = coding.classes.names
    judges = found.judges
    known = judges["accuracy"][np.isfinite(judges["accuracy"])]
    labels = given.labels[given.labels >= 0]
    words = read_words(given)
    if isinstance(given.read, Listing):
        words.append("Diagnostics and judges below are those of the votes on labelled items.")
    decisions, expected = (np.asarray(x) for x in decide(found.log_probs, found.losses.matrix))
    probs = np.exp(np.asarray(found.log_probs))
    # A rule answers 0 or 1, or shares where it cannot tell: that says nothing of its errors.
    rule = traits_of(found.choice.name).rule or bool(np.isin(probs, (0.0, 1.0)).all())
    gone = found.losses.sent(probs, expected)
    risk: list[Block] = [] if found.abstention is None else [Paragraph(found.abstention.sentence)]
    if found.compared is not None and not rule and not found.hide_nll:
        risk.append(
            risk_drawing(
                risk_curve(found.compared, found.choice.name, found.losses), found.losses.price
            )
        )
    sets = None if found.sets is None else found.sets.inside
    few = [] if found.sets or not given.labelled else ["Too few labels for conformal sets."]
    return Page(
        "Judge report: " + presentable([request.votes.name])[0],
        _summary(given, found, decisions),
        [
            data_section(
                words,
                _files(request),
                names,
                counts_by_item(votes).sum(0),
                np.bincount(labels, minlength=len(names)),
            ),
            diagnostics_section(found.findings),
            judges_section(judges),
            probabilities_section(
                _held_out(found), names, found.choice.name, degenerate=found.hide_nll
            ),
            decisions_section(
                coding.decode(found.log_probs),
                names,
                decisions,
                None if rule else expected,
                sets,
                found.sets.sentences if found.sets is not None else few,
                f"{found.losses.name} loss: {found.losses.meaning}",
                given.labels >= 0,
                gone,
                risk,
            ),
            labels_section(
                None if found.hide_nll else curve,
                len(labels),
                len(given.labels),
                float(known.median()) if len(known) else None,
                request.conformal if found.sets is not None else None,
                found.choice.name,
            ),
            _method(request, found),
            rerun_section(
                shlex.join(command), shlex.join(_as_calibrate(command, request)), versions()
            ),
        ],
    )


def _summary(given: Data, found: Calibration, decisions: Int[np.ndarray, " item"]) -> list[Block]:
    coding, labels = given.read.coding, given.labels
    made = np.bincount(decisions, minlength=len(coding.classes))
    facts = [
        (
            "Votes",
            f"{int((np.asarray(given.read.votes.index) >= 0).sum()):,} of "
            f"{len(coding.judges):,} judge(s) on {len(labels):,} items",
        ),
        ("Labels", f"{int((labels >= 0).sum()):,} of {len(labels):,} items"),
        ("Diagnostics", found.counted),
        ("Method", found.choice.name),
    ]
    compared, name = found.compared, found.choice.name
    if compared is not None and not found.hide_nll:
        majority = compared.means.get("sc", {}).get("accuracy")
        beside = "" if majority is None or name == "sc" else f"; a majority vote {majority:.1%}"
        nll = compared.interval(name, compared.nll(name), least=0.0)
        facts += [
            (
                "Right on held-out labels [95 %]",
                with_interval(compared.right(name), percent=True) + beside,
            ),
            (
                "Held-out NLL [95 %]",
                f"{with_interval(nll)}; a constant {compared.means['best-constant']['nll']:z.3f}",
            ),
        ]
    shares = ", ".join(f"{n}: {k:,}" for n, k in zip(coding.classes.names, made, strict=True))
    blocks: list[Block] = [Facts([*facts, ("Decisions", shares)], large=True)]
    if found.warnings:
        blocks.append(Findings([Finding("note", sentence) for sentence in found.warnings]))
    return blocks


def _held_out(found: Calibration) -> HeldOut | None:
    if found.compared is None:
        return None
    own = found.compared.evaluations[found.choice.name]
    labels = np.asarray(own.labels)
    here = labels >= 0
    return HeldOut(
        np.asarray(own.items)[here],
        labels[here],
        np.asarray(own.log_probs)[here],
        found.compared.groups,
        len(labels),
    )


def _method(request: ReportRequest, found: Calibration) -> Section:
    compared, table, words = found.compared, None, []
    if compared is not None:
        rows = comparison_rows(compared, found.leads, hide_nll=found.hide_nll)
        table = Table(compared.title, HEAD, rows)
        words = comparison_words(compared, found.leads, found.losses, hide_nll=found.hide_nll)
    said = found.chosen or [f"Method: {found.choice.name}, as asked for."]
    return method_section(said, table, words, _settings(request, found))


def _settings(request: ReportRequest, found: Calibration) -> list[tuple[str, str]]:
    yes = {True: "yes", False: "no"}
    given = [
        ("method", f"{request.method} (taken: {found.choice.name})"),
        ("calibration map", f"{request.calibrator} (taken: {found.choice.map_name})"),
        ("inference", request.inference),
        ("loss", found.losses.name),
        (
            "coverage of conformal sets",
            "-" if request.conformal is None else f"{request.conformal:g}",
        ),
        ("splits", str(request.splits)),
        ("seed", str(request.seed)),
        ("share of wrong labels", f"{request.label_noise:g}"),
        ("ends could change places", yes[found.table.coding.classes.pairwise]),
        ("wide table", yes[request.reading.wide]),
        ("repeated votes", yes[request.columns.repeats]),
    ]
    optional = {
        "only judge": request.reading.only_judge,
        "votes given as": request.columns.votes_as,
        "classes": request.classes,
    }
    return given + [(name, value) for name, value in optional.items() if value is not None]


def _files(request: ReportRequest) -> list[tuple[str, str]]:
    named = {"votes": request.votes, "labels": request.labels}
    return [
        (f"file of {what}", f"{path.name}, {path.stat().st_size:,} bytes, SHA-256 {_digest(path)}")
        for what, path in named.items()
        if path is not None
    ]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _as_calibrate(command: Sequence[str], request: ReportRequest) -> list[str]:
    """Return the command of `judgebayes calibrate` that gives the same answers, as a table."""
    words = iter(command[2:])
    kept = []
    for word in words:
        if word in ("--out", "-o", "--conformal"):
            next(words)
            continue
        kept.append(word)
    level = [] if request.conformal is None else ["--conformal", f"{request.conformal:g}"]
    return ["judgebayes", "calibrate", *kept, *level, "--out", "answers.csv"]
