"""Calibrate votes: choose a method on held-out labels, fit it to all labels, and answer every item."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from judgebayes.aggregators import (
    Aggregator,
    DawidSkene,
    FittedAggregator,
    FittedDavidson,
    FittedDawidSkene,
    FittedHierarchicalDavidson,
)
from judgebayes.aggregators.base import by_slab
from judgebayes.aggregators.decided_by import DecidedBy
from judgebayes.compiled.float64 import in_float64
from judgebayes.compiled.programs import cached_export
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate.by_loop import PlainFit, fit_plain
from judgebayes.evaluate.one_by_one import answers_of, fit_to_all, is_long
from judgebayes.evaluate.plans import is_jax
from judgebayes.evaluate.splits import random_splits
from judgebayes.evaluate.sweeps import evaluate_splits
from judgebayes.finding import Finding
from judgebayes.inference import Status
from judgebayes.io.options import split_names
from judgebayes.measures.significance import Interval
from judgebayes.panel.diagnostics import diagnose
from judgebayes.panel.judges import judge_table
from judgebayes.progress import Progress, followed
from judgebayes.sentence import percent
from judgebayes.votes import MISSING, Coding, SparseVotes, Votes
from judgebayes.votes.classes import listing
from judgebayes.votes.sparse import AnyVotes, counts_by_item
from judgebayes.workflow.abstaining import Abstention, abstention
from judgebayes.workflow.answers import (
    Decisions,
    answer_table,
    decided_counts,
    decided_words,
    decisions_of,
)
from judgebayes.workflow.columns import values_of
from judgebayes.workflow.comparing import (
    Compared,
    better_rule,
    compare,
    comparison_table,
    comparison_words,
    held_out_numbers,
    within_noise,
)
from judgebayes.workflow.comparison_plan import LEAST_FOR_SPLITS, splits_of
from judgebayes.workflow.conformal_sets import (
    ConformalSets,
    set_numbers,
    sets_of,
    strata_table,
    strata_words,
    threshold_of,
)
from judgebayes.workflow.conformal_strata import (
    AGREEMENT,
    FITTED_SHARE,
    Strata,
    agreement_strata,
    strata_by,
)
from judgebayes.workflow.data import Data, data_of
from judgebayes.workflow.losses import Losses, check_losses, losses_of
from judgebayes.workflow.methods import (
    FEW_LABELS,
    INFERENCES,
    Choice,
    build,
    compared_methods,
    fit_on_of,
    known_calibrators,
    known_methods,
    suited,
    too_large,
    traits_of,
)
from judgebayes.workflow.more_labels import MoreLabels, check_forecast, more_labels
from judgebayes.workflow.next_steps import calibration_steps
from judgebayes.workflow.options import TARGETS, CalibrateRequest, Fixed, check_choices
from judgebayes.workflow.plugins import load_plugins
from judgebayes.workflow.reading import (
    Listing,
    Reading,
)
from judgebayes.workflow.records import with_options
from judgebayes.workflow.results import Result, count_findings, ends
from judgebayes.workflow.win_rates import WinRate, check_ties, win_rate_of

__all__ = [
    "Calibration",
    "ConformalSets",
    "answer",
    "calibrate",
    "chosen_words",
    "read_request",
    "read_words",
    "wins_in",
]

SET_DIVISIONS = 20
"""How often the labels are divided to measure the coverage of conformal sets."""
SLAB_CELLS = 2**22
"""Cells (item x judge x sample) of the tables in which a list of votes is processed."""


@dataclass(frozen=True, repr=False)
class Calibration(Result):
    """The chosen method, its fit to all labels, its answers, and the comparison of methods."""

    schema: ClassVar[str] = "judgebayes.calibration/1"
    given: Data
    request: CalibrateRequest
    table: Reading
    """The votes as a table; if they are a list, those on the labelled items."""
    labels: Int[np.ndarray, " some"]
    """The labels of the table."""
    losses: Losses
    """The loss of each decision."""
    choice: Choice
    method: Aggregator
    fitted: FittedAggregator
    log_probs: Float[Array, "item class"]
    decisions: Decisions
    chosen: list[str]
    """The reason for this method and its parameters, in sentences."""
    compared: Compared | None
    """None if there are too few labels to hold some out, or too many votes to fit again."""
    leads: dict[str, Interval]
    hide_nll: bool
    """Whether nearly constant labels make every NLL look good."""
    findings: list[Finding]
    """The findings of `judgebayes diagnose` for the table."""
    warnings: list[str]
    sets: ConformalSets | None
    abstention: Abstention | None
    """Held-out results of sending items to a person; None without a price or held-out labels."""
    wins: WinRate | None
    """Who wins; None if the votes do not compare two responses."""
    more: MoreLabels | None
    """What more labels would gain; None without `forecast`, or if NLL is not finite."""

    @property
    def sentences(self) -> list[str]:
        """Who wins, what was read, the method and the reason for it, problems, and the decisions."""
        lines = [] if self.wins is None else self.wins.lead
        lines = [*lines, *read_words(self.given), *self.chosen]
        if self.compared is not None:
            lines += comparison_words(
                self.compared, self.leads, self.losses, hide_nll=self.hide_nll
            )
        lines += [*(f.sentence for f in self.unsound), *self.warnings]
        lines += [] if self.sets is None else self.sets.sentences
        return [*lines, *self.decided, *([] if self.more is None else [self.more.sentence])]

    @property
    def numbers(self) -> dict[str, Any]:
        """What was read, the method, its held-out results with 95 % intervals, and the decisions."""
        given, classes = self.given, self.given.read.coding.classes
        numbers = given.numbers | ({} if self.wins is None else self.wins.own_numbers)
        numbers |= {"method": self.choice.name, "map": self.choice.map_name}
        numbers["decisions"] = decided_counts(classes.names, self.decisions)
        if self.compared is not None:
            numbers["held_out"] = held_out_numbers(
                self.compared, self.choice.name, self.losses.matrix, hide_nll=self.hide_nll
            )
        if self.sets is not None and self.sets.strata is not None:
            numbers["conformal"] = set_numbers(self.sets.strata)
        if self.abstention is not None:
            numbers["sent_to_a_person"] = ends(*self.abstention.share)
            numbers["loss_of_the_others"] = ends(*self.abstention.risk)
        if self.more is not None:
            numbers["more_labels"] = self.more.numbers
        return numbers | count_findings(self.findings)

    @property
    def decided(self) -> list[str]:
        """How often each class was decided, and the results of sending items to a person."""
        coding = self.given.read.coding
        rule = self.fitted.name if isinstance(self.fitted, DecidedBy) else None
        words = decided_words(coding, self.log_probs, self.losses, self.decisions, rule)
        return [words] if self.abstention is None else [words, self.abstention.sentence]

    @property
    def answers(self) -> pd.DataFrame:
        """A row per item: probabilities, decision, expected loss, votes, and its conformal set."""
        read, sets = self.given.read, None if self.sets is None else self.sets.inside
        return answer_table(
            read.coding, read.votes, self.log_probs, self.losses, self.decisions, sets
        )

    @property
    def judges(self) -> pd.DataFrame:
        """A row per judge, as `judgebayes.judge_table` gives it."""
        table = self.table
        return judge_table(table.votes, self.labels, table.coding, groups=table.groups)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The answers, the held-out comparison, and the judges."""
        tables = {"answers": self.answers}
        if self.compared is not None:
            tables["held out"] = comparison_table(self.compared, self.leads, hide_nll=self.hide_nll)
        if self.sets is not None and self.sets.strata is not None:
            tables["conformal"] = self.sets.strata
        tables |= {"judges": self.judges}
        return tables if self.wins is None else tables | self.wins.tables

    @property
    def next_steps(self) -> list[str]:
        """What to mend, which labels to add, and whether another method decides better."""
        return calibration_steps(
            problems=count_findings(self.unsound)["problems"],
            labelled=int((self.labels >= 0).sum()),
            method=self.choice.name,
            by_user=self.request.method != "auto",
            leads=self.leads,
            more=self.more,
        )

    @property
    def unsound(self) -> list[Finding]:
        """The bad findings, if there are labels."""
        bad = [f for f in self.findings if f.severity == "bad"]
        return bad if (self.labels >= 0).any() else []

    @property
    def counted(self) -> str:
        """The numbers of bad findings and of notes."""
        bad, notes = (sum(f.severity == kind for f in self.findings) for kind in ("bad", "note"))
        return f"{bad} problem(s), {notes} note(s)"


