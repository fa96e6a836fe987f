"""`judgebayes calibrate` and `judgebayes apply`: a user's own files."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from judgebayes import __version__
from judgebayes.aggregate import (
    Aggregator,
    BaseRate,
    Davidson,
    FittedAggregator,
    HierarchicalDavidson,
    MajorityVote,
    MarginThreshold,
)
from judgebayes.cli.reading import Reading, Source, classes_of, open_source, read_votes
from judgebayes.decide import absolute_loss, bayes_action, risk, zero_one_loss
from judgebayes.errors import JudgeBayesError
from judgebayes.evaluate import Evaluation, evaluate_splits, measure
from judgebayes.fit_file import SavedFit, drift, load_fit, profile, save_fit
from judgebayes.float64 import in_float64
from judgebayes.inference import DRPS, MAP, NUTS, MinimumScore, Status
from judgebayes.inference.problem import Inference
from judgebayes.io import write_table
from judgebayes.scores import nll
from judgebayes.significance import Interval, two_way_interval
from judgebayes.splits import random_splits
from judgebayes.votes import MISSING, Coding, Votes

__all__ = ["Request", "apply_fit", "calibrate_votes"]

INFERENCES: dict[str, Inference] = {
    "drps": DRPS(),
    "ml": MinimumScore(nll),
    "map": MAP(),
    "nuts": NUTS(),
}
METHODS = ("davidson", "hierarchical", "margin-threshold", "sc", "best-constant")
LOSSES = {"absolute": absolute_loss, "zero-one": zero_one_loss}
HELD_IN = 0.8
FEW_LABELS = 30
LEAST_FOR_SPLITS = 10
OTHERS = ("sc", "margin-threshold", "best-constant")


@dataclass(frozen=True)
class Request:
    """What `judgebayes calibrate` was asked for."""

    source: Source
    labels: Path | None
    method: str
    inference: str
    classes: str | None
    pairwise: bool | None
    loss: str
    splits: int
    seed: int
    out: Path | None
    save: Path | None
    drop_unknown_labels: bool
    allow_degenerate: bool


@in_float64
def calibrate_votes(request: Request) -> None:
    """Read, fit, compare on held-out labels, print the summary, write what was asked for."""
    console = Console()
    _known("method", request.method, METHODS)
    _known("inference", request.inference, INFERENCES)
    _known("loss", request.loss, LOSSES)
    opened = open_source(request.source, request.labels)
    read = read_votes(opened, classes_of(opened, request.classes, request.pairwise))
    if opened.labels is None and request.method != "sc":
        raise JudgeBayesError(
            "Calibration needs labels, and there are none: give them with --labels FILE or "
            "--label COLUMN, or ask for --method sc, which needs none."
        )
    labels = np.full(read.votes.n_items, MISSING)
    if opened.labels is not None:
        gold = opened.labels
        labels = read.coding.labels(
            gold.table,
            item=gold.item,
            label=gold.label,
            unknown_items="drop" if request.drop_unknown_labels else "error",
            allow_degenerate=request.allow_degenerate,
        )
    loss = LOSSES[request.loss](read.votes.n_classes)
    methods = _methods(request, read)
    with console.status("fitting"):
        fitted = methods[request.method].fit(read.votes, labels, key=jax.random.key(request.seed))
        log_probs = fitted(read.votes)
    _say(console, _sentences(read, labels))
    _say(console, fitted.words() if hasattr(fitted, "words") else [])
    warnings = _warnings(read, labels, fitted)
    if (labels >= 0).sum() >= LEAST_FOR_SPLITS:
        with console.status("comparing on held-out labels"):
            compared = _compare(request, read, labels, methods, loss)
        _print_comparison(console, compared)
        warnings += _lessons(compared)
    elif opened.labels is not None:
        warnings.append(
            f"Fewer than {LEAST_FOR_SPLITS} labels: too few to hold some out, so nothing here says "
            "how good the calibration is."
        )
    _say(console, warnings, "[yellow]![/] ")
    _write(console, request.out, read.coding, read.votes, log_probs, loss)
    if request.save is not None:
        _save(console, request, read, labels, fitted)


@in_float64
def apply_fit(fit: Path, source: Source, loss: str, out: Path | None) -> None:
    """Read a kept fit and new votes, say what has drifted, and write the answers."""
    console = Console()
    _known("loss", loss, LOSSES)
    saved = load_fit(fit)
    read = read_votes(open_source(source, None), saved.classes)
    votes = read.votes
    if saved.tasks:
        votes = _retasked(console, read, saved.tasks)
    log_probs = saved.fitted(votes)
    _say(console, [f"The fit: {saved.method}, {saved.notes.get('labels', '?')} labels."])
    _say(console, read.coding.words(votes))
    _say(console, drift(saved.profile, profile(votes), saved.classes), "[yellow]![/] ")
    _write(console, out, read.coding, votes, log_probs, LOSSES[loss](votes.n_classes))


def _known(name: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        raise JudgeBayesError(
            f"--{name} {value!r} is not known; right would be {', '.join(known)}."
        )


def _say(console: Console, lines: Sequence[str], mark: str = "") -> None:
    for line in lines:
        console.print(mark + escape(line), soft_wrap=True, highlight=False)


def _methods(request: Request, read: Reading) -> dict[str, Aggregator]:
    """Return the methods by name: the one asked for and those it is compared with."""
    classes = read.coding.classes
    methods: dict[str, Aggregator] = {
        "davidson": Davidson(INFERENCES[request.inference], symmetric=classes.pairwise),
        "sc": MajorityVote(),
        "best-constant": BaseRate(),
    }
    if len(classes) == 3:
        methods["margin-threshold"] = MarginThreshold()
    if request.method == "hierarchical":
        if read.votes.task is None:
            raise JudgeBayesError("--method hierarchical needs tasks: name their column, --task.")
        methods["hierarchical"] = HierarchicalDavidson(symmetric=classes.pairwise)
    if request.method not in methods:
        raise JudgeBayesError(
            f"--method {request.method} needs three classes; these votes have {len(classes)}."
        )
    return methods


def _sentences(read: Reading, labels: Int[np.ndarray, " item"]) -> list[str]:
    used = {role: name for role, name in read.columns.items() if name is not None}
    lines = ["Columns: " + ", ".join(f"{role} = {name!r}" for role, name in used.items()) + "."]
    lines += read.coding.words(read.votes)
    known = labels[labels >= 0]
    if len(known):
        counts = np.bincount(known, minlength=read.votes.n_classes)
        shares = ", ".join(
            f"{name} {n}" for name, n in zip(read.coding.classes.names, counts, strict=True)
        )
        lines.append(f"{len(known)} of {len(labels)} items are labelled ({shares}).")
    if len(read.coding.judges) > 1:
        lines.append(
            f"The votes of {len(read.coding.judges)} judges are pooled; --only-judge takes one."
        )
    if not read.coding.classes.pairwise:
        lines.append(
            "The scale has no mirror symmetry, so the model has an offset (two responses that "
            "could change places: --pairwise)."
        )
    return lines


def _warnings(
    read: Reading, labels: Int[np.ndarray, " item"], fitted: FittedAggregator
) -> list[str]:
    found = []
    status = Status(int(fitted.status))
    if status != Status.CONVERGED:
        found.append(status.sentence)
    given = np.asarray(read.votes.pooled_counts()).sum(1)
    if (given == 0).any():
        found.append(
            f"{int((given == 0).sum())} item(s) have no vote that could be read; their answer is "
            "what the fit says of no evidence."
        )
    if len(np.unique(given[given > 0])) > 1:
        low, high = int(given[given > 0].min()), int(given.max())
        found.append(
            f"Items have between {low} and {high} votes; one fit serves them all, although its "
            "parameters belong to a number of votes."
        )
    n = int((labels >= 0).sum())
    if 0 < n < FEW_LABELS:
        found.append(f"Only {n} labels: every figure below is rough. 50 to 100 are usually enough.")
    counts = np.bincount(labels[labels >= 0], minlength=read.votes.n_classes)
    names = read.coding.classes.names
    unseen = [name for name, count in zip(names, counts, strict=True) if count == 0]
    if n and unseen:
        found.append(
            f"No label is {' or '.join(unseen)}: its probability rests on the model alone."
        )
    if read.votes.order is not None:
        order = np.asarray(read.votes.order)[np.asarray(read.votes.index) >= 0]
        if len(np.unique(order)) == 1:
            found.append("All votes were given in one presentation order: position bias stays in.")
    return found


@dataclass(frozen=True)
class _Compared:
    """Held-out results: by method the metrics' means, and the leads over the chosen method."""

    splits: int
    held_in: int
    means: dict[str, dict[str, float]]
    leads: dict[str, Interval]


