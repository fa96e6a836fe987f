"""An overview of all results: grades, our number beside the paper's, and the audit's first note."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
import pandas as pd

from judgebayes.experiments.core import Experiment, Output
from judgebayes.experiments.writing import FORMATS, GRADES, KINDS, grades, undefined_notes
from judgebayes.show.figures import inline_svg
from judgebayes.show.page import (
    Block,
    Facts,
    Markup,
    Page,
    Paragraph,
    Section,
    Table,
    markup,
    with_caption,
)
from judgebayes.show.text import escaped

SUMMARY_HEAD = ("result", "claim", "kind", "outcome", "ours", "paper", "of")
HEAD = ("result", "grades", "ours", "paper", "of", "audit")
LONGEST_AUDIT = 240
PAPERS = {
    "distribution-calibrated": "Distribution-calibrated inference-time compute for thinking "
    "LLM-as-a-judge",
    "calibrate-dont-curate": "Calibrate, don't curate: label-efficient estimation from noisy LLM "
    "judges",
    "betaconform": "BetaConform: efficient MAP estimation of LLM judgment performance with prior "
    "transfer",
    "beyond-consensus": "Beyond consensus: mitigating the agreeableness bias in LLM judge "
    "evaluations",
}
"""The papers by the names that experiments call them."""
Result = tuple[Experiment, Output]


class Headline(NamedTuple):
    """One comparison that represents a result: means over the same cells."""

    of: str
    """Method, metric and number of cells."""
    ours: str
    paper: str


def headline(table: pd.DataFrame) -> Headline:
    """Return our number beside the paper's.

    The cells are those for which the paper prints a number, if there are any. Among them the method
    and metric with the most grades is chosen, then the one with the most cells. The numbers are
    means over its cells, or one number with its interval. Cells without a method are not
    comparable, so only the first is used.
    """
    defined = table[pd.notna(table["value"])]
    printed = defined[pd.notna(defined["paper_value"])]
    pool = printed if len(printed) else defined
    if len(pool) == 0:
        return Headline("", "-", "-")
    pairs = pool.assign(graded=pool["grade"] != "").groupby(["method", "metric"], sort=False)
    rank = pairs["graded"].agg(["sum", "size"])
    best = max(range(len(rank)), key=lambda k: (*rank.iloc[k], -k))
    method, metric = rank.index[best]
    cells = pool[(pool["method"] == method) & (pool["metric"] == metric)]
    of = f"{metric}, {method}" + (f", mean of {len(cells)}" if len(cells) > 1 else "")
    if not str(method).strip() or pd.isna(method):
        cells = cells.head(1)
        of = f"{metric}: {cells['task'].iloc[0]}"
    value = cells["value"].astype(float)
    ours = _number(value.mean())
    low, high = (cells[end].astype(float).iloc[0] for end in ("low", "high"))
    if len(cells) == 1 and np.isfinite([low, high]).all():
        ours += f" [{_number(low)}, {_number(high)}]"
    paper = _number(cells["paper_value"].astype(float).mean()) if len(printed) else "-"
    return Headline(of, ours, paper)


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 100 else f"{value:.0f}"


def matrix_rows(results: Sequence[Result], longest: int = LONGEST_AUDIT) -> list[list[str]]:
    """Return a row per result with the cells that `HEAD` names; the note has `longest` letters."""
    rows = []
    for experiment, output in results:
        result = headline(output.table)
        note = output.notes[0] if output.notes else ""
        if len(note) > longest:
            note = note[: max(note.rfind(" ", 0, longest), 0)] + " ..."
        # A no-break space keeps a grade and its number on one line.
        grade_text = re.sub(r" (\d)", "\u00a0\\1", grades(output))
        rows.append([experiment.title, grade_text, result.ours, result.paper, result.of, note])
    return rows


def ordered(results: Sequence[Result]) -> dict[str, list[int]]:
    """Return the indices of each paper's results: tables and figures first, then audits."""
    names = [experiment.paper for experiment, _ in results]
    return {
        paper: sorted(
            (k for k, name in enumerate(names) if name == paper),
            key=lambda k: results[k][0].name.startswith("audit"),
        )
        for paper in (*PAPERS, *dict.fromkeys(names))
        if paper in names
    }


def tally(results: Sequence[Result]) -> dict[str, int]:
    """Return how often each grade was given to the paper's own claims, over all results."""
    tables = [output.table for _, output in results]
    paper_grades = pd.concat(
        [t.loc[t["claim"] == "paper", "grade"] for t in tables] or [pd.Series()]
    )
    return {name: int((paper_grades == name).sum()) for name in GRADES}


def figure_markup(experiment: Experiment, output: Output) -> dict[str, str]:
    """Return the figures of a result as markup, by name."""
    name = f"{experiment.paper}-{experiment.name}"
    return {
        key: inline_svg(
            figure,
            f"{name}-{key}",
            f"{experiment.title}: {key}",
            f"The numbers are in {experiment.paper}/{experiment.name}.csv.",
            themed=False,
        )
        for key, figure in output.figures.items()
    }


