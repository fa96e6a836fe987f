"""`judgebayes collect`: votes from judges behind OpenAI-compatible endpoints."""

import importlib.util
import json
import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgebayes.cli.requests import CollectRequest
from judgebayes.collect.items import (
    ROLES,
    ItemTable,
    Judge,
    fill_template,
    in_the_clear,
    parse_judges,
    read_items,
)
from judgebayes.collect.ledger import Budget, open_ledger
from judgebayes.collect.sampling import Plan, Run, collect_votes
from judgebayes.errors import JudgeBayesError
from judgebayes.io.tables import check_writable
from judgebayes.sentence import percent
from judgebayes.show.console import say_plainly
from judgebayes.votes import Classes
from judgebayes.workflow.machine import NOT_ALL_HOLDS, CommandResult
from judgebayes.workflow.records import changed

if TYPE_CHECKING:
    from judgebayes.workflow.adaptive import StoppingRule

VOTES = 12
"""Default number of votes of a judge on an item, as in P1."""
LABELS = "labels.csv"
FIT = "fit.json"
BODY = {"temperature": 1.0, "max_tokens": 2048}
"""Fields of each request, unless the user says otherwise."""
NOT_BODY = ("messages", "model", "stream", "n")


def collect(request: CollectRequest) -> CommandResult:
    """Collect votes, print a summary and the next command, and return the counts.

    The exit code is 1 if votes are missing at the end, 130 after Ctrl-C, 143 after SIGTERM.

    Raises
    ------
    JudgeBayesError
        For bad input, a missing key, or a file that was started with other settings.
    """
    if {"fit", "give_up"} & {name for name, _ in changed(request)} and not request.until_settled:
        raise JudgeBayesError("--fit and --give-up need --until-settled.")
    if request.out.suffix.lower() != ".jsonl":
        raise JudgeBayesError(
            f"--out {str(request.out)!r} must end in .jsonl: it gets a line for each answer."
        )
    check_writable(request.out)
    judges = parse_judges(request.judge, request.key_env or [])
    template = None if request.template is None else _read_template(request.template)
    named = {role: getattr(request, role) for role in ROLES}
    table = read_items(request.items, named, request.task, template)
    template = table.task.template if template is None else template
    plan = _plan(request, table, judges, template)
    say_plainly(*table.words())
    say_plainly(*_intention(plan, request.out))
    for judge in judges:
        if in_the_clear(judge):
            say_plainly(f"! The key of {judge.name} is sent unencrypted to {judge.url}.")
    if request.dry_run:
        prompt = fill_template(plan.template, plan.items[0].fields, "AB")
        say_plainly(
            f"Dry run: no requests are sent. The prompt of item {plan.items[0].name}:", prompt
        )
        return CommandResult(_planned(plan, request.out) | {"dry_run": True})
    for module in ("openai", "httpx2"):
        if importlib.util.find_spec(module) is None:
            raise JudgeBayesError(
                "judgebayes collect needs the OpenAI SDK: pip install 'judgebayes[collect]'."
            )
    with open_ledger(request.out, _settings(plan)) as ledger:
        run = collect_votes(plan, ledger, request.out)
    values = _planned(plan, request.out) | _results(run)
    say_plainly(*_account(run, values))
    if request.until_settled:
        say_plainly(_settling(run))
    say_plainly(f"Votes: {request.out}")
    if run.missing:
        say_plainly(*_unfinished(run))
        return CommandResult(values, exit_code=128 + run.signal if run.signal else NOT_ALL_HOLDS)
    if request.fit is not None:
        say_plainly("The next command gives the calibrated answers.")
    say_plainly(f"Next: {_next_command(request, table, run)}")
    return CommandResult(values)


def _planned(plan: Plan, out: Path) -> dict[str, Any]:
    """Return the file of the votes, and the numbers of items, judges and planned votes."""
    return {
        "votes_file": out,
        "task": plan.task.name,
        "items": len(plan.items),
        "judges": len(plan.judges),
        "planned": plan.votes * len(plan.items) * len(plan.judges),
        "dry_run": False,
    }


