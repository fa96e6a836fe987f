"""The README and the guides: every block runs and prints what the page says, every command exists."""

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import CycloptsError
from test_guide import BLOCK, blocks, disagreements

from judgebayes.cli import COMMANDS, app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
GUIDES = {path.name: path for path in (DOCS / "guides").glob("*.md")}
OWN_TESTS = {"posteriors.md": "test_guide.py", "extending.md": "test_extending.py"}
LANDING = [DOCS / "index.md", DOCS / "compares.md"]
FENCE = re.compile(r"^```(\S[^\n]*)\n(.*?)^```$", re.M | re.S)
NOT_RUN = {
    "shell": "parsed below",
    "sh": "run by `test_continuous_integration.py`",
    "bash": "a job of a cluster; its commands are parsed below",
    "py": "needs a cluster",
    "text": "output",
    "toml": "a fragment of a file",
    "yaml": "a file for another program",
}
DIRECTIVES = {"{container}", "{image}", "{toctree}", "{warning}"}


@pytest.mark.filterwarnings("ignore")  # of matplotlib while it draws
@pytest.mark.parametrize("name", ["README.md", *sorted(GUIDES.keys() - OWN_TESTS.keys())])
def test_a_page_prints_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert disagreements(GUIDES.get(name, README).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("shown", "number"), [("3", 1), ("0.19 0.42", 1), ("a number of 4800 votes", 1), ("...", 0)]
)
def test_a_wrong_number_of_a_page_is_seen(shown: str, number: int) -> None:
    """The block prints 4, .18 and .42, or 4801: none of the quoted outputs, but `...` is anything."""
    printed = {
        "3": "4",
        "0.19 0.42": "0.16 0.42",
        "a number of 4800 votes": "a number of 4801 votes",
    }
    page = f"```python\nprint({printed.get(shown, 'x')!r})\n```\n\n```text\n{shown}\n```\n"
    assert len(disagreements(page)) == number


def test_pages_with_tests_of_their_own_have_them() -> None:
    for page, test in OWN_TESTS.items():
        assert page in GUIDES
        assert f'"{page}"' in (ROOT / "tests" / test).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [README, *LANDING, *GUIDES.values()], ids=lambda path: path.name)
def test_every_block_is_of_a_kind_that_a_test_knows(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    run = {code for _, code, _ in BLOCK.findall(text)}
    for head, code in FENCE.findall(text):
        kind = head.split()[0]
        assert code in run or kind in NOT_RUN or kind in DIRECTIVES, head


def commands(text: str) -> Iterator[list[str]]:
    """Yield all commands of a page's blocks, run or not."""
    for kind, code, _ in blocks(text):
        if kind == "console":
            yield shlex.split(code, comments=True)
    for head, code in FENCE.findall(text):
        for line in code.splitlines():
            if head == "shell" or (head == "bash" and line.startswith("judgebayes ")):
                yield shlex.split(line, comments=True)


@pytest.mark.parametrize("path", [README, *LANDING, *GUIDES.values()], ids=lambda path: path.name)
def test_every_command_exists_with_its_options(path: Path) -> None:
    """Also where a block is not run: a command and an option that are gone are seen."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for program, *rest in commands(path.read_text(encoding="utf-8")):
        assert program in ("judgebayes", "make", "pip"), program
        if program == "make":
            assert f"\n{rest[0]}: " in makefile, rest
        if program == "judgebayes":
            parse(rest)


def parse(words: list[str]) -> None:
    """Read a command line without running it."""
    app.parse_args(words, exit_on_error=False, print_error=False)


def test_an_unknown_command_or_option_would_be_seen() -> None:
    with pytest.raises(CycloptsError, match="Unknown command"):
        parse(["calibrat", "votes.csv"])
    with pytest.raises(CycloptsError, match="Unknown option"):
        parse(["calibrate", "votes.csv", "--lables", "labels.csv"])


def test_every_command_of_a_table_exists() -> None:
    known = {name.split()[0] for name in COMMANDS}
    for path in [README, *LANDING, *GUIDES.values()]:
        for name in re.findall(r"`judgebayes ([a-z][a-z-]*)", path.read_text(encoding="utf-8")):
            assert name in known, (path.name, name)


def test_the_landing_page_shows_the_readmes_commands() -> None:
    readme = list(commands(README.read_text(encoding="utf-8")))
    for words in commands(LANDING[0].read_text(encoding="utf-8")):
        assert any(each[: len(words)] == words for each in readme), words


def test_the_readme_is_one_screen_in_the_order_that_readers_know() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100
    parts = ["# judgebayes", "<picture>", "## Install", "make reproduce", "make test", "## Example"]
    parts += ["## Which command", "## How it compares", "## Links"]
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize("path", [README, *LANDING, *GUIDES.values()], ids=lambda path: path.name)
def test_links_to_files_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    pattern = r'\]\(([^)#\s]+)(?:#[^)]*)?\)|(?:src|srcset)="([^"]+)"|^(?:```{image}) (\S+)$'
    for groups in re.findall(pattern, text, re.M):
        link = "".join(groups)
        if "://" in link or link.startswith("reference/"):
            continue
        copied = ROOT / (path.parent / link).resolve().relative_to(DOCS) if path != README else None
        here = (path.parent / link).exists()
        assert here or (copied is not None and copied.exists()), link


def test_the_comparison_quotes_the_measured_ratios() -> None:
    """Rows of the table stand as `what`, `peer`, `ratio` in the table of speeds."""
    measured = (ROOT / "experiments" / "speed" / "README.md").read_text(encoding="utf-8")
    page = (DOCS / "compares.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| (.+?) \| ([\d.]+) \((.+?)\) \|$", page, re.M)
    assert len(rows) == 5
    for what, peer, ratio, ends in rows:
        start = rf"^\| (?:{re.escape(what)}|the same) \| {re.escape(peer)} \|"
        pattern = rf"{start}.*\*\*{re.escape(ratio)}\*\* \({re.escape(ends)}\)"
        assert re.search(pattern, measured, re.M), (what, peer, ratio)


def test_the_guide_to_sweeps_quotes_measured_times_and_counted_programs() -> None:
    measured = (ROOT / "experiments" / "speed" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (.+) \| (0\.\d+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$",
        GUIDES["sweeps.md"].read_text(encoding="utf-8"),
        re.M,
    )
    names = ("p1-sweep", "p4-fig6", "one-coin-beta")
    for (what, seconds, *trips, out), name in zip(rows, names, strict=True):
        assert re.search(rf"^\| {re.escape(what)} \| .* \| [\d.]+ \| {seconds} \|", measured, re.M)
        for kind, count in zip(("CPU", "accelerator"), trips, strict=True):
            assert re.search(rf"^\| {name} \| {kind} \| \d+ \| \d+ \| {count} \|", measured, re.M)
        assert re.search(rf"^\| {name} \| accelerator \|.* \| {out} \|$", measured, re.M)


@pytest.mark.filterwarnings("ignore")
def test_the_readmes_picture_is_drawn_from_the_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn anew it has the same squares in the same colours."""
    monkeypatch.syspath_prepend(DOCS / "images")
    import decisions  # type: ignore[import-not-found]

    decisions.main(tmp_path)
    sys.modules.pop("decisions")
    for theme in ("light", "dark"):
        name = f"decisions-{theme}.svg"
        kept, drawn = (
            re.findall(
                r'<use [^>]*style="fill: (#\w+)', (folder / name).read_text(encoding="utf-8")
            )
            for folder in (DOCS / "images", tmp_path)
        )
        assert len(kept) > 90
        assert kept == drawn
