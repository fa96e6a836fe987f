"""Audit, extension: votes only where they may still change the decision.

Claim: none in the paper. P1 spends n votes on every item, although most items are settled with fewer;
this measures the savings of stopping there, and the cost. Ours: 30 % of the votes saved, margin 0.01,
at an MAE lost below 0.005, margin 0.001.
Command: judgebayes reproduce distribution-calibrated/audit-adaptive --data DIR
Runtime: about 6 minutes with 100 splits.
Expected: the rule of `judgebayes.workflow.adaptive`, with its price set on the calibration items, saves
nearly half of all votes at about the same MAE, and reaches the criterion in most cells. The best n is
chosen on the evaluation items, which no user knows. Where it is smaller than the largest n, because
more votes do not help, a rule fitted at the largest n saves less, or nothing.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, Int

from judgebayes import Davidson
from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate.splits import Splits
from judgebayes.experiments.claims import evidence
from judgebayes.experiments.core import Output, Run, experiment, rows
from judgebayes.experiments.data import Cell, rb2, rb2_judges, rb2_tasks
from judgebayes.experiments.distribution_calibrated.common import (
    MARGIN,
    PAPER,
    Answers,
    Comparison,
    answers,
    comparison,
    graded,
    interval_columns,
    seed_of,
    splits,
)
from judgebayes.experiments.significance import normal_interval
from judgebayes.inference.fit import Fit
from judgebayes.measures.scores import absolute_loss, bayes_action
from judgebayes.measures.significance import Interval, two_way_interval
from judgebayes.votes import Votes, from_counts
from judgebayes.workflow.adaptive import StoppingRule, share_prior, stopping_plan
from judgebayes.workflow.fit_file import profile

MOST = 8
GIVE_UP = 0.002
"""The expected loss of MAE that `judgebayes collect --until-settled` accepts by default."""
MORE = 0.005
SAVED, WITHIN = 0.3, 0.005
"""The criterion: the share of votes saved, and the largest MAE difference from the best fixed n."""
AGREED = 3


@dataclass(frozen=True)
class Replay:
    """Errors and votes of a stopping rule on the evaluation items of every split."""

    errors: Float[np.ndarray, "split item"]
    votes: Int[np.ndarray, "split item"]


@experiment(
    PAPER,
    "audit-adaptive",
    "Audit: votes only where they may still matter",
    "stopping when settled saves 30 % of the votes of the best fixed n, at an MAE within 0.005",
    needs=("rb2_k8_scores",),
)
def main(run: Run) -> Output:
    """Return votes and MAE of the rule and of every fixed n; both parts of the criterion are graded."""
    records: list[dict[str, Any]] = []
    savings: list[Comparison] = []
    losses: list[Comparison] = []
    for judge in rb2_judges(run):
        for task in rb2_tasks(run):
            run.say(f"{judge}, {task}")
            own, saved, lost = _cell(run, _complete(rb2(run, judge, task)))
            records += own
            savings.append(saved)
            losses.append(lost)
    records += graded(savings, MARGIN["votes saved"]) + graded(losses, MARGIN["mae lost"])
    table = rows(PAPER, "audit-adaptive", records)
    return Output(table, notes=_notes(table))


def _complete(cell: Cell) -> Cell:
    """Return the items with all eight votes, which can be replayed."""
    whole = np.flatnonzero((np.asarray(cell.votes.index)[:, 0] >= 0).all(1))
    if len(whole) == cell.votes.n_items:
        return cell
    return replace(
        cell,
        votes=cell.votes.take(whole),
        labels=cell.labels[whole],
        groups=cell.groups[whole],
        item_names=tuple(cell.item_names[i] for i in whole) if cell.item_names else (),
        variant=f"{cell.variant} all votes",
    )


def _cell(run: Run, cell: Cell) -> tuple[list[dict[str, Any]], Comparison, Comparison]:
    """Return a cell's rows, and the two claims against the best fixed n."""
    fixed = {n: answers(run, cell, n, "davidson") for n in run.few(list(range(MOST, 0, -1)), 2)}
    mean = {n: float(scored.scores["mae"].mean()) for n, scored in sorted(fixed.items())}
    best = min(mean, key=lambda n: mean[n])
    frugal = min(n for n in mean if mean[n] <= mean[best] + WITHIN)
    base = {"dataset": cell.dataset, "task": cell.task, "judge": cell.judge, "splits": run.splits}
    records = [
        {
            **base,
            "n": n,
            "method": "fixed n",
            "metric": "mae",
            **interval_columns(normal_interval(scored.scores["mae"])),
        }
        for n, scored in sorted(fixed.items())
    ]
    for name, n in (("best fixed n", best), ("fewest fixed n within 0.005 of it", frugal)):
        records.append({**base, "n": n, "method": name, "metric": "votes", "value": float(n)})
    by_rule = replays(run, cell)
    for name, scored in by_rule.items():
        for metric, values in (("mae", scored.errors), ("votes", scored.votes)):
            spread = normal_interval(np.nanmean(values, axis=1))
            records.append({**base, "method": name, "metric": metric, **interval_columns(spread)})
        against = {"best fixed n": best, "8 votes": MOST, "fewest fixed n within 0.005": frugal}
        for other, n in against.items():
            saved, worse = _saved(scored, fixed[n], n), _worse(scored, fixed[n])
            named = f"{name} against {other}"
            for metric, interval in (("share of votes saved", saved), ("mae lost", worse)):
                records.append(
                    {
                        **base,
                        "n": n,
                        "method": named,
                        "metric": metric,
                        **interval_columns(interval),
                    }
                )
    scored, of_best = by_rule[_name(GIVE_UP)], fixed[best]
    named = f"{_name(GIVE_UP)} against best fixed n"
    items, groups = of_best.items, cell.groups
    use = items >= 0
    saved_share = np.where(use, 1 - scored.votes / best, np.nan)
    gained = of_best.errors - scored.errors
    saving, gain = (
        evidence(values, items, cell.votes.n_items, groups, seed=seed_of(cell))
        for values in (saved_share, gained)
    )
    return (
        records,
        comparison(
            cell, best, named, "saved beyond 30 %", saving.plus(-SAVED), run.splits, "audit"
        ),
        comparison(
            cell, best, named, "0.005 minus mae lost", gain.plus(WITHIN), run.splits, "audit"
        ),
    )


