"""The columns of votes by role, of a table with a row per vote or a column per judge; repeated votes."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import with_points
from judgebayes.io.columns import (
    MODELS,
    PEOPLE,
    SETTLED,
    guess_columns,
    join_judge,
    judge_of_criteria,
    like_a_label,
    like_a_person,
    listed_roles,
    most_likely,
    plain_label,
    plain_name,
    repeated_columns,
    unrecognised,
)
from judgebayes.io.gathering import MAX_CLASSES
from judgebayes.io.in_memory import InMemory
from judgebayes.io.options import join_names, option, split_names
from judgebayes.io.vote_tables import kind_of_answers
from judgebayes.votes.classes import (
    Classes,
    canonical,
    given_classes,
    listing,
    mapped,
    usual_classes,
    written,
)
from judgebayes.votes.columns import are_orders
from judgebayes.workflow.annotators import label_columns
from judgebayes.workflow.check_draft import Draft, try_open
from judgebayes.workflow.likely import ITEM, MEASURE, Candidates, by_name
from judgebayes.workflow.options import ROLES
from judgebayes.workflow.scales import are_scores, in_order

SYSTEMS = re.compile(
    r".*(?:model|system|assistant|response|answer|candidate|player)[ _-]?(?:a|b|1|2|left|right)",
    re.IGNORECASE,
)
"""Names of the two columns with the systems that an item compares."""
SHARE = 0.2
"""The least share of items with several labels from which an item is more than one column."""


def _item_of_rows(draft: Draft, table: pd.DataFrame) -> str | None:
    """Return the column that most likely names the item of each row of a wide table."""
    names = [str(name) for name in table.columns]
    likely = [by_name(names, "item"), Candidates(table).item(_labelled(draft))]
    likely += [name for name in names if ITEM.fullmatch(plain_name(name))]
    return next((n for n in likely if n is not None and not table[n].duplicated().any()), None)


def _label_values(draft: Draft) -> frozenset[str]:
    """Return the values in the likely column of a file of labels, of any column if there is none."""
    gold = draft.labels
    if gold is None:
        return frozenset()
    label = draft.request.label or by_name([str(n) for n in gold.columns], "label")
    columns = [label] if label in gold.columns else list(gold.columns)
    return frozenset(
        str(v).casefold() for n in columns for v in mapped(gold[n], canonical).dropna()
    )


PERSON = re.compile(f"(?:{PEOPLE})s?")


def _alike(
    table: pd.DataFrame,
    names: Iterable[str],
    labels: frozenset[str] = frozenset(),
    *,
    wide: bool = False,
) -> tuple[list[str], frozenset[str]]:
    """Return the largest set of columns with votes for the same classes, or with scores; and these.

    Classes are few words or whole numbers, of which each column has at least half, or no others; those
    of the labels come first. If the table is known to be `wide`, any numbers may be votes.
    """
    values: dict[str, frozenset[str]] = {}
    words: dict[str, frozenset[str]] = {}
    scores: list[str] = []
    for name in names:
        cells = table[name]
        number = pd.api.types.is_numeric_dtype(cells.dtype)
        if number and not wide and MEASURE.fullmatch(plain_name(name)):
            continue
        if cells.dtype == object and not all(map(pd.api.types.is_scalar, cells)):
            continue
        counts = Counter(mapped(cells, canonical).dropna())
        words[name] = frozenset(str(value).casefold() for value in counts)
        classes, _ = usual_classes(counts)
        few = 0 < len(counts) <= MAX_CLASSES and counts.total() >= min(2 * len(counts), len(cells))
        if classes is not None or (few and not any(isinstance(v, float) for v in counts)):
            own = counts if classes is None else classes.values
            values[name] = frozenset(str(value).casefold() for value in own)
            continue
        numbers: list[Any] = [v for v in counts if isinstance(v, int | float)]
        most = 2 * sum(n for v, n in counts.items() if isinstance(v, int | float)) > counts.total()
        known = wide or MODELS.search(name)
        if most and are_scores(numbers) and (known or 0 <= min(numbers) <= max(numbers) <= 1):
            scores.append(name)

    def like(scale: frozenset[str]) -> list[str]:
        return [n for n, v in values.items() if v <= scale or 2 * len(v & scale) >= len(v | scale)]

    sets = [(len(s & labels), like(s)) for s in dict.fromkeys(values.values()) if len(s) > 1]
    sets = [(of_labels if len(alike) > 1 else 0, alike) for of_labels, alike in sets]

    def rank(each: tuple[int, list[str]]) -> tuple[bool, bool, int]:
        pair = len(each[1]) == 2 and all(map(SYSTEMS.fullmatch, each[1]))
        return each[0] > 1, not pair, len(each[1])

    group = max([*sets, (0, scores)], key=rank)[1]
    scale = frozenset[str]().union(*(values.get(name, frozenset()) for name in group))
    numeric = bool(group) and all(map(_is_number, scale))
    ends = sorted(map(float, scale)) if numeric else []

    def votes_too(name: str, cast: frozenset[str]) -> bool:
        """Tell whether a column has the classes of the others, or of a wider scale.

        Of numbers, it has most, and others between their ends.
        """
        if numeric and all(map(_is_number, cast)):
            most = bool(ends) and 2 * len(cast & scale) >= len(scale)
            if wide or (most and all(ends[0] <= float(each) <= ends[-1] for each in cast)):
                return True
        wider = wide and name in values and (cast & scale or in_order(sorted(cast | scale))[1])
        return cast <= scale or bool(wider)

    group += [n for n, cast in words.items() if n not in group and cast and votes_too(n, cast)]
    return [name for name in names if name in group], scale


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-+]?\d+(\.\d*)?", text) is not None


def _of_people(table: pd.DataFrame, names: list[str]) -> list[str]:
    """Return the columns of a wide table whose names are like people's, and whose cells like votes.

    None if there are no other judges: people can be judges too.
    """
    named = [n for n in names if like_a_label(n)]
    people = [n for n in named if 2 <= mapped(table[n], canonical).nunique() <= MAX_CLASSES]
    others, classes = _alike(table, [n for n in names if n not in people])
    if others and not classes:  # scores: those of people are between the others' ends
        low, high = table[others].min(axis=None), table[others].max(axis=None)
        numbers = table[named].select_dtypes("number")
        people = [
            n
            for n in named
            if n in people or (n in numbers and numbers[n].between(low, high).all())
        ]
    return people if len(others) > 1 or len(others) == len(people) else []


def find_wide(draft: Draft) -> Draft | None:
    """Find the item, the labels and the columns that are no judges; None if a row is a vote.

    It is wide without a word if every column but those of the item and the labels, which have usual
    names, is alike and named like a model or a program; and if not, this is asked.
    """
    given, here, wide = _given(draft), draft.labels is None, draft.tables.wide
    names = [str(name) for name in draft.votes.columns]
    if not wide and any(given[role] or by_name(names, role) for role in ("vote", "judge")):
        return None
    table = plain_table(draft.votes)
    item = given["item"] or _item_of_rows(draft, table)
    if not wide:
        if item not in names or table[item].duplicated().any():
            return None
        label = plain_label(names)
        rest = [name for name in names if name not in (item, label)]
        if len(_alike(table, rest, _label_values(draft))[0]) < 2:
            return None
    table = join_judge(table, given["item"])
    every = [str(name) for name in table.columns]
    item = item or Candidates(table).item(_labelled(draft))
    if item is None:
        text = "Which column is the item? Name it with --item."
        return draft.with_finding("bad", "columns", text)
    item = given["item"] or _not_in_prose(table, item)
    try:
        known = {"item": item, "task": given["task"], "group": given["group"]}
        columns = guess_columns(every, known)
        if here and not label_columns(table, given["label"]):
            guess_columns(every, {"label": given["label"] or "none"})
        scale = draft.earlier.classes
        if draft.tables.classes is not None:
            scale = given_classes(split_names(draft.tables.classes), None)
    except JudgeBayesError as error:
        return draft.with_finding("bad", "columns", str(error))
    left_out = (*draft.tables.left_out, *draft.earlier.ignored)
    names = [n for n in every if n not in (*columns.values(), *left_out)]
    named = given["label"] if here or given["label"] in names else None
    label = named or plain_label(names)
    labels = [label] if label in names else label_columns(table, label)
    people = [] if named == "none" else [n for n in _of_people(table, names) if n not in labels]
    free = [n for n in names if n not in (*labels, *people)]
    if scale is None:
        judges, classes = _alike(table, free, _label_values(draft), wide=wide)
    else:
        judges, classes = [n for n in free if _votes_in(table[n], scale)], frozenset(scale.names)
    if not wide:
        text = "The table has a row per item and a column per judge."
        programs = all(MODELS.search(name) for name in judges) and not repeated_columns(judges)
        if programs and judges == free and item == by_name(every, "item"):
            draft = draft.saying("columns", text, wide=True)
        else:
            question = "Does the table have a row per item and a column per judge?"
            draft = draft.with_finding("bad", "columns", text, question=question, wide=True)
        if judge_of := repeated_columns(judges):
            of = dict.fromkeys(judge_of.values())
            text = f"Columns {listing(judges, 20)} are repeated votes of {listing(of)}."
            question = f"Are columns {listing(judges, 20)} repeated votes of {len(of)} judge(s)?"
            draft = draft.with_finding(
                "bad", "columns", text, {"repeats": False}, question=question, repeats=True
            )
    elif not judges:
        judges = free
    if item != given["item"] and by_name([item], "item") is None:
        text = f"Column {item!r} is read as the item, by its values."
        draft = draft.with_finding("bad", "columns", text, item=item)
    if people and label is None and here:
        settled = [name for name in people if SETTLED.search(name)]
        labels = settled if len(settled) == 1 else people
        text = (
            f"Column {listing(people)} is named like the answers of people, and not read as a judge: "
            f"{listing(labels)} is read as the labels. If it is a judge, use --label none."
        )
        ways: list[dict[str, str]] = []
        criteria = {name: _by_criterion(name, judges) for name in people}
        if len(people) > 1 and all(criteria.values()):
            apart = {n: [j for j in names if j not in (n, *own)] for n, own in criteria.items()}
            labels, judges = people[:1], criteria[people[0]]
            text = (
                f"Column {listing(people)} has labels for judges of the same criterion: "
                f"{people[0]!r} is the label of {listing(judges)}."
            )
            ways = [{"label": n, "ignore": join_names(apart[n])} for n in people[1:]]
        ways += [{"label": name} for name in ("none", *people) if [name] != labels and not ways]
        label = labels[0] if len(labels) == 1 else join_names(labels)
        question = (
            f"Is column {listing(people)}, named like the answers of people, a judge or the label?"
        )
        draft = draft.with_finding("bad", "labels", text, *ways, question=question, label=label)
    elif label is not None and given["label"] is None and here:
        text = f"Column {label!r} is read as the labels, by its name."
        draft = draft.with_finding("note", "labels", text)
    judges = [name for name in judges if name not in labels]
    new = [name for name in names if name not in (*labels, *judges)]
    nameless = [n for n in (names if wide else judges) if n.startswith("Unnamed: ")]
    if not judges or nameless:
        text = "No column contains the votes of a judge."
        if nameless:
            text = (
                f"{str(draft.tables.votes)!r} has {len(nameless)} column(s) without a name that are not "
                "empty. Name them; if the header is below N other rows, use --set skip_rows=N."
            )
        return draft.with_finding("bad", "columns", text)
    if new and draft.tables.only_judge is None:
        persons = [name for name in people if name in new]
        why = f" {listing(persons)}: named like people's answers." if persons else ""
        text = f"No judge, by name or by other values: {listing(new, 20)}.{why}"
        asked, odd = "", table[new[0]].dropna().unique()[:1].tolist()
        if odd and classes and not persons:
            others = f"; neither are {listing(new[1:], 20)}" if new[1:] else ""
            asked = (
                f"Column {new[0]!r} of {str(draft.tables.votes)!r} contains {canonical(odd[0])!r}, "
                f"which is not one of the votes {', '.join(sorted(classes))}, so it is not read as a "
                f"judge{others}. Ignore such columns: {option('ignore', new)}."
            )
        ignore = join_names([*draft.tables.left_out, *new])
        draft = draft.with_finding("bad", "columns", text, question=asked, ignore=ignore)
    if labels and not here:
        draft = draft.saying(
            "labels",
            f"Column {listing(labels)} is left out: it is named like labels, but the labels are in "
            "another file.",
        )
        earlier = replace(draft.earlier, ignored=(*draft.earlier.ignored, *labels))
        draft = replace(draft, earlier=earlier)
    roles = columns | {"label": label if labels and here else None}
    draft = replace(draft, columns=dict.fromkeys(ROLES) | roles)
    judge_of = repeated_columns(judges) if draft.tables.repeats else {}
    named_judges = dict.fromkeys(judge_of.values()) or judges
    return draft.with_finding("note", "columns", f"Judges: {listing(named_judges, 20)}.")


def _by_criterion(name: str, judges: list[str]) -> list[str]:
    """Return the judges with the criterion of a column of people: `gpt_tone` for `human_tone`."""
    criterion = re.sub(r"^[^\W_]+[\W_]+", "", name)
    ends = re.compile(rf".*[\W_]{re.escape(criterion)}", re.IGNORECASE)
    return [judge for judge in judges if criterion != name and ends.fullmatch(judge)]


def _votes_in(cells: pd.Series, scale: Classes) -> bool:
    """Tell whether at least half of the filled cells are classes of a scale, if any is filled."""
    known = [scale.index(value) is not None for value in cells.dropna()]
    return bool(known) and 2 * sum(known) >= len(known)


def _given(draft: Draft) -> dict[str, str | None]:
    """Return the columns by role that the user or an earlier file names, "none" for one there is not."""
    table, given = draft.votes, draft.tables.named()
    for role, name in draft.earlier.columns.items():
        if given[role] is None and name in table.columns:
            given[role] = name
    for optional in ("task", "group"):
        given[optional] = given[optional] or "none"
    label = given["label"]
    if draft.labels is not None and label not in table.columns:
        given["label"] = "none"
    return given


def find_long(draft: Draft) -> Draft:
    """Find the columns of a table with a row per vote, and its repeated votes."""
    given, here = _given(draft), draft.labels is None
    table = join_judge(join_judge(draft.votes, given["item"]), given["judge"])
    names = [str(name) for name in table.columns]
    several = label_columns(table, given["label"])
    voters = _named_judges(table, given, names)
    if voters:
        given["label"] = "none"
    worker = "worker" in names  # as crowd-sourcing tools write: task, worker, label
    crowd = (worker or not here) and "label" in names and most_likely(names, "vote") is None
    if crowd and given["vote"] is None:
        given["vote"] = "label"
    if worker and "task" in names and most_likely(names, "item") is None and given["item"] is None:
        given["item"] = "task"
    try:
        chosen = guess_columns(names, given | ({"label": "none"} if several else {}))
    except JudgeBayesError as error:
        return draft.with_finding("bad", "columns", str(error))
    chosen["label"] = given["label"] if several else chosen["label"]
    if given["item"] is None and chosen["item"] is not None:
        chosen["item"] = _not_in_prose(table, chosen["item"])
    judge, item = chosen["judge"], chosen["item"]
    once = item is not None and not table[item].duplicated().any()
    made = judge is not None and bool(most_likely([judge], "generator"))
    if made and once and given["judge"] is None and table[judge].nunique() > 1:
        chosen["judge"] = None
        text = f"Column {judge!r} is read as what made the items, not as their judge: each has one."
        draft = draft.with_finding("bad", "columns", text, {"judge": judge}, judge="none")
    order, label = chosen["order"], chosen["label"]
    if order is not None and given["order"] is None and not are_orders(table[order]):
        chosen["order"] = None
        text = (
            f"Column {order!r} is left out: {listing(table[order].dropna().unique(), 3)} are not "
        )
        draft = draft.saying("columns", f"{text}presentation orders (AB, BA).")
    if label is None and given["label"] is None:
        chosen["label"] = label = plain_label(n for n in names if n not in chosen.values())
        if label is not None:
            text = f"Column {label!r} is read as the label, by its name."
            draft = draft.with_finding("note", "labels", text)
    draft, chosen = _by_values(draft, table, chosen, given)
    if chosen["vote"] is None:
        pairs = _votes_with_labels(draft, table, chosen)
        if pairs:
            draft = draft.with_finding(
                "bad",
                "columns",
                f"Column {listing(each['vote'] for each in pairs)} has labels in a column of the same "
                f"name: {pairs[0]['vote']!r} is read as the vote, {pairs[0]['label']!r} as its label.",
                *pairs[1:],
                vote=pairs[0]["vote"],
                label=pairs[0]["label"],
            )
            chosen["vote"] = pairs[0]["vote"]
            chosen["label"] = pairs[0]["label"] if here else chosen["label"]
    missing = next((role for role in ("item", "vote") if chosen[role] is None), None)
    if missing is not None:
        return draft.with_finding("bad", "columns", unrecognised(missing, names))
    if given["judge"] is None:
        by_criteria = judge_of_criteria(table, chosen)
        if by_criteria is not None:
            chosen["judge"], message = by_criteria
            draft = draft.saying("columns", message)
    draft = draft.with_finding("note", "columns", f"Columns: {listed_roles(chosen)}.")
    kind = None if draft.request.verdicts else kind_of_answers(table[chosen["vote"]])
    if kind is not None:
        text = f"Column {chosen['vote']!r} has raw answers: verdicts ({kind}) are read from them."
        draft = draft.with_finding("bad", "columns", text, verdicts=kind)
    return _repeats(_without_people(replace(draft, columns=chosen), table, voters, given["label"]))


def _not_in_prose(table: pd.DataFrame, item: str) -> str:
    """Return another column of the same items, if this one has them in words: `id` for `question`."""
    other = by_name([str(name) for name in table.columns if name != item], "item")
    texts = table[item].dropna().astype(str)
    prose = len(texts) > 0 and texts.str.contains(r"\s").mean() > 0.5
    if not prose or other is None or table.groupby(other)[item].nunique().max() > 1:
        return item
    return other


def _named_judges(
    table: pd.DataFrame, given: Mapping[str, str | None], names: list[str]
) -> list[str]:
    """Return the judges of a long table that `--label` names, if it names no column."""
    judge, label = given["judge"] or by_name(names, "judge"), given["label"]
    if judge not in table.columns or label in (None, "none", *names):
        return []
    parts, known = split_names(str(label)), set(table[judge].map(written))
    return parts if set(parts) <= known else []


def _without_people(
    draft: Draft, table: pd.DataFrame, voters: list[str], label: str | None
) -> Draft:
    """Return a draft in which the votes of people are the labels, not votes; this is asked.

    They are the `voters` that the user names, or judges with names like people's if there are other
    judges, and no labels.
    """
    judge, item = str(draft.columns["judge"]), str(draft.columns["item"])
    known = draft.labels is not None or (label is not None and not voters)
    if judge not in table.columns or known:
        return draft
    names = table[judge].map(written)
    every = [str(name) for name in names.dropna().unique()]
    called = _called_people(table, judge, {*draft.columns.values()})
    like = [n for n in every if (like_a_person(n) or plain_label([n])) and not MODELS.search(n)]
    like += [n for n in every if n in called and n not in like]
    people, beside = voters or like, [name for name in like if name not in voters]
    if not people or len(people) == len(every):
        return draft
    if beside and (voters or draft.columns["label"] is not None):
        draft = draft.saying(
            "columns", f"Named like people, and read as judges: {listing(beside)}."
        )
    if draft.columns["label"] is not None:
        return draft
    own, cast = names.isin(people), table.assign(**{judge: names})
    votes = cast.loc[own, [item, judge, str(draft.columns["vote"])]].drop_duplicates()
    if votes.duplicated([item, judge]).any():
        row = votes.duplicated([item, judge]).idxmax()
        text = (
            f"{votes.loc[row, judge]!r} is named like a person, and has two votes on item "
            f"{votes.loc[row, item]!r}: put one label of each item into a file of its own, or use "
            "--label none if this is a judge."
        )
        return draft.with_finding("bad", "labels", text)
    gold = votes.pivot(index=item, columns=judge, values=draft.columns["vote"]).reset_index()
    joined = join_names(people)
    if not voters:
        text = (
            f"Named like people, or called so, and not read as judges: {listing(people)}; these votes "
            "are the labels. If these are judges, use --label none."
        )
        question = f"Are the votes of {listing(people)}, named like people, labels or a judge's?"
        draft = draft.with_finding(
            "bad", "labels", text, {"label": "none"}, question=question, label=joined
        )
    tables, name = draft.tables, draft.tables.votes.name
    rest = InMemory(draft.votes[~own], name)
    return replace(
        draft, tables=replace(tables, votes=rest, labels=InMemory(gold, name), label=joined)
    )


def _called_people(table: pd.DataFrame, judge: str, used: Collection[str | None]) -> list[str]:
    """Return the judges that a column of kinds calls people: human beside llm."""
    for column in [name for name in table.columns if name not in used]:
        if not all(map(pd.api.types.is_scalar, table[column])):
            continue
        kinds = table[column].map(written)
        people = kinds.isin([k for k in kinds.dropna().unique() if PERSON.fullmatch(k.casefold())])
        by_judge = people.groupby(table[judge].map(written)).mean()
        if people.any() and not people.all() and by_judge.isin((0.0, 1.0)).all():
            return [str(name) for name in by_judge.index[by_judge == 1]]
    return []


def _votes_with_labels(
    draft: Draft, table: pd.DataFrame, chosen: Mapping[str, str | None]
) -> list[dict[str, str]]:
    """Return the columns of votes, and those of labels with the same name, or with `human` before it.

    A criterion may have a column of each: `safety` and `human_safety`.
    """
    gold = table if draft.labels is None else draft.labels
    free = [str(name) for name in table.columns if name not in chosen.values()]
    few = [n for n in free if 2 <= mapped(table[n], canonical).nunique() <= MAX_CLASSES]
    if gold is not table:
        items = None if chosen["item"] is None else table.groupby(chosen["item"])
        both = [n for n in few if n in gold.columns]
        return [
            {"vote": name, "label": name}
            for name in both
            if items is None or items[name].nunique().max() > 1
        ]
    people = {name: re.split(r"[\W_]+", name.casefold()) for name in few if like_a_label(name)}
    return [
        {"vote": name, "label": label}
        for name in few
        for label, words in people.items()
        if name not in people and "".join(words[1:]) == re.sub(r"[\W_]+", "", name.casefold())
    ]


def _by_values(
    draft: Draft,
    table: pd.DataFrame,
    chosen: dict[str, str | None],
    given: Mapping[str, str | None],
) -> tuple[Draft, dict[str, str | None]]:
    """Find by their values the columns that names do not tell."""
    if chosen["item"] is None or chosen["vote"] is None:
        table = plain_table(table)
    columns, here = dict(chosen), draft.labels is None

    def settled(role: str, name: str | None) -> Draft:
        """Return the draft with a column that is found, if there is one."""
        if name is None:
            return draft
        columns[role] = name
        values = listing([v[:40] if isinstance(v, str) else v for v in table[name].unique()], 3)
        text = f"Column {name!r} is read as the {role}, by its values ({values})."
        return draft.with_finding("bad", "columns", text, **{role: name})

    def open_(role: str) -> bool:
        return columns[role] is None and given[role] is None

    if columns["item"] is None:
        draft = settled("item", Candidates(table, columns.values()).item(_labelled(draft)))
    item, vote = columns["item"], columns["vote"]
    if vote is None:
        judge = columns["judge"]
        if item is not None and open_("judge"):
            judge = Candidates(table, columns.values()).judge(item)
        vote = Candidates(table, [*columns.values(), judge]).vote(item)
        free = (n for n in map(str, table.columns) if n not in (*columns.values(), judge))
        vote = vote or next((n for n in free if kind_of_answers(table[n])), None)
        draft = settled("vote", vote)
    if open_("order"):
        draft = settled("order", Candidates(table, columns.values()).order())
    keys = [n for role in ("item", "order", "sample") if (n := columns[role]) is not None]
    if item is not None and open_("judge") and table.duplicated(keys).any():
        judge = Candidates(table, columns.values()).judge(item)
        gold = None if judge is None else _label_of_pairs(table, item, judge, vote)
        if judge is not None and gold is not None:
            text = (
                f"Items are named by {item!r} and {judge!r} together, because {gold!r}, which is "
                "named like the answers of people, has one value for each pair of them."
            )
            pair = {"item": join_names([item, judge]), "judge": "none", "label": gold}
            draft = draft.with_finding("bad", "columns", text, **pair)
            return draft, columns | pair | {"judge": None}
        draft = settled("judge", judge)
    if item is not None and vote is not None and here and open_("label"):
        draft = settled("label", Candidates(table, columns.values()).label(item, vote))
    return draft, columns


def _label_of_pairs(table: pd.DataFrame, item: str, judge: str, vote: str | None) -> str | None:
    """Return the column of people's answers with one value for each pair of an item and a judge."""
    votes = set() if vote is None else set(mapped(table[vote], canonical))
    people = [n for n in _of_people(table, list(table)) if n != vote]
    cells = {name: mapped(table[name], canonical) for name in people}
    gold = next((n for n in people if set(cells[n].dropna()) <= votes), None)
    if gold is None or cells[gold].groupby([table[item], table[judge]]).nunique().max() > 1:
        return None
    several = cells[gold].groupby(table[item]).nunique() > 1
    return gold if several.mean() > SHARE else None


