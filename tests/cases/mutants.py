"""Files of votes whose right reading is known, and the changes that users make to them."""

import csv
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

Mutation = Callable[["Case", random.Random], "Case"]
FILES = Path(__file__).parent / "files"
HOW = {"suffix": ".csv", "sep": ",", "encoding": "utf-8", "quoting": csv.QUOTE_MINIMAL, "above": ""}
"""How files are written; `above` are lines above the header."""


@dataclass(frozen=True)
class Reading:
    """How many votes of each class a judge has on an item, labels, and the number of classes."""

    votes: Counter[tuple[str, str, Any]]
    labels: dict[str, int]
    n_classes: int


@dataclass(frozen=True)
class Case:
    """A table of votes, perhaps another of labels, all cells text; and what their cells mean."""

    tables: tuple[pd.DataFrame, ...]
    """Rows with a negative index are no records: totals, units, empty rows."""
    roles: dict[str, str]
    """The roles of columns; without one of judges, each column of votes is that of a judge."""
    scale: dict[str, int]
    """The class of every spelling; other cells are missing."""
    scores: bool = False
    names: dict[str, str] = field(default_factory=dict)
    """The items and judges that other spellings stand for."""
    how: dict[str, Any] = field(default_factory=lambda: HOW)
    """How the files are written."""

    def each(self, change: Callable[[pd.DataFrame], pd.DataFrame], **fields: Any) -> "Case":
        return replace(self, tables=tuple(map(change, self.tables)), **fields)

    def named(self, role: str, table: pd.DataFrame | None = None) -> list[str]:
        table = self.tables[0] if table is None else table
        return [name for name in table if self.roles.get(name) == role]

    def name(self, cell: object) -> str:
        return self.names.get(str(cell).strip(), str(cell).strip())


def naive(case: Case) -> Reading:
    """Read a case with dictionaries: equal rows count once, and of several labels the majority."""
    votes, given = Counter[Any](), defaultdict[str, Counter[int]](Counter)
    top = max(case.scale.values())
    for table in case.tables:
        item, judge, order = (case.named(role, table) for role in ("item", "judge", "order"))
        rows = table[table.index >= 0].to_dict("records")
        for row in {repr(row): row for row in rows}.values():
            name = case.name(row[item[0]])
            for column in case.named("vote", table):
                cell = row[column].strip()
                vote: Any = case.scale.get(cell)
                if case.scores:
                    vote = float(cell.replace(",", ".")) if re.search(r"\d", cell) else None
                if vote is not None:
                    swapped = bool(order) and row[order[0]].strip() == "BA"
                    voter = row[judge[0]] if judge else column
                    votes[name, case.name(voter), top - vote if swapped else vote] += 1
            cells = [row[column].strip() for column in case.named("label", table)]
            given[name].update(case.scale[cell] for cell in cells if cell in case.scale)
    items = {*map(case.name, case.tables[0][case.named("item")[0]])}
    ranked = {name: [*counts.most_common(2), (0, 0)] for name, counts in given.items() if counts}
    labels = {n: r[0][0] for n, r in ranked.items() if n in items and r[0][1] > r[1][1]}
    return Reading(votes, labels, top + 1)


def written(case: Case, folder: Path) -> list[Path]:
    """Write the files of a case; JSONL and Parquet have whole numbers where all cells are."""
    paths, how = [], case.how
    for table, stem in zip(case.tables, ("votes", "labels"), strict=False):
        path = folder / f"{stem}{how['suffix']}"
        paths.append(path)
        typed = table[table.index >= 0].replace("", None)
        for name, cells in typed.items():
            if cells.dropna().str.fullmatch("0|-?[1-9][0-9]*").all():
                typed[name] = cells.astype(float).astype("Int64")
        if path.suffix == ".jsonl":
            typed.to_json(path, orient="records", lines=True)
        elif path.suffix == ".parquet":
            typed.to_parquet(path, index=False)
        else:
            sep = "\t" if path.suffix == ".tsv" else how["sep"]
            text = how["above"] + table.to_csv(index=False, sep=sep, quoting=how["quoting"])
            path.write_bytes(text.encode(how["encoding"]))
    return paths


# Files whose reading is right.

LLMS, PEOPLE = ("gpt-4o", "claude-3", "llama"), ("human_1", "human_2", "human_3")
ROLES = dict.fromkeys(LLMS, "vote") | dict.fromkeys(PEOPLE, "label")


