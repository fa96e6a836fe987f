"""`judgebayes collect`: votes from judges behind OpenAI-compatible endpoints."""

import json
import shlex
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import typer
from jaxtyping import Int
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from judgebayes.cli.requests import CollectRequest, UntilSettled
from judgebayes.cli.saying import say_plainly
from judgebayes.collect.endpoint import (
    Judge,
    RetryPolicy,
    in_the_clear,
    parse_judges,
    require_client,
)
from judgebayes.collect.items import ItemTable, read_items
from judgebayes.collect.ledger import Ledger, Line
from judgebayes.collect.prompts import fill_template
from judgebayes.collect.sampling import Budget, Outcome, Plan, Watch, collect_votes
from judgebayes.errors import JudgeBayesError
from judgebayes.io import guess_columns, read_table
from judgebayes.io.tables import check_writable, write_table
from judgebayes.votes import Classes, infer_classes

if TYPE_CHECKING:
    from judgebayes.workflow.adaptive import StoppingRule

__all__ = ["collect"]

VOTES = 12
"""Votes of a judge on an item, as P1 asks for, if nothing is said."""
GIVEN_UP = 0.002
"""Loss that settling may cost, if nothing is said."""
LABELS = "labels.csv"
FIT = "fit.json"
UNFINISHED, INTERRUPTED = 1, 130
NOT_BODY = ("messages", "model", "stream", "n")


def collect(request: CollectRequest) -> None:
    """Collect votes, say what came in, and what to run next.

    Raises
    ------
    JudgeBayesError
        For bad input, a missing key, or a file that was begun with other settings.
    typer.Exit
        With code 1 where votes are missing in the end, 130 after Ctrl-C.
    """
    settled = request.settled
    if settled is None and request.settling != UntilSettled():
        raise JudgeBayesError(
            "--fit, --price, --give-up, --min and --answers belong to --until-settled, which is missing."
        )
    require_client()
    if request.out.suffix.lower() != ".jsonl":
        raise JudgeBayesError(
            f"Answers are written line by line: {str(request.out)!r} has to end with .jsonl."
        )
    check_writable(request.out)
    check_writable(settled.answers if settled is not None else None)
    judges = parse_judges(request.judge, request.key_env or [])
    template = None if request.template is None else _read_template(request.template)
    table = read_items(request.items, asdict(request.columns), request.task, template)
    template = table.task.template if template is None else template
    if settled is None:
        plan = _plan(request, table, judges, template, request.n or VOTES, None, ())
    else:
        votes, rule, names = _rule(settled, request.n, table, judges)
        plan = _plan(request, table, judges, template, votes, rule, names)
    console = Console()
    say_plainly(console, *table.words())
    say_plainly(console, *_intention(plan, request.out))
    for judge in judges:
        if in_the_clear(judge):
            say_plainly(console, f"! The key of {judge.name} travels unencrypted to {judge.url}.")
    if request.dry_run:
        prompt = fill_template(plan.template, plan.items[0].fields, "AB")
        say_plainly(console, f"Nothing is asked. The prompt of item {plan.items[0].name}:", prompt)
        return
    with Ledger(request.out, _settings(plan)) as ledger:
        if ledger.torn:
            say_plainly(
                console, f"A last line of {ledger.torn} bytes was cut off: it is asked for again."
            )
        outcome = _with_progress(plan, ledger)
        lines = [line for line in ledger.lines if _wanted(line, plan)]
    say_plainly(console, *_account(plan, outcome, lines))
    if settled is not None:
        say_plainly(console, *_settling(plan, lines))
        if settled.answers is not None:
            write_table(_answers(plan, lines), settled.answers)
            say_plainly(console, f"Answers: {settled.answers}")
    say_plainly(console, f"Votes: {request.out}")
    if outcome.complete:
        say_plainly(console, f"Next: {_next_command(request, table, lines)}")
        return
    say_plainly(console, *_unfinished(plan, outcome))
    raise typer.Exit(INTERRUPTED if outcome.interrupted else UNFINISHED)


