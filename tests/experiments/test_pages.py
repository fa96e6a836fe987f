"""The numbers and tables on the pages are those of the saved results."""

from pathlib import Path

import pandas as pd
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments import pages
from judgebayes.experiments.queries import evaluate
from judgebayes.experiments.summary import ClaimSummary

ROWS = pd.DataFrame(
    [
        ("em", "1.25", "-0.5", "gain, a minus b"),
        ("em", "3.75", "0.5", "loss"),
        ("map", "-0.04", "", "loss"),
    ],
    columns=["method", "value", "low", "metric"],
)
QUERY = "p/table1: mean value; method=em"
CLAIM = ClaimSummary("p/table1", "a > b", "paper", "replicated 3", "0.2 [0.1, 0.3]", "0.21", "a|b")
PAGE = """# P

The error is 2.5<!--p9.1--> points of 1,000<!--p9.2-->, in 40<!--p9.3%--> % of
-0.1<!--p9.1+-->-0.20<!--p9.4--> cells; printed 7.1.

<!-- claims of p -->
old
<!-- end of claims -->

The end.
"""
NUMBERS = pd.DataFrame(
    {"query": QUERY, "value": [2.5, 1000.0, 0.4, -0.001]},
    index=pd.Index(["p9.1", "p9.2", "p9.3", "p9.4"], name="name"),
)


def saved_claims() -> list[ClaimSummary]:
    return pages.saved(pages.HOME / "claims.csv")


def test_every_page_has_the_numbers_of_the_saved_results() -> None:
    claims, numbers = saved_claims(), pages.saved_numbers()
    texts = {path: path.read_text(encoding="utf-8") for path in pages.pages()}
    for path, text in texts.items():
        assert pages.inserted(text, claims, numbers) == text, path
    shown = {match[2] for text in texts.values() for match in pages.PLACE.finditer(text)}
    assert shown == set(numbers.index)
    blocks = {match[3] for text in texts.values() for match in pages.BLOCK.finditer(text)}
    papers = {claim.result.partition("/")[0] for claim in claims}
    assert blocks == {"all", "coverage", "maps", "sbc", *papers}


def test_planted_numbers_are_written_anew() -> None:
    page = pages.inserted(PAGE, [CLAIM], NUMBERS)
    assert "| table1 | paper | replicated 3 | 0.2 [0.1, 0.3] | 0.21 | a\\|b |" in page
    assert "2.5<!--p9.1--> points of 1,000<!--p9.2-->, in 40<!--p9.3%--> %" in page
    assert "+2.5<!--p9.1+-->-0.00<!--p9.4--> cells; printed 7.1." in page
    assert page.startswith("# P\n") and page.endswith("The end.\n")  # noqa: PT018
    for right, planted in (("2.5<", "-1.75<"), ("1,000<", "9<"), ("replicated 3", "replicated 4")):
        text = page.replace(right, planted, 1)
        assert text != page
        assert pages.inserted(text, [CLAIM], NUMBERS) != text


def test_the_overview_counts_the_claims_of_every_paper() -> None:
    paper = "betaconform"
    claims = [
        CLAIM._replace(result=f"{paper}/a", kind="paper", outcome="replicated 3, contradicted 1"),
        CLAIM._replace(result=f"{paper}/b", kind="paper", outcome="replicated 2"),
        CLAIM._replace(result="beyond-consensus/a", kind="audit", outcome="uninformative 12"),
    ]
    head, _, *rows = pages.overview(claims)
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


def test_a_new_run_replaces_the_claims_and_numbers_of_its_papers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "experiments"
    (home / "p").mkdir(parents=True)
    monkeypatch.setattr(pages, "HOME", home)
    page = home / "p" / "README.md"
    page.write_text(PAGE, encoding="utf-8")
    queries = [QUERY, "p/table1: count", "p/table1: max value", "q/table2: max value"]
    NUMBERS.assign(query=queries).to_csv(home / "numbers.csv")
    other = CLAIM._replace(result="q/table2")
    pd.DataFrame([CLAIM, other]).to_csv(home / "claims.csv", index=False)
    run = tmp_path / "run"
    (run / "p").mkdir(parents=True)
    ROWS.to_csv(run / "p" / "table1.csv", index=False)
    new = CLAIM._replace(outcome="contradicted 3")
    pd.DataFrame([new]).to_csv(run / "summary.csv", index=False)
    pages.update([run])
    assert pages.saved(home / "claims.csv") == [new, other]
    assert pages.saved_numbers()["value"].tolist() == [2.5, 3.0, 3.75, -0.001]
    text = page.read_text(encoding="utf-8")
    assert "points of 3<!--p9.2-->, in 375<!--p9.3%--> % of\n" in text
    assert "contradicted 3" in text
    assert "old" not in text


@pytest.mark.parametrize(
    ("query", "value"),
    [
        (QUERY, 2.5),
        ("p/table1: count; method!=em", 1),
        ("p/table1: count; method=em; low>0", 1),
        ("p/table1: count; value<=1.25", 2),
        ("p/table1: distinct method", 2),
        ("p/table1: only value; metric~a minus b", 1.25),
        ("p/table1: max value minus p/table1: min value", 3.79),
        ("p/table1: count; low>0 over p/table1: count", 1 / 3),
    ],
)
def test_a_query_is_computed(query: str, value: float) -> None:
    assert evaluate(query, {"p/table1": ROWS}.__getitem__) == pytest.approx(value)


@pytest.mark.parametrize("query", ["only value; method=em", "mean value; method=ds"])
def test_a_query_of_too_many_or_no_rows_is_an_error(query: str) -> None:
    with pytest.raises(JudgeBayesError, match=r"[02] rows meet"):
        evaluate(f"p/table1: {query}", {"p/table1": ROWS}.__getitem__)
