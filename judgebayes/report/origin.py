"""The report's sections without figures: who wins, the data, the method, and how to run it again."""

import hashlib
from pathlib import Path

import numpy as np

from judgebayes.sentence import percent, rounded, sentences, with_interval
from judgebayes.show.page import Block, Code, Facts, Findings, Paragraph, Section, Table
from judgebayes.show.versions import versions
from judgebayes.workflow.calibration import Calibration, read_words
from judgebayes.workflow.results import as_notes


def summary_blocks(result: Calibration) -> list[Block]:
    """Return what the page says first: who wins, the main numbers, warnings, and what to do next."""
    data, compared, name = result.given, result.compared, result.choice.name
    numbers = data.numbers
    facts = [
        ("Votes", "{votes:,} of {judges:,} judge(s) on {items:,} items".format(**numbers)),
        ("Labels", "{labels:,} of {items:,} items".format(**numbers)),
        ("Diagnostics", result.counted),
        ("Method", name),
    ]
    if compared is not None and not result.hide_nll:
        right, nll = compared.right(name), compared.interval(name, compared.nll(name), least=0.0)
        constant = compared.means["best-constant"]["nll"]
        simple = compared.means.get("sc", {}).get("accuracy")
        majority = (
            "" if simple is None or name == "sc" else f"; majority vote: {percent(simple, 1)}"
        )
        facts += [
            ("Held-out accuracy [95 %]", with_interval(right, ".1f", unit=" %") + majority),
            ("Held-out NLL [95 %]", f"{with_interval(nll)}; constant: {rounded(constant)}"),
        ]
    decided = result.decided_counts.items()
    facts.append(("Decisions", ", ".join(f"{each}: {count:,}" for each, count in decided)))
    blocks: list[Block] = [] if result.wins is None else result.wins.lead_blocks
    blocks.append(Facts(facts, large=True))
    if result.warnings:
        blocks.append(Findings(as_notes(result.warnings)))
    if result.next_steps:
        blocks.append(Paragraph(" ".join(["What to do next:", *sentences(result.next_steps)])))
    return blocks


def data_section(result: Calibration) -> Section:
    """Return the section on the data: sentences, votes and labels by class, files with checksums."""
    data, request = result.given, result.request
    names = data.coding.classes.names
    votes = np.asarray(data.votes.pooled_counts()).sum(0)
    labels = np.bincount(data.labels[data.labels >= 0], minlength=len(names))
    shares = (counts / (counts.sum() or np.nan) for counts in (votes, labels))
    rows = [
        (name, f"{n:,}", rounded(of_votes, ".1%"), f"{k:,}", rounded(of_labels, ".1%"))
        for name, n, k, of_votes, of_labels in zip(names, votes, labels, *shares, strict=True)
    ]
    head = ("class", "votes", "share", "labels", "share")
    table = Table("Votes and labels by class, from the lowest to the highest", head, rows)
    files = Facts(
        [
            (
                f"file of {what}",
                f"{path.name}, {path.stat().st_size:,} bytes, SHA-256 {_digest(path)}",
            )
            for what, path in (("votes", request.votes), ("labels", request.labels))
            if path is not None
        ]
    )
    return Section("The data", [*map(Paragraph, read_words(data)), table, files], name="data")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def method_section(result: Calibration) -> Section:
    """Return the section on the method and the comparison with other methods."""
    reasons = result.chosen or [f"Method: {result.choice.name}, as requested."]
    blocks = [*map(Paragraph, reasons), *result.comparison_blocks]
    return Section("Method", blocks, name="method")


def rerun_section(command: str) -> Section:
    """Return the section with the command that recreates this page."""
    return Section(
        "To run it again",
        [
            Code(command),
            Paragraph(
                "The same files, command and versions give the same numbers. The page has no date "
                "and loads nothing: it can be stored and mailed as it is."
            ),
            Facts(versions()),
        ],
        name="rerun",
    )
