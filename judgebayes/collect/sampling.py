"""Send requests concurrently until every item has its votes or the budget is used up."""

import asyncio
import contextlib
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int

from judgebayes.collect.endpoint import (
    AbandonedError,
    Endpoint,
    Judge,
    NoAnswerError,
    OverBudgetError,
    RetryPolicy,
)
from judgebayes.collect.items import Item, Task, fill_template, vote_of
from judgebayes.collect.ledger import Budget, Ledger, Line, Question, Spending
from judgebayes.collect.replies import Answer
from judgebayes.errors import JudgeBayesError
from judgebayes.io.verdict import parse_verdict

if TYPE_CHECKING:
    from judgebayes.workflow.adaptive import StoppingRule

ON_THEIR_WAY = 0.5
"""Seconds to wait, after Ctrl-C, for answers that are on their way."""
UNFINISHED = {"length": "cut off at max_tokens", "content_filter": "filtered by the server"}
"""Why there is no vote, by the server's reason for an answer's end."""
MAX_FAILURES = 5
"""After this many consecutive requests without an answer, a judge is not asked again."""


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
    """Fields of a request: temperature, max_tokens."""
    budget: Budget
    retry_policy: RetryPolicy
    concurrency: int
    """The number of concurrent requests to each judge."""
    rule: "StoppingRule | None"
    """The rule by which an item is settled; None to ask always `votes` times."""
    fewest: int
    """The least number of votes of a settled item."""
    class_votes: tuple[str, ...]
    """With a rule: the vote for each of its classes."""

    @property
    def batch(self) -> int:
        """The number of votes in a batch: one in each order."""
        return len(self.task.orders)

    def questions(self, judge: str, item: Item) -> list[Question]:
        """Return all questions on an item, in the order of asking."""
        return [
            Question(judge, item.name, sample + 1, order)
            for sample in range(self.votes // self.batch)
            for order in self.task.orders
        ]


@dataclass
class Outcome:
    """The outcome of a run."""

    asked: int = 0
    """Number of answers in this run."""
    kept: int = 0
    """Number of answers in the file before this run."""
    unanswered: Counter[str] = field(default_factory=Counter)
    """Number of unanswered questions by judge."""
    reasons: dict[str, str] = field(default_factory=dict)
    """The last reason for a missing answer, by judge."""
    spent: str | None = None
    """The budget that ended the run: calls or tokens."""
    interrupted: bool = False
    """Whether a signal stopped the run."""
    terminated: bool = False
    """Whether that signal was SIGTERM."""
    abandoned: int = 0
    """Number of answers that were on their way then and did not arrive in time."""
    uncounted: str | None = None
    """A judge whose server does not count tokens although there is a budget of tokens."""
    missing: int = 0
    """Number of planned votes that were not requested or not answered."""
    retried: int = 0

    @property
    def complete(self) -> bool:
        """Whether every planned vote was requested and answered."""
        return self.missing == 0


@dataclass(frozen=True)
class Watch:
    """Callbacks for progress."""

    total: Callable[[int], None]
    """Called with the change of the total number of planned answers."""
    answered: Callable[[int], None]
    """Called with the number of new answers."""
    interrupted: Callable[[int], None]
    """Called after Ctrl-C with the number of pending answers."""


@dataclass
class _Run:
    """The shared state of a run's workers."""

    plan: Plan
    ledger: Ledger
    endpoints: dict[str, Endpoint]
    watch: Watch
    outcome: Outcome
    spending: Spending
    answers: dict[Question, Line]
    ended: asyncio.Event
    """Set when no more questions are to be asked."""
    news: asyncio.Event
    """Set when the state changed, for workers that wait without a question."""
    waiting: int = 0
    """The number of workers with a question."""
    workers: list[asyncio.Task[None]] = field(default_factory=list)

    def end(self) -> None:
        self.ended.set()
        self.news.set()


def collect_votes(plan: Plan, ledger: Ledger, watch: Watch) -> Outcome:
    """Ask every judge about every item, for all planned votes that the file does not have yet.

    Answers are written as they arrive. The first Ctrl-C or SIGTERM stops asking and waits `ON_THEIR_WAY`
    seconds for pending answers; the second abandons them at once.

    Raises
    ------
    JudgeBayesError
        If a key is missing, the file cannot be written, or an item has changed since the file was
        started.
    """
    answers = {line.question: line for line in ledger.lines}
    _check_items(plan, ledger)
    try:
        return asyncio.run(_collect(plan, ledger, watch, answers))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except BaseExceptionGroup as group:
        error: BaseException | None = group.subgroup(JudgeBayesError)
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise (error or group) from None


def _check_items(plan: Plan, ledger: Ledger) -> None:
    contents = {line.item: line.content for line in ledger.lines}
    changed = [
        item.name for item in plan.items if contents.get(item.name, item.digest) != item.digest
    ]
    if changed:
        raise JudgeBayesError(
            f"The text of item {changed[0]!r} has changed since {str(ledger.path)!r} was "
            "started. Give the item another name, or choose another file with -o."
        )


async def _collect(
    plan: Plan, ledger: Ledger, watch: Watch, answers: dict[Question, Line]
) -> Outcome:
    import httpx2

    outcome = Outcome(kept=len(answers))
    spending = Spending.of(plan.budget, ledger, plan.body.get("max_tokens"))
    ended = asyncio.Event()
    limits = httpx2.Limits(max_connections=plan.concurrency * len(plan.judges))
    async with httpx2.AsyncClient(timeout=None, limits=limits) as client:
        endpoints = {
            judge.name: Endpoint(judge, client, plan.retry_policy, plan.body, ended)
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
                        run.workers.append(group.create_task(_work(run, queue)))
    outcome.retried = sum(endpoint.retried for endpoint in endpoints.values())
    outcome.missing = sum(queue.left() for queue in queues.values())
    return outcome


class _Queue:
    """The questions to one judge: those to ask now and, with a rule, those that may follow."""

    def __init__(self, run: _Run, judge: str) -> None:
        self.run, self.judge = run, judge
        plan = run.plan
        self.items = {item.name: item for item in plan.items}
        self.every = {item.name: plan.questions(judge, item) for item in plan.items}
        self.open = {
            name: [q for q in questions if q not in run.answers]
            for name, questions in self.every.items()
        }
        """The unanswered questions on each item; empty if the item is settled."""
        self.had = sum(len(self.every[name]) - len(open_) for name, open_ in self.open.items())
        self.wanted = self.had + sum(map(len, self.open.values()))
        self.todo: deque[Question] = deque()
        self.asked: set[Question] = set()
        self.waiting = 0
        self.failures = 0
        """Number of consecutive questions without an answer."""
        self.given_up = False
        rounds = plan.votes // plan.batch
        if plan.rule is not None:
            rounds = -(-max(plan.fewest, 1) // plan.batch)
        # In rounds, so that a run that ends early has asked about all items equally often.
        for sample in range(1, rounds + 1):
            for open_ in self.open.values():
                self._put([q for q in open_ if q.sample == sample])
        for name in self.open:
            self.settle(name)

    def _put(self, questions: list[Question]) -> None:
        self.asked.update(questions)
        self.todo.extend(questions)

    def settle(self, item: str) -> None:
        """With a rule: once an item's answers are complete, ask for more votes or close the item."""
        plan, open_ = self.run.plan, self.open[item]
        if plan.rule is None or not open_ or any(q in self.asked for q in open_):
            return
        following = [q for q in open_ if q.sample == open_[0].sample]
        is_complete = len(following) == plan.batch  # votes in both orders come together
        if is_complete and plan.rule.settled(self.counts(item)[None])[0]:
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
        """Return the number of votes still planned; with a rule, the least number."""
        if self.run.plan.rule is None:
            return sum(map(len, self.open.values()))
        return sum(
            sum(q.sample == open_[0].sample for q in open_) for open_ in self.open.values() if open_
        )

    async def next(self) -> Question | None:
        """Return the next question, None if there are no more."""
        run = self.run
        while not (run.ended.is_set() or self.given_up):
            short = run.spending.short_of() if self.todo else None
            if self.todo and short is None:
                return self.todo.popleft()
            if self.todo and run.waiting == 0:
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
        run.waiting += 1
        try:
            await _ask(run, queue, question)
        finally:
            queue.waiting -= 1
            run.waiting -= 1
            run.news.set()


async def _ask(run: _Run, queue: _Queue, question: Question) -> None:
    plan, item, outcome = run.plan, queue.items[question.item], run.outcome
    prompt = fill_template(plan.template, item.fields, question.order)
    try:
        line = await run.endpoints[queue.judge].ask(
            prompt,
            f"{question.judge} on {question.item}",
            run.spending,
            lambda answer: _line(plan, item, question, answer),
        )
    except AbandonedError:
        return
    except OverBudgetError:
        queue.todo.appendleft(question)  # it is asked when answers under way need less than assumed
        return
    except NoAnswerError as failure:
        outcome.unanswered[queue.judge] += 1
        outcome.reasons[queue.judge] = str(failure)
        queue.failures += 1
        queue.given_up = failure.fatal or queue.failures >= MAX_FAILURES
        return
    queue.failures = 0
    run.ledger.append(line)
    run.answers[question] = line
    outcome.asked += 1
    run.spending.answered(line.tokens)
    if line.tokens is None and plan.budget.tokens is not None:
        outcome.uncounted = queue.judge
        run.end()
    queue.open[item.name].remove(question)
    run.watch.answered(1)
    queue.settle(item.name)


@contextlib.contextmanager
def _interruptible(run: _Run) -> Iterator[None]:
    """On Ctrl-C or SIGTERM stop asking, and soon, or on a second signal, cancel pending requests."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def interrupt(number: int) -> None:
        run.outcome.terminated = number == signal.SIGTERM
        if run.outcome.interrupted and task is not None:
            task.cancel()
        elif not run.outcome.interrupted:
            run.watch.interrupted(run.waiting)
            loop.call_later(ON_THEIR_WAY, abandon)
        run.outcome.interrupted = True
        run.end()

    def abandon() -> None:
        run.outcome.abandoned = run.waiting
        for worker in run.workers:
            worker.cancel()

    def handle(number: int, _: FrameType | None) -> None:
        # Not by the loop's own method, which would not restore the handlers of before.
        loop.call_soon_threadsafe(interrupt, number)

    # Elsewhere asyncio cancels the run at once, and pending questions are asked again later.
    able = sys.platform != "win32" and threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM) if able else ()
    before = {number: signal.getsignal(number) for number in signals}
    for number in signals:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in signals:
            signal.signal(number, before[number])


def _line(plan: Plan, item: Item, question: Question, answer: Answer) -> Line:
    """Return the line of an answer, with its verdict as a vote on the responses in the labels' order."""
    verdict = parse_verdict(answer.text, plan.task.kind)
    vote = vote_of(verdict.value, plan.task, question.order)
    missing = "longer than is kept" if answer.cut else UNFINISHED.get(answer.finish or "")
    if missing is not None:
        vote = None  # an answer may not have reached its verdict
    elif vote is None:
        empty = "empty answer" if not answer.text.strip() else verdict.why
        missing = (
            empty if verdict.value is None else f"{verdict.value!r} is not an answer to the task"
        )
    return Line(
        item=item.name,
        judge=question.judge,
        vote=vote,
        sample=question.sample,
        order=question.order if plan.batch > 1 else None,
        missing=missing,
        level=verdict.level if vote is not None else None,
        text=answer.text,
        finish=answer.finish,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        answered_by=answer.model,
        content=item.digest,
        repairs=", ".join(verdict.repairs) or None if vote is not None else None,
    )