def right(columns: str, words: str, ids: str = "q{}", labelled: int = 30, **how: Any) -> Case:
    """Make files of 30 items with these columns, "role" or "role=name"; the second file's after "|".

    The columns of wide files are named by judges and people. Numbered votes are two of each judge.
    """
    classes, rng = words.split(), random.Random(columns)
    files = [dict(f"{c}={c}".split("=")[:2] for c in part.split()) for part in columns.split("|")]
    roles = {name: ROLES.get(role, role) for file in files for role, name in file.items()}
    rows: list[list[dict[str, str]]] = [[], []]

    def guess(true: int, right: float) -> int:
        return true if rng.random() < right else rng.randrange(len(classes))

    for i in range(30):
        true = i % len(classes)
        own = {"item": ids.format(i), "group": f"g{i // 3}"}
        said = {"label": classes[true]} | {who: classes[guess(true, 0.9)] for who in PEOPLE}
        said = said if i < labelled else dict.fromkeys(said, "")
        people = PEOPLE if "annotator" in files[-1] else ("label",)
        rows[1] += [own | {"annotator": who, "label": said[who]} for who in people]
        wide = own | said
        for judge, sample in product(LLMS, "12" if "sample" in files[0] else "1"):
            vote, order = guess(true, 0.85), "AB" if (i + int(sample)) % 2 else "BA"
            word = classes[-1 - vote if order == "BA" and "order" in files[0] else vote]
            score = f"{(vote + rng.uniform(0.02, 0.98)) / len(classes):.2f}"
            wide[judge] = word
            more = {"sample": sample, "order": order, "vote": word, "score": score}
            rows[0] += [own | said | {"judge": judge} | more] if "judge" in files[0] else []
        rows[0] += [] if "judge" in files[0] else [wide]
    pairs = zip(files, rows, strict=False)
    tables = tuple(pd.DataFrame(each)[[*file]].rename(columns=file) for file, each in pairs)
    roles |= {name: "vote" for name, role in roles.items() if role == "score"}
    scale = {word: k for k, word in enumerate(classes)}
    return Case(tables, roles, scale, "score" in files[0], how=HOW | how)


def handed(words: str, roles: str, *names: str) -> Case:
    """Return files of the folder beside."""
    tables = tuple(pd.read_csv(FILES / name, dtype=str, keep_default_na=False) for name in names)
    of = {each.split("=")[-1]: each.split("=")[0] for each in roles.split()}
    return Case(tables, of, {word: k for k, word in enumerate(words.split())})


WIDE = "gpt-4o claude-3 llama"
RIGHT: dict[str, Case] = {
    "tidy": right("item judge vote|item label", "0 1"),
    "label in a column": right("item=id judge=grader vote=verdict label=gold", "incorrect correct"),
    "ternary words": right("item=pair judge vote=preference|item=pair label", "B tie A"),
    "stars": right("item=example_id judge=model vote=rating label=human_label", "1 2 3 4 5", "{}"),
    "scores": right("item judge score|item label", "0 1"),
    "samples": right("item=question_id judge sample=run vote|item=question_id label", "0 1"),
    "both orders": right("item=pair judge sample order vote=winner|item=pair label", "B A"),
    "groups": right("item group=question judge vote label", "no yes", "{}"),
    "annotators": right("item judge vote|item annotator label", "bad good"),
    "no order": right("item=ticket judge vote|item=ticket label", "billing sales support", "{}"),
    "some labels": right("item=id judge vote label", "fail pass", "1{:02}", 20),
    "German": right("item=Frage judge=Richter vote=Urteil label=Gold", "schlecht gut", sep=";"),
    "records": right("item=id judge vote=passed|item=id label", "false true", suffix=".jsonl"),
    "wide": right(f"item {WIDE}|item label", "0 1", "{}"),
    "wide, a label": right(f"item=id {WIDE} label", "wrong right"),
    "wide, a person": right(f"item=id {WIDE} label=human", "invalid valid", labelled=20),
    "wide, people": right(f"item=id {WIDE} human_1 human_2 human_3", "0 1"),
    "wide, ternary": right(f"item=pair {WIDE} label=gold", "-1 0 1", labelled=24),
    "wide, stars": right(f"item=doc_id {WIDE} label=truth", "1 2 3 4 5", "doc-{:03}"),
    "zeros": handed("0 1", "item judge vote label", "votes_007.csv", "labels_007.csv"),
    "no and yes": handed(
        "no yes", "item=id vote=gpt vote=claude label=human", "wide_yesno_human.csv"
    ),
}

# What users do to files.