def _plan(
    request: CollectRequest,
    table: ItemTable,
    judges: list[Judge],
    template: str,
    votes: int,
    rule: "StoppingRule | None",
    class_votes: tuple[str, ...],
) -> Plan:
    orders = len(table.task.orders)
    if votes < 1 or votes % orders:
        raise JudgeBayesError(
            f"-n {votes} cannot be divided between two orders; right would be {votes + 1}."
        )
    budget = Budget(request.budget_calls, request.budget_tokens)
    for name, limit in (("calls", budget.calls), ("tokens", budget.tokens)):
        if limit is not None and limit < 1:
            raise JudgeBayesError(f"--budget-{name} is {limit}; right would be 1 or more.")
    body = {"temperature": request.temperature, "max_tokens": request.max_tokens}
    fewest = 0 if request.settled is None else request.settled.fewest or orders
    return Plan(
        table.items,
        judges,
        table.task,
        template,
        votes,
        body | _body(request.body),
        budget,
        RetryPolicy(request.timeout, request.retries),
        request.concurrency,
        rule,
        fewest,
        class_votes,
    )


def _body(text: str | None) -> dict[str, Any]:
    """Return the fields that the user adds to a request; null takes one away."""
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise JudgeBayesError(
            '--body is no JSON object; right would be \'{"max_tokens": null, "top_p": 0.9}\'.'
        )
    for name in NOT_BODY:
        if name in found:
            raise JudgeBayesError(
                f"--body cannot hold {name!r}: judgebayes collect sets it itself."
            )
    return found


