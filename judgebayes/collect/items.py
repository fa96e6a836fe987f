"""What a user names to collect votes: the items, the tasks and their prompts, and the judges.

Items are a table; a task says which votes verdicts stand for; judges are models at OpenAI-compatible
addresses, with keys.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pandas as pd

from judgebayes.errors import JudgeBayesError
from judgebayes.io.columns import (
    guess_columns,
    listed_roles,
    most_likely,
    names_of_items,
    unrecognised,
)
from judgebayes.io.options import Layout
from judgebayes.io.tables import read_table
from judgebayes.io.verdict import Kind

LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Judge:
    """A model at an address, and the environment variable with its key."""

    name: str
    """The judge's name in the votes."""
    model: str
    url: str
    """The base address, without `/chat/completions`."""
    key_env: str | None = None
    """The environment variable with its key; None if it needs no key."""

    def key(self) -> str | None:
        """Return the key.

        Raises
        ------
        JudgeBayesError
            If the variable is not set, or contains characters that a header cannot carry.
        """
        if self.key_env is None:
            return None
        key = os.environ.get(self.key_env, "").strip()
        if not key:
            raise JudgeBayesError(
                f"The environment variable {self.key_env} is not set; it must contain the key of "
                f"judge {self.name!r}."
            )
        if not (key.isascii() and key.isprintable()):
            raise JudgeBayesError(
                f"The environment variable {self.key_env} contains characters that are not "
                "allowed in a key."
            )
        return key


def parse_judges(texts: Sequence[str], key_envs: Sequence[str]) -> list[Judge]:
    """Return judges from `[ALIAS=]MODEL@URL`, and the variables of their keys from `[JUDGE=]VARIABLE`.

    The address follows the last `@http`, so a model's name may contain an `@`.

    >>> parse_judges(["small=org/m@http://localhost:8000/v1"], [])
    [Judge(name='small', model='org/m', url='http://localhost:8000/v1', key_env=None)]

    Raises
    ------
    JudgeBayesError
        If a judge does not have this form, two have the same name, an address contains a password or a
        query, or a key belongs to no judge.
    """
    judges = [_parse(text) for text in texts]
    names = [judge.name for judge in judges]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise JudgeBayesError(
            f"Two judges are named {duplicate!r}; give one of them another name: --judge "
            f"NAME={duplicate}@URL."
        )
    keys: dict[str, str] = {}
    for text in key_envs:
        name, _, variable = text.rpartition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable) or (name and name not in names):
            # This text may be a key, so the message does not repeat it.
            raise JudgeBayesError(
                "--key-env takes the NAME of an environment variable, or JUDGE=NAME for one judge of "
                f"{', '.join(map(repr, names))}; never the key itself."
            )
        keys |= {name: variable} if name else {n: variable for n in names if n not in keys}
    return [Judge(j.name, j.model, j.url, keys.get(j.name)) for j in judges]


def _parse(text: str) -> Judge:
    match = re.fullmatch(r"(?:([^=@]+)=)?(.+)@(https?://.+)", text.strip())
    if match is None:
        raise JudgeBayesError(
            f"--judge {_without_secrets(text)!r} is not NAME@URL; examples are "
            "gpt-5.4@https://api.openai.com/v1, and model@http://localhost:8000/v1 for a local server."
        )
    alias, model, url = match.groups()
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise JudgeBayesError(
            f"The address of judge {alias or model!r} is wrong: {error}."
        ) from error
    if parts.username or parts.password or parts.query or parts.fragment:
        raise JudgeBayesError(
            f"The address of judge {alias or model!r} contains a password, a query or a fragment; "
            "put the key into an environment variable (--key-env NAME)."
        )
    if not parts.hostname:
        raise JudgeBayesError(f"The address of judge {alias or model!r} has no host.")
    url = re.sub(r"/chat/completions/?$", "", url).rstrip("/")
    return Judge(alias or model, model, url)


def _without_secrets(text: str) -> str:
    return re.sub(r"//[^/@]*@|\?.*$", "//", text)


def in_the_clear(judge: Judge) -> bool:
    """Tell whether a judge's key would be sent unencrypted to another machine."""
    parts = urlsplit(judge.url)
    return judge.key_env is not None and parts.scheme == "http" and parts.hostname not in LOCAL


