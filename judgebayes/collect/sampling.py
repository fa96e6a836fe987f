"""Send requests concurrently until every item has its votes or the budget is used up."""

import asyncio
import contextlib
import json
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebayes.collect.items import Item, Task, fill_template, vote_of
from judgebayes.collect.judges import Judge
from judgebayes.collect.ledger import OTHER, Budget, Ledger, Question
from judgebayes.collect.replies import Answer
from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError
from judgebayes.io.verdict import parse_verdict
from judgebayes.progress import bar

if TYPE_CHECKING:
    from judgebayes.collect.endpoint import Endpoint
    from judgebayes.workflow.adaptive import StoppingRule

ON_THEIR_WAY = 0.5
"""Seconds to wait, after Ctrl-C, for answers that are on their way."""
POLL = 0.05
"""Seconds between two looks at whether calls under way left something of the budget."""
UNFINISHED = {"length": "cut off at max_tokens", "content_filter": "filtered by the server"}
"""Why there is no vote, by the server's reason for an answer's end."""
MAX_FAILURES = 5
"""After this many consecutive requests without an answer, a judge is not asked again."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
OPTIONAL = ("order", "repairs")
"""Fields of a line that are written only if they have a value."""


@dataclass(frozen=True)
class Line:
    """One answer as a line of the file of votes. Other commands read only `item` to `order`."""

    item: str
    judge: str
    vote: str | None
    """The vote with responses in the labels' order: votes in swapped order are already mapped back."""
    sample: int
    order: str | None
    """AB, or BA if the responses were shown swapped; None (no column) for a single response."""
    missing: str | None
    """The reason for a missing vote."""
    level: str | None
    """The level of the verdict parser that matched."""
    text: str
    """The raw answer."""
    finish: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    answered_by: str | None
    content: str
    """A digest of the item's fields."""
    repairs: str | None
    """What was malformed in the answer's JSON and was read all the same, separated by commas."""

    @property
    def tokens(self) -> int | None:
        """TODO."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


def line_of(task: Task, question: Question, answer: Answer) -> Line:
    """Return the line of an answer, with its verdict as a vote on the responses in the labels' order."""
    verdict = parse_verdict(answer.text, task.kind)
    vote = vote_of(verdict.value, task, question.order)
    missing = "longer than is kept" if answer.cut else UNFINISHED.get(answer.finish or "")
    if missing is not None:
        vote = None  # an answer may not have reached its verdict
    elif vote is None:
        empty = "empty answer" if not answer.text.strip() else verdict.why
        missing = (
            empty if verdict.value is None else f"{verdict.value!r} is not an answer to the task"
        )
    return Line(
        item=question.item,
        judge=question.judge,
        vote=vote,
        sample=question.sample,
        order=question.order if len(task.orders) > 1 else None,
        missing=missing,
        level=verdict.level if vote is not None else None,
        text=answer.text,
        finish=answer.finish,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        answered_by=answer.model,
        content=question.content,
        repairs=", ".join(verdict.repairs) or None if vote is not None else None,
    )