@with_options
@in_float64
def calibrate(
    request: Annotated[CalibrateRequest, Fixed({"out": None, "save": None})],
    progress: Progress | None = None,
) -> Calibration:
    """Calibrate votes: probabilities, a decision and its expected loss for every item.

    The function behind `judgebayes calibrate`, with the same options; `votes` and `labels` are paths or
    tables, or `votes` is what `read` returned. A method is chosen on held-out labels, fitted to all
    labels, and answers every item.

    Raises
    ------
    JudgeBayesError
        For an unknown option value, or bad input.
    """
    return answer(request, read_request(request), progress)


def read_request(request: CalibrateRequest) -> Data:
    """Check the options, and read the votes and the labels.

    Raises
    ------
    JudgeBayesError
        For an unknown option value, or bad input.
    """
    load_plugins(None if request.plugin is None else Path(request.plugin))
    check_choices(
        method=(request.method, known_methods()),
        calibrator=(request.calibrator, known_calibrators()),
        inference=(request.inference, INFERENCES),
        target=(request.target, TARGETS),
    )
    check_losses(request.loss, request.losses, request.abstain_cost)
    if request.conformal is not None and not 0 < request.conformal < 1:
        raise JudgeBayesError(
            f"--conformal is {request.conformal}; it must be a coverage between 0 and 1, such as 0.9."
        )
    if request.conformal is None and (request.conformal_by or request.no_empty_sets):
        raise JudgeBayesError(
            "--conformal-by and --no-empty-sets describe conformal sets: add --conformal 0.9."
        )
    by = request.conformal_by
    named = [*split_names(request.systems or ""), *([] if by in (None, AGREEMENT) else [by])]
    data = data_of(request, named=tuple(named))
    check_ties(request.ties, data, request.systems)
    if not data.labelled and not _needs_no_labels(request.method):
        raise JudgeBayesError(
            "Calibration needs labels, and there are none; add them with --labels FILE or --label "
            "COLUMN, or use --method sc or dawid-skene, which need none."
        )
    check_forecast(request.forecast, int((data.labels >= 0).sum()))
    if by is not None:
        _strata(data, by)  # before the fits, which take long
    if not request.allow_degenerate:
        data.read.coding.refuse_constant(data.labels, data.read.label or "label")
    most = 1 - 1 / data.read.votes.n_classes
    if not 0 <= request.label_noise < most:
        raise JudgeBayesError(
            f"--label-noise is {request.label_noise:g}; it must be the share of wrong labels, from 0 to "
            f"less than {most:.2g} (random labels)."
        )
    return data