_PAIR = """\
You compare two responses to the same request and say which of them serves the person who made it \
better. Weigh whether each does what was asked, whether what it says is true, and whether it is clear. \
Neither its length nor its place on this page counts; each is as likely as the other to be the better.

Request:
<request>
{prompt}
</request>

Response A:
<response_a>
{response_a}
</response_a>

Response B:
<response_b>
{response_b}
</response_b>

Reason briefly first. Then close with one line that holds nothing but your verdict: """

TERNARY = _PAIR + "[[A]] if A is better, [[B]] if B is better, [[tie]] if neither is.\n"
BINARY = _PAIR + "[[A]] if A is better or [[B]] if B is. You must choose one of the two.\n"
VALID = """\
You check one response to a request. It is valid if it does what was asked and nothing of substance in \
it is wrong; otherwise it is invalid, however well it is written. Most mistakes are not obvious: look \
for them before you decide.

Request:
<request>
{prompt}
</request>

Response:
<response>
{response}
</response>

Reason briefly first. Then close with one line that holds nothing but your verdict: [[valid]] or \
[[invalid]].
"""

PLACE = re.compile(r"\{([A-Za-z_][\w ]*)\}")
"""A name in braces; other braces (for example of JSON) are text."""
SWAPPED = {"A": "B", "B": "A", "tie": "tie"}


@dataclass(frozen=True)
class Task:
    """A kind of question: its prompt, and the possible votes from lowest to highest."""

    name: str
    template: str
    kind: Kind
    votes: tuple[str, ...]
    roles: tuple[str, ...]
    """The columns that an item must have."""

    @property
    def orders(self) -> tuple[str, ...]:
        """The orders in which the responses are shown; only one for a single response."""
        return ("AB", "BA") if self.kind == "pair" else ("AB",)


TASKS = {
    task.name: task
    for task in (
        Task("ternary", TERNARY, "pair", ("B", "tie", "A"), ("response_a", "response_b")),
        Task("binary", BINARY, "pair", ("B", "A"), ("response_a", "response_b")),
        Task("valid", VALID, "valid", ("invalid", "valid"), ("response",)),
    )
}
"""Tasks by name."""


def placeholders(template: str) -> list[str]:
    """Return the distinct names in braces, in order."""
    return list(dict.fromkeys(PLACE.findall(template)))


def fill_template(template: str, fields: Mapping[str, str], order: str) -> str:
    """Return the prompt of an item; in the order BA its two responses are swapped.

    Names in braces, which are fields of the item, are replaced once: braces in an item's text stay as
    they are.
    """
    swap = {"response_a": "response_b", "response_b": "response_a"} if order == "BA" else {}
    return PLACE.sub(lambda match: fields[swap.get(match[1], match[1])], template)


def vote_of(verdict: str | float | None, task: Task, order: str) -> str | None:
    """Return the vote of a verdict, with responses in the labels' order; None if it is not a vote.

    >>> vote_of("A", TASKS["ternary"], "BA")
    'B'
    >>> vote_of("tie", TASKS["binary"], "AB") is None
    True
    """
    vote = SWAPPED.get(verdict) if isinstance(verdict, str) and order == "BA" else verdict
    return vote if isinstance(vote, str) and vote in task.votes else None


ROLES: dict[str, tuple[str, ...]] = {
    "item": (
        *("item", "item_id", "id", "example_id", "pair_id", "question_id", "prompt_id"),
        *("instance_id", "qid"),
    ),
    "prompt": (
        *("prompt", "question", "instruction", "request", "query", "input", "user_prompt"),
        *("problem", "task"),
    ),
    "response_a": (
        *("response_a", "answer_a", "output_a", "completion_a", "model_a_response", "a"),
        *("response_1", "answer_1", "output_1", "response1", "answer1", "output1", "first"),
    ),
    "response_b": (
        *("response_b", "answer_b", "output_b", "completion_b", "model_b_response", "b"),
        *("response_2", "answer_2", "output_2", "response2", "answer2", "output2", "second"),
    ),
    "response": (
        *("response", "answer", "output", "completion", "generation", "candidate", "solution"),
        *("text", "content"),
    ),
}
"""Names by role, the most likely first; case, spaces and hyphens are ignored."""


