"""Sentences of a calibration: what was read, why this method, and what to be careful about."""

from collections.abc import Sequence

import numpy as np

from judgebayes.aggregators import FittedAggregator, FittedDavidson, FittedHierarchicalDavidson
from judgebayes.arrays import ItemInts
from judgebayes.inference import Status
from judgebayes.measures.significance import Interval
from judgebayes.sentence import percent
from judgebayes.votes import Votes
from judgebayes.votes.classes import listing, may_compare
from judgebayes.workflow.comparing import Compared
from judgebayes.workflow.comparison_plan import LEAST_FOR_SPLITS
from judgebayes.workflow.data import Data
from judgebayes.workflow.meanings import no_order
from judgebayes.workflow.methods import FEW_LABELS, Choice, traits_of
from judgebayes.workflow.options import CalibrateRequest
from judgebayes.workflow.reading import Reading


def read_words(data: Data) -> list[str]:
    """Return sentences about what was read, including what affects the model."""
    coding, lines = data.read.coding, data.sentences
    if len(coding.judges) > 1:
        lines.append(
            f"The votes of {len(coding.judges)} judges are used as a panel; use --only-judge NAME "
            "for one of them."
        )
    if may_compare(coding.classes):
        lines.append(
            "The classes are not symmetric, so the model has an offset. If they compare two responses "
            "that could be swapped, use --pairwise."
        )
    return [*lines, *no_order(coding.classes)]


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
        unsure = (
            ", but not clearly (the 95 % interval of the difference contains zero, or one more error "
            "would reverse it)"
        )
        how = "Clearly lower NLL" if clear else f"Lower NLL{unsure}"
        text += f" {how}: {', '.join(named)}." if named else ""
    return text


def too_large_words(names: Sequence[str], votes: Votes) -> str:
    """Return a sentence about the methods that `auto` leaves out, because they need too much."""
    return (
        f"Not compared: {listing(names, 20)}, which would need too much memory or time with "
        f"{votes.n_judges:,} judges and {votes.n_classes} classes."
    )


def decider_words(decider: str, method: str, lead: Interval) -> str:
    """Return a sentence about the rule that decides instead of the method with the probabilities."""
    return (
        f"Decisions are those of {decider}, which decides clearly better than {method} on held-out "
        f"labels: {_lower_by(lead)}."
    )


def better_words(better: str, method: str, lead: Interval) -> str:
    """Return a sentence about a method that decides better than the chosen one."""
    return f"On held-out labels {better} decides clearly better than {method}: {_lower_by(lead)}."


def _lower_by(lead: Interval) -> str:
    return f"a mean loss lower by {-lead.mean:.3f} [{-lead.high:.3f}, {-lead.low:.3f}]"


def unmeasured_words(choice: Choice, given: Data) -> list[str]:
    """Return why the answers of a method are not measured on held-out labels, if that matters."""
    if given.labelled:
        return [
            f"Fewer than {LEAST_FOR_SPLITS} labels are too few to hold some out: the quality of the "
            "calibration is not measured."
        ]
    if traits_of(choice.method).rule:
        return []
    return [
        "Without labels these probabilities cannot be checked. They rest on how far the judges agree, "
        "so errors that judges share make them too sure: label some items."
    ]


def warnings_of(
    request: CalibrateRequest, read: Reading, labels: ItemInts, fitted: FittedAggregator
) -> list[str]:
    """Return sentences about what makes the answers unsure: the fit, the votes, the labels."""
    messages = []
    status = Status(int(fitted.status))
    if status != Status.CONVERGED:
        messages.append(status.sentence)
    given = np.asarray(read.votes.pooled_counts()).sum(1)
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
    if read.votes.order is not None:
        order = np.asarray(read.votes.order)[np.asarray(read.votes.index) >= 0]
        if len(np.unique(order)) == 1:
            messages.append(
                "All votes have the same presentation order: position bias is not averaged out."
            )
    return messages
