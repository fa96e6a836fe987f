"""Pages are safe, well-formed, readable and reproducible."""

import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure as Picture

import judgebayes as jb
from judgebayes.evaluate.one_split import Evaluation
from judgebayes.experiments.matrix import link, links
from judgebayes.finding import Finding
from judgebayes.report import first_items, headline, held_out_blocks, losses_figure
from judgebayes.show.figures import inline_svg
from judgebayes.show.page import (
    Code,
    Facts,
    Findings,
    Markup,
    Page,
    Paragraph,
    Plot,
    Section,
    SideBySide,
    Table,
    css,
    markup,
    render,
    with_caption,
)
from judgebayes.show.text import shortened_apart

VOID = {"meta", "br", "wbr", "img", "link", "hr", "input"}
MEGABYTE = "x" * 2**20
HOSTILE = [
    "<script>alert(1)</script>",
    "</svg><img src=x onerror=alert(1)>",
    "\"quoted\" 'names' & more",
    "--><!-- ]]>",
    "$\\frac{1}{0}$",
    "\u202egnp.exe",
    "שופט א",
    "nul\x00and\x1bbell\x07",
    MEGABYTE,
    MEGABYTE[:-1] + "y" + "x" * 9,
    "裁判 🧑‍⚖️",
    "",
    "two\nlines",
]


