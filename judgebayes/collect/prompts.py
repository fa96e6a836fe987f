"""The tasks of a judge, their prompts, and the votes that verdicts stand for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from judgebayes.errors import JudgeBayesError
from judgebayes.io.verdict import Kind

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

    Names in braces are replaced once: braces in an item's text stay as they are.

    Raises
    ------
    JudgeBayesError
        If the template names a field that the item does not have.
    """
    swap = {"response_a": "response_b", "response_b": "response_a"} if order == "BA" else {}

    def value(match: re.Match[str]) -> str:
        name = swap.get(match.group(1), match.group(1))
        if name not in fields:
            raise JudgeBayesError(
                f"The template names {{{match.group(1)}}}, which the items do not have; they have "
                f"{', '.join(sorted(fields))}."
            )
        return fields[name]

    return PLACE.sub(value, template)


def vote_of(verdict: str | float | None, task: Task, order: str) -> str | None:
    """Return the vote of a verdict, with responses in the labels' order; None if it is not a vote.

    >>> vote_of("A", TASKS["ternary"], "BA")
    'B'
    >>> vote_of("tie", TASKS["binary"], "AB") is None
    True
    """
    vote = SWAPPED.get(verdict) if isinstance(verdict, str) and order == "BA" else verdict
    return vote if isinstance(vote, str) and vote in task.votes else None