@dataclass(frozen=True)
class Plan:
    """The votes to collect, and the settings of requests."""

    items: Sequence[Item]
    judges: Sequence[Judge]
    task: Task
    template: str
    votes: int
    """Votes of a judge on an item, half in each order; with a rule, the maximum."""
    body: dict[str, Any]
    """Fields of a request beside the model and the messages."""
    budget: Budget
    timeout: float
    """Seconds for one complete answer."""
    retries: int
    concurrency: int
    """The number of concurrent requests to each judge."""
    rule: "StoppingRule | None"
    """The rule by which an item is settled; None to ask always `votes` times."""
    class_votes: tuple[str, ...]
    """With a rule: the vote for each of its classes."""

    @property
    def batch(self) -> int:
        """The number of votes in a batch: one in each order."""
        return len(self.task.orders)

    def questions(self, judge: str, item: Item) -> list[Question]:
        """Return all questions on an item, in the order of asking."""
        return [
            Question(judge, item.name, sample + 1, order, item.digest)
            for sample in range(self.votes // self.batch)
            for order in self.task.orders
        ]


@dataclass
class Run:
    """The state of a run, and its outcome."""

    plan: Plan
    ledger: Ledger
    lines: dict[Question, Line]
    """The answers of this run and of earlier ones."""
    kept: int
    """Number of answers of earlier runs."""
    ended: bool = False
    """Whether no more requests are to be sent."""
    unanswered: Counter[str] = field(default_factory=Counter)
    """Number of unanswered questions by judge."""
    reasons: dict[str, str] = field(default_factory=dict)
    """The last reason for a missing answer, by judge."""
    spent: str | None = None
    """The budget that ended the run: calls or tokens."""
    signal: int | None = None
    """The signal that ended the run."""
    abandoned: int = 0
    """Number of answers that were on their way then and did not arrive in time."""
    uncounted: str | None = None
    """A judge whose server does not count tokens although there is a budget of tokens."""
    failed: sqlite3.Error | None = None
    """Why the ledger cannot be written."""
    missing: int = 0
    """Number of planned votes that were not requested or not answered; with a rule, the least."""
    retried: int = 0
    """Number of attempts after a failed one."""
    workers: list[asyncio.Task[None]] = field(default_factory=list)

    def wanted(self, judge: str) -> list[Question]:
        """Return the questions to ask now: all without an answer, or with a rule, one batch an item.

        They are in rounds, so that a run that ends early has asked about all items equally often.
        """
        each = [self._open(judge, item) for item in self.plan.items]
        return sorted((q for open_ in each for q in open_), key=lambda question: question.sample)

    def _open(self, judge: str, item: Item) -> list[Question]:
        questions, rule = self.plan.questions(judge, item), self.plan.rule
        open_ = [question for question in questions if question not in self.lines]
        if rule is None or not open_:
            return open_
        following = [q for q in open_ if q.sample == open_[0].sample]
        # Votes in both orders come together, and every item has at least one batch.
        if following[0].sample == 1 or len(following) < self.plan.batch:
            return following
        votes = [self.lines[question].vote for question in questions if question in self.lines]
        counts = np.array([[votes.count(name) for name in self.plan.class_votes]])
        return [] if rule.settled(counts)[0] else following

    async def book(self, question: Question) -> int:
        """Return the number of a call that is booked; wait while calls under way may leave nothing."""
        while (short := self.ledger.short_of(self.plan.budget)) and self.ledger.under_way:
            await asyncio.sleep(POLL)
        if short is not None and not self.ended:
            self.spent, self.ended = short, True
        if self.ended:
            raise asyncio.CancelledError
        return self.ledger.book(question)


def collect_votes(plan: Plan, ledger: Ledger, path: Path) -> Run:
    """Ask every judge about every item, for all planned votes that the ledger does not have yet.

    Answers are kept in the ledger as they arrive; at the end, the file of votes is written from it. The
    first Ctrl-C or SIGTERM stops asking and waits `ON_THEIR_WAY` seconds for pending answers; the second
    abandons them at once.

    Raises
    ------
    JudgeBayesError
        If a key is missing, the file cannot be written, or an item has changed since it was started.
    sqlite3.Error
        If the ledger cannot be written.
    """
    contents = {question.item: question.content for question in ledger.replies}
    for item in plan.items:
        if contents.get(item.name, item.digest) != item.digest:
            raise JudgeBayesError(
                f"The text of item {item.name!r} has changed since {str(path)!r} was started. Give "
                f"the item another name, or {OTHER}."
            )
    lines = {q: line_of(plan.task, q, answer) for q, answer in ledger.replies.items()}
    run = Run(plan, ledger, lines, len(lines))
    try:
        asyncio.run(_collect(run))
    finally:
        _write(run.lines.values(), path)
    if run.failed is not None:
        raise run.failed
    run.missing = sum(len(run.wanted(judge.name)) for judge in plan.judges)
    return run


def _write(lines: Iterable[Line], path: Path) -> None:
    with atomically(path) as part, part.open("w", encoding="ascii") as file:
        for line in lines:
            fields = {k: v for k, v in asdict(line).items() if k not in OPTIONAL or v is not None}
            file.write(json.dumps(fields) + "\n")


async def _collect(run: Run) -> None:
    """Ask the questions that are wanted until none is, or the run ends."""
    from judgebayes.collect.endpoint import Endpoint

    plan, asked = run.plan, set[Question]()
    endpoints = [Endpoint(judge, run) for judge in plan.judges]
    items = {item.name: item for item in plan.items}
    async with contextlib.AsyncExitStack() as opened:
        for endpoint in endpoints:
            await opened.enter_async_context(endpoint.sdk)
        progress = opened.enter_context(bar())
        opened.enter_context(_interruptible(run, progress.console.print))
        every = [
            q
            for each in plan.judges
            for item in plan.items
            for q in plan.questions(each.name, item)
        ]
        had = sum(question in run.lines for question in every)
        task = progress.add_task("answers", total=len(every), completed=had)

        async def work(endpoint: Endpoint, questions: Iterator[Question]) -> None:
            with contextlib.suppress(asyncio.CancelledError):
                for question in questions:
                    if run.ended or endpoint.given_up:
                        return
                    await _ask(run, endpoint, question, items[question.item])
                    progress.update(task, completed=had + len(run.lines) - run.kept)

        while not run.ended:
            run.workers = []
            for endpoint in endpoints:
                wanted = [q for q in run.wanted(endpoint.judge.name) if q not in asked]
                asked.update(wanted)
                questions = iter(wanted)  # shared by the workers of a judge
                for _ in range(min(plan.concurrency, len(wanted))):
                    run.workers.append(asyncio.create_task(work(endpoint, questions)))
            if not run.workers:
                return
            await asyncio.gather(*run.workers)


async def _ask(run: Run, endpoint: "Endpoint", question: Question, item: Item) -> None:
    from judgebayes.collect.endpoint import NoAnswerError

    judge = endpoint.judge.name
    try:
        answer = await endpoint.ask(
            question, fill_template(run.plan.template, item.fields, question.order)
        )
    except NoAnswerError as failure:
        run.unanswered[judge] += 1
        run.reasons[judge] = str(failure)
        endpoint.failures += 1
        endpoint.given_up = failure.fatal or endpoint.failures >= MAX_FAILURES
        return
    endpoint.failures = 0
    run.lines[question] = line_of(run.plan.task, question, answer)
    if answer.tokens is None and run.plan.budget.tokens is not None:
        run.uncounted, run.ended = judge, True


@contextlib.contextmanager
def _interruptible(run: Run, say: Callable[[str], None]) -> Iterator[None]:
    """On Ctrl-C or SIGTERM stop asking, and soon, or on a second signal, cancel pending requests."""
    loop = asyncio.get_running_loop()

    def interrupt(number: int) -> None:
        if run.signal is None:
            say(
                f"Interrupted: waiting up to a second for {len(run.ledger.under_way)} answers that are "
                "on their way."
            )
        loop.call_later(ON_THEIR_WAY if run.signal is None else 0, abandon)
        run.signal, run.ended = number, True

    def abandon() -> None:
        run.abandoned = max(run.abandoned, len(run.ledger.under_way))
        for worker in run.workers:
            worker.cancel()

    def handle(number: int, _: FrameType | None) -> None:
        # Not by the loop's own method, which would not restore the handlers of before.
        loop.call_soon_threadsafe(interrupt, number)

    able = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handle) for number in SIGNALS if able}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
