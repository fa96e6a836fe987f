"""Constructed malformed answers of a judge that reviews several items, with the known votes.

python tests/malformed.py --cases 1000 --seed 1        # the table of the guide

An item has a vote only if the answer contains a verdict on it. Half of the sheets have near-duplicates:
items on the same line whose texts differ by a number, an operator, quotes, a word or the ending.
"""

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from judgebayes.io.repair import Shown, repair_verdicts

SENTENCES = (
    "The loop runs range({n}) times, but the list has {m} entries.",
    "Use == instead of = in the condition of line {n}.",
    "The variable total{n} is never initialised before the loop.",
    'The prompt of input() should be "Enter {n} numbers", as the task says.',
    "Convert the input to int before adding {n}; str and int cannot be added.",
    "Return the result instead of printing it.",
    "The function is called with {n} arguments but takes {m}.",
    "Indent the body of the if statement by {n} spaces.",
    "The case of an empty list is missing, so max() raises a ValueError.",
    "Close the file, or open it in a with block.",
    "The comparison should be x < {n}, not x <= {n}, because the range ends before {m}.",
    "Round the average to {n} decimals.",
)


@dataclass(frozen=True)
class Given:
    """A verdict as the judge writes it, and the index of the item that it is on."""

    item: int
    line: Any
    text: str
    label: str
    keys: tuple[str, str, str] = ("line_number", "feedback", "classification")

    def entry(self) -> dict[str, Any]:
        return dict(zip(self.keys, (self.line, self.text, self.label), strict=True))


def sheet(rng: random.Random, *, near: bool) -> list[Shown]:
    """Return the items of a program; with `near`, some are near-duplicates."""
    items = [Shown(_lines(rng), _sentence(rng)) for _ in range(rng.randint(2, 6))]
    for _ in range(rng.randint(1, 3) if near else 0):
        item = rng.choice(items)
        start = item.line.split("-")[0]
        line = rng.choice((item.line, item.line, start, f"{start}-{int(start) + 2}"))
        items.append(Shown(line, _near(item.text, rng)))
    rng.shuffle(items)
    return items if near else list({(i.line, i.text): i for i in items}.values())


def _sentence(rng: random.Random) -> str:
    return rng.choice(SENTENCES).format(n=rng.randint(1, 30), m=rng.randint(1, 30))


def _lines(rng: random.Random) -> str:
    start = rng.randint(1, 12)
    return str(start) if rng.random() < 0.6 else f"{start}-{start + rng.randint(1, 4)}"


def _near(text: str, rng: random.Random) -> str:
    changes = (
        lambda t: _at_random(t, rng, str.isdigit, lambda c: str(rng.randrange(10))),
        lambda t: t.replace("<=", "<") if "<=" in t else t.replace("==", "!="),
        lambda t: t.replace('"', "'").replace("(", " ("),
        lambda t: t.replace("The ", "This ").replace("should", "must"),
        lambda t: t + " See the task.",
        lambda t: t.replace("before", "after").replace("instead of", "and"),
        lambda t: t,
    )
    for _ in range(rng.randint(1, 2)):
        text = rng.choice(changes)(text)
    return text


def _at_random(
    text: str, rng: random.Random, which: Callable[[str], bool], new: Callable[[str], str]
) -> str:
    places = [place for place, character in enumerate(text) if which(character)]
    if not places:
        return text
    place = rng.choice(places)
    return text[:place] + new(text[place]) + text[place + 1 :]