def _read_template(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise JudgeBayesError(
            f"The template {str(path)!r} cannot be read as UTF-8 text."
        ) from error
    if not text.strip():
        raise JudgeBayesError(f"The template {str(path)!r} is empty.")
    return text


def _settings(plan: Plan) -> dict[str, Any]:
    """Return what must stay the same for votes to be one sample."""
    models = {f"model of judge {judge.name!r}": judge.model for judge in plan.judges}
    return {"task": plan.task.name, "template": plan.template, **models, "body": plan.body}


def _rule(
    settled: UntilSettled, votes: int | None, table: ItemTable, judges: list[Judge]
) -> "tuple[int, StoppingRule, tuple[str, ...]]":
    """Return the votes at most, the rule, and what a vote for each of its classes is called."""
    if settled.fit is None:
        raise JudgeBayesError(
            "--until-settled needs --fit FIT: a Davidson fit to items with all their votes, as "
            "judgebayes calibrate --method davidson --save keeps it."
        )
    if settled.price is not None and settled.give_up is not None:
        raise JudgeBayesError("--price and --give-up say the same in two ways: give one of them.")
    if len(judges) > 1:
        raise JudgeBayesError(
            "--until-settled asks one judge, the one that was fitted; collect the votes of others "
            "without it."
        )
    from judgebayes.aggregators import FittedDavidson
    from judgebayes.workflow.adaptive import price_within, share_prior, stopping_rule
    from judgebayes.workflow.fit_file import load_fit

    saved = load_fit(settled.fit)
    if not isinstance(saved.fitted, FittedDavidson):
        raise JudgeBayesError(
            f"{str(settled.fit)!r} is a fit of {saved.method}; --until-settled needs one of davidson "
            "(judgebayes calibrate --method davidson --save)."
        )
    most = round(saved.profile.votes_per_item)
    if votes is not None and votes != most:
        raise JudgeBayesError(
            f"-n {votes} is not the number of votes that {str(settled.fit)!r} was fitted at, {most}: "
            "its parameters hold for that number. Leave -n away."
        )
    orders = len(table.task.orders)
    prior = share_prior(saved.profile, symmetric=saved.fitted.symmetric)
    given: dict[str, Any] = {
        "batch": orders,
        "fewest": orders if settled.fewest is None else settled.fewest,
    }
    if settled.price is not None:
        rule = stopping_rule(saved.fitted, prior, most, settled.price, **given)
    else:
        give_up = GIVEN_UP if settled.give_up is None else settled.give_up
        rule = price_within(saved.fitted, prior, most, give_up, **given)
    return most, rule, _named(saved.classes, table.task.votes, settled.fit)


def _named(classes: Classes, votes: tuple[str, ...], fit: Path) -> tuple[str, ...]:
    """Return the task's votes in the order of a fit's classes."""
    places = {vote: classes.index(vote) for vote in votes}
    numbers = all(isinstance(value, int) for value in classes.values)
    if len(classes) == len(votes) and numbers:
        return votes  # -1, 0, 1 and 0, 1 stand for B, tie, A and invalid, valid
    if sorted(i for i in places.values() if i is not None) != list(range(len(classes))):
        raise JudgeBayesError(
            f"{str(fit)!r} is of the classes {', '.join(classes.names)}; these votes are "
            f"{', '.join(votes)}."
        )
    return tuple(sorted(votes, key=lambda vote: places[vote] or 0))


def _intention(plan: Plan, out: Path) -> list[str]:
    orders = "half of them with the responses swapped, " if plan.batch > 1 else ""
    most = "up to " if plan.rule is not None else ""
    each = plan.votes * len(plan.items) * len(plan.judges)
    lines = [
        f"{len(plan.items)} items x {len(plan.judges)} judge(s) x {most}{plan.votes} votes, {orders}"
        f"task {plan.task.name}: {most}{each:,} answers into {str(out)!r}."
    ]
    if plan.rule is not None:
        forecast = plan.rule.forecast
        lines.append(
            f"A vote is priced at {plan.rule.price:.2g} of a class step: an item is expected to take "
            f"{forecast.votes:.1f} of {plan.votes} votes, and settling early to cost "
            f"{forecast.loss - forecast.full_loss:.4f} (loss {forecast.loss:.3f} against "
            f"{forecast.full_loss:.3f})."
        )
    return lines


def _with_progress(plan: Plan, ledger: Ledger) -> Outcome:
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as progress:
        bar = progress.add_task("answers", total=0)

        def more(by: int) -> None:
            progress.update(bar, total=(progress.tasks[0].total or 0) + by)

        def answered(by: int) -> None:
            progress.advance(bar, by)

        def interrupted(waiting: int) -> None:
            progress.console.print(
                f"Interrupted: waiting for {waiting} answers that are on their way and paid for; "
                "Ctrl-C again abandons them.",
                soft_wrap=True,
            )

        return collect_votes(plan, ledger, Watch(more, answered, interrupted))


def _wanted(line: Line, plan: Plan) -> bool:
    """Tell whether an answer of the file is of this plan's judges."""
    return any(line.judge == judge.name for judge in plan.judges)


def _account(plan: Plan, outcome: Outcome, lines: list[Line]) -> list[str]:
    told = [f"Answers: {outcome.asked} new, {outcome.kept} kept from before."]
    for judge in plan.judges:
        own = [line for line in lines if line.judge == judge.name]
        why = Counter(line.missing for line in own if line.missing is not None)
        read = len(own) - why.total()
        if own:
            reasons = ", ".join(f"{reason} {count}" for reason, count in why.most_common())
            told.append(
                f"{judge.name}: {read} of {len(own)} answers hold a vote ({read / len(own):.1%})"
                + (f"; missing votes: {reasons}." if why else ".")
            )
    counted = [line.tokens for line in lines if line.tokens is not None]
    if counted:
        silent = len(lines) - len(counted)
        told.append(
            f"Tokens: {sum(counted):,}"
            + (f", and {silent} answers whose tokens the server did not count." if silent else ".")
        )
    if outcome.retried:
        told.append(f"{outcome.retried} questions were asked again after a failure.")
    return told


def _unfinished(plan: Plan, outcome: Outcome) -> list[str]:
    least = "at least " if plan.rule is not None else ""
    told = [
        f"{judge} left {count} question(s) unanswered: {outcome.reasons[judge]}."
        for judge, count in outcome.unanswered.items()
    ]
    if outcome.spent is not None:
        limit = plan.budget.calls if outcome.spent == "calls" else plan.budget.tokens
        told.append(f"The budget of {limit:,} {outcome.spent} does not allow another question.")
    if outcome.uncounted is not None:
        told.append(
            f"The server of {outcome.uncounted} does not count tokens: a budget of them cannot be kept; "
            "use --budget-calls."
        )
    if outcome.interrupted:
        told.append("Interrupted; every answer that came is kept.")
    return [
        *told,
        f"Missing: {least}{outcome.missing:,} answer(s). The same command goes on from here.",
    ]


def _counts(plan: Plan, lines: list[Line]) -> Int[np.ndarray, "item class"]:
    names = {name: place for place, name in enumerate(plan.class_votes)}
    place = {item.name: row for row, item in enumerate(plan.items)}
    counts = np.zeros((len(place), len(names)), np.int64)
    for line in lines:
        if line.vote is not None and line.item in place and line.sample <= plan.votes // plan.batch:
            counts[place[line.item], names[line.vote]] += 1
    return counts


def _settling(plan: Plan, lines: list[Line]) -> list[str]:
    assert plan.rule is not None
    counts = _counts(plan, lines)
    names = {item.name for item in plan.items}
    used = sum(line.item in names for line in lines)
    full = plan.votes * len(plan.items)
    settled = plan.rule.settled(counts) & (counts.sum(1) >= plan.fewest)
    return [
        f"Settled: {int(settled.sum())} of {len(counts)} items, by {used:,} answers of {full:,}: "
        f"{1 - used / full:.0%} fewer than {plan.votes} for each."
    ]


def _answers(plan: Plan, lines: list[Line]) -> pd.DataFrame:
    """Return probabilities, decision and expected loss of every item, from the votes it has."""
    from judgebayes.measures.decide import absolute_loss, bayes_action, risk
    from judgebayes.votes.coding import Coding

    assert plan.rule is not None
    counts = _counts(plan, lines)
    log_probs = plan.rule.log_probs(counts)
    loss = absolute_loss(counts.shape[1])
    coding = Coding(
        pd.Index([item.name for item in plan.items], name="item"),
        pd.Index([judge.name for judge in plan.judges], name="judge"),
        Classes(plan.class_votes, plan.task.kind == "pair"),
    )
    expected = np.asarray(risk(log_probs, loss)).min(1)
    table = coding.decode(log_probs, np.asarray(bayes_action(log_probs, loss)), expected)
    return table.assign(votes=counts.sum(1), settled=plan.rule.settled(counts))


def _next_command(request: CollectRequest, table: ItemTable, lines: list[Line]) -> str:
    labels: list[str] = [LABELS]
    if table.label is not None and _joins(request.items, table):
        labels = [str(request.items), "--label", table.label]
    pair = ["--votes-as", "original"] if len(table.task.orders) > 1 else []
    cast = {line.vote for line in lines}
    classes = [] if cast >= set(table.task.votes) else ["--classes", ",".join(table.task.votes)]
    settled = request.settled
    if settled is not None and settled.fit is not None:
        words = ["apply", str(settled.fit), str(request.out), *pair]
    else:
        words = ["calibrate", str(request.out), "--labels", *labels, *pair, *classes, "--save", FIT]
    return shlex.join(["judgebayes", *words])


def _joins(path: Path, table: ItemTable) -> bool:
    """Tell whether another command would find the items' labels in their own table."""
    frame = read_table(path)
    try:
        found = guess_columns(frame.columns, {"item": None, "label": table.label})
        infer_classes(list(frame[str(table.label)].unique()), "labels")
    except JudgeBayesError:
        return False
    return found["item"] == table.columns["item"]