def _compare(
    request: Request,
    read: Reading,
    labels: Int[np.ndarray, " item"],
    methods: dict[str, Aggregator],
    loss: Float[np.ndarray, "action class"],
) -> _Compared:
    """Fit on four fifths of the labels and decide the rest, many times."""
    parts = random_splits(
        read.votes.n_items,
        splits=request.splits,
        calibration=HELD_IN,
        groups=read.groups,
        among=np.flatnonzero(labels >= 0),
        seed=request.seed,
    )
    if request.inference == "nuts":  # the mode stands in for the posterior: minutes, not hours
        methods = methods | {"davidson": replace(methods["davidson"], inference=MAP())}  # type: ignore[type-var]
    found: dict[str, Evaluation] = {}
    for name in dict.fromkeys((request.method, *OTHERS)):
        if name in methods:
            found[name] = evaluate_splits(
                methods[name],
                read.votes,
                labels,
                parts,
                fit_on="calibration",
                loss=loss,
                seed=request.seed,
            )
    own = found[request.method]
    leads = {
        name: two_way_interval(
            other.losses(loss) - own.losses(loss),
            np.asarray(own.items),
            read.votes.n_items,
            read.groups,
        )
        for name, other in found.items()
        if name != request.method
    }
    metrics = ("mae", "accuracy", "nll", "ece")
    means = {
        name: {m: float(v.mean()) for m, v in measure(e, metrics).items()}
        for name, e in found.items()
    }
    return _Compared(request.splits, int((parts.calibration[0] >= 0).sum()), means, leads)