NAMES = {
    "item": ("Item ID", "example", "question", "Frage", "exemple", "case", "Sample ID", "doc", "#"),
    "judge": ("Judge", "LLM judge", "model", "grader", "Richter", "juge", "annotator"),
    "vote": ("verdict", "Urteil", "Bewertung", "avis", "score", "result", "Answer", "grade"),
    "label": ("Gold Label", "ground truth", "human", "Goldstandard", "vérité", "expected"),
    "sample": ("trial", "rep", "Versuch", "k", "attempt"),
    "order": ("presentation", "ab_order", "position", "Reihenfolge"),
    "annotator": ("rater", "worker_id", "person", "Prüfer"),
}
"""Names that users give to the columns of a role."""
STYLES: tuple[Callable[[str], str], ...] = (
    *(str.upper, str.title, " {} ".format, "{}:".format),
    lambda name: name.replace("_", " ").capitalize(),
    lambda name: name[0] + name.title().replace("_", "")[1:],
)
WORDS = {"0": ("no", "False", "0.0", "n", "fail"), "1": ("yes", "True", "1.0", "y", "pass")}
SAID = ("fine", "see above", "", "too long; wrong", "nicht schön", "good, but late")


def renamed(case: Case, new: Callable[[str, str | None], str]) -> Case:
    """Rename columns by their name and role; a column that is a judge stands for the same one."""
    to = {n: new(n, case.roles.get(n)) if n else n for table in case.tables for n in table}
    if len({name.strip().casefold() for name in to.values()}) < len(to):
        return case  # two columns with one name
    judges = {to[name].strip(): case.name(name) for name in case.named("vote")}
    return case.each(
        lambda table: table.rename(columns=to),
        roles={to[name]: role for name, role in case.roles.items() if name in to},
        names=case.names | judges,
    )


def restyled(case: Case, rng: random.Random) -> Case:
    style = rng.choice(STYLES)
    return renamed(case, lambda name, its: style(name))


def another_name(case: Case, rng: random.Random) -> Case:
    role = rng.choice([r for r in case.roles.values() if r in NAMES])
    new = rng.choice(NAMES[role])
    return renamed(case, lambda name, its: new if its == role else name)


def respelt(case: Case, spell: Callable[[str], str], *roles: str, only: int | None = None) -> Case:
    """Spell the cells of some roles, perhaps in one of the files only, in another way."""
    scale, names, tables = dict(case.scale), dict(case.names), list(case.tables)
    for place, table in enumerate(case.tables):
        for column in [n for n in table if case.roles.get(n) in roles and only in (None, place)]:
            to = {cell: spell(cell) for cell in table[column].unique()}
            if len(set(to.values())) < len(to):
                return case  # 007 and 7 are two items
            tables[place] = tables[place].assign(**{column: table[column].map(to)})
            for cell, new in to.items():
                if cell.strip() in case.scale:
                    scale[new.strip()] = case.scale[cell.strip()]
                names[new.strip()] = case.name(cell)
    return replace(case, tables=tuple(tables), scale=scale, names=names)


def retyped(case: Case, rng: random.Random) -> Case:
    """Write numbers as words or with decimals, and words in capitals: votes, labels or both."""
    kind, binary = rng.randrange(5), set(case.scale) == {"0", "1"}

    def spell(cell: str) -> str:
        decimals = f"{cell}.0" if re.fullmatch(r"-?\d", cell) else cell.upper()
        return WORDS[cell][kind] if binary and cell in WORDS else decimals

    roles = rng.choice((("vote", "label"), ("vote",), ("label",)))
    return case if case.scores else respelt(case, spell, *roles)


def ids(case: Case, rng: random.Random, spell: Callable[[str], str]) -> Case:
    """Spell the items in another way, in both files or in the first."""
    return respelt(case, spell, "item", only=rng.choice((None, 0)))


def emptied(case: Case, rng: random.Random, role: str, *words: str) -> Case:
    """Put a word that means nothing in place of some votes or labels."""
    word = rng.choice(words)

    def change(table: pd.DataFrame) -> pd.DataFrame:
        columns = table[case.named(role, table)]
        return table.assign(**columns.map(lambda cell: word if rng.random() < 0.1 else cell))

    return case.each(change)


def more(case: Case, rng: random.Random, cell: Callable[[int, str], object], *names: str) -> Case:
    """Add a column whose cells depend on the row or the item."""
    name, place = rng.choice(names), rng.randrange(4)

    def change(table: pd.DataFrame) -> pd.DataFrame:
        if name.casefold() in {other.casefold() for other in table}:
            return table
        items = table[case.named("item", table)[0]]
        cells = pd.Series([str(cell(i, item)) for i, item in enumerate(items)], table.index)
        table = table.copy()
        table.insert(min(place, table.shape[1]), name, cells)
        return table

    return case.each(change)


def person(case: Case, rng: random.Random) -> Case:
    """Add a column of a person who judged some items, which is neither a judge nor the label."""
    if any("human" in name.casefold() for name in case.roles):
        return case  # one more person
    words = ["", *case.scale]
    names = ("human", "expert", "reviewer_1", "Anna (human)", "my_rating")
    both = more(case, rng, lambda _, item: random.Random(item).choice(words), *names)
    return replace(both, tables=(both.tables[0], *case.tables[1:]))


