"""Results on disk: a tidy CSV, a Markdown table, and a PNG and a PDF per figure."""

from pathlib import Path
from typing import Any

import pandas as pd

from judgebayes.compiled.store import atomically
from judgebayes.experiments.core import FITTED, Experiment, Output

GRADES = {
    "reproduced": "the paper's own data or printed numbers, and the claim holds",
    "replicated": "other real data, and the claim holds: its interval excludes zero, or lies inside the "
    "margin of a claim of no difference",
    "contradicted": "the claim fails: the whole interval lies below the stated margin, or away from the "
    "claimed value",
    "consistent": "twins, data simulated from the published inputs: the claim holds",
    "inconsistent": "twins: the claim fails",
    "uninformative": "the interval is wider than the margin that the claim states",
}
"""What the grades of claims mean."""

KINDS = {
    "paper": "the paper says it",
    "audit": "this project says it: a simpler rule, a better model, a check of the paper's numbers",
    "proxy": "the paper says it, and one of its inputs is a stand-in here, named in the row",
}
"""Who makes a claim. Counts without a kind are of the paper's claims."""

MARKS = {FITTED: "no claim: the twins were fitted to this published number, so it tests nothing"}
FORMATS: dict[str, dict[str, Any]] = {
    "png": {"dpi": 130},
    # For a paper; without the date, the same figure is the same file.
    "pdf": {"metadata": {"CreationDate": None}},
}


def write(experiment: Experiment, output: Output, folder: Path) -> list[Path]:
    """Write one result below `folder` and return its files, the Markdown page first.

    Each file is written under a temporary name and renamed, so that no file is ever incomplete.
    """
    home = folder / experiment.paper
    table = home / f"{experiment.name}.csv"
    with atomically(table, new_folder=True) as path:
        output.table.to_csv(path, index=False, lineterminator="\n", float_format="%.6g")
    pictures = []
    for name, figure in output.figures.items():
        for kind, options in FORMATS.items():
            picture = home / f"{experiment.name}-{name}.{kind}"
            with atomically(picture) as path:
                figure.savefig(path, format=kind, **options)
            pictures.append(picture)
    page = home / f"{experiment.name}.md"
    shown = [picture.name for picture in pictures if picture.suffix == ".png"]
    write_text(page, markdown(experiment, output, shown))
    return [page, table, *pictures]


def write_index(
    pages: list[tuple[Experiment, Path, Output]], skipped: list[Experiment], folder: Path
) -> Path:
    """Write the list of all results of a run with their grades."""
    lines = ["# Results", ""]
    for paper in dict.fromkeys(e.paper for e, _, _ in pages):
        lines += [f"## {paper}", "", "| result | grades |", "|---|---|"]
        for experiment, page, output in pages:
            if experiment.paper == paper:
                link = page.relative_to(folder).as_posix()
                lines.append(f"| [{experiment.title}]({link}) | {grades(output)} |")
        lines.append("")
    if skipped:
        lines += ["## Not run: data missing", ""]
        lines += [f"- {e.paper}/{e.name} needs {', '.join(e.needs)}" for e in skipped]
        lines.append("")
    for title, meanings in (("Grades", GRADES), ("Kinds of claims", KINDS | MARKS)):
        lines += [
            f"{title}:",
            "",
            *(f"- **{name}**: {text}" for name, text in meanings.items()),
            "",
        ]
    index = folder / "index.md"
    write_text(index, "\n".join(lines))
    return index


def write_text(path: Path, text: str) -> None:
    """Write a text under a temporary name and rename it."""
    with atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def grades(output: Output) -> str:
    """Return how often each grade was given: the paper's claims first, then audits and proxies."""
    table = output.table[output.table["grade"] != ""]
    parts = []
    for kind in KINDS:
        counts = table.loc[table["claim"] == kind, "grade"].value_counts()
        if len(counts):
            text = ", ".join(f"{name} {count}" for name, count in counts.items())
            parts.append(text if kind == "paper" else f"{kind}: {text}")
    return "; ".join(parts) or "-"


def markdown(experiment: Experiment, output: Output, pictures: list[str]) -> str:
    """Return a result as a Markdown page: claim, notes, tables by data set and metric, figures."""
    lines = [f"# {experiment.title}", "", f"Claim: {experiment.claim}", ""]
    lines += [f"- {note}" for note in [*output.notes, *undefined_notes(output)]]
    lines += ["", f"Grades: {grades(output)}", ""] if len(output.table) else [""]
    for picture in pictures:
        lines += [f"![{experiment.title}]({picture})", ""]
    for (dataset, metric), part in output.table.groupby(["dataset", "metric"], sort=False):
        lines += [f"## {dataset}: {metric}", "", *_pivot(part), ""]
    return "\n".join(lines)


def undefined_notes(output: Output) -> list[str]:
    """Return a sentence for each method with undefined values that says when they are undefined."""
    undefined_methods = output.table[output.table["value"].isna()]["method"]
    return [
        f"{name} is undefined {when}."
        for name, when in output.undefined.items()
        if (undefined_methods == name).any()
    ]


def _pivot(part: pd.DataFrame) -> list[str]:
    keys = [k for k in ("task", "judge", "n") if part[k].astype(str).nunique() > 1] or ["task"]
    names = list(dict.fromkeys(part["method"]))
    has_paper = part["paper_value"].notna().any()
    graded = part[part["grade"] != ""]
    has_grade = len(graded) > 0 and graded["method"].nunique() == 1
    in_cell = graded["method"].nunique() > 1 and graded["grade"].nunique() > 1
    head = [*keys, *names, *(["paper"] if has_paper else []), *(["grade"] if has_grade else [])]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for place, group in part.groupby(keys, sort=False, dropna=False):
        by_method = group.drop_duplicates("method").set_index("method")
        cells = [_plain(v) for v in (place if isinstance(place, tuple) else (place,))]
        cells += [_number(by_method.loc[m], in_cell) if m in by_method.index else "" for m in names]
        if has_paper:
            printed = group.dropna(subset=["paper_value"])
            values = [
                f"{float(v):.3f}" + (f" ({m})" if len(printed) > 1 else "")
                for m, v in zip(printed["method"], printed["paper_value"], strict=True)
            ]
            cells.append(", ".join(values))
        if has_grade:
            cells.append(", ".join(sorted({g for g in group["grade"] if g})))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _plain(value: object) -> str:
    if isinstance(value, float):
        return "" if pd.isna(value) else f"{value:g}"
    return str(value).replace("|", "\\|")


def _number(row: pd.Series, with_grade: bool) -> str:
    value, low, high = (
        float(row[c]) if pd.notna(row[c]) else None for c in ("value", "low", "high")
    )
    if value is None:
        return "undefined"
    text = f"{value:.3f}" if abs(value) < 100 else f"{value:.0f}"
    if low is not None and high is not None:
        text += f" [{low:.3f}, {high:.3f}]"
    return f"{text} {row['grade']}".rstrip() if with_grade else text