def _results(run: Run) -> dict[str, Any]:
    """Return the numbers of answers, and those of each judge."""
    rows = []
    for judge in run.plan.judges:
        lines = [line for line in run.lines.values() if line["judge"] == judge.name]
        why = Counter(line["missing"] for line in lines)
        rows.append(
            {
                "judge": judge.name,
                "answers": why.total(),
                "votes": why.pop(None, 0),
                "missing": _counted(why) or None,
                "unanswered": run.unanswered[judge.name],
                "reason": run.reasons.get(judge.name),
            }
        )
    counted = [count for count in _tokens(run) if count is not None]
    return {
        "complete": run.missing == 0,
        "new": len(run.lines) - run.kept,
        "earlier": run.kept,
        "missing": run.missing,
        "retried": run.attempts.total() - len(run.attempts),
        "tokens": sum(counted) if counted else None,
        "tables": {"judges": rows},
    }


def _plan(request: CollectRequest, table: ItemTable, judges: list[Judge], template: str) -> Plan:
    orders = len(table.task.orders)
    votes, rule, class_votes = (
        _rule(request, table, judges) if request.until_settled else (request.n or VOTES, None, ())
    )
    if votes % orders:
        raise JudgeBayesError(
            f"-n {votes} cannot be divided equally between two orders; use -n {votes + 1}."
        )
    body = _body(request.body)
    longest = body.get("max_tokens")
    return Plan(
        items=table.items,
        judges=judges,
        task=table.task,
        template=template,
        votes=votes,
        body=body,
        budget=Budget(
            request.budget_calls, request.budget_tokens, longest if type(longest) is int else 0
        ),
        timeout=request.timeout,
        retries=request.retries,
        concurrency=request.concurrency,
        rule=rule,
        class_votes=class_votes,
    )


def _body(text: str | None) -> dict[str, Any]:
    """Return the fields of each request: those of `BODY` and the user's, whose null removes one."""
    try:
        fields = json.loads(text or "{}")
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise JudgeBayesError(
            '--body must be a JSON object, for example \'{"max_tokens": null, "top_p": 0.9}\'.'
        )
    for name in NOT_BODY:
        if name in fields:
            raise JudgeBayesError(f"--body cannot contain {name!r}: judgebayes collect sets it.")
    return {name: value for name, value in (BODY | fields).items() if value is not None}


