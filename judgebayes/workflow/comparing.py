"""Compare methods on held-out labels, over as many splits as time allows, in numbers and words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import jax
import numpy as np
import pandas as pd
from jaxtyping import Array, Float

from judgebayes.aggregators.dawid_skene import DawidSkene
from judgebayes.arrays import AnyArray, ItemInts, LogProbs, Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.evaluate.one_split import Evaluation, fit_one, measure, predict
from judgebayes.evaluate.splits import Splits, random_splits
from judgebayes.evaluate.sweeps import evaluate_methods
from judgebayes.inference.fit import Fitted, Method
from judgebayes.inference.status import summary
from judgebayes.measures.significance import (
    Interval,
    independent_trials,
    item_means,
    share_interval,
    two_way_interval,
)
from judgebayes.models.base import with_label_noise
from judgebayes.progress import Progress
from judgebayes.sentence import rounded, with_interval
from judgebayes.show.page import Table
from judgebayes.votes import Votes
from judgebayes.workflow.data import Study
from judgebayes.workflow.losses import Losses
from judgebayes.workflow.machine import HeldOutNumbers
from judgebayes.workflow.methods import Choice, build, cost_of_fit, fit_on_of, suited, traits_of
from judgebayes.workflow.results import ends

Answered = tuple[Method, Fitted, LogProbs]
"""A method, its fit to all labels, and its log-probabilities of every item."""


@in_float64
def fit_and_answer(choice: Choice, data: Study, labels: ItemInts, seed: int) -> Answered:
    """Return a method, its fit to all labels, and its answers on all items."""
    method = build(choice, data.coding.classes, data.votes)
    fitted = fit_to_labels(choice, method, data, labels, seed)
    return method, fitted, predict(fitted, data.votes)


def fit_to_labels(
    choice: Choice, method: Method, data: Study, labels: ItemInts, seed: int
) -> Fitted:
    """Return the method fitted to the items that it learns from."""
    votes = data.votes
    if not traits_of(choice.method).learns_from_unlabelled:
        # Without labels, the first item: `sc` learns nothing.
        labelled = np.flatnonzero(labels >= 0) if (labels >= 0).any() else np.arange(1)
        votes, labels = votes.take(labelled), labels[labelled]
    if isinstance(method, DawidSkene) and not (labels >= 0).any():
        return method.fit(votes, labels)  # compiled code could not tell that there are no labels
    return fit_one(method, votes, labels, jax.random.key(seed))


LEAST_FOR_SPLITS = 10
"""With fewer labels none are held out."""
USUAL_SPLITS, FEWEST_SPLITS = 100, 20
"""The number of splits without `--splits`; of a long comparison, the least."""
MOST_SECONDS = 120
"""The time of a comparison above which it has fewer splits."""
OPERATIONS_PER_SECOND = 1e10
"""The speed of two cores."""


def usual_splits(method: str, data: Study) -> int:
    """Return the usual number of splits of a comparison, less where it would take long.

    It follows from the sizes alone, so that it is the same on every machine.
    """
    votes, labelled = data.votes, int((data.labels >= 0).sum())
    names = suited(votes) if method == "auto" else [method]
    of_split = sum(cost_of_fit(name, votes, labelled).operations for name in names)
    once = max(cost_of_fit(name, votes).operations for name in names)
    in_time = int((MOST_SECONDS * OPERATIONS_PER_SECOND - once) / max(of_split, 1.0))
    return min(max(in_time, FEWEST_SPLITS), USUAL_SPLITS)


FITTED_SHARE = 0.8
METRICS = {"mae": "MAE", "accuracy": "accuracy", "nll": "NLL", "ece": "ECE"}
SIMPLE = {
    "best-constant": "best-constant: the same answer for all items, the best one on the fitted labels.",
    "sc": "sc: a plain majority vote (self-consistency).",
    "margin-threshold": "margin-threshold: a tie unless the vote margin reaches a calibrated threshold.",
    "best-judge": "best-judge: the judge with the highest accuracy on the fitted labels, alone.",
}
"""The baselines, explained."""


@dataclass(frozen=True, repr=False)
class Compared:
    """Held-out results of several methods on the same splits of the labelled items."""

    parts: Splits
    means: dict[str, dict[str, float]]
    """Mean metrics by method."""
    evaluations: dict[str, Evaluation]
    n_items: int
    groups: ItemInts | None
    label_noise: float = 0.0
    unseen: float = 1.0
    """The share of the intervals' items without a label: 1 for more items like these."""
    ordered: bool = True
    """Whether the classes have an order, without which there is no MAE."""
    level: float = 0.95
    """The probability of the intervals."""
    refit: Callable[[str, Splits], Evaluation] | None = field(default=None, repr=False)
    """Fits a method again, on other splits of the labels, and evaluates it."""

    __repr__ = summary

    @property
    def metrics(self) -> list[str]:
        """The metrics that the classes have."""
        return [name for name in METRICS if self.ordered or name != "mae"]

    @property
    def held_in(self) -> int:
        """The number of labels of each fit; approximate if whole groups are split."""
        return int((self.parts.calibration[0] >= 0).sum())

    @property
    def fitted(self) -> float:
        """The number of labels of a fit, the mean over splits."""
        return float((self.parts.calibration >= 0).sum(1).mean())

    @property
    def title(self) -> str:
        """A title for the comparison."""
        return (
            f"Held out: fitted on {self.held_in} labels, evaluated on the others, means of "
            f"{len(self.parts.calibration)} splits"
            + ("" if self.groups is None else " between groups")
            + ("" if self.unseen == 1 else "; intervals are about these items")
        )

    def interval(
        self, name: str, values: Float[np.ndarray, "split item"], *, least: float = -np.inf
    ) -> Interval:
        """Return the mean over splits of a method's outcomes on held-out items, with an interval.

        Not finite if an outcome is not. The interval is cut at `least`, the lower bound of outcomes.
        """
        if np.isinf(values).any():
            return Interval(np.inf, np.inf, np.inf)
        items = np.asarray(self.evaluations[name].items)
        interval = two_way_interval(
            values,
            items,
            self.n_items,
            self.groups,
            fitted=self.fitted,
            level=self.level,
            unseen=self.unseen,
        )
        mean = float(np.nanmean(values, axis=1).mean())  # weighted like `means`
        low, high = mean - interval.mean + interval.low, mean - interval.mean + interval.high
        return Interval(mean, max(low, least), high)

    def right(self, name: str) -> Interval:
        """Return a method's accuracy on held-out items, with the interval of `share`."""
        own = self.evaluations[name]
        labels = np.asarray(own.labels)
        return self.share(name, np.where(labels >= 0, np.asarray(own.decisions) == labels, np.nan))

    def share(self, name: str, hits: Float[np.ndarray, "split item"]) -> Interval:
        """Return the mean of outcomes 0 or 1 on held-out items, with an interval within [0, 1].

        The interval is the hull of two: that of `interval`, which includes the variation of splits,
        and `share_interval` over the distinct items (in groups, over the effective number of items:
        `independent_trials`). The first has no width if every decision is right, although a few
        labels cannot exclude rare errors.
        """
        interval = self.interval(name, hits)
        mean = low = high = interval.mean
        if self.unseen > 0:
            of_item = item_means(hits, np.asarray(self.evaluations[name].items), self.n_items)
            held_out = np.isfinite(of_item)
            n = np.asarray(float(held_out.sum()))
            if self.groups is not None:
                right, counted = np.nan_to_num(of_item)[:, None], held_out[:, None]
                n = independent_trials(right, counted, self.groups, level=self.level)[0]
            n = np.asarray(n / self.unseen)
            low, high = map(float, share_interval(np.asarray(mean * n), n, level=self.level))
        low, high = min(interval.low, low), max(interval.high, high)
        return Interval(mean, max(low, 0.0), min(high, 1.0))

    def mean_loss(
        self, name: str, losses: Float[np.ndarray, "split item"], most: float
    ) -> Interval:
        """Return the mean loss of decisions on held-out items, with an interval not below 0.

        The interval is the hull of two, as in `share`: that of `interval`, and that of the share of
        decisions with a loss, times their mean loss (or `most`, if there are none).
        """
        interval = self.interval(name, losses, least=0.0)
        wrong = self.share(name, np.where(np.isfinite(losses), losses > 0, np.nan))
        each = interval.mean / wrong.mean if wrong.mean > 0 else most
        low, high = wrong.low * each, wrong.high * each
        return Interval(interval.mean, min(interval.low, low), max(interval.high, high))

    def best(self, names: list[str], default: str) -> str:
        """Return the method with the least NLL among those clearly better than the default, or it.

        `clearly_less` defines clearly better. With few labels, the least of several NLLs is often due to
        chance: on public panels with 25 to 50 labels, choosing the least, or the least by one standard
        error, was worse than always taking the default.
        """
        ranked = sorted(names, key=lambda name: self.means[name]["nll"])
        if not np.isfinite(self.means[default]["nll"]):
            return ranked[0]
        clear = (n for n in ranked[: ranked.index(default)] if self.clearly_less(n, default))
        return next(clear, default)

    def clearly_less(self, name: str, than: str) -> bool:
        """Return whether a method clearly has less NLL than another one.

        The 95 % interval of the difference excludes 0, and the mean difference stays above 0 with one
        more item whose label is another class. Without that item, a method that is right on all held-out
        labels, and nearly certain, would be chosen, although a few labels say little about the rare
        errors that cost it most.
        """
        difference = self.nll(than) - self.nll(name)
        items = np.asarray(self.evaluations[name].items)
        if np.isinf(difference).any():  # one of the two was certain and wrong
            return bool(self.means[name]["nll"] < self.means[than]["nll"])
        interval = two_way_interval(
            difference, items, self.n_items, self.groups, fitted=self.fitted, unseen=self.unseen
        )
        seen = np.unique(items[items >= 0])
        n = len(seen if self.groups is None else np.unique(self.groups[seen]))
        of_error = self._nll_of_error(than) - self._nll_of_error(name)
        return bool(interval.low > 0 and n * interval.mean + of_error > 0)

    def _nll_of_error(self, name: str) -> float:
        """Return the mean NLL of another class than the label, over held-out items."""
        own = self.evaluations[name]
        log_probs = np.asarray(_observed(own.log_probs, self.label_noise))
        labels = np.asarray(own.labels)
        n = log_probs.shape[-1]
        other = np.arange(n) != labels[..., None]
        of_item = -np.where(other, log_probs, 0.0).sum(-1) / (n - 1)
        return float(of_item[labels >= 0].mean())

    def with_less(self, than: str) -> list[str]:
        """Return all methods with less NLL than this one, the least first."""
        less = [name for name, m in self.means.items() if m["nll"] < self.means[than]["nll"]]
        return sorted(less, key=lambda name: self.means[name]["nll"])

    def nll(self, name: str) -> Float[np.ndarray, "split item"]:
        """Return the NLL of each held-out observed label under a method, NaN where there is none."""
        return self.nll_of(self.evaluations[name])

    @in_float64
    def nll_of(self, evaluation: Evaluation) -> Float[np.ndarray, "split item"]:
        """Return the NLL of each held-out observed label in an evaluation."""
        log_probs = _observed(evaluation.log_probs, self.label_noise)
        return replace(evaluation, log_probs=log_probs).nll()

    def leads(self, method: str, loss: Float[np.ndarray, "action class"]) -> dict[str, Interval]:
        """Return the mean loss of each other method minus that of this one, with an interval."""
        own = self.evaluations[method].losses(loss)
        return {
            name: self.interval(name, other.losses(loss) - own)
            for name, other in self.evaluations.items()
            if name != method
        }


