"""Asking judges, many questions at a time, until every item has its votes or the budget ends."""

import asyncio
import contextlib
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from judgebayes.collect.endpoint import (
    AbandonedError,
    Answer,
    Endpoint,
    Judge,
    NoAnswerError,
    Patience,
)
from judgebayes.collect.items import Item
from judgebayes.collect.ledger import Ledger, Line, Question
from judgebayes.collect.prompts import Task, filled, vote_of
from judgebayes.errors import JudgeBayesError
from judgebayes.io.verdict import parse_verdict

if TYPE_CHECKING:
    from judgebayes.workflow.adaptive import StoppingRule

__all__ = ["Budget", "Outcome", "Plan", "Watch", "collect_votes"]

GIVE_UP = 5
"""So many questions in a row without an answer, and the judge is asked no more."""


@dataclass(frozen=True)
class Budget:
    """What may be spent on one file of votes, over all runs; None for no limit.

    A call is an answer, or a question that may have been answered and paid for: one that was sent and
    never refused. Tokens are those that the servers count, of questions and answers.
    """

    calls: int | None = None
    tokens: int | None = None


@dataclass(frozen=True)
class Plan:
    """What is to be collected, and how."""

    items: Sequence[Item]
    judges: Sequence[Judge]
    task: Task
    template: str
    votes: int
    """Votes of a judge on an item, half in each order; at most, with a rule."""
    body: dict[str, Any]
    """Fields of a request: temperature, max_tokens."""
    budget: Budget = field(default_factory=Budget)
    patience: Patience = field(default_factory=Patience)
    concurrency: int = 8
    """Questions that wait for an answer at one time, of each judge."""
    rule: "StoppingRule | None" = None
    """When an item is settled; None to ask `votes` times whatever the answers."""
    fewest: int = 0
    """Votes before which no item is settled."""
    class_votes: tuple[str, ...] = ()
    """With a rule: what a vote for each of its classes is called here."""

    @property
    def batch(self) -> int:
        """Votes that belong together: one in each order."""
        return len(self.task.orders)

    def questions(self, judge: str, item: Item) -> list[Question]:
        """Return every question on an item, in the order in which they are asked."""
        return [
            Question(judge, item.name, sample + 1, order)
            for sample in range(self.votes // self.batch)
            for order in self.task.orders
        ]


@dataclass
class Outcome:
    """How a run ended."""

    asked: int = 0
    """Answers of this run."""
    kept: int = 0
    """Answers that the file held before."""
    unanswered: Counter[str] = field(default_factory=Counter)
    """Questions that got no answer, by judge."""
    reasons: dict[str, str] = field(default_factory=dict)
    """Why, the last reason by judge."""
    spent: str | None = None
    """Which budget ended the run: calls or tokens."""
    interrupted: bool = False
    untold: str | None = None
    """A judge whose server does not count tokens although there is a budget of them."""
    missing: int = 0
    """Votes that were wanted and not asked for, or not answered."""
    retried: int = 0

    @property
    def complete(self) -> bool:
        """Whether every vote that was wanted was asked for and answered."""
        return self.missing == 0


@dataclass(frozen=True)
class Watch:
    """What is told while votes come in."""

    total: Callable[[int], None] = lambda _: None
    """How many answers are wanted in all, as far as is known."""
    answered: Callable[[int], None] = lambda _: None
    """How many more there are."""
    interrupted: Callable[[int], None] = lambda _: None
    """How many answers are waited for after Ctrl-C."""


@dataclass
class _Spending:
    """What was spent on a file so far, and what answers on their way may cost."""

    budget: Budget
    calls: int
    tokens: int
    largest: int
    """Tokens of the dearest answer so far, 0 if none is known: what one on its way is reckoned at."""
    waiting: int = 0

    def short_of(self) -> str | None:
        """Return which budget another question might exceed."""
        if self.budget.calls is not None and self.calls + self.waiting >= self.budget.calls:
            return "calls"
        if self.budget.tokens is None:
            return None
        unknown = self.largest == 0 and self.waiting > 0
        after = self.tokens + (self.waiting + 1) * self.largest
        return "tokens" if unknown or after > self.budget.tokens else None

    def lost(self) -> bool:
        """Count an answer that was lost on its way; tell whether it can be asked for again."""
        self.calls += 1
        return self.budget.calls is None or self.calls + self.waiting <= self.budget.calls


@dataclass
class _Run:
    """What the workers of one run share."""

    plan: Plan
    ledger: Ledger
    endpoints: dict[str, Endpoint]
    watch: Watch
    outcome: Outcome
    spending: _Spending
    answers: dict[Question, Line]
    ended: asyncio.Event
    """Set when nothing more is to be asked."""
    news: asyncio.Event
    """Set when something has changed that workers without a question wait for."""

    def end(self) -> None:
        self.ended.set()
        self.news.set()


def collect_votes(plan: Plan, ledger: Ledger, watch: Watch = Watch()) -> Outcome:
    """Ask every judge about every item, as often as the plan says and the file does not hold yet.

    Answers are written as they come. Ctrl-C once stops asking and waits for the answers that are on
    their way, since they are paid for; twice abandons them.

    Raises
    ------
    JudgeBayesError
        If a key is missing, the file cannot be written, or an item of the file was another one.
    """
    answers = {line.question: line for line in ledger.lines}
    _same_items(plan, ledger)
    try:
        return asyncio.run(_collect(plan, ledger, watch, answers))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except BaseExceptionGroup as group:
        told: BaseException | None = group.subgroup(JudgeBayesError)
        while isinstance(told, BaseExceptionGroup):
            told = told.exceptions[0]
        raise (told or group) from None


def _same_items(plan: Plan, ledger: Ledger) -> None:
    digests = {item.name: item.digest for item in plan.items}
    for line in ledger.lines:
        if line.item in digests and digests[line.item] != line.content:
            raise JudgeBayesError(
                f"Item {line.item!r} is another one than when {str(ledger.path)!r} was begun: its text "
                "has changed. Give it another name, or name another file with -o."
            )


async def _collect(
    plan: Plan, ledger: Ledger, watch: Watch, answers: dict[Question, Line]
) -> Outcome:
    import httpx2

    outcome = Outcome(kept=len(answers))
    tokens = [line.tokens for line in ledger.lines]
    counted = [n for n in tokens if n is not None]
    spending = _Spending(plan.budget, len(tokens), sum(counted), max(counted, default=0))
    ended = asyncio.Event()
    limits = httpx2.Limits(max_connections=plan.concurrency * len(plan.judges))
    async with httpx2.AsyncClient(timeout=None, limits=limits) as client:
        endpoints = {
            judge.name: Endpoint(judge, client, plan.patience, plan.body, ended)
            for judge in plan.judges
        }
        run = _Run(
            plan, ledger, endpoints, watch, outcome, spending, answers, ended, asyncio.Event()
        )
        queues = {judge.name: _Queue(run, judge.name) for judge in plan.judges}
        wanted = sum(queue.wanted for queue in queues.values())
        watch.total(wanted)
        watch.answered(sum(queue.had for queue in queues.values()))
        with _interruptible(run):
            async with asyncio.TaskGroup() as group:
                for queue in queues.values():
                    for _ in range(min(plan.concurrency, len(plan.items) * plan.votes)):
                        group.create_task(_work(run, queue))
    outcome.retried = sum(endpoint.retried for endpoint in endpoints.values())
    outcome.missing = sum(queue.left() for queue in queues.values())
    return outcome


class _Queue:
    """The questions to one judge: those to ask now, and with a rule those that may follow."""

    def __init__(self, run: _Run, judge: str) -> None:
        self.run, self.judge = run, judge
        plan = run.plan
        self.items = {item.name: item for item in plan.items}
        self.every = {item.name: plan.questions(judge, item) for item in plan.items}
        self.open = {
            name: [q for q in questions if q not in run.answers]
            for name, questions in self.every.items()
        }
        """Questions of each item without an answer; none where the item is settled."""
        self.had = sum(len(self.every[name]) - len(open_) for name, open_ in self.open.items())
        self.wanted = self.had + sum(map(len, self.open.values()))
        self.todo: deque[Question] = deque()
        self.asked: set[Question] = set()
        self.waiting = 0
        self.failures = 0
        """Questions in a row without an answer."""
        self.given_up = False
        rounds = plan.votes // plan.batch
        if plan.rule is not None:
            rounds = -(-max(plan.fewest, 1) // plan.batch)
        # Round by round, so that a run that ends early has asked about all items alike.
        for sample in range(1, rounds + 1):
            for open_ in self.open.values():
                self._put([q for q in open_ if q.sample == sample])
        for name in self.open:
            self.settle(name)

    def _put(self, questions: list[Question]) -> None:
        self.asked.update(questions)
        self.todo.extend(questions)

    def settle(self, item: str) -> None:
        """With a rule: ask on about an item whose answers are all there, or close it."""
        plan, open_ = self.run.plan, self.open[item]
        if plan.rule is None or not open_ or any(q in self.asked for q in open_):
            return
        following = [q for q in open_ if q.sample == open_[0].sample]
        whole = len(following) == plan.batch  # a vote in one order waits for that in the other
        if whole and plan.rule.settled(self.counts(item)[None])[0]:
            self.wanted -= len(open_)
            self.run.watch.total(-len(open_))
            self.open[item] = []
        else:
            self._put(following)

    def counts(self, item: str) -> Int[np.ndarray, " class"]:
        """Return an item's votes by class of the rule."""
        answers = (self.run.answers.get(question) for question in self.every[item])
        votes = [line.vote for line in answers if line is not None]
        return np.array([votes.count(name) for name in self.run.plan.class_votes])

    def left(self) -> int:
        """Return how many votes are still wanted; with a rule, at the least."""
        if self.run.plan.rule is None:
            return sum(map(len, self.open.values()))
        return sum(
            sum(q.sample == open_[0].sample for q in open_) for open_ in self.open.values() if open_
        )

    async def next(self) -> Question | None:
        """Return the next question, None if there will be no more."""
        run = self.run
        while not (run.ended.is_set() or self.given_up):
            short = run.spending.short_of() if self.todo else None
            if self.todo and short is None:
                return self.todo.popleft()
            if self.todo and run.spending.waiting == 0:
                run.outcome.spent = short
                run.end()
            elif not self.todo and self.waiting == 0:
                return None
            else:
                run.news.clear()
                await run.news.wait()
        return None


async def _work(run: _Run, queue: _Queue) -> None:
    """Ask question after question."""
    while (question := await queue.next()) is not None:
        queue.waiting += 1
        run.spending.waiting += 1
        try:
            await _ask(run, queue, question)
        finally:
            queue.waiting -= 1
            run.spending.waiting -= 1
            run.news.set()


async def _ask(run: _Run, queue: _Queue, question: Question) -> None:
    plan, item, outcome = run.plan, queue.items[question.item], run.outcome
    prompt = filled(plan.template, item.fields, question.order)
    try:
        answer = await run.endpoints[queue.judge].ask(prompt, run.spending.lost)
    except AbandonedError:
        return
    except NoAnswerError as failure:
        outcome.unanswered[queue.judge] += 1
        outcome.reasons[queue.judge] = str(failure)
        queue.failures += 1
        queue.given_up = failure.hopeless or queue.failures >= GIVE_UP
        return
    queue.failures = 0
    line = _line(plan, item, question, answer)
    run.ledger.append(line)
    run.answers[question] = line
    outcome.asked += 1
    run.spending.calls += 1
    if answer.tokens is not None:
        run.spending.tokens += answer.tokens
        run.spending.largest = max(run.spending.largest, answer.tokens)
    elif plan.budget.tokens is not None:
        outcome.untold = queue.judge
        run.end()
    queue.open[item.name].remove(question)
    run.watch.answered(1)
    queue.settle(item.name)


@contextlib.contextmanager
def _interruptible(run: _Run) -> Iterator[None]:
    """Let Ctrl-C, or a request to terminate, end the asking; a second one cancels what is on its way."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def interrupt() -> None:
        if run.outcome.interrupted and task is not None:
            task.cancel()
        elif not run.outcome.interrupted:
            run.watch.interrupted(run.spending.waiting)
        run.outcome.interrupted = True
        run.end()

    # Elsewhere asyncio cancels the run at once; what is on its way is then asked for again later.
    able = sys.platform != "win32" and threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM) if able else ()
    for number in signals:
        loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


def _line(plan: Plan, item: Item, question: Question, answer: Answer) -> Line:
    """Return an answer as a line: its verdict read, and in the labels' frame."""
    found = parse_verdict(answer.text, plan.task.kind)
    vote = vote_of(found.value, plan.task, question.order)
    missing = None
    if answer.finish == "length":
        # What was cut off may have weighed both sides, and not yet come to its verdict.
        vote, missing = None, "cut off at max_tokens"
    elif answer.finish == "content_filter":
        vote, missing = None, "filtered by the server"
    elif vote is None:
        empty = "empty answer" if not answer.text.strip() else found.why
        missing = empty if found.value is None else f"{found.value!r} is no answer to the task"
    return Line(
        item=item.name,
        judge=question.judge,
        vote=vote,
        sample=question.sample,
        order=question.order if plan.batch > 1 else None,
        missing=missing,
        level=found.level if vote is not None else None,
        text=answer.text,
        finish=answer.finish,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        answered_by=answer.model,
        content=item.digest,
    )