def typos(text: str, rng: random.Random) -> str:
    """Return a text with letters exchanged, left out or added, up to one of twelve."""
    for _ in range(rng.randint(1, max(1, len(text) // 12))):
        place = rng.randrange(len(text))
        letter = rng.choice("abcdefghijklmnopqrstuvwxyz ")
        text = rng.choice(
            (
                text[:place] + letter + text[place + 1 :],
                text[:place] + text[place + 1 :],
                text[:place] + letter + text[place:],
            )
        )
    return text


def normalised(text: str, rng: random.Random) -> str:
    """Return a text with other quotes, spaces or case, as judges write it."""
    return rng.choice(
        (
            lambda t: t.replace('"', "'"),
            lambda t: t.lower(),
            lambda t: t.replace(" ", "  ", 2),
            lambda t: t.rstrip("."),
            lambda t: t.replace("'", "\u2019").replace('"', "\u201d"),
        )
    )(text)


def clipped(text: str, rng: random.Random) -> str:
    return text[: rng.randint(-(-len(text) // 2), len(text))]


def of_text(change: Callable[[str, random.Random], str]) -> Callable[[Given, random.Random], Given]:
    return lambda given, rng: replace(given, text=change(given.text, rng))


def odd_label(given: Given, rng: random.Random) -> Given:
    words = {"valid": ("Valid", "correct", "VALID.", " valid ")}
    words["invalid"] = ("incorrect", "Partially valid", "partially_correct", "**invalid**")
    return replace(given, label=rng.choice(words[given.label]))


def odd_keys(given: Given, rng: random.Random) -> Given:
    names = (("line_num", "Line Number", "line"), ("comment", "Feedback", "text"))
    labels = ("label", "verdict", "Classification")
    return replace(given, keys=(*map(rng.choice, names), rng.choice(labels)))


def odd_line(given: Given, rng: random.Random) -> Given:
    start, _, end = str(given.line).partition("-")
    words = [f"line {start}", f"Line: {start}", f" {start} ", int(start), float(start)]
    if end:
        words = [f"lines {start}-{end}", f"{start} to {end}", f"{start}\u2013{end}"]
    return replace(given, line=rng.choice(words))


def starting_line(given: Given, rng: random.Random) -> Given:
    start = str(given.line).split("-")[0]
    return replace(given, line=rng.choice((start, f"{start}-{int(start) + 9}")))


def everything(given: Given, rng: random.Random) -> Given:
    for change in rng.sample((odd_label, odd_keys, odd_line, of_text(typos), of_text(clipped)), 3):
        given = change(given, rng)
    return given


def plain(given: Given, rng: random.Random) -> Given:
    return given


def listed(given: list[Given], rng: random.Random) -> str:
    return json.dumps(
        {"feedback_lines": [each.entry() for each in given]}, indent=rng.choice((None, 1))
    )


def fenced(given: list[Given], rng: random.Random) -> str:
    before, name = rng.choice(("", "Here you are:")), rng.choice(("json", ""))
    return f"{before}\n```{name}\n{listed(given, rng)}\n```\n"


def in_prose(given: list[Given], rng: random.Random) -> str:
    before = rng.choice(
        ("Sure. Items [1] to [9] are {below}:", 'I call "valid" what is right.', "")
    )
    return f"{before}\n{listed(given, rng)}\nLet me know {{if}} you need more."


def with_commas(given: list[Given], rng: random.Random) -> str:
    text = listed(given, rng)
    return (
        text.replace("}]", "},]").replace('"}', '",}').replace("]}", "],}").replace("\n ]", ",\n ]")
    )


def cut_off(given: list[Given], rng: random.Random) -> str:
    text = listed(given, rng)
    return text[: rng.randint(0, len(text))]


def piece_by_piece(given: list[Given], rng: random.Random) -> str:
    return rng.choice(("\n", "\n\nNext item: ")).join(json.dumps(each.entry()) for each in given)


def reasoned(given: list[Given], rng: random.Random) -> str:
    draft = [replace(each, label=rng.choice(("valid", "invalid"))) for each in given]
    return f"<think>A draft: {listed(draft, rng)} No.</think>\n{listed(given, rng)}"


def several(given: list[Given], rng: random.Random) -> str:
    draft = [replace(each, label=rng.choice(("valid", "invalid"))) for each in given]
    return f"First: {listed(draft, rng)}\nCorrected: {listed(given, rng)}"


KINDS: dict[str, tuple[Callable[..., Given], Callable[..., str]]] = {
    "as asked": (plain, listed),
    "code fence": (plain, fenced),
    "sentences around the JSON": (plain, in_prose),
    "trailing commas": (plain, with_commas),
    "reasoning with a draft": (plain, reasoned),
    "a draft and a corrected list": (plain, several),
    "one object per verdict": (plain, piece_by_piece),
    "cut off": (plain, cut_off),
    "other labels": (odd_label, listed),
    "other keys": (odd_keys, listed),
    "other notation of the line": (odd_line, listed),
    "another range, or only its start": (starting_line, listed),
    "other quotes, spaces or case": (of_text(normalised), listed),
    "typing errors": (of_text(typos), listed),
    "clipped texts": (of_text(clipped), listed),
    "three of the above": (everything, fenced),
}
"""By name: what happens to some of the verdicts, and how the list of them is written."""


def case(kind: str, rng: random.Random, *, near: bool) -> tuple[list[int], list[int]]:
    """Return the votes that the judge gave on each item (-1 for none), and those that are read.

    The verdicts are in any order; one of ten items has none, and one of ten verdicts is there twice.
    """
    change, write = KINDS[kind]
    items = sheet(rng, near=near)
    truth = [rng.randint(0, 1) for _ in items]
    given = [
        Given(i, item.line, item.text, "valid" if vote else "invalid")
        for i, (item, vote) in enumerate(zip(items, truth, strict=True))
        if rng.random() < 0.9
    ]
    given = [change(each, rng) if rng.random() < 0.7 else each for each in given]
    given += [each for each in given if rng.random() < 0.1]
    rng.shuffle(given)
    response = write(given, rng)
    said = {each.item for each in given}
    expected = [vote if i in said else -1 for i, vote in enumerate(truth)]
    return expected, repair_verdicts(response, items).votes


def count(kind: str, cases: int, seed: int, *, near: bool) -> Counter[str]:
    """Count the votes that are right, refused and wrong, over all items with a verdict."""
    counts: Counter[str] = Counter()
    for number in range(cases):
        expected, votes = case(kind, random.Random(f"{seed} {kind} {near} {number}"), near=near)
        for wanted, vote in zip(expected, votes, strict=True):
            if vote == -1:
                counts["refused"] += wanted != -1
            elif vote == wanted:
                counts["right"] += 1
            else:
                counts["wrong"] += 1
    return counts


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print("| malformed answers | right | refused | wrong | right | refused | wrong |")
    print("|---" * 7 + "|")
    wrong = 0
    for kind in KINDS:
        cells = []
        for near in (False, True):
            counts = count(kind, args.cases, args.seed, near=near)
            wrong += counts["wrong"]
            cells += [f"{counts[name]:,}" for name in ("right", "refused", "wrong")]
        print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