def _needs_no_labels(method: str) -> bool:
    return method == "sc" or traits_of(method).learns_from_unlabelled


def read_words(data: Data) -> list[str]:
    """Return sentences about what was read, including what affects the model."""
    coding, lines = data.read.coding, data.sentences
    if len(coding.judges) > 1:
        lines.append(
            f"The votes of {len(coding.judges)} judges are used as a panel; use --only-judge NAME "
            "for one of them."
        )
    if not coding.classes.pairwise:
        lines.append(
            "The classes are not symmetric, so the model has an offset. If they compare two responses "
            "that could be swapped, use --pairwise."
        )
    return lines


def wins_in(request: CalibrateRequest, given: Data) -> WinRate | None:
    """Return who wins; None if the votes do not compare two responses."""
    return win_rate_of(given, request.ties, request.target, request.systems, request.seed)


def answer(
    request: CalibrateRequest,
    given: Data,
    progress: Progress | None = None,
    *,
    wins: WinRate | None = None,
) -> Calibration:
    """Choose a method on held-out labels, fit it to all of them, and answer every item.

    `wins` is what `wins_in` returned, if it has been called.
    """
    wins = wins_in(request, given) if wins is None else wins
    splits = splits_of(request, given)
    request = replace(request, splits=splits)  # what the result says
    if request.label_noise == 0:  # as the annotators' disagreement shows it
        request = replace(request, label_noise=given.label_noise)
    read, labels = given.read, given.labels
    losses = losses_of(request.loss, request.losses, request.abstain_cost, read.coding.classes)
    loss = losses.matrix
    table, own = _table(read, labels)
    choices = _choices(request, read, table.votes, labelled=bool((labels >= 0).any()))
    enough = (labels >= 0).sum() >= LEAST_FOR_SPLITS
    once = isinstance(read, Listing) and traits_of(choices[0].method).learns_from_unlabelled
    fit = partial(_fit_and_answer, table=table, read=read, labels=labels, seed=request.seed)
    compared: Compared | None = None
    first_fit: Future[tuple[Aggregator, FittedAggregator, Float[Array, "item class"]]] | None = None
    if enough and not once:
        # The first is most often chosen, so it is fitted during the comparison.
        with ThreadPoolExecutor(1) as background:
            if isinstance(read, Reading):  # a list of votes may need all the memory
                first_fit = background.submit(fit, choices[0])
            compared = compare(
                compared_methods(choices, table.coding.classes, table.votes),
                table.votes,
                own,
                table.groups,
                loss,
                splits=splits,
                seed=request.seed,
                label_noise=request.label_noise,
                unseen=1.0 if request.target == "more" else float((labels < 0).mean()),
                progress=progress,
            )
    choice = choices[0]
    if compared is not None and len(choices) > 1 and (labels >= 0).sum() >= FEW_LABELS:
        best = compared.best([c.name for c in choices], choices[0].name)
        choice = next(c for c in choices if c.name == best)
    name = choice.name
    running = first_fit if choice is choices[0] else None
    for _ in followed([choice], f"fitting {name}", progress):
        method, fitted, log_probs = fit(choice) if running is None else running.result()
    chosen = (
        []
        if request.method != "auto"
        else [chosen_words(choice, choices, compared, int((labels >= 0).sum()))]
    )
    if request.method == "auto" and (large := too_large(table.votes)):
        chosen.append(
            f"Not compared: {listing(large, 20)}, which would need too much memory or time with "
            f"{table.votes.n_judges:,} judges and {table.votes.n_classes} classes. Use --method to try "
            "one."
        )
    chosen += fitted.words() if hasattr(fitted, "words") else []
    warnings = _warnings(request, read, labels, fitted)
    findings = diagnose(table.votes, own, table.coding)
    leads = {}
    decider: str | None = None
    if compared is not None:
        leads = compared.leads(name, loss)
        if request.method == "auto" and losses.person is None and (labels >= 0).sum() >= FEW_LABELS:
            decider = better_rule(leads)
        warnings += within_noise(leads)
    elif once:
        warnings.append(
            f"There are too many votes to fit {name} again for every split, so the quality of its "
            "answers is not measured."
        )
    elif given.labelled:
        warnings.append(
            f"Fewer than {LEAST_FOR_SPLITS} labels are too few to hold some out: the quality of the "
            "calibration is not measured."
        )
    elif not traits_of(choice.method).rule:
        warnings.append(
            "Without labels these probabilities cannot be checked. They rest on how far the judges "
            "agree, so errors that judges share make them too sure: label some items."
        )
    rule_answers = None
    if decider is not None:
        _, rule, rule_answers = fit(Choice(decider, "none", label_noise=request.label_noise))
        fitted = DecidedBy(fitted, rule, decider, jnp.asarray(loss))
        chosen.append(
            f"Decisions are those of {decider}, which decides clearly better than {name} on held-out "
            f"labels: a mean loss lower by {-leads[decider].mean:.3f} "
            f"[{-leads[decider].high:.3f}, {-leads[decider].low:.3f}]."
        )
    decisions = decisions_of(log_probs, losses, rule_answers)
    more = None
    if request.forecast is not None and compared is not None:
        more = more_labels(
            compared,
            name,
            compared_methods([choice], table.coding.classes, table.votes)[name],
            table.votes,
            own,
            request.forecast,
            seed=request.seed,
            by_user=request.method != "auto",
            progress=progress,
        )
        if more is None:
            warnings.append(
                f"{name} was certain and wrong on a held-out item, so its NLL with more labels "
                "cannot be forecast."
            )
    sets = None
    if request.conformal is not None:
        for level in followed([request.conformal], "conformal sets", progress):
            sets = _conformal_sets(request, choice, method, given, compared)
            sets.sentences.extend(_outside(sets.inside, decisions.of_item, read.coding, level))
    return Calibration(
        given=given,
        request=request,
        table=table,
        labels=own,
        losses=losses,
        choice=choice,
        method=method,
        fitted=fitted,
        log_probs=log_probs,
        decisions=decisions,
        chosen=chosen,
        compared=compared,
        leads=leads,
        hide_nll=not request.allow_degenerate
        and any(f.topic == "labels" and f.severity == "bad" for f in findings),
        findings=findings,
        warnings=warnings,
        sets=sets,
        abstention=None
        if compared is None or losses.person is None
        else abstention(compared, name, losses),
        wins=wins,
        more=more,
    )