def _print_comparison(console: Console, compared: _Compared) -> None:
    table = Table(
        title=f"Held out: fitted on {compared.held_in} labels, decided the others, mean of "
        f"{compared.splits} splits",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    for name in ("method", "MAE", "accuracy", "NLL", "ECE", "loss minus the method's [95 %]"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for name, means in compared.means.items():
        lead = compared.leads.get(name)
        table.add_row(
            name,
            *(_figure(means[m]) for m in ("mae", "accuracy", "nll", "ece")),
            "" if lead is None else f"{lead.mean:+.3f} [{lead.low:+.3f}, {lead.high:+.3f}]",
        )
    console.print()
    console.print(table)
    if any(not np.isfinite(m["nll"]) for m in compared.means.values()):
        _say(
            console, ["NLL is - where a method is certain and wrong: a rule has no probabilities."]
        )
    console.print()


def _figure(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else "-"


def _lessons(compared: _Compared) -> list[str]:
    words = {
        "best-constant": "always giving the same answer",
        "sc": "a plain majority vote",
        "margin-threshold": "one calibrated threshold on the margin",
    }
    return [
        f"Held out, {words[name]} is {'better' if lead.high < 0 else 'not clearly worse'} "
        f"(loss {lead.mean:+.3f} [{lead.low:+.3f}, {lead.high:+.3f}])."
        for name, lead in compared.leads.items()
        if lead.low <= 0 and not (name == "margin-threshold" and lead.high >= 0)
    ]


def _retasked(console: Console, read: Reading, known: list[str]) -> Votes:
    """Return the votes with the fit's task indices, -1 for tasks that it has not seen."""
    coding, votes = read.coding, read.votes
    if votes.task is None or coding.tasks is None:
        raise JudgeBayesError("This fit is hierarchical: name the column of the task, --task.")
    place = {name: i for i, name in enumerate(known)}
    names = [str(name) for name in coding.tasks]
    table = np.array([place.get(name, MISSING) for name in names])
    new = [name for name in names if name not in place]
    if new:
        _say(
            console,
            [f"Task {', '.join(new)} is new to the fit: it is answered from the tasks' centre."],
            "[yellow]![/] ",
        )
    return replace(votes, task=jnp.asarray(table)[votes.task], n_tasks=len(known))


def _write(
    console: Console,
    out: Path | None,
    coding: Coding,
    votes: Votes,
    log_probs: Float[Array, "item class"],
    loss: Float[np.ndarray, "action class"],
) -> None:
    decisions = bayes_action(log_probs, loss)
    expected = risk(log_probs, loss)[jnp.arange(votes.n_items), decisions]
    table = coding.decode(log_probs, decisions, expected)
    table["votes"] = np.asarray(votes.pooled_counts()).sum(1)
    made = np.bincount(np.asarray(decisions), minlength=votes.n_classes)
    shares = ", ".join(f"{n} {c}" for n, c in zip(coding.classes.names, made, strict=True))
    _say(
        console,
        [f"Decisions: {shares}; mean expected loss {float(np.mean(np.asarray(expected))):.3f}."],
    )
    if out is not None:
        write_table(table, out)
        _say(console, [f"Probabilities, decision and expected loss of every item are in {out}."])
        return
    _say(console, ["The first items (--out FILE writes all):"])
    console.print(table.head(5).to_string(index=False), markup=False, highlight=False)


def _save(
    console: Console,
    request: Request,
    read: Reading,
    labels: Int[np.ndarray, " item"],
    fitted: FittedAggregator,
) -> None:
    assert request.save is not None
    notes = {
        "labels": int((labels >= 0).sum()),
        "items": read.votes.n_items,
        "version": __version__,
        "seed": request.seed,
    }
    tasks = [] if read.coding.tasks is None else [str(name) for name in read.coding.tasks]
    classes, seen = read.coding.classes, profile(read.votes)
    save_fit(request.save, SavedFit(request.method, fitted, classes, seen, tasks, notes))
    _say(console, [f"The fit is in {request.save}: judgebayes apply {request.save} NEW_VOTES."])
