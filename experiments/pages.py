"""`python -m judgebayes.experiments.pages RESULTS`: write the numbers of saved results into the pages.

A page of `experiments/` has a block per paper, between two comments. The block is a table of the
paper's claims, written from `experiments/claims.csv`, which is the summary of the last complete run.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import typer

from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.summary import ClaimSummary

__all__ = ["BLOCK", "block", "pages", "saved", "update", "with_blocks"]

HOME = Path(__file__).parent
SAVED = HOME / "claims.csv"
BLOCK = re.compile(r"(<!-- claims of ([a-z-]+) -->\n).*?(<!-- end of claims -->)", re.DOTALL)
HEAD = ("result", "kind", "outcome", "ours", "paper", "of")


def pages() -> list[Path]:
    """Return the pages that have a block of claims."""
    readmes = sorted(HOME.rglob("README.md"))
    return [path for path in readmes if BLOCK.search(path.read_text(encoding="utf-8"))]


def saved(path: Path | None = None) -> list[ClaimSummary]:
    """Return the claims of saved results, of those behind the pages by default."""
    table = pd.read_csv(path or SAVED, keep_default_na=False, dtype=str)
    return [ClaimSummary(*row) for row in table[list(ClaimSummary._fields)].itertuples(index=False)]


def block(claims: Iterable[ClaimSummary], paper: str) -> str:
    """Return the table of a paper's claims in Markdown."""
    lines = [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD)]
    for claim in claims:
        home, _, name = claim.result.partition("/")
        if home == paper:
            cells = (name, *(getattr(claim, field) for field in HEAD[1:]))
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def with_blocks(text: str, claims: list[ClaimSummary]) -> str:
    """Return a page with its blocks written anew.

    Raises
    ------
    JudgeBayesError
        If a block is of a paper that has no claim.
    """

    def written(match: re.Match[str]) -> str:
        if not any(claim.result.startswith(f"{match[2]}/") for claim in claims):
            raise JudgeBayesError(f"The saved results have no claim of {match[2]!r}.")
        return match[1] + block(claims, match[2]) + match[3]

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
    for page in pages():
        with atomically(page) as path:
            path.write_text(with_blocks(page.read_text(encoding="utf-8"), claims), encoding="utf-8")


if __name__ == "__main__":
    typer.run(update)