def _table(
    read: Reading | Listing, labels: Int[np.ndarray, " item"]
) -> tuple[Reading, Int[np.ndarray, " some"]]:
    """Return the votes as a table, with labels; of a list of votes, only the labelled items."""
    if isinstance(read, Reading):
        return read, labels
    labelled = _labelled(labels)
    return read.of_items(labelled), labels[labelled]


def _labelled(labels: Int[np.ndarray, " item"]) -> Int[np.ndarray, " some"]:
    """Return the labelled items, or the first item if there are none (`sc` learns nothing)."""
    return np.flatnonzero(labels >= 0) if (labels >= 0).any() else np.arange(1)


@in_float64
def _fit_and_answer(
    choice: Choice,
    table: Reading,
    read: Reading | Listing,
    labels: Int[np.ndarray, " item"],
    seed: int,
) -> tuple[Aggregator, FittedAggregator, Float[Array, "item class"]]:
    """Return a method, its fit to all labels, and its answers on all items."""
    method = build(choice, table.coding.classes, table.votes)
    fitted = _fitted(choice, method, read, labels, seed)
    return method, fitted, _predict(fitted, read.votes)


def _fitted(
    choice: Choice,
    method: Aggregator,
    read: Reading | Listing,
    labels: Int[np.ndarray, " item"],
    seed: int,
) -> FittedAggregator:
    """Return the method fitted to the items that it learns from."""
    labelled = _labelled(labels)
    if not traits_of(choice.method).learns_from_unlabelled:
        votes = (
            read.votes.take(labelled)
            if isinstance(read, Reading)
            else read.of_items(labelled).votes
        )
        labels = labels[labelled]
        if is_jax(method) and is_long(method, votes, len(labels)):
            return fit_to_all(method, votes, labels, jax.random.key(seed))
    elif isinstance(read, Reading):
        votes = read.votes
    else:
        assert isinstance(method, DawidSkene)  # `_uncalibrated`: it has no calibration map
        return method.fit(read.votes, labels)
    if isinstance(method, DawidSkene) and not (labels >= 0).any():
        return method.fit(votes, labels)  # compiled code could not tell that there are no labels
    if not is_jax(method):
        return fit_plain(method, votes, labels, jax.random.key(seed))
    return cached_export(_fit, method, votes, jnp.asarray(labels), jax.random.key(seed))