@dataclass(frozen=True)
class Item:
    """One item: its name, and the fields for the template."""

    name: str
    fields: Mapping[str, str]
    digest: str
    """A digest of the fields, which shows whether an item changed since it was judged."""


@dataclass(frozen=True)
class ItemTable:
    """Items, their task, and the columns used by role."""

    items: list[Item]
    task: Task
    columns: dict[str, str | None]
    label: str | None
    """The column of the labels, if the table has one."""

    def words(self) -> list[str]:
        """Return sentences about the columns."""
        named = "" if self.columns["item"] else " Items have no names, so they are numbered by row."
        return [f"Columns: {listed_roles(self.columns)}.{named}"]


def read_items(
    path: Path, named: Mapping[str, str | None], task: str | None, template: str | None
) -> ItemTable:
    """Return the items of a table.

    Parameters
    ----------
    path
        CSV, TSV, JSONL or Parquet, a row per item.
    named
        The user's choice of columns, by role; None to guess.
    task
        A key of `TASKS`; by default `ternary` if there are two responses, else `valid`.
    template
        The user's prompt, which may name any column in braces.

    Raises
    ------
    JudgeBayesError
        If the table cannot be read, a column is missing, two rows have the same item, a response is
        empty, or the task is unknown.
    """
    table = read_table(path, Layout(as_text=True))
    if task is not None and task not in TASKS:
        raise JudgeBayesError(f"There is no task {task!r}; choose one of: {', '.join(TASKS)}.")
    guessed = guess_columns(table.columns, named, ROLES)
    pair = guessed["response_a"] is not None and guessed["response_b"] is not None
    chosen = TASKS[task or ("ternary" if pair else "valid")]
    columns = {role: guessed[role] for role in ("item", "prompt", *chosen.roles)}
    text = chosen.template if template is None else template
    column_of = {
        role: name for role, name in columns.items() if name is not None and role != "item"
    }
    # A template may also use the columns' names in the table.
    field_columns = {name: name for name in table.columns if PLAIN.fullmatch(name)} | column_of
    _check_template(text, chosen, field_columns, table, path)
    column, advice = columns["item"], ". Use --item NAME if another column names the items"
    numbers = pd.Series(range(1, len(table) + 1)).map(str)
    names = numbers if column is None else names_of_items(table, column, path, advice)
    texts = pd.DataFrame({n: table[field_columns[n]].map(_text) for n in placeholders(text)})
    for role in chosen.roles:
        empty = texts[role].str.strip() == ""
        if empty.any():
            raise JudgeBayesError(
                f"Row {empty.idxmax()} of {str(path)!r} has an empty cell in column {columns[role]!r}, "
                f"the {role.replace('_', ' ')}. Remove such rows."
            )
    items = list(map(_item, names, texts.to_dict("records")))
    others = [name for name in table.columns if name not in column_of.values()]
    return ItemTable(items, chosen, columns, most_likely(others, "label"))


PLAIN = re.compile(r"[A-Za-z_][\w ]*")


def _check_template(
    text: str, task: Task, columns: Mapping[str, str], table: pd.DataFrame, path: Path
) -> None:
    used = placeholders(text)
    for role in task.roles:
        if role not in columns:
            raise JudgeBayesError(unrecognised(role, list(table.columns)))
        if role not in used:
            raise JudgeBayesError(
                f"The template does not contain {{{role}}}; the task {task.name} needs "
                f"{' and '.join('{' + r + '}' for r in task.roles)}."
            )
    for name in used:
        if name not in columns:
            hint = "; use --prompt NAME" if name == "prompt" else ""
            raise JudgeBayesError(
                f"The template names {{{name}}}, but {str(path)!r} has no such column; it has "
                f"{', '.join(map(repr, table.columns[:20]))}{hint}."
            )


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None or bool(pd.isna(value)) else str(value)


def _item(name: str, fields: Mapping[str, str]) -> Item:
    content = json.dumps(dict(fields), sort_keys=True, ensure_ascii=True)
    return Item(name, fields, hashlib.sha256(content.encode()).hexdigest()[:12])
