"""Calibrate votes: choose a method on held-out labels, fit it to all labels, and answer every item."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Annotated

import jax.numpy as jnp

from judgebayes.aggregators.wrapped import DecidedBy
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.io.options import split_names
from judgebayes.panel.diagnostics import diagnose
from judgebayes.progress import Progress, followed
from judgebayes.sentence import with_interval
from judgebayes.votes.classes import listing
from judgebayes.workflow.answers import abstention, decisions_of
from judgebayes.workflow.asking import data_of
from judgebayes.workflow.calibration import (
    Calibration,
    chosen_words,
    unmeasured_words,
    warnings_of,
)
from judgebayes.workflow.comparing import (
    LEAST_FOR_SPLITS,
    better_method,
    better_rule,
    compare,
    fit_and_answer,
    usual_splits,
    within_noise,
)
from judgebayes.workflow.conformal_sets import AGREEMENT, conformal_sets, strata_of
from judgebayes.workflow.data import Study
from judgebayes.workflow.losses import check_loss, losses_of
from judgebayes.workflow.methods import (
    FEW_LABELS,
    Choice,
    compared_methods,
    declared,
    known_calibrators,
    known_methods,
    suited,
    too_large,
    traits_of,
)
from judgebayes.workflow.options import CalibrateRequest, Fixed, check_choice
from judgebayes.workflow.records import with_options
from judgebayes.workflow.win_rates import check_ties, win_rate_of


@with_options
@in_float64
def calibrate(
    request: Annotated[CalibrateRequest, Fixed({"out": None, "html": None, "save": None})],
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
    request = replace(
        request, method=declared(request.method), calibrator=declared(request.calibrator)
    )
    given = read_request(request)
    wins = win_rate_of(given, request)
    splits = request.splits or usual_splits(request.method, given)
    request = replace(request, splits=splits)  # what the result says
    if request.label_noise == 0:  # as the annotators' disagreement shows it
        request = replace(request, label_noise=given.label_noise)
    labels, auto = given.labels, request.method == "auto"
    losses = losses_of(request.loss, given.coding.classes)
    labelled = int((labels >= 0).sum())
    calibrator = request.calibrator if labelled > 0 else "none"
    choices = [
        Choice(name, calibrator, request.label_noise)
        for name in (suited(given.votes) if auto else [request.method])  # the default first
    ]
    fit = partial(fit_and_answer, data=given, labels=labels, seed=request.seed)
    compared, first_fit = None, None
    if labelled >= LEAST_FOR_SPLITS:
        unseen = 1.0 if request.target == "more" else float((labels < 0).mean())
        with ThreadPoolExecutor(1) as background:
            first_fit = background.submit(fit, choices[0])  # it is most often chosen
            compared = compare(
                compared_methods(choices, given.coding.classes, given.votes),
                given.votes,
                labels,
                given.groups,
                losses.matrix,
                splits=splits,
                seed=request.seed,
                label_noise=request.label_noise,
                unseen=unseen,
                ordered=given.coding.classes.ordered,
                progress=progress,
            )
    choice = choices[0]
    if compared is not None and len(choices) > 1 and labelled >= FEW_LABELS:
        best = compared.best([c.name for c in choices], choice.name)
        choice = next(c for c in choices if c.name == best)
    running = first_fit if choice is choices[0] else None
    for _ in followed([choice], f"fitting {choice.name}", progress):
        method, fitted, log_probs = fit(choice) if running is None else running.result()
    chosen = [chosen_words(choice, choices, compared, labelled)] if auto else []
    if auto and (large := too_large(given.votes)):
        chosen.append(
            f"Not compared: {listing(large, 20)}, which would need too much memory or time with "
            f"{given.votes.n_judges:,} judges and {given.votes.n_classes} classes."
        )
    chosen += fitted.words() if hasattr(fitted, "words") else []
    warnings = warnings_of(request, given, fitted)
    leads = {} if compared is None else compared.leads(choice.name, losses.matrix)
    warnings += unmeasured_words(choice, given) if compared is None else within_noise(leads)
    decider = None
    settled = auto and losses.person is None and labelled >= FEW_LABELS
    if settled and (decider := better_rule(leads)) is not None:
        _, rule, _ = fit(Choice(decider, "none", label_noise=request.label_noise))
        fitted = DecidedBy(fitted, rule, decider, jnp.asarray(losses.matrix))
        chosen.append(
            f"Decisions are those of {decider}, which decides clearly better than {choice.name} on "
            f"held-out labels: a mean loss lower by {with_interval(leads[decider].negative())}."
        )
    better = better_method(leads)
    if better is not None and better != decider and labelled >= FEW_LABELS:
        chosen.append(
            f"On held-out labels {better} decides clearly better than {choice.name}: a mean loss lower "
            f"by {with_interval(leads[better].negative())}."
        )
    decisions = decisions_of(log_probs, losses, fitted, given.votes)
    sets = None
    if request.conformal is not None:
        for _ in followed([request.conformal], "conformal sets", progress):
            sets = conformal_sets(request, choice, method, given, compared, decisions.of_item)
    return Calibration(
        given=given,
        request=request,
        losses=losses,
        choice=choice,
        method=method,
        fitted=fitted,
        log_probs=log_probs,
        decisions=decisions,
        chosen=chosen,
        compared=compared,
        leads=leads,
        findings=diagnose(given.votes, labels, given.coding),
        warnings=warnings,
        sets=sets,
        abstention=None
        if compared is None or losses.person is None
        else abstention(compared, choice.name, losses),
        wins=wins,
    )


def read_request(request: CalibrateRequest) -> Study:
    """Check the options, and read the votes and the labels.

    Raises
    ------
    JudgeBayesError
        For an unknown option value, or bad input.
    """
    method, _, inference = request.method.partition(":")
    check_choice("--method", method, known_methods())
    check_choice("--calibrator", request.calibrator, known_calibrators())
    choices = traits_of(method).inferences
    if inference and inference not in choices:
        others = f"is fitted by {', '.join(choices)}" if choices else "is fitted in one way only"
        raise JudgeBayesError(f"--method {request.method}: {method} {others}.")
    check_loss(request.loss)
    if request.conformal is not None and not 0 < request.conformal < 1:
        raise JudgeBayesError(
            f"--conformal is {request.conformal}; it must be a coverage between 0 and 1, such as 0.9."
        )
    if request.conformal is None and (request.conformal_by or request.empty_sets):
        raise JudgeBayesError(
            "--conformal-by and empty_sets describe conformal sets: add --conformal 0.9."
        )
    by = request.conformal_by
    named = [*split_names(request.systems or ""), *([] if by in (None, AGREEMENT) else [by])]
    data = data_of(request, named=tuple(named), detect=True)
    check_ties(request, data)
    needs_none = request.method == "sc" or traits_of(request.method).learns_from_unlabelled
    if not data.labelled and not needs_none:
        raise JudgeBayesError(
            "Calibration needs labels, and there are none; add them with --labels FILE or --label "
            "COLUMN, or use --method sc or dawid-skene, which need none."
        )
    if by is not None:
        strata_of(data, by)  # before the fits, which take long
    if not request.allow_degenerate:
        data.coding.refuse_constant(data.labels, data.opened.label or "label")
    most = 1 - 1 / data.votes.n_classes
    if not 0 <= request.label_noise < most:
        raise JudgeBayesError(
            f"label_noise is {request.label_noise:g}; it must be the share of wrong labels, from 0 to "
            f"less than {most:.2g} (random labels)."
        )
    return data