def _predict(fitted: FittedAggregator, votes: AnyVotes) -> Float[Array, "item class"]:
    """Return the answers on all items; a list of votes is processed in small tables."""
    if isinstance(votes, Votes):
        return fitted(votes) if isinstance(fitted, PlainFit) else answers_of(fitted, votes)
    if isinstance(fitted, FittedDawidSkene):
        return fitted(votes)
    share = votes.n_items / max(len(votes), 1)
    rows = int(SLAB_CELLS / (votes.n_judges * votes.n_samples) / (1.5 * share))
    shape = votes.slab_shape(max(rows, 1))

    def answer(slab: AnyVotes) -> Float[Array, "item class"]:
        assert isinstance(slab, SparseVotes)
        table = slab.dense()
        return fitted(table) if isinstance(fitted, PlainFit) else answers_of(fitted, table)

    return by_slab(answer, votes, shape)


@jax.jit
def _fit(
    method: Aggregator, votes: Votes, labels: Int[Array, " item"], key: PRNGKeyArray
) -> FittedAggregator:
    return method.fit(votes, labels, key=key)


def _choices(
    request: CalibrateRequest, read: Reading | Listing, votes: Votes, *, labelled: bool
) -> list[Choice]:
    """Return the requested method, or those that `auto` compares, the default first."""
    names = suited(votes) if request.method == "auto" else [request.method]
    calibrator = request.calibrator if labelled else "none"
    if isinstance(read, Listing):
        if traits_of(request.method).learns_from_unlabelled:
            return [_uncalibrated(request)]
        names = [name for name in names if not traits_of(name).learns_from_unlabelled]
    return [Choice(name, calibrator, request.inference, request.label_noise) for name in names]