def compare(
    methods: Mapping[str, Method],
    votes: Votes,
    labels: ItemInts,
    groups: ItemInts | None,
    loss: Float[np.ndarray, "action class"],
    *,
    splits: int,
    seed: int,
    label_noise: float = 0.0,
    unseen: float = 1.0,
    ordered: bool = True,
    progress: Progress | None = None,
) -> Compared:
    """Fit methods on four fifths of the labels and evaluate them on the rest, over many splits.

    With label noise, NLL is that of the observed labels. `unseen` and `ordered` are as in `Compared`.
    """
    parts = random_splits(
        len(labels),
        splits=splits,
        calibration=FITTED_SHARE,
        groups=groups,
        among=np.flatnonzero(labels >= 0),
        seed=seed,
    )

    held_out = partial(
        evaluate_methods,
        votes=votes,
        labels=labels,
        fit_on=fit_on_of(methods),
        loss=loss,
        seed=seed,
    )

    def refit(name: str, parts: Splits) -> Evaluation:
        return held_out({name: methods[name]}, splits=parts)[name]

    results = held_out(methods, splits=parts, progress=progress)
    means = {
        name: {m: float(v.mean()) for m, v in measure(evaluation, tuple(METRICS)).items()}
        for name, evaluation in results.items()
    }
    compared = Compared(
        parts,
        means,
        results,
        len(labels),
        groups,
        label_noise,
        unseen,
        ordered,
        refit=refit,
    )
    for name in results:
        means[name]["nll"] = float(np.nanmean(compared.nll(name), axis=1).mean())
    return compared


