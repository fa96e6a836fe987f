"""`python -m judgebayes.experiments.pages RESULTS`: write the numbers of saved results into the pages.

A page of `experiments/` has a block per paper, between two comments. The block is a table of the
paper's claims, written from `experiments/claims.csv`, which is the summary of the last complete run.
The block of `all` has the counts of every paper.
Tables of the coverage and SBC pages are written from the CSV files beside these pages.
Sentences take their figures from `experiments/figures.csv`, which has the value of each query of the
files `figures.toml` (`judgebayes.experiments.figures`).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

import pandas as pd
import typer

from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.coverage import maps
from judgebayes.experiments.coverage import report as coverage
from judgebayes.experiments.figures import Sentence, Stated, declared, evaluate, with_figures
from judgebayes.experiments.matrix import PAPERS
from judgebayes.experiments.prose import read_prose, write_prose
from judgebayes.experiments.sbc import report as sbc
from judgebayes.experiments.sbc.subjects import SUBJECTS
from judgebayes.experiments.summary import ClaimSummary
from judgebayes.experiments.writing import GRADES

__all__ = [
    "BLOCK",
    "block",
    "counted",
    "declarations",
    "figures",
    "overview",
    "pages",
    "saved",
    "saved_figures",
    "table",
    "update",
    "with_blocks",
    "written",
]

HOME = Path(__file__).resolve().parent
ROOT = HOME.parent
SAVED = HOME / "claims.csv"
FIGURES = HOME / "figures.csv"
BLOCK = re.compile(r"(<!-- claims of ([a-z-]+) -->\n).*?(<!-- end of claims -->)", re.DOTALL)
TABLE = re.compile(r"(<!-- table of ([a-z-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
OUTCOME = re.compile(r"([\w ]+?) (\d+)(?:, |$)")
RESULT = re.compile(r"([\w-]+/[\w-]+):")
"""The results that a query names."""
HEAD = ("result", "kind", "outcome", "ours", "paper", "of")


def pages() -> list[Path]:
    """Return the pages that have a block."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(HOME.rglob("README.md"))}
    return [path for path, text in texts.items() if BLOCK.search(text) or TABLE.search(text)]


def written() -> list[Path]:
    """Return the files whose prose states results: pages, guides, notebooks, docstrings."""
    docs = ROOT / "docs"
    guides = [ROOT / "README.md", *sorted(docs.glob("guides/*.md")), *sorted(docs.glob("*.md"))]
    notebooks = sorted(ROOT.glob("notebooks/*.ipynb"))
    papers = [paper.replace("-", "_") for paper in PAPERS]
    modules = [path for path in HOME.glob("*/*.py") if path.parent.name in papers]
    return [*sorted(HOME.rglob("README.md")), *guides, *notebooks, *sorted(modules)]


def saved(path: Path | None = None) -> list[ClaimSummary]:
    """Return the claims of saved results, of those behind the pages by default."""
    table = pd.read_csv(path or SAVED, keep_default_na=False, dtype=str)
    return [ClaimSummary(*row) for row in table[list(ClaimSummary._fields)].itertuples(index=False)]


def declarations() -> tuple[list[Sentence], list[Stated]]:
    """Return the sentences of all pages that state figures, and the numbers that no result has."""
    files = [declared(path) for path in sorted(HOME.rglob("figures.toml"))]
    return [one for file in files for one in file[0]], [one for file in files for one in file[1]]


def saved_figures() -> dict[str, float]:
    """Return the saved value of each query."""
    table = pd.read_csv(FIGURES, keep_default_na=False, dtype=str)
    return dict(zip(table["query"], table["value"].map(float), strict=True))


def reader(results: list[Path]) -> Callable[[str], pd.DataFrame]:
    """Return what reads a result of these runs, or a CSV file of `experiments/`, as text."""

    @cache
    def read(result: str) -> pd.DataFrame:
        for folder in (*results, HOME):
            if (path := folder / f"{result}.csv").exists():
                return pd.read_csv(path, keep_default_na=False, dtype=str)
        raise JudgeBayesError(f"No run has a result {result!r}.")

    return read


def figures(
    queries: Iterable[str], results: list[Path], old: Mapping[str, float]
) -> dict[str, float]:
    """Compute queries from finished runs; results that no run has keep the values that they had."""
    read = reader(results)
    values = {}
    for query in sorted(set(queries)):
        run = any(
            (folder / f"{result}.csv").exists()
            for folder in (*results, HOME)
            for result in RESULT.findall(query)
        )
        values[query] = old[query] if not run and query in old else evaluate(query, read)
    return values