def _uncalibrated(request: CalibrateRequest) -> Choice:
    """Return a method without a map, because all votes are used in its only fit."""
    if request.calibrator not in ("auto", "none") or request.inference == "nuts":
        raise JudgeBayesError(
            f"With so many votes, --method {request.method} is fitted once, at the mode: use "
            "--calibrator none, and not --inference nuts."
        )
    return Choice(request.method, "none", request.inference, request.label_noise)


def chosen_words(
    choice: Choice, choices: Sequence[Choice], compared: Compared | None, labels: int
) -> str:
    """Return a sentence about the chosen method and the methods and rules with less NLL."""
    if compared is None:
        return f"Method: {choice.name}, the default, because there are too few labels for a comparison."
    if labels < FEW_LABELS:
        return (
            f"Method: {choice.name}, the default, because fewer than {FEW_LABELS} labels are too few to "
            "choose a method."
        )
    own, candidates = compared.means[choice.name]["nll"], [c.name for c in choices]
    less = compared.with_less(choice.name)
    if not any(name in candidates for name in less):
        others = ", ".join(
            f"{name} {compared.means[name]['nll']:z.3f}"
            for name in candidates
            if name != choice.name
        )
        text = (
            f"Method: {choice.name}, with the lowest held-out NLL, {own:z.3f} ({others}). Its "
            f"scores are slightly optimistic, because it was chosen from {len(choices)} methods "
            "on these labels."
        )
    else:
        first = choices[0].name
        role = "the default" if choice.name == first else f"clearly ahead of {first}, the default"
        text = f"Method: {choice.name}, {role}, with a held-out NLL of {own:z.3f}."
    for clear in (True, False):
        named = [
            f"{name} {compared.means[name]['nll']:z.3f}"
            + (" (a rule)" if traits_of(name).rule else "")
            for name in less
            if compared.clearly_less(name, choice.name) == clear
        ]
        if named:
            text += f" {', '.join(named)} {'has' if len(named) == 1 else 'have'} a " + (
                "clearly lower NLL."
                if clear
                else "lower NLL, but not clearly: the 95 % interval of "
                f"{'the' if len(named) == 1 else 'each'} difference contains zero, or one more error "
                "would reverse it."
            )
    return text