def junk(case: Case, place: int, cell: Callable[[str], str]) -> Case:
    """Add a row that is no record at the top (0) or the end of the votes, by the columns' names."""
    table = case.tables[0]
    row = pd.DataFrame([[*map(cell, table)]], [-1], table.columns)
    both = pd.concat([table, row] if place else [row, table])
    return replace(case, tables=(both, *case.tables[1:]))


def total(case: Case, rng: random.Random) -> Case:
    cells = {"item": rng.choice(("Total", "Mean", "")), "vote": rng.choice(("0.57", "17"))}
    return junk(case, 1, lambda name: cells.get(case.roles.get(name, ""), ""))


def of_other_items(case: Case, rng: random.Random) -> Case:
    """Label more items, from the last to the first."""
    *votes, labels = case.tables
    (item,) = case.named("item", labels)
    extra = labels[:2].assign(**{item: labels[item][:2] + "99"})
    return replace(case, tables=(*votes, pd.concat([labels, extra])[::-1])) if votes else case


def write(case: Case, rng: random.Random, key: str, *values: object) -> Case:
    return replace(case, how=case.how | {key: rng.choice(values)})


def commas(case: Case, rng: random.Random) -> Case:
    case = respelt(case, lambda cell: re.sub(r"(\d)\.(\d)", r"\1,\2", cell), "vote", "label")
    return write(case, rng, "sep", ";")


def noted(case: Case, rng: random.Random) -> Case:
    """Add a column with umlauts, and write them in another encoding."""
    case = more(case, rng, lambda i, item: "schön", "Größe")
    return write(case, rng, "encoding", "utf-8-sig", "cp1252", "utf-16")


MUTATIONS: dict[str, Mutation] = {
    "a column has another name": another_name,
    "names in another style": restyled,
    "columns reordered": lambda c, r: c.each(lambda t: t[r.sample([*t], t.shape[1])]),
    "rows reordered": lambda c, r: c.each(lambda t: t.iloc[r.sample(range(len(t)), len(t))]),
    "votes blank": lambda c, r: emptied(c, r, "vote", ""),
    "votes NA": lambda c, r: emptied(c, r, "vote", "NA", "n/a", "-", "None", "?", "error"),
    "labels NA": lambda c, r: emptied(c, r, "label", "", "NA", "n/a", "-", "unsure"),
    "votes of another type": retyped,
    "cells padded": lambda c, r: respelt(c, r.choice((" {}", "{} ", "\u00a0{}")).format, *NAMES),
    "ids zero padded": lambda c, r: ids(c, r, lambda i: re.sub(r"\d+", lambda n: n[0].zfill(4), i)),
    "ids with a prefix": lambda c, r: ids(c, r, r.choice(("item-{}", "run1/{}", "Q {}")).format),
    "ids as floats": lambda c, r: respelt(c, lambda i: f"{i}.0" if i.isdecimal() else i, "item"),
    "an index column": lambda c, r: more(c, r, lambda i, _: i, "", "index", "Unnamed: 0", "row"),
    "a time column": lambda c, r: more(c, r, lambda i, _: f"1 May, {i}", "date", "Zeit"),
    "a cost column": lambda c, r: more(c, r, lambda i, _: f"{r.random():.5f}", "cost", "latency_s"),
    "a comment column": lambda c, r: more(c, r, lambda i, _: r.choice(SAID), "comment", "reason"),
    "a numeric column": lambda c, r: more(c, r, lambda _, i: sum(i.encode()) % 3, "level", "turns"),
    "a person on the scale": person,
    "decimal commas": commas,
    "another format": lambda c, r: write(c, r, "suffix", ".tsv", ".jsonl", ".parquet"),
    "another separator": lambda c, r: write(c, r, "sep", ";", "\t"),
    "another encoding": noted,
    "everything quoted": lambda c, r: write(c, r, "quoting", csv.QUOTE_ALL),
    "a title": lambda c, r: write(c, r, "above", "Votes of May\n", "Votes\n\n", "# run,12\n"),
    "rows twice": lambda c, r: c.each(lambda t: pd.concat([t, t.iloc[r.sample(range(20), 5)]])),
    "labels of other items": of_other_items,
    "a total row": total,
    "a second header": lambda c, r: junk(c, 0, r.choice((str, "(text)".format))),
    "empty rows and columns": lambda c, r: junk(more(c, r, lambda *_: "", "spare"), 1, "".format),
}


def mutant(number: int, case: Case, only: tuple[str, ...] = ()) -> tuple[list[str], Case]:
    """Return a case after one to three mutations, or some of these only; and the names of all."""
    rng = random.Random(number)
    names = rng.sample(list(MUTATIONS), rng.randint(1, 3))
    for name in MUTATIONS:
        if name in (only or names):
            case = MUTATIONS[name](case, random.Random(f"{number} {name}"))
    return names, case
