"""Send requests concurrently until every item has its votes or the budget is used up."""

import asyncio
import contextlib
import json
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from judgebayes.collect.items import Item, Judge, Task, fill_template, vote_of
from judgebayes.collect.ledger import OTHER, Budget, Ledger, Question
from judgebayes.collect.replies import Answer
from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError
from judgebayes.io.verdict import parse_verdict
from judgebayes.progress import bar

if TYPE_CHECKING:
    from judgebayes.workflow.adaptive import StoppingRule

ON_THEIR_WAY = 0.5
"""Seconds to wait, after Ctrl-C, for answers that are on their way."""
POLL = 0.05
"""Seconds between two looks at whether calls under way left something of the budget."""
UNCOUNTED = (
    "The server of {} does not count tokens, so --budget-tokens cannot be enforced; use "
    "--budget-calls."
)
ABANDONED = "{} answer(s) that were on their way did not arrive in time; they are requested again."
UNFINISHED = {"length": "cut off at max_tokens", "content_filter": "filtered by the server"}
"""Why there is no vote, by the server's reason for an answer's end."""


def vote_line(task: Task, question: Question, answer: Answer) -> dict[str, Any]:
    """Return an answer as a line of the file of votes. Other commands read only `item` to `order`.

    Its vote is on the responses in the labels' order, also where they were shown swapped. `missing` is
    the reason for a missing vote, `level` that of the verdict parser that matched.
    """
    verdict = parse_verdict(answer.text, task.kind)
    vote = vote_of(verdict.value, task, question.order)
    missing = UNFINISHED.get(answer.finish or "")
    if missing is not None:
        vote = None  # an answer may not have reached its verdict
    elif vote is None and verdict.value is not None:
        missing = f"{verdict.value!r} is not an answer to the task"
    elif vote is None:
        missing = verdict.why if answer.text.strip() else "empty answer"
    line: dict[str, Any] = {"item": question.item, "judge": question.judge, "vote": vote}
    line["sample"] = question.sample
    if len(task.orders) > 1:
        line["order"] = question.order
    line |= {"missing": missing, "level": None if vote is None else verdict.level}
    line |= asdict(answer) | {"content": question.content}
    return line


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
    lines: dict[Question, dict[str, Any]]
    """The answers of this run and of earlier ones, as lines of the file of votes."""
    kept: int
    """Number of answers of earlier runs."""
    why: list[str] = field(default_factory=list)
    """Why no more requests are to be sent, in sentences."""
    unanswered: Counter[str] = field(default_factory=Counter)
    """Number of unanswered questions by judge."""
    reasons: dict[str, str] = field(default_factory=dict)
    """The last reason for a missing answer, by judge."""
    signal: int | None = None
    """The signal that ended the run."""
    failed: sqlite3.Error | None = None
    """Why the ledger cannot be written."""
    missing: int = 0
    """Number of planned votes that were not requested or not answered; with a rule, the least."""
    attempts: Counter[Question] = field(default_factory=Counter)
    """Number of requests by question."""

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
        votes = [self.lines[question]["vote"] for question in questions if question in self.lines]
        counts = np.array([[votes.count(name) for name in self.plan.class_votes]])
        return [] if rule.settled(counts)[0] else following

    async def book(self, question: Question) -> int:
        """Return the number of a call that is booked; wait while calls under way may leave nothing."""
        while (short := self.ledger.short_of(self.plan.budget)) and self.ledger.under_way:
            await asyncio.sleep(POLL)
        if short is not None and not self.why:
            limit = getattr(self.plan.budget, short)
            self.why.append(f"The budget of {limit:,} {short} does not allow another request.")
        if self.why:
            raise asyncio.CancelledError
        self.attempts[question] += 1
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
    lines = {q: vote_line(plan.task, q, answer) for q, answer in ledger.replies.items()}
    run = Run(plan, ledger, lines, len(lines))
    try:
        with contextlib.suppress(asyncio.CancelledError):  # by a signal that came at the very end
            asyncio.run(_collect(run))
    finally:
        with atomically(path) as part, part.open("w", encoding="ascii") as file:
            file.writelines(json.dumps(line) + "\n" for line in run.lines.values())
    if run.failed is not None:
        raise run.failed
    run.missing = sum(len(run.wanted(judge.name)) for judge in plan.judges)
    return run


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
        task = progress.add_task("answers", total=0)

        async def work(endpoint: Endpoint, questions: Iterator[Question]) -> None:
            with contextlib.suppress(asyncio.CancelledError):
                for question in questions:
                    if run.why or endpoint.given_up:
                        return
                    fields = items[question.item].fields
                    prompt = fill_template(plan.template, fields, question.order)
                    answer = await endpoint.ask(question, prompt)
                    if answer is not None:
                        run.lines[question] = vote_line(plan.task, question, answer)
                        progress.update(task, completed=len(run.lines) - run.kept)
                        if answer.tokens is None and plan.budget.tokens is not None and not run.why:
                            run.why.append(UNCOUNTED.format(question.judge))

        opened.enter_context(_interruptible(run))
        while not run.why:
            workers = []
            for endpoint in endpoints:
                wanted = [q for q in run.wanted(endpoint.judge.name) if q not in asked]
                asked.update(wanted)
                progress.update(task, total=(progress.tasks[0].total or 0) + len(wanted))
                questions = iter(wanted)  # shared by the workers of a judge
                each = min(plan.concurrency, len(wanted))
                workers += [asyncio.create_task(work(endpoint, questions)) for _ in range(each)]
            if not workers:
                return
            try:
                await asyncio.wait(workers)
            except asyncio.CancelledError:
                under_way = run.ledger.under_way
                progress.console.print(
                    f"Interrupted: waiting up to a second for {len(under_way)} answers that are on "
                    "their way.",
                    soft_wrap=True,
                )
                await asyncio.wait(workers, timeout=ON_THEIR_WAY)
                if under_way:
                    run.why.append(ABANDONED.format(len(under_way)))
                for worker in workers:
                    worker.cancel()
            await asyncio.gather(*workers)


@contextlib.contextmanager
def _interruptible(run: Run) -> Iterator[None]:
    """End the run at the first Ctrl-C or SIGTERM; the second is an ordinary Ctrl-C."""
    loop, collecting = asyncio.get_running_loop(), asyncio.current_task()
    assert collecting is not None

    def stop(number: int, _: FrameType | None) -> None:
        if run.signal is not None:
            raise KeyboardInterrupt
        run.signal = number
        run.why.append("Interrupted; every answer that was received is saved.")
        loop.call_soon_threadsafe(collecting.cancel)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