def _conformal_sets(
    request: CalibrateRequest,
    choice: Choice,
    method: Aggregator,
    given: Data,
    compared: Compared | None,
) -> ConformalSets:
    """Return the conformal set of each item: a fit to some labels, thresholds from the others."""
    level, by = request.conformal, request.conformal_by
    assert level is not None
    read, labels = given.read, given.labels
    labelled = np.flatnonzero(labels >= 0)
    every = _strata(given, by)
    strata, few = strata_by(by, every, counts_by_item(read.votes), labelled, level)
    parts = random_splits(
        read.votes.n_items,
        splits=1,
        calibration=FITTED_SHARE,
        strata=strata.of_item if read.groups is None else None,
        groups=read.groups,
        among=labelled,
        seed=request.seed,
    )
    fitted_on, held = (p[0][p[0] >= 0] for p in (parts.calibration, parts.evaluation))
    own = np.full_like(labels, MISSING)
    own[fitted_on] = labels[fitted_on]
    fitted = _fitted(choice, method, read, own, request.seed)
    log_probs = np.asarray(_predict(fitted, read.votes))
    threshold = threshold_of(
        log_probs, labels, held, level, strata=strata, no_empty=request.no_empty_sets
    )
    sets = sets_of(threshold, log_probs, labels, fitted_on=len(fitted_on), few=few)
    if compared is None:
        return sets
    shown = every if by is None else every | {by: strata}
    table = _measured_sets(request, choice, given, strata, shown)
    words = strata_words(table, by=by, level=level, no_empty=request.no_empty_sets)
    return replace(sets, sentences=[*sets.sentences, *words], strata=table)


def _measured_sets(
    request: CalibrateRequest,
    choice: Choice,
    given: Data,
    strata: Strata,
    shown: Mapping[str, Strata],
) -> pd.DataFrame:
    """Return `strata_table` of the labelled items, from repeated divisions of their labels."""
    assert request.conformal is not None
    table, own = _table(given.read, given.labels)
    among = np.arange(len(own)) if isinstance(given.read, Reading) else _labelled(given.labels)
    strata = strata.take(among)
    parts = random_splits(
        len(own),
        splits=min(request.splits or SET_DIVISIONS, SET_DIVISIONS),
        calibration=FITTED_SHARE,
        strata=strata.of_item if table.groups is None else None,
        groups=table.groups,
        among=np.flatnonzero(own >= 0),
        seed=request.seed,
    )
    method = compared_methods([choice], table.coding.classes, table.votes)[choice.name]
    evaluation = evaluate_splits(
        method,
        table.votes,
        own,
        parts,
        fit_on=fit_on_of([choice.name])[choice.name],
        seed=request.seed,
    )
    return strata_table(
        evaluation,
        request.conformal,
        strata,
        {name: each.take(among) for name, each in shown.items()},
        no_empty=request.no_empty_sets,
        groups=table.groups,
    )