def _name(give_up: float) -> str:
    return f"adaptive, {give_up:g} given up"


def replays(run: Run, cell: Cell) -> dict[str, Replay]:
    """Return the errors and votes of each stopping rule, on the splits that `answers` uses.

    All parameters are learnt on a split's calibration items: the fit from all their votes and labels,
    the prior of the vote shares and the price from their votes.
    """
    parts = splits(run, cell)
    sequence = np.asarray(cell.votes.index)[:, 0, :]
    fits = _fits(cell.votes, cell.labels, parts)
    by_rule: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for split, (calibration, evaluation) in enumerate(
        zip(parts.calibration, parts.evaluation, strict=True)
    ):
        fitted = jax.tree.map(lambda x, split=split: x[split], fits)
        prior = share_prior(profile(cell.votes.take(calibration)), symmetric=True)
        for give_up in run.few([GIVE_UP, MORE], 2):
            rule = stopping_plan(fitted, prior, MOST).within(give_up)
            counts = stopped(rule.settled, sequence[evaluation])
            by_rule.setdefault(_name(give_up), []).append((decide(rule, counts), counts))
            if give_up == GIVE_UP:
                plain = np.exp(np.asarray(_answer(fitted, counts)))
                decisions = np.asarray(bayes_action(np.log(plain), absolute_loss(3)))
                by_rule.setdefault(
                    "the same, Davidson's formula at the votes there are", []
                ).append((decisions, counts))
                counts = stopped(_agreed, sequence[evaluation])
                by_rule.setdefault(f"8 votes unless the first {AGREED} agree", []).append(
                    (decide(rule, counts), counts)
                )
    truth = np.asarray(cell.labels)[parts.evaluation]
    return {
        name: Replay(
            np.abs(np.stack([decisions for decisions, _ in outcomes]) - truth).astype(float),
            np.stack([counts.sum(1) for _, counts in outcomes]),
        )
        for name, outcomes in by_rule.items()
    }