class Reader(HTMLParser):
    """A strict reader of a page: every tag that opens is closed, in order."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.feed(markup)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        self.tags.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs), tuple(self.open)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self.open), data))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs, _ in self.tags if name == tag]

    def said(self, tag: str) -> list[str]:
        return [text for inside, text in self.texts if inside and inside[-1] == tag]


def check(markup: str) -> Reader:
    """Check the properties of every page, and return the parsed page."""
    page = Reader(markup)
    names = {tag for tag, _, _ in page.tags}
    assert not names & {"script", "iframe", "object", "embed", "link", "base", "form", "img"}
    for tag, attrs, _ in page.tags:
        assert not [name for name in attrs if name.startswith("on")], (tag, attrs)
        for name in ("href", "xlink:href", "src"):
            target = attrs.get(name) or ""
            written_out = tag == "image" and target.startswith("data:image/png;base64,")
            assert written_out or ":" not in target, (tag, attrs)
        assert "url(h" not in (attrs.get("style") or "")
    assert "@import" not in markup
    assert "url(" not in css()
    ids = [attrs["id"] for _, attrs, _ in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    inside = {a["href"][1:] for a in page.of("a") if (a["href"] or "").startswith("#")}
    drawn = {a[k][1:] for a in page.of("use") for k in ("xlink:href", "href") if k in a}
    clips = set(re.findall(r"url\(#([^)]*)\)", markup))
    assert inside | drawn | clips <= set(ids)
    assert page.of("html")[0]["lang"]
    assert len([t for i, t in page.texts if i[-1:] == ("title",) and "svg" not in i]) == 1
    levels = [int(tag[1]) for tag, _, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for svg in page.of("svg"):
        assert svg["role"] == "img"
        assert set((svg["aria-labelledby"] or "").split()) <= set(ids)
    assert len(page.of("caption")) == len(page.of("table"))
    assert all(attrs.get("scope") in ("col", "row") for attrs in page.of("th"))
    return page


def picture(names: list[str], key: str = "a-figure") -> Plot:
    def draw() -> Picture:
        figure = Picture(figsize=(9, 4), layout="constrained")
        ax = figure.subplots()
        ax.plot(range(len(names)), range(len(names)), "o-", color="black", label=names[0])
        ax.set_yticks(range(len(names)), names)
        ax.legend()
        return figure

    return Plot(draw, key, names[0], names[-1], names[0])


def test_a_finding_has_its_option_on_a_page() -> None:
    assert "Option: --set wide=true" in markup(
        [Findings([Finding("bad", "Which?", option="--set wide=true")])]
    )


def a_page(names: list[str]) -> Page:
    table = Table(names[0], names, [names, [link(names[1], names[1]), *names[1:]]], words=(1,))
    inner = Section(names[0], [Paragraph(name) for name in names])
    return Page(
        names[0],
        [Facts([(name, name) for name in names], large=True)],
        [
            Section(names[0], [table, Findings([Finding("bad", name) for name in names])], [inner]),
            Section(
                "b", [SideBySide([picture(names), picture(names, "b")]), Code(names[0])], name="b"
            ),
            Section("c", [links([(n, n) for n in names if n])]),
        ],
    )


def test_a_page_is_whole_and_readable() -> None:
    page = check(render(a_page(["one", "two", "three"])))
    assert page.said("h1") == ["one"]
    assert page.said("h3") == ["one"]
    assert page.said("caption") == []  # inside a span, which stays visible
    assert page.of("td")[0] == {"class": ""} or "class" not in page.of("td")[0]


@pytest.mark.parametrize("most", [72, 2**20], ids=["shortened", "as they are"])
def test_hostile_names_are_escaped(most: int) -> None:
    names = [n for n in HOSTILE if len(n) < 100] if most > 72 else shortened_apart(HOSTILE, most)
    markup = render(a_page(names))
    assert len(markup) < 400_000
    page = check(markup)
    assert "\x00" not in markup
    assert "\u202e" not in markup
    assert "alert(1)" in markup  # as text
    said = "".join(text for _, text in page.texts)
    assert "<script>alert(1)</script>" in said
    assert "$\\frac{1}{0}$" in said


def test_a_link_never_leaves_the_folder() -> None:
    section = Section("s", [links([("x", "javascript:alert(1)"), ("y", "a b/ü.csv")])])
    page = check(render(Page("p", [], [section])))
    assert [a["href"] for a in page.of("a")][1:] == [
        "javascript%3Aalert%281%29",
        "a%20b/%C3%BC.csv",
    ]


def luminance(colour: str) -> float:
    """Relative luminance as defined in the Web Content Accessibility Guidelines 2.2."""
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_enough_in_light_and_dark() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # the known near miss
    themes = [dict(re.findall(r"--(\w+): (#\w{6});", part)) for part in css().split("@media")[:2]]
    assert themes[0].keys() == themes[1].keys()
    for colours in themes:
        for letters in ("ink", "muted", "link", "bad", "note", "good"):
            for ground in ("page", "card"):
                assert contrast(colours[letters], colours[ground]) >= 4.5, (letters, ground)
    assert contrast("#57606a", "#ffffff") >= 4.5  # captions on white
    assert "@media print" in css()
    assert "prefers-color-scheme: dark" in css()


def test_a_heat_map_is_written_out_and_allowed() -> None:
    figure = Picture()
    figure.subplots().imshow(np.eye(2))
    svg = inline_svg(figure, "h", "t", "d", themed=False)
    shown = Markup(with_caption(svg, "c", themed=False))
    page = check(render(Page("p", [shown], [])))
    assert len(page.of("image")) == 1
    policies = [a["content"] for a in page.of("meta") if "http-equiv" in a]
    assert "img-src data:" in (policies[0] or "")
    assert page.of("figure")[0]["class"] == "paper"


def held_out(log_probs: np.ndarray) -> Evaluation:
    """Ten items in four splits."""
    items = np.tile(np.arange(10), (4, 1))
    labels = np.tile(np.random.default_rng(3).integers(0, 2, 10), (4, 1))
    return Evaluation(items, labels, log_probs, labels, np.zeros(4, int))


def test_the_table_of_confidence_matches_hand_counts() -> None:
    p = np.random.default_rng(4).uniform(0.02, 0.98, (4, 10))
    answers = held_out(np.log(np.stack([1 - p, p], -1)))
    blocks = held_out_blocks(answers, None, ["no", "yes"], "m")
    table = next(block for block in blocks if isinstance(block, Table))
    confidence = np.maximum(p, 1 - p)
    right = (p > 0.5) == answers.labels
    for name, items, share, promised, observed in table.rows:
        low, high = (float(end.strip("%")) / 100 for end in str(name).split(" to "))
        in_bin = (confidence > low) & (confidence <= high)
        assert items == str(len(set(answers.items[in_bin].tolist())))
        assert share == f"{in_bin.sum() / 40:.0%}"
        assert promised == f"{confidence[in_bin].mean():.1%}"
        assert str(observed).startswith(f"{right[in_bin].mean():.1%}")
    assert sum(float(str(row[2]).strip("%")) for row in table.rows) == pytest.approx(100, abs=3)
    page = check(render(Page("p", blocks, [])))
    assert len(page.of("svg")) == 1
    three = held_out(np.log(np.full((4, 10, 3), 1 / 3)))
    blocks = held_out_blocks(three, None, ["a", "b", "c"], "m")
    assert len(check(render(Page("p", blocks, []))).of("svg")) == 3


def test_the_least_certain_items_come_first() -> None:
    p = np.array([0.9, 0.52, 0.2, 0.45])
    answers = pd.DataFrame({"item": HOSTILE[:4], "p(no)": 1 - p, "p(yes)": p})
    answers["decision"] = np.where(p > 0.5, "yes", "no")
    answers["expected_loss"] = np.minimum(p, 1 - p)
    table = first_items(answers, np.array([False, False, False, True]))
    assert isinstance(table, Table)
    assert [row[3] for row in table.rows] == ["yes", "no", "yes"]  # 0.52, 0.2, 0.9
    assert table.rows[0][1:3] == ["0.480", "0.520"]
    assert table.caption == (
        "Items without a label with an expected loss above 0.01, the least certain first"
    )
    check(render(Page("p", [table], [])))


def test_the_headline_says_how_often_decisions_are_right_beside_the_simplest_rivals() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 80)
    rows = [
        (i, judge, int(y if rng.random() < right else 1 - y))
        for i, y in enumerate(truth)
        for judge, right in (("good", 0.9), ("poor", 0.6), ("worse", 0.55))
    ]
    votes = pd.DataFrame(rows, columns=["item", "judge", "vote"])
    gold = pd.DataFrame({"item": range(80), "label": truth})
    fit = jb.calibrate(votes, gold, method="dawid-skene", splits=4, loss="zero-one:person=0.2")
    assert fit.compared is not None
    assert fit.abstention is not None
    share = {n: f"{100 * fit.compared.right(n).mean:.0f} %" for n in ("sc", "best-judge")}
    text = headline(fit).text
    name = fit.choice.name
    right = 100 * fit.compared.right(name).mean
    assert text.startswith(f"Decisions by {name} are right on {right:.0f} % [")
    assert f"a plain majority of the votes on {share['sc']}" in text
    assert f"the best judge alone on {share['best-judge']}" in text
    assert f"{100 * fit.abstention.share.mean:.0f} % of the items go to a person" in text
    (axes,) = losses_figure(fit, fit.compared).draw().axes
    rows_drawn = [label.get_text() for label in axes.get_yticklabels()]
    assert rows_drawn[0] == name  # then the best first
    drawn = dict(zip(rows_drawn, axes.lines[0].get_xdata(), strict=True))
    assert list(drawn.values())[1:] == sorted(list(drawn.values())[1:])
    # The mean zero-one loss of decisions is the share that is wrong.
    for shown, rule in ((name, name), ("plain majority", "sc"), ("best judge alone", "best-judge")):
        assert drawn[shown] == pytest.approx(1 - fit.compared.right(rule).mean, abs=1e-9)
    few = jb.calibrate(votes, gold.head(6), method="dawid-skene")
    assert headline(few).text == "The labels cannot tell how often these decisions are right."