def _strata(given: Data, by: str | None) -> dict[str, Strata]:
    """Return the strata of the items by a column, if one is named, and by agreement."""
    strata = {}
    if by is not None and by != AGREEMENT:
        if given.opened is None:
            raise JudgeBayesError(
                "--conformal-by names a column, and these votes have no other columns; pass files or "
                "tables instead of the result of judgebayes.read."
            )
        if by == given.read.label:
            raise JudgeBayesError(
                f"--conformal-by is {by!r}, the column of the labels; name a column that is known for "
                "items without a label too."
            )
        code, names = values_of(given.opened.tables, given.read, by)
        if (code < 0).any():
            code, names = np.where(code < 0, len(names), code), [*names, "(none)"]
        strata[by] = Strata(code, names)
    if given.read.coding.judges.size > 1 or given.read.votes.n_samples > 1:
        strata[AGREEMENT] = agreement_strata(counts_by_item(given.read.votes))
    elif by == AGREEMENT:
        raise JudgeBayesError("--conformal-by agreement needs several votes on an item.")
    return strata


def _outside(
    inside: Bool[np.ndarray, "item class"],
    decisions: Int[np.ndarray, " item"],
    coding: Coding,
    level: float,
) -> list[str]:
    """Return sentences about the items whose decision is not in their set."""
    out = ~inside[np.arange(len(decisions)), decisions]
    if not out.any():
        return []
    first, empty = str(coding.items[int(np.argmax(out))]), int((~inside.any(1)).sum())
    lines = [
        f"On {int(out.sum())} of {len(out)} items (the first is {first!r}), the decision is not in the "
        "set. A set contains the classes that are probable enough under a fit to fewer labels; the "
        "decision has the least expected loss under the fit to all labels. Use the decision if you "
        "need one answer, and the set if a class outside it must rarely be the label."
    ]
    if empty:
        lines.append(
            f"{empty} of these sets are empty: no class is probable enough there. This happens if the "
            f"accuracy of the method is above {percent(level)}, so that it can leave out its least "
            "certain items; a higher --conformal, or --no-empty-sets, fills them."
        )
    return lines


def _warnings(
    request: CalibrateRequest,
    read: Reading | Listing,
    labels: Int[np.ndarray, " item"],
    fitted: FittedAggregator,
) -> list[str]:
    messages = []
    status = Status(int(fitted.status))
    if status != Status.CONVERGED:
        messages.append(status.sentence)
    given = counts_by_item(read.votes).sum(1)
    readable = "decided" if read.coding.undecided.any() else "readable"
    if (given == 0).any():
        messages.append(
            f"{int((given == 0).sum())} item(s) have no {readable} vote. Their probabilities are "
            "what the fit predicts without votes."
        )
    pooled = isinstance(fitted, FittedDavidson | FittedHierarchicalDavidson)
    if pooled and len(np.unique(given[given > 0])) > 1:
        low, high = int(given[given > 0].min()), int(given.max())
        messages.append(
            f"Items have between {low} and {high} votes; the same fit is used for all items, "
            "although its parameters depend on the number of votes."
        )
    if request.label_noise > 0:
        messages.append(
            f"{percent(request.label_noise)} of the labels are assumed to be wrong. Held-out NLL and "
            "accuracy refer to the observed labels. Even perfect decisions would agree with only "
            f"{percent(1 - request.label_noise)} of them."
        )
    n = int((labels >= 0).sum())
    if 0 < n < FEW_LABELS:
        messages.append(
            f"Only {n} labels: all numbers here are imprecise. 50 to 100 labels are usually enough."
        )
    counts = np.bincount(labels[labels >= 0], minlength=read.votes.n_classes)
    names = read.coding.classes.names
    absent = [name for name, count in zip(names, counts, strict=True) if count == 0]
    if n and absent:
        messages.append(
            f"No label is {' or '.join(absent)}: its probability comes from the model alone."
        )
    if isinstance(read.votes, Votes) and read.votes.order is not None:
        order = np.asarray(read.votes.order)[np.asarray(read.votes.index) >= 0]
        if len(np.unique(order)) == 1:
            messages.append(
                "All votes have the same presentation order: position bias is not averaged out."
            )
    return messages