def block(claims: Iterable[ClaimSummary], paper: str) -> str:
    """Return the table of a paper's claims in Markdown; its last rows count the claims of each kind."""
    own = [claim for claim in claims if claim.result.startswith(f"{paper}/")]
    lines = [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD)]
    for claim in own:
        cells = (claim.result.partition("/")[2], *(getattr(claim, field) for field in HEAD[1:]))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    for kind, grades in counted(own).items():
        outcome = ", ".join(f"{grade} {grades[grade]}" for grade in GRADES if grades[grade])
        lines.append(f"| *in all* | {kind} | {outcome} | | | |")
    return "\n".join(lines) + "\n"


def counted(claims: Iterable[ClaimSummary]) -> dict[str, Counter[str]]:
    """Return the number of claims by kind and grade."""
    counts: dict[str, Counter[str]] = {}
    for claim in claims:
        for grade, count in OUTCOME.findall(claim.outcome):
            counts.setdefault(claim.kind, Counter())[grade] += int(count)
    return counts


def overview(claims: Iterable[ClaimSummary]) -> str:
    """Return the number of claims of all papers by kind and grade, in Markdown."""
    by_paper = {paper: [c for c in claims if c.result.startswith(f"{paper}/")] for paper in PAPERS}
    lines = [f"| paper | kind | {' | '.join(GRADES)} |", "|---" * (2 + len(GRADES)) + "|"]
    for paper, own in by_paper.items():
        for kind, grades in counted(own).items():
            cells = " | ".join(str(grades[grade]) for grade in GRADES)
            lines.append(f"| {paper} | {kind} | {cells} |")
    return "\n".join(lines) + "\n"


def table(name: str) -> str:
    """Return the table of coverage, of maps or of SBC in Markdown, from the CSV files of its page."""
    if name == "sbc":
        checks = {model: pd.read_csv(HOME / f"sbc/{model}.csv") for model in SUBJECTS}
        lines = [
            *sbc.HEAD,
            *(row for model in checks for row in sbc.markdown(model, checks[model])),
        ]
    else:
        lines = {"coverage": coverage, "maps": maps}[name].markdown(
            pd.read_csv(HOME / f"coverage/{name}.csv")
        )
    return "\n".join(lines) + "\n"


def with_blocks(text: str, claims: list[ClaimSummary]) -> str:
    """Return a page with its blocks written anew.

    Raises
    ------
    JudgeBayesError
        If a block is of a paper that has no claim.
    """

    def written(match: re.Match[str]) -> str:
        if match[2] == "all":
            return match[1] + overview(claims) + match[3]
        if not any(claim.result.startswith(f"{match[2]}/") for claim in claims):
            raise JudgeBayesError(f"The saved results have no claim of {match[2]!r}.")
        return match[1] + block(claims, match[2]) + match[3]

    text = TABLE.sub(lambda match: match[1] + table(match[2]) + match[3], text)
    return BLOCK.sub(written, text)


def update(results: list[Path]) -> None:
    """Save the summaries of finished runs, and write them into the pages.

    Papers that none of the runs has keep the claims that they had.
    """
    new = [claim for folder in results for claim in saved(folder / "summary.csv")]
    papers = {claim.result.partition("/")[0] for claim in new}
    old = saved() if SAVED.exists() else []
    kept = [claim for claim in old if claim.result.partition("/")[0] not in papers]
    claims = sorted([*kept, *new], key=lambda claim: claim.result.partition("/")[0])
    with atomically(SAVED) as path:
        pd.DataFrame(claims, columns=ClaimSummary._fields).to_csv(path, index=False)
    sentences, _ = declarations()
    queries = [query for sentence in sentences for query in sentence.queries]
    values = figures(queries, results, saved_figures() if FIGURES.exists() else {})
    with atomically(FIGURES) as path:
        pd.DataFrame(sorted(values.items()), columns=["query", "value"]).to_csv(path, index=False)
    for page in sorted({*pages(), *(ROOT / sentence.page for sentence in sentences)}):
        text = with_blocks(read_prose(page), claims)
        here = [sentence for sentence in sentences if ROOT / sentence.page == page]
        write_prose(page, with_figures(text, here, values))


if __name__ == "__main__":
    typer.run(update)