def better_method(leads: Mapping[str, Interval]) -> str | None:
    """Return the method with the least loss among those that decide clearly better than the chosen one.

    `leads` is what `Compared.leads` returns for the chosen method.
    """
    better = [name for name, lead in leads.items() if lead.high < 0]
    return min(better, key=lambda name: leads[name].mean, default=None)


def better_rule(leads: Mapping[str, Interval]) -> str | None:
    """Return the rule with the least loss among those that decide clearly better than a method.

    `leads` is what `Compared.leads` returns for the method.
    """
    return better_method(
        {n: lead for n, lead in leads.items() if traits_of(n).compared == "baseline"}
    )


@jax.jit
def _observed(
    log_probs: Float[AnyArray, "split item class"], label_noise: Scalar
) -> Float[Array, "split item class"]:
    """Return the log-probabilities of the observed labels."""
    return jax.vmap(with_label_noise, (0, None))(log_probs, label_noise)


def comparison_block(title: str, table: pd.DataFrame) -> Table:
    """Return the result of `comparison_table` as text, the chosen method first."""
    head = ["method", *(METRICS[name] for name in table.columns[1:-3]), "extra loss [95 %]"]
    rows = []
    for name, *figures, extra, low, high in table.itertuples(index=False):
        shown = "" if np.isnan(extra) else with_interval((extra, low, high), "+z.3f")
        figures = ["refused" if np.isnan(value) else rounded(value) for value in figures]
        rows.append([name, *figures, shown])
    return Table(title, head, rows)


