"""`judgebayes report`: an HTML page on a user's votes."""

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from judgebayes.arrays import ItemInts
from judgebayes.cli.calibrating import print_wins
from judgebayes.cli.console import Console, say, say_next
from judgebayes.cli.requests import ReportRequest
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.store import atomically
from judgebayes.finding import Finding
from judgebayes.io.tables import check_writable
from judgebayes.progress import Progress, shown
from judgebayes.report.decisions import decisions_section, risk_drawing
from judgebayes.report.held_out import HeldOut, probabilities_section, with_interval
from judgebayes.report.judges import diagnostics_section, judges_section
from judgebayes.report.labels import labels_section
from judgebayes.report.origin import data_section, method_section, rerun_section, wins_blocks
from judgebayes.report.page import Block, Facts, Findings, Page, Paragraph, Section, Table, render
from judgebayes.report.text import presentable
from judgebayes.report.versions import versions
from judgebayes.sentence import percent, sentences
from judgebayes.votes import Classes
from judgebayes.workflow.answers import risk_curve
from judgebayes.workflow.calibrating import answer, read_request, wins_in
from judgebayes.workflow.calibration import Calibration, read_words
from judgebayes.workflow.comparing import Growth, comparison_rows, comparison_words, grow
from judgebayes.workflow.comparison_plan import LEAST_FOR_SPLITS
from judgebayes.workflow.conformal_sets import strata_rows
from judgebayes.workflow.data import Data
from judgebayes.workflow.machine import CommandResult
from judgebayes.workflow.methods import traits_of


@in_float64
def write_report(request: ReportRequest, command: Sequence[str]) -> CommandResult:
    """Calibrate, measure the learning curve over numbers of labels, write the page, return the results.

    Raises
    ------
    JudgeBayesError
        For bad input, as in `judgebayes calibrate`, or if the page cannot be written.
    """
    console = Console()
    check_writable(request.out, table=False)
    if request.conformal is not None and request.labels is None and request.method == "sc":
        request = _without_sets(request)
    data = _presentable(read_request(request))
    if (data.labels >= 0).sum() < LEAST_FOR_SPLITS:
        request = _without_sets(request)
    wins = wins_in(request, data)
    if wins is not None:
        print_wins(console, wins)
    say(console, read_words(data))
    with shown() as progress:
        result = answer(request, data, progress, wins=wins)
        curve = _curve(request, result, progress)
    page = _page(request, data, result, curve, command)
    with atomically(request.out) as temporary:
        temporary.write_text(render(page), encoding="utf-8")
    say(
        console, [f"The report is in {request.out}: method {result.choice.name}, {result.counted}."]
    )
    say_next(console, result.next_steps)
    done = result.for_machines()
    return replace(done, values={**done.values, "page": request.out})


def _without_sets(request: ReportRequest) -> ReportRequest:
    return replace(request, conformal=None, conformal_by=None, no_empty_sets=False)


def _presentable(data: Data) -> Data:
    """Return the data with names of judges and classes made fit to print, by `presentable`."""
    coding = data.read.coding
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
    return replace(data, read=replace(data.read, coding=coding))


def _curve(request: ReportRequest, result: Calibration, progress: Progress | None) -> Growth | None:
    """Return the scores by number of labels; None without labels, or where they are all the same."""
    if result.compared is None or result.hide_nll:
        return None
    return grow(
        result.compared,
        result.choice.name,
        result.method,
        result.given.read.votes,
        result.given.labels,
        result.losses.matrix,
        seed=request.seed,
        progress=progress,
    )


def _constant(result: Calibration) -> tuple[float, float] | None:
    """Return NLL and loss of the best constant prediction, if another method was chosen."""
    compared, name = result.compared, "best-constant"
    if compared is None or result.choice.name == name:
        return None
    losses = compared.evaluations[name].losses(result.losses.matrix)
    return compared.means[name]["nll"], compared.interval(name, losses).mean


def _page(
    request: ReportRequest,
    data: Data,
    result: Calibration,
    curve: Growth | None,
    command: Sequence[str],
) -> Page:
    """Return the page with all its sections."""
    coding, votes = data.read.coding, data.read.votes
    names = coding.classes.names
    judges = result.judges
    accuracies = judges["accuracy"][np.isfinite(judges["accuracy"])]
    labels = data.labels[data.labels >= 0]
    decisions, expected, abstained = result.decisions
    probs = np.exp(np.asarray(result.log_probs))
    # The answers of a rule are 0 or 1, or shares of tied classes: they do not measure its errors.
    rule = traits_of(result.choice.name).rule or bool(np.isin(probs, (0.0, 1.0)).all())
    risk: list[Block] = [] if result.abstention is None else [Paragraph(result.abstention.sentence)]
    if result.compared is not None and not rule and not result.hide_nll:
        risk.append(
            risk_drawing(
                risk_curve(result.compared, result.choice.name, result.losses), result.losses.cost
            )
        )
    sets = None if result.sets is None else result.sets.inside
    few = (
        [] if result.sets or not data.labelled else ["There are too few labels for conformal sets."]
    )
    return Page(
        "Judge report: " + presentable([request.votes.name])[0],
        _summary(data, result, decisions),
        [
            data_section(
                read_words(data),
                _files(request),
                names,
                np.asarray(votes.pooled_counts()).sum(0),
                np.bincount(labels, minlength=len(names)),
            ),
            diagnostics_section(result.findings),
            judges_section(judges),
            probabilities_section(
                _held_out(result), names, result.choice.name, degenerate=result.hide_nll
            ),
            decisions_section(
                coding.decode(result.log_probs),
                names,
                decisions,
                None if rule else expected,
                sets,
                result.sets.sentences if result.sets is not None else few,
                f"{result.losses.name} loss: {result.losses.meaning}",
                data.labels >= 0,
                abstained,
                risk,
                None
                if result.sets is None or result.sets.strata is None
                else Table(
                    "Conformal sets on labelled items, coverage in %",
                    *strata_rows(result.sets.strata, no_empty=request.no_empty_sets),
                ),
            ),
            labels_section(
                curve,
                _constant(result),
                len(labels),
                len(data.labels),
                float(accuracies.median()) if len(accuracies) else None,
                request.conformal if result.sets is not None else None,
                result.choice.name,
            ),
            _method(request, result),
            rerun_section(
                shlex.join(command), shlex.join(_as_calibrate(command, request)), versions()
            ),
        ],
    )