def _labelled(draft: Draft) -> list[object] | None:
    """Return the items of the labels' file; None if its column is unknown."""
    gold = draft.labels
    if gold is None:
        return None
    names = [str(name) for name in gold.columns]
    name = draft.request.item if draft.request.item in names else by_name(names, "item")
    if name is None:
        name = max(names, key=lambda each: gold[each].map(str).nunique())
    return list(gold[name].dropna().unique())


def _repeats(draft: Draft) -> Draft:
    """Find the column that numbers repeated votes, among the records that are no copies."""
    opened = try_open(draft)
    if opened is None:
        return draft
    table, chosen = opened.table, dict(draft.columns)
    keys = [n for role in ("item", "judge", "order") if (n := chosen[role]) is not None]
    sample = chosen["sample"]
    place = [*keys, *([] if sample is None else [sample])]
    again = table.duplicated(place)
    if draft.request.repeats or not again.any():
        if sample is not None and draft.request.sample is None:
            draft = draft.with_finding(
                "note", "repeats", f"Column {sample!r} is read as the number of the repeated vote."
            )
        return draft
    names = table.loc[table.duplicated(place, keep=False), place].map(written).fillna("")
    row = again.idxmax()
    first = (names == names.loc[row]).all(axis=1).idxmax()
    named = ", ".join(f"{n} {canonical(table.loc[row, n])!r}" for n in place)
    question = f"Rows {first} and {row} are the same vote ({named})."
    others = [name for role, name in chosen.items() if role != "sample"]
    column = Candidates(table, others).sample(keys)
    if column is not None and most_likely([column], "generator") and chosen["judge"] is not None:
        pair = join_names([str(chosen["item"]), column])
        text = f"Items are named by {chosen['item']!r} and {column!r} together."
        question = (
            f"{question} Does {column!r} say what is judged, or which of several votes it is?"
        )
        other = {"item": chosen["item"], "sample": column}
        draft = draft.with_finding("bad", "repeats", text, other, question=question, item=pair)
        return replace(draft, columns=chosen | {"item": pair})
    if column is not None:
        text = f"Judges voted several times on an item: column {column!r} numbers the votes."
        draft = draft.with_finding("bad", "repeats", text, question=question, sample=column)
        return replace(draft, columns=chosen | {"sample": column})
    text = (
        f"{int(again.sum())} votes repeat a judge's vote on an item, and no column numbers them; they "
        "count as repeated votes in the order of the file."
    )
    draft = draft.with_finding(
        "bad", "repeats", text, question=question, repeats=True, sample="none"
    )
    return replace(draft, columns=chosen | {"sample": None})


def plain_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with points for decimal commas, in columns of plain cells."""
    objects = [name for name in table if table[name].dtype == object]
    lists = [n for n in objects if not table[n].map(pd.api.types.is_scalar).all()]
    return with_points(table, [n for n in table if n not in lists])[0]