def comparison_table(
    compared: Compared, leads: Mapping[str, Interval], *, hide_nll: bool
) -> pd.DataFrame:
    """Return the comparison in numbers, NaN where refused; extra loss with its interval."""
    rows = []
    for name in [*(n for n in compared.means if n not in leads), *leads]:
        hidden = ("nll", "ece") if hide_nll else ()
        means = {m: np.nan if m in hidden else compared.means[name][m] for m in compared.metrics}
        lead = leads.get(name, Interval(np.nan, np.nan, np.nan))
        extra = zip(("extra_loss", "low", "high"), lead, strict=True)
        rows.append({"method": name, **means, **dict(extra)})
    return pd.DataFrame(rows)


def held_out_numbers(
    compared: Compared, name: str, loss: Float[np.ndarray, "action class"], *, hide_nll: bool
) -> HeldOutNumbers:
    """Return a method's accuracy, mean loss and NLL on held-out labels, with 95 % intervals."""
    own = compared.evaluations[name].losses(loss)
    numbers: HeldOutNumbers = {
        "accuracy": ends(*compared.right(name)),
        "loss": ends(*compared.mean_loss(name, own, float(loss.max()))),
    }
    if not hide_nll:
        numbers["nll"] = ends(*compared.interval(name, compared.nll(name), least=0.0))
    return numbers


def comparison_words(
    compared: Compared, leads: Mapping[str, Interval], losses: Losses, *, hide_nll: bool
) -> list[str]:
    """Return sentences that explain the columns of the comparison.

    `leads` has all methods but the chosen one.
    """
    words = []
    if leads:
        chosen = next(name for name in compared.means if name not in leads)
        words.append(
            f"Loss of a decision: {losses.meaning}{losses.mean}. Extra loss: a method's mean loss minus "
            f"that of {chosen}, with a 95 % interval; above 0, the method is worse."
        )
    if not hide_nll:
        held = int((compared.parts.evaluation[0] >= 0).sum())
        finite = {name: bool(np.isfinite(m["nll"])) for name, m in compared.means.items()}
        rules = [name for name in finite if traits_of(name).rule]
        scored = [name for name in rules if finite[name]]
        certain = compared.label_noise == 0  # with label noise, no observed label is certain
        words.append(
            "NLL: mean negative log probability of the label"
            + ('; "-" if a method is certain and wrong' if not all(finite.values()) else "")
            + (
                f". A rule is certain of its answers: the NLL of {' and '.join(scored)} is finite only "
                "because no held-out label contradicts a certain answer."
                if scored and certain
                else " (a rule has no probabilities)."
                if certain and len(scored) < len(rules)
                else "."
            )
            + f" ECE: distance between probabilities and frequencies; with {held} held-out labels "
            "per split ECE is biased upwards. The bias is smallest for best-constant, which "
            "gives all items the same answer. Choose by NLL."
        )
    return [*words, " ".join(text for name, text in SIMPLE.items() if name in compared.means)]


def within_noise(leads: Mapping[str, Interval]) -> list[str]:
    """Return sentences that name the baselines which the method does not clearly beat."""
    words = {
        "best-constant": "always giving the same answer",
        "sc": "a plain majority vote",
        "margin-threshold": "one calibrated threshold on the margin",
        "best-judge": "the best judge alone",
    }
    return [
        f"On held-out labels, {words[name]} is {'better' if lead.high < 0 else 'not clearly worse'} "
        f"(extra loss {with_interval(lead, '+z.3f')})."
        for name, lead in leads.items()
        if name in words and lead.low <= 0 and not (name == "margin-threshold" and lead.high >= 0)
    ]