def link(text: str, target: str) -> Markup:
    """Return a link to a file beside the page, or to a position in it (`#...`)."""
    is_internal = target.startswith("#")
    # A colon is quoted too, so that no target is an address with a scheme.
    target = "#" * is_internal + quote(target[is_internal:], safe="/-._~")
    return Markup(f'<a href="{target}">{escaped(text)}</a>')


def links(targets: Sequence[tuple[str, str]]) -> Markup:
    """Return a list of links, each a text and a target."""
    items = "".join(f"<li>{link(*each).html}</li>" for each in targets)
    return Markup(f'<ul class="links">{items}</ul>\n')


def result_section(experiment: Experiment, output: Output, pictures: Mapping[str, str]) -> Section:
    """Return one result: claim, notes, figures, and the files that `writing.write` wrote for it.

    `pictures` holds the figures as markup, from `figure_markup`.
    """
    home, stem = experiment.paper, experiment.name
    drawings = [
        Markup(with_caption(svg, f"{experiment.title}: {key}", themed=False))
        for key, svg in pictures.items()
    ]
    files = [
        ("all numbers (CSV)", f"{home}/{stem}.csv"),
        ("tables (Markdown)", f"{home}/{stem}.md"),
        *(
            (f"figure: {key} ({kind.upper()})", f"{home}/{stem}-{key}.{kind}")
            for key in pictures
            for kind in FORMATS
        ),
    ]
    grade_counts = grades(output)
    blocks: list[Block] = [
        Paragraph(f"Claim: {experiment.claim}."),
        Paragraph(f"Grades: {'no claim to grade' if grade_counts == '-' else grade_counts}."),
        links(files),
    ]
    if output.notes or drawings:
        parts = {"notes": output.notes, "figures": drawings}
        what = " and ".join(kind for kind, own in parts.items() if own).capitalize()
        notes = map(Paragraph, [*output.notes, *undefined_notes(output)])
        inner = markup([*notes, *drawings])
        blocks.append(Markup(f"<details>\n<summary>{what}</summary>\n{inner}</details>\n"))
    return Section(experiment.title, blocks, name=f"{home}-{stem}")


def index_page(
    results: Sequence[tuple[Experiment, Output, Section]],
    skipped: Sequence[Experiment],
    facts: Sequence[tuple[str, str]],
    claims: Sequence[Sequence[str]] = (),
) -> Page:
    """Return the page of a run: grades, a matrix per paper, and every result.

    Parameters
    ----------
    results
        The experiments that ran, each with its section from `result_section`.
    skipped
        The experiments that did not run because their data are missing.
    facts
        How the run was made: command, splits, seed, versions.
    claims
        Rows of `judgebayes.experiments.summary.claim_summaries`, which `claims.csv` has in full.
    """
    every = [(experiment, output) for experiment, output, _ in results]
    grade_counts, papers, sections = tally(every), ordered(every), []
    for paper, places in papers.items():
        own = [results[k] for k in places]
        pairs = [(experiment, output) for experiment, output, _ in own]
        names = [section.name for _, _, section in own]
        rows: list[list[str | Markup]] = [
            [link(row[0], f"#{name}"), *row[1:]]
            for row, name in zip(matrix_rows(pairs), names, strict=True)
        ]
        by_grade = ", ".join(f"{k} {n}" for k, n in tally(pairs).items() if n)
        caption = f"{len(own)} results, grades of the paper's claims: {by_grade or 'none'}"
        table = Table(caption, HEAD, rows, words=(1, 4, 5))
        sections.append(
            Section(PAPERS.get(paper, paper), [table], [s for _, _, s in own], name=paper)
        )
    if claims:
        table = Table(
            "A row per result and kind of claim", SUMMARY_HEAD, list(claims), words=(1, 3, 6)
        )
        files: list[Block] = [links([("all graded rows (CSV)", "claims.csv")]), table]
        sections.insert(0, Section("All claims", files, name="claims"))
    if skipped:
        missing = [f"{e.paper}/{e.name} needs {', '.join(e.needs)}." for e in skipped]
        sections.append(Section("Not run: data missing", [*map(Paragraph, missing)]))
    words = [Facts(list(GRADES.items())), Facts(list(KINDS.items()))]
    sections.append(Section("What the grades mean", words, name="grades"))
    sections.append(Section("How it was run", [Facts(facts)], name="run"))
    return Page(
        "Four papers, reproduced and audited" if len(papers) == 4 else "Results",
        [
            Paragraph(
                "Each line is a table or figure of a paper, or an audit of it: our number and the "
                "printed one, as means over the same cells, and the first note of the audit. "
                "Counts are of the papers' own claims."
            ),
            Facts([(name, f"{count:,}") for name, count in grade_counts.items()], large=True),
        ],
        sections,
    )