def _read_template(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise JudgeBayesError(
            f"The template {str(path)!r} cannot be read as UTF-8 text."
        ) from error


def _settings(plan: Plan) -> dict[str, Any]:
    """Return the settings that must not change between runs into one file."""
    models = {f"model of judge {judge.name!r}": judge.model for judge in plan.judges}
    return {"task": plan.task.name, "template": plan.template, **models, "body": plan.body}


def _rule(
    request: CollectRequest, table: ItemTable, judges: list[Judge]
) -> "tuple[int, StoppingRule, tuple[str, ...]]":
    """Return the largest number of votes, the stopping rule, and the vote name of each class."""
    if request.fit is None:
        raise JudgeBayesError(
            "--until-settled needs --fit FIT, a Davidson fit to items that have all their votes. "
            "Save one with: judgebayes calibrate --method davidson --save."
        )
    if len(judges) > 1:
        raise JudgeBayesError(
            "--until-settled takes one judge: the judge whose votes were fitted. Collect the "
            "votes of other judges without --until-settled."
        )
    from judgebayes.workflow.adaptive import plan_of
    from judgebayes.workflow.fit_file import load_fit

    saved = load_fit(request.fit)
    most = round(saved.profile.votes_per_item)
    plan = plan_of(saved, most, batch=len(table.task.orders))
    if plan is None:
        raise JudgeBayesError(
            f"{str(request.fit)!r} is a fit of the method {saved.method}; --until-settled needs a "
            "Davidson fit (judgebayes calibrate --method davidson --save)."
        )
    if request.n is not None and request.n != most:
        raise JudgeBayesError(
            f"-n {request.n} differs from the {most} votes per item that {str(request.fit)!r} was "
            "fitted to. The parameters are valid only for that number. Omit -n."
        )
    return (
        most,
        plan.within(request.give_up),
        _vote_names(saved.classes, table.task.votes, request.fit),
    )


def _vote_names(classes: Classes, votes: tuple[str, ...], fit: Path) -> tuple[str, ...]:
    """Return the vote names of the task, in the order of the fit's classes."""
    places = {vote: classes.index(vote) for vote in votes}
    if sorted(i for i in places.values() if i is not None) != list(range(len(classes))):
        raise JudgeBayesError(
            f"{str(fit)!r} has the classes {', '.join(classes.names)}, but the votes of this task are "
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
        rule = plan.rule
        lines.append(
            f"Price of a vote: {rule.price:.2g} class steps. Expected: {rule.votes:.1f} of "
            f"{plan.votes} votes per item, and a mean loss of {rule.loss:.3f} instead of "
            f"{rule.full_loss:.3f} (+{rule.loss - rule.full_loss:.4f})."
        )
    return lines


def _account(run: Run, values: dict[str, Any]) -> list[str]:
    """Return the numbers of answers in sentences."""
    said = [f"Answers: {values['new']} new, {values['earlier']} from earlier runs."]
    for row in values["tables"]["judges"]:
        if row["answers"]:
            share = percent(row["votes"] / row["answers"], 1)
            missing = f"; missing votes: {row['missing']}" if row["missing"] else ""
            said.append(
                f"{row['judge']}: {row['votes']} of {row['answers']} answers contain a vote "
                f"({share}){missing}."
            )
    if values["tokens"] is not None:
        silent = _tokens(run).count(None)
        without = f", without {silent} answers whose tokens the server did not count"
        said.append(f"Tokens: {values['tokens']:,}{without if silent else ''}.")
    if values["retried"]:
        said.append(f"{values['retried']} requests were sent again after a failure.")
    return said


def _tokens(run: Run) -> list[int | None]:
    judges = {judge.name for judge in run.plan.judges}
    return [answer.tokens for asked, answer in run.ledger.replies.items() if asked.judge in judges]


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def _unfinished(run: Run) -> list[str]:
    least = "at least " if run.plan.rule is not None else ""
    return [
        *(
            f"{judge} did not answer {count} request(s): {run.reasons[judge]}."
            for judge, count in run.unanswered.items()
        ),
        *run.why,
        f"Missing: {least}{run.missing:,} answer(s). Run the same command again to continue.",
    ]


def _settling(run: Run) -> str:
    plan, judge = run.plan, run.plan.judges[0].name
    used = sum(q in run.lines for item in plan.items for q in plan.questions(judge, item))
    full = plan.votes * len(plan.items)
    settled = len(plan.items) - len({question.item for question in run.wanted(judge)})
    return (
        f"Settled: {settled} of {len(plan.items)} items, with {used:,} answers instead of {full:,} "
        f"({percent(1 - used / full)} fewer than {plan.votes} votes for each item)."
    )


def _next_command(request: CollectRequest, table: ItemTable, run: Run) -> str:
    pair = ["--set", "votes_as=original"] if len(table.task.orders) > 1 else []
    if request.fit is not None:
        return shlex.join(["judgebayes", "apply", str(request.fit), str(request.out), *pair])
    labels = [LABELS]
    if table.label is not None and table.columns["item"] is not None and request.item is None:
        labels = [str(request.items), "--label", table.label]
    votes = table.task.votes
    seen = {line["vote"] for line in run.lines.values()} >= set(votes)
    classes = [] if seen else ["--set", f"classes={','.join(votes)}"]
    words = ["calibrate", str(request.out), "--labels", *labels, *pair, *classes, "--save", FIT]
    return shlex.join(["judgebayes", *words])
