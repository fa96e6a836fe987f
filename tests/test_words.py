"""Plain words: names that say how a value came about do not come back."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("judgebayes", "models", "experiments", "tests")
AVOIDED = re.compile(r"\b(found|told|seated|bend|slip|surprise|foretold|believed)\b")
"""Words that once were names of most values; in a sentence ("not found") they are natural."""
MOST = 80


def avoided() -> Iterator[str]:
    """Yield every avoided word with the file and the line that has it."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path == Path(__file__):
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                for match in AVOIDED.finditer(line):
                    yield f"{path.relative_to(ROOT)}:{number}: {match[0]}"


def test_avoided_words_are_rare() -> None:
    uses = list(avoided())
    assert len(uses) <= MOST, uses
    assert AVOIDED.search("the found = fit(votes)")
    assert not AVOIDED.search("profound")


def test_no_value_is_called_by_how_it_came_about() -> None:
    """A name on the left of an assignment, or of a parameter, is none of these words."""
    name = re.compile(r"^\s*(\w+, )*(found|told|seated|bend|slip|foretold|believed)(, \w+)* (=|:) ")
    assigned = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if name.match(line)
    ]
    assert assigned == []
    assert name.match("    found = 1")