@in_float64
def _fits(votes: Votes, labels: Int[np.ndarray, " item"], parts: Splits) -> Fit:
    """Return Davidson's model fitted to the calibration items of every split."""
    return _fit_all(votes, jnp.asarray(labels), jnp.asarray(parts.calibration))


@jax.jit
def _fit_all(
    votes: Votes, labels: Int[Array, " item"], calibration: Int[Array, "split calibration"]
) -> Fit:
    return jax.vmap(lambda here: Davidson().fit(votes.take(here), labels[here]))(calibration)


def _answer(fitted: Fit, counts: Int[np.ndarray, "item class"]) -> Float[Array, "item class"]:
    return fitted(from_counts(counts))


def stopped(settled: Any, sequence: Int[np.ndarray, "item vote"]) -> Int[np.ndarray, "item class"]:
    """Return the vote counts of items when they are settled, given all votes that they would get."""
    counts = np.zeros((len(sequence), 3), np.int64)
    live = np.arange(len(sequence))
    for vote in sequence.T:
        live = live[~settled(counts[live])]
        counts[live, vote[live]] += 1
    return counts


def decide(rule: StoppingRule, counts: Int[np.ndarray, "item class"]) -> Int[np.ndarray, " item"]:
    """Return the decisions with the smallest expected loss, given the votes so far."""
    return np.asarray(bayes_action(rule.plan.log_probs(counts), absolute_loss(3)))


def _agreed(counts: Int[np.ndarray, "item class"]) -> np.ndarray:
    return (counts.sum(1) == AGREED) & (counts.max(1) == AGREED)


def _saved(stopping: Replay, fixed: Answers, n: int) -> Interval:
    """Return the share of n votes per item that is saved, with an interval for new items and splits."""
    share = 1 - stopping.votes / n
    return _interval(share, fixed)


def _worse(stopping: Replay, fixed: Answers) -> Interval:
    """Return the MAE minus that of a fixed n, on the same splits."""
    return _interval(stopping.errors - fixed.errors, fixed)


def _interval(values: Float[np.ndarray, "split item"], fixed: Answers) -> Interval:
    cell = fixed.cell
    fitted = len(cell.labels) - (fixed.items >= 0).sum(1).mean()  # all that is not tested
    return two_way_interval(values, fixed.items, cell.votes.n_items, cell.groups, fitted=fitted)


def _values(table: pd.DataFrame, method: str, metric: str) -> pd.Series:
    chosen = table[(table["method"] == method) & (table["metric"] == metric)]
    return chosen.set_index(["judge", "task"])["value"].astype(float)


def _notes(table: pd.DataFrame) -> list[str]:
    notes = []
    names = [
        name
        for name in table["method"].unique()
        if f"{name} against 8 votes" in set(table["method"])
    ]
    for name in names:
        for other in ("best fixed n", "fewest fixed n within 0.005", "8 votes"):
            saved = _values(table, f"{name} against {other}", "share of votes saved")
            lost = _values(table, f"{name} against {other}", "mae lost")
            met = (saved >= SAVED) & (lost <= WITHIN)
            notes.append(
                f"{name}, against {other}: {int((lost <= WITHIN).sum())} of {len(lost)} cells within "
                f"{WITHIN} MAE, {int(met.sum())} of them with {SAVED:.0%} or more of the votes saved; "
                f"mean saved {saved.mean():.0%}; MAE lost {lost.mean():+.4f}, at most {lost.max():+.4f}."
            )
    name = f"{_name(GIVE_UP)} against best fixed n"
    saved, lost = _values(table, name, "share of votes saved"), _values(table, name, "mae lost")
    best = _values(table, "best fixed n", "votes")
    missed = saved.index[(saved < SAVED) | (lost > WITHIN)]
    if len(missed):
        notes.append(
            "The bar is missed at "
            + "; ".join(
                f"{judge} {task} (best n {best[judge, task]:.0f}, saved {saved[judge, task]:.0%}, MAE "
                f"{lost[judge, task]:+.4f})"
                for judge, task in missed
            )
            + "."
        )
    return notes
