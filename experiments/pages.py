"""`python -m judgebayes.experiments.pages RESULTS`: write the numbers of saved results into the pages.

A page is its own template. A comment after a number, which no reader sees, names what is inserted::

    58.6<!--p3.6--> labels, and 40<!--p3.9%--> % of the cells

`numbers.csv` has the query of each name (`judgebayes.experiments.queries`) and its value in the last
complete run, `nan` before the first. A number keeps its decimals; it is multiplied by 100 if `%` follows
the name, and has a sign if `+` does.

Tables stand between two comments, `<!-- claims of betaconform -->` and `<!-- end of claims -->`: a
paper's claims, or the counts of `all`, from `claims.csv`, which is the summary of that run; and the
tables of coverage and SBC, from the CSV files beside their pages.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import cyclopts
import pandas as pd

from judgebayes.compiled.store import atomically
from judgebayes.experiments.coverage import maps
from judgebayes.experiments.coverage import report as coverage
from judgebayes.experiments.matrix import PAPERS
from judgebayes.experiments.queries import evaluate
from judgebayes.experiments.sbc import report as sbc
from judgebayes.experiments.sbc.subjects import SUBJECTS
from judgebayes.experiments.summary import ClaimSummary
from judgebayes.experiments.writing import GRADES

HOME = Path(__file__).resolve().parent
BLOCK = re.compile(r"(<!-- (claims|table) of ([a-z-]+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)
PLACE = re.compile(r"(?:(?<![\w.>])[-+])?\d(?:[\d,]*\d)?(?:\.(\d+))?<!--([a-z]\w*\.\d+)([%+]?)-->")
OUTCOME = re.compile(r"([\w ]+?) (\d+)(?:, |$)")
HEAD = ("result", "kind", "outcome", "ours", "paper", "of")


def pages() -> list[Path]:
    """Return the pages that have something to insert."""
    docs = HOME.parent / "docs"
    paths = sorted([*HOME.rglob("README.md"), *docs.glob("*.md"), *docs.glob("guides/*.md")])
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    return [path for path, text in texts.items() if BLOCK.search(text) or PLACE.search(text)]


def saved(path: Path) -> list[ClaimSummary]:
    """Return the claims of saved results."""
    table = pd.read_csv(path, keep_default_na=False, dtype=str)
    return [ClaimSummary(*row) for row in table[list(ClaimSummary._fields)].itertuples(index=False)]


def saved_numbers() -> pd.DataFrame:
    """Return the query and the saved value of each name."""
    return pd.read_csv(HOME / "numbers.csv", index_col="name", converters={"value": float})


def inserted(text: str, claims: Sequence[ClaimSummary], numbers: pd.DataFrame) -> str:
    """Return a page with its numbers and tables written anew."""

    def block(match: re.Match[str]) -> str:
        head, kind, name, end = match.groups()
        if kind == "table":
            lines = table(name)
        else:
            lines = overview(claims) if name == "all" else claimed(claims, name)
        return head + "\n".join(lines) + "\n" + end

    def number(match: re.Match[str]) -> str:
        decimals, name, form = match.groups(default="")
        value = numbers["value"][name] * (100 if form == "%" else 1)
        sign = "+" if form == "+" else ""
        return f"{value:{sign}z,.{len(decimals)}f}<!--{name}{form}-->"

    return PLACE.sub(number, BLOCK.sub(block, text))


def claimed(claims: Iterable[ClaimSummary], paper: str) -> list[str]:
    """Return the table of a paper's claims in Markdown; its last rows count the claims of each kind."""
    own = [claim for claim in claims if claim.result.startswith(f"{paper}/")]
    lines = [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD)]
    for claim in own:
        cells = (claim.result.partition("/")[2], *(getattr(claim, field) for field in HEAD[1:]))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    for kind, grades in counted(own).items():
        outcome = ", ".join(f"{grade} {grades[grade]}" for grade in GRADES if grades[grade])
        lines.append(f"| *in all* | {kind} | {outcome} | | | |")
    return lines


def counted(claims: Iterable[ClaimSummary]) -> dict[str, Counter[str]]:
    """Return the number of claims by kind and grade."""
    counts: dict[str, Counter[str]] = {}
    for claim in claims:
        for grade, count in OUTCOME.findall(claim.outcome):
            counts.setdefault(claim.kind, Counter())[grade] += int(count)
    return counts


def overview(claims: Iterable[ClaimSummary]) -> list[str]:
    """Return the number of claims of all papers by kind and grade, in Markdown."""
    by_paper = {paper: [c for c in claims if c.result.startswith(f"{paper}/")] for paper in PAPERS}
    lines = [f"| paper | kind | {' | '.join(GRADES)} |", "|---" * (2 + len(GRADES)) + "|"]
    for paper, own in by_paper.items():
        for kind, grades in counted(own).items():
            cells = " | ".join(str(grades[grade]) for grade in GRADES)
            lines.append(f"| {paper} | {kind} | {cells} |")
    return lines


def table(name: str) -> list[str]:
    """Return the table of coverage, of maps or of SBC in Markdown, from the CSV files of its page."""
    if name == "sbc":
        checks = {model: pd.read_csv(HOME / f"sbc/{model}.csv") for model in SUBJECTS}
        rows = [row for model, check in checks.items() for row in sbc.markdown(model, check)]
        return [*sbc.HEAD, *rows]
    module = {"coverage": coverage, "maps": maps}[name]
    return module.markdown(pd.read_csv(HOME / f"coverage/{name}.csv"))


def update(results: list[Path]) -> None:
    """Save the summaries and the numbers of finished runs, and write them into the pages.

    Papers that none of the runs has keep their claims, and results that none has keep their numbers.
    """
    new = [claim for folder in results for claim in saved(folder / "summary.csv")]
    papers = {claim.result.partition("/")[0] for claim in new}
    kept = [c for c in saved(HOME / "claims.csv") if c.result.partition("/")[0] not in papers]
    claims = sorted([*kept, *new], key=lambda claim: claim.result.partition("/")[0])
    with atomically(HOME / "claims.csv") as path:
        pd.DataFrame(claims, columns=ClaimSummary._fields).to_csv(path, index=False)

    @cache
    def read(result: str) -> pd.DataFrame:
        paths = [folder / f"{result}.csv" for folder in (*results, HOME)]
        path = next((path for path in paths if path.exists()), paths[-1])
        return pd.read_csv(path, keep_default_na=False, dtype=str)

    numbers = saved_numbers()
    for name, query in numbers["query"].items():
        with suppress(FileNotFoundError):
            numbers.loc[name, "value"] = evaluate(query, read)
    with atomically(HOME / "numbers.csv") as path:
        numbers.to_csv(path)
    for page in pages():
        text = inserted(page.read_text(encoding="utf-8"), claims, numbers)
        with atomically(page) as path:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    cyclopts.run(update)