def _summary(data: Data, result: Calibration, decisions: ItemInts) -> list[Block]:
    coding, labels = data.read.coding, data.labels
    decided = np.bincount(decisions, minlength=len(coding.classes))
    facts = [
        (
            "Votes",
            f"{int((np.asarray(data.read.votes.index) >= 0).sum()):,} of "
            f"{len(coding.judges):,} judge(s) on {len(labels):,} items",
        ),
        ("Labels", f"{int((labels >= 0).sum()):,} of {len(labels):,} items"),
        ("Diagnostics", result.counted),
        ("Method", result.choice.name),
    ]
    compared, name = result.compared, result.choice.name
    if compared is not None and not result.hide_nll:
        majority = compared.means.get("sc", {}).get("accuracy")
        others = (
            "" if majority is None or name == "sc" else f"; majority vote: {percent(majority, 1)}"
        )
        nll = compared.interval(name, compared.nll(name), least=0.0)
        facts += [
            (
                "Held-out accuracy [95 %]",
                with_interval(compared.right(name), percent=True) + others,
            ),
            (
                "Held-out NLL [95 %]",
                f"{with_interval(nll)}; constant: {compared.means['best-constant']['nll']:z.3f}",
            ),
        ]
    shares = ", ".join(f"{n}: {k:,}" for n, k in zip(coding.classes.names, decided, strict=True))
    blocks: list[Block] = [] if result.wins is None else wins_blocks(result.wins)
    blocks.append(Facts([*facts, ("Decisions", shares)], large=True))
    if result.warnings:
        blocks.append(Findings([Finding("note", sentence) for sentence in result.warnings]))
    if result.next_steps:
        blocks.append(Paragraph(" ".join(["What to do next:", *sentences(result.next_steps)])))
    return blocks


def _held_out(result: Calibration) -> HeldOut | None:
    if result.compared is None:
        return None
    chosen = result.compared.evaluations[result.choice.name]
    labels = np.asarray(chosen.labels)
    known = labels >= 0
    return HeldOut(
        np.asarray(chosen.items)[known],
        labels[known],
        np.asarray(chosen.log_probs)[known],
        result.compared.groups,
        len(labels),
    )


def _method(request: ReportRequest, result: Calibration) -> Section:
    compared, table, words = result.compared, None, []
    if compared is not None:
        rows = comparison_rows(compared, result.leads, hide_nll=result.hide_nll)
        table = Table(compared.title, compared.head, rows)
        words = comparison_words(compared, result.leads, result.losses, hide_nll=result.hide_nll)
    reasons = result.chosen or [f"Method: {result.choice.name}, as requested."]
    return method_section(reasons, table, words, _settings(request, result))


def _settings(request: ReportRequest, result: Calibration) -> list[tuple[str, str]]:
    yes = {True: "yes", False: "no"}
    settings = [
        ("method", f"{request.method} (used: {result.choice.name})"),
        ("calibration map", f"{request.calibrator} (used: {result.choice.map_name})"),
        ("inference", request.inference),
        ("loss", result.losses.name),
        ("target of intervals", request.target),
        ("ties in the win rate", request.ties),
        (
            "coverage of conformal sets",
            "-" if request.conformal is None else f"{request.conformal:g}",
        ),
        ("splits", str(result.request.splits)),
        ("seed", str(request.seed)),
        ("share of wrong labels", f"{result.choice.label_noise:.3g}"),
        ("ends can be swapped (pairwise)", yes[result.given.read.coding.classes.pairwise]),
        ("wide table", yes[request.reading.wide]),
        ("repeated votes", yes[request.columns.repeats]),
    ]
    optional = {
        "only judge": request.reading.only_judge,
        "votes name the response as": request.columns.votes_as,
        "classes": request.classes,
        "conformal thresholds by": request.conformal_by,
        "empty conformal sets": "filled" if request.no_empty_sets else None,
    }
    return settings + [(name, value) for name, value in optional.items() if value is not None]


def _files(request: ReportRequest) -> list[tuple[str, str]]:
    paths = {"votes": request.votes, "labels": request.labels}
    return [
        (f"file of {what}", f"{path.name}, {path.stat().st_size:,} bytes, SHA-256 {_digest(path)}")
        for what, path in paths.items()
        if path is not None
    ]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _as_calibrate(command: Sequence[str], request: ReportRequest) -> list[str]:
    """Return the `judgebayes calibrate` command that writes the same answers as a table."""
    words = iter(command[2:])
    options = []
    for word in words:
        if word in ("--out", "-o", "--conformal", "--conformal-by"):
            next(words)
            continue
        if word != "--no-empty-sets":
            options.append(word)
    if request.conformal is not None:
        options += ["--conformal", f"{request.conformal:g}"]
    if request.conformal_by is not None:
        options += ["--conformal-by", request.conformal_by]
    options += ["--no-empty-sets"] if request.no_empty_sets else []
    return ["judgebayes", "calibrate", *options, "--out", "answers.csv"]
