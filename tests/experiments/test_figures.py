"""Figures in prose are those of the saved results."""

import ast
import json
import re
from pathlib import Path

import pandas as pd
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments import pages
from judgebayes.experiments.figures import (
    NUMBER,
    Sentence,
    declared,
    evaluate,
    located,
    printed,
    unbacked,
    with_figures,
)
from judgebayes.experiments.prose import read_prose, write_prose

ROWS = pd.DataFrame(
    [
        ("em", "1.25", "-0.5", "gain, a minus b"),
        ("em", "3.75", "0.5", "loss"),
        ("map", "-0.04", "", "loss"),
    ],
    columns=["method", "value", "low", "metric"],
)
QUERY = "p/table1: mean value; method=em"
PAGE = "The error is 2.5 points\nof 1,000 (Table 3), in 40 % of\nthe cells; printed 7.1.\n"
SENTENCE = Sentence("x.md", "error is {.1} points of {.0} (Table 3), in {.0%} %", (QUERY, "b", "c"))


def read(result: str) -> pd.DataFrame:
    assert result == "p/table1"
    return ROWS


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
    assert evaluate(query, read) == pytest.approx(value)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("p/table1: only value; method=em", "2 rows meet"),
        ("p/table1: mean value; method=ds", "0 rows meet"),
        ("p/table1: mean error", "no column 'error'"),
        ("p/table1: mode value", "no statistic 'mode'"),
        ("p/table1: mean value; judge=a", "compares no column"),
    ],
)
def test_a_wrong_query_is_an_error(query: str, said: str) -> None:
    with pytest.raises(JudgeBayesError, match=said):
        evaluate(query, read)


def test_figures_are_printed_as_their_places_say() -> None:
    text = "{.2} {+.1} {.0%} {.0} {.1}"
    assert printed(text, (1.256, 2.0, 0.1849, 12345.0, -0.01)) == [
        "1.26",
        "+2.0",
        "18",
        "12,345",
        "0.0",
    ]


def test_a_planted_number_is_seen_and_written_anew() -> None:
    values = {QUERY: 2.5, "b": 1000.0, "c": 0.4}
    assert with_figures(PAGE, [SENTENCE], values) == PAGE
    for planted in (
        PAGE.replace("2.5", "2.6"),
        PAGE.replace("40", "41"),
        PAGE.replace("1,000", "999"),
    ):
        assert with_figures(planted, [SENTENCE], values) == PAGE
    with pytest.raises(JudgeBayesError, match="0 times"):
        with_figures(PAGE.replace("points", "points then"), [SENTENCE], values)
    with pytest.raises(JudgeBayesError, match="2 times"):
        located(PAGE + PAGE, SENTENCE.text, "x.md")
    with pytest.raises(JudgeBayesError, match="lack 'c'"):
        with_figures(PAGE, [SENTENCE], {QUERY: 2.5, "b": 1000.0})


def test_a_number_that_nothing_backs_is_seen() -> None:
    assert len(unbacked(PAGE, [SENTENCE.text], "x.md")) == 1
    assert not unbacked(PAGE, [SENTENCE.text, "printed 7.1"], "x.md")
    assert not unbacked(PAGE, ["error is ... printed 7.1"], "x.md")
    assert not unbacked(
        "Table 3, eqs 6-7, P1, RewardBench 2024, `x = 3`\n\n    y = 4\n", [], "x.md"
    )


def test_a_sentence_has_a_query_for_each_place(tmp_path: Path) -> None:
    path = tmp_path / "figures.toml"
    path.write_text('[[sentence]]\npage = "x.md"\ntext = "{.1} and {.2}"\nfrom = ["a"]\n')
    with pytest.raises(JudgeBayesError, match="not one query for each place"):
        declared(path)


def test_a_notebook_is_written_anew_in_its_markdown_cells_alone(tmp_path: Path) -> None:
    original = next(path for path in pages.written() if path.suffix == ".ipynb")
    copy = tmp_path / original.name
    copy.write_bytes(original.read_bytes())
    text = read_prose(copy)
    write_prose(copy, text)
    assert copy.read_bytes() == original.read_bytes()
    write_prose(copy, text.replace("SC", "12 votes"))
    assert read_prose(copy) == text.replace("SC", "12 votes") != text
    before, after = (json.loads(path.read_text("utf-8"))["cells"] for path in (original, copy))
    code = [[cell for cell in cells if cell["cell_type"] == "code"] for cells in (before, after)]
    assert code[0] == code[1] != []
    with pytest.raises(JudgeBayesError, match=r"1 texts for \d+ Markdown cells"):
        write_prose(copy, "all in one")


def test_every_figure_of_a_page_is_that_of_the_saved_results() -> None:
    sentences, stated = pages.declarations()
    values = pages.saved_figures()
    assert set(values) == {query for sentence in sentences for query in sentence.queries}
    for name in sorted({one.page for one in (*sentences, *stated)}):
        page = read_prose(pages.ROOT / name)
        here = [sentence for sentence in sentences if sentence.page == name]
        assert with_figures(page, here, values) == page, name
        texts = [one.text for one in (*sentences, *stated) if one.page == name]
        assert unbacked(_prose(page, name), texts, name) == [], name


def test_a_number_in_the_output_on_the_page_is_there() -> None:
    quoted = [one for one in pages.declarations()[1] if one.why == "in the output on the page"]
    assert quoted
    for one in quoted:
        page = (pages.ROOT / one.page).read_text(encoding="utf-8")
        output = " ".join(re.findall(r"^```.*?^```$", page, re.DOTALL | re.MULTILINE))
        shown = [float(number.replace(",", "")) for number in re.findall(NUMBER, output)]
        for number in re.findall(NUMBER, one.text):
            assert number in {f"{each * scale:.0f}" for each in shown for scale in (1, 100)}, one


def test_every_page_of_results_declares_its_figures() -> None:
    sentences, stated = pages.declarations()
    names = {one.page for one in (*sentences, *stated)}
    missing = [
        name
        for path in pages.written()
        if (name := str(path.relative_to(pages.ROOT))) not in names
        and unbacked(_prose(read_prose(path), name), [], name)
    ]
    assert not missing


def _prose(page: str, name: str) -> str:
    """Return what must be backed: a page, or what a module's docstring says is expected."""
    if not name.endswith(".py"):
        return page
    paragraph = re.search(r"Expected:.*", ast.get_docstring(ast.parse(page)) or "", re.DOTALL)
    return paragraph[0] if paragraph else ""
