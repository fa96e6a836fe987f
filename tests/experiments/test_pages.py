"""The pages' tables of claims are those of the saved results."""

from pathlib import Path

import pandas as pd
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments import pages
from judgebayes.experiments.summary import ClaimSummary

CLAIM = ClaimSummary("p/table1", "a > b", "paper", "replicated 3", "0.2 [0.1, 0.3]", "0.21", "a|b")
PAGE = "# P\n\n<!-- claims of p -->\nold\n<!-- end of claims -->\n\nThe end.\n"


def drifted(page: str, claims: list[ClaimSummary]) -> bool:
    """Tell whether the numbers on a page are not those of the claims."""
    return pages.with_blocks(page, claims) != page


def test_every_page_has_the_numbers_of_the_saved_results() -> None:
    claims = pages.saved()
    texts = {path: path.read_text(encoding="utf-8") for path in pages.pages()}
    shown = {match[2] for text in texts.values() for match in pages.BLOCK.finditer(text)}
    assert shown == {"all", *(claim.result.partition("/")[0] for claim in claims)}
    for path, text in texts.items():
        assert not drifted(text, claims), path


def test_a_planted_number_is_seen() -> None:
    page = pages.with_blocks(PAGE, [CLAIM])
    assert "| table1 | paper | replicated 3 | 0.2 [0.1, 0.3] | 0.21 | a\\|b |" in page
    assert page.startswith("# P\n") and page.endswith("The end.\n")  # noqa: PT018
    assert not drifted(page, [CLAIM])
    assert drifted(page.replace("replicated 3", "replicated 4"), [CLAIM])
    with pytest.raises(JudgeBayesError, match="The saved results have no claim of 'p'"):
        drifted(page, [CLAIM._replace(result="q/table1")])


def test_the_overview_counts_the_claims_of_every_paper() -> None:
    paper = "betaconform"
    claims = [
        CLAIM._replace(result=f"{paper}/a", kind="paper", outcome="replicated 3, contradicted 1"),
        CLAIM._replace(result=f"{paper}/b", kind="paper", outcome="replicated 2"),
        CLAIM._replace(result="beyond-consensus/a", kind="audit", outcome="uninformative 12"),
    ]
    head, _, *rows = pages.overview(claims).splitlines()
    names = [cell.strip() for cell in head.strip("|").split("|")]
    counts = [
        dict(zip(names, [cell.strip() for cell in row.strip("|").split("|")], strict=True))
        for row in rows
    ]
    assert [(row["paper"], row["kind"]) for row in counts] == [
        (paper, "paper"),
        ("beyond-consensus", "audit"),
    ]
    assert counts[0]["replicated"] == "5"
    assert counts[0]["contradicted"] == "1"
    assert counts[1]["uninformative"] == "12"


@pytest.mark.parametrize("name", ["coverage", "maps", "sbc"])
def test_a_planted_number_in_a_table_is_seen(name: str) -> None:
    start = f"<!-- table of {name} -->\n"
    texts = [path.read_text(encoding="utf-8") for path in pages.pages()]
    (text,) = [text for text in texts if start in text]
    assert not drifted(text, pages.saved())
    assert drifted(text.replace(f"{start}|", f"{start}| 1 |"), pages.saved())


def test_a_new_run_replaces_the_claims_of_its_papers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = CLAIM._replace(result="q/table2")
    monkeypatch.setattr(pages, "HOME", tmp_path)
    monkeypatch.setattr(pages, "SAVED", tmp_path / "claims.csv")
    monkeypatch.setattr(pages, "FIGURES", tmp_path / "figures.csv")
    (tmp_path / "README.md").write_text(PAGE, encoding="utf-8")
    for number, claims in enumerate(([CLAIM, other], [CLAIM._replace(outcome="contradicted 3")])):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        pd.DataFrame(claims, columns=ClaimSummary._fields).to_csv(
            folder / "summary.csv", index=False
        )
        pages.update([folder])
    assert pages.saved(tmp_path / "claims.csv") == [CLAIM._replace(outcome="contradicted 3"), other]
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "contradicted 3" in text
    assert "replicated 3" not in text
