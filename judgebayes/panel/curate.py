"""Curation: choose a panel of judges first, then run the same aggregator on its votes (P2, H.4).

A panel is a mask over the judges. The votes of judges outside it become missing, so that shapes
stay and many panels are tried side by side; every candidate panel refits the same aggregator, with
its calibration map if it has one (`Calibrated`). `Curated` does all of it inside `fit`, on the
labelled items alone, and is an aggregator itself.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from judgebayes.aggregators.base import Aggregator, FittedAggregator, Training, training
from judgebayes.aggregators.calibrated import random_places
from judgebayes.arrays import AnyArray, Scalar
from judgebayes.compiled.float64 import in_float64
from judgebayes.errors import JudgeBayesError
from judgebayes.inference.fast.agreement import agreement_of_array
from judgebayes.inference.summary import summary
from judgebayes.measures.scores import known, mean_score, nll
from judgebayes.models.label_noise import log_seen
from judgebayes.votes.array import MISSING, Votes

__all__ = [
    "BackwardElimination",
    "Beam",
    "Criterion",
    "CrossValidated",
    "Curated",
    "Curator",
    "Exhaustive",
    "FittedCurated",
    "InSample",
    "L1Logistic",
    "OnePerFamily",
    "OracleTop",
    "RandomPanel",
    "TopAccuracy",
    "families_of",
    "greedy_forward",
    "masked",
    "top_k",
]

MOST_EXHAUSTIVE = 14
L1_STEPS = 2000
L1_TOLERANCE = 1e-7


def masked(votes: Votes, panel: Bool[AnyArray, " judge"]) -> Votes:
    """Return the votes of a panel; those of the other judges become missing, shapes stay."""
    inside = jnp.asarray(panel)[:, None]
    return replace(
        votes,
        index=jnp.where(inside, votes.index, MISSING),
        score=None if votes.score is None else jnp.where(inside, votes.score, jnp.nan),
    )


@runtime_checkable
class Criterion(Protocol):
    """How good a panel is, judged on the labelled items alone; lower is better."""

    def __call__(
        self, aggregator: Aggregator, data: Training, panel: Bool[Array, " judge"]
    ) -> Float[Array, ""]:
        """Return the criterion of one panel."""
        ...


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class InSample:
    """The NLL on the items that the aggregator and its map were fitted to.

    The paper's: H.4 refits the one-coin model on all calibration items and beta calibration on an
    inner part of them, and takes the panel with the least NLL on that inner part, the one that the
    map was fitted to. Here map and criterion see all labelled items (`Calibrated(share=None)`), or
    the map's share of them and the criterion all. Either way larger panels look better than they
    are, the more so the more parameters a judge brings.

    Parameters
    ----------
    label_noise
        The known share of the labels that are wrong: the NLL is that of the seen labels, which no
        answer foretells for certain. Without it panels that are sure, and right, pay for them.
    """

    label_noise: float = 0.0

    def __call__(
        self, aggregator: Aggregator, data: Training, panel: Bool[Array, " judge"]
    ) -> Float[Array, ""]:
        """Return the in-sample NLL of one panel."""
        votes = masked(data.votes, panel)
        fitted = aggregator.fit(votes, data.labels, weight=data.weight, key=data.key)
        seen = log_seen(fitted(votes), self.label_noise)
        return mean_score(nll, seen, data.labels, data.weight)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CrossValidated:
    """The NLL on items that were left out of the fit, in random folds of the labelled ones.

    Parameters
    ----------
    folds
        How many folds.
    label_noise
        The known share of the labels that are wrong, as in `InSample`.
    """

    folds: int = field(default=5, metadata={"static": True})
    label_noise: float = 0.0

    def __call__(
        self, aggregator: Aggregator, data: Training, panel: Bool[Array, " judge"]
    ) -> Float[Array, ""]:
        """Return the cross-validated NLL of one panel."""
        votes = masked(data.votes, panel)
        fold = _folds(known(data.labels, data.weight) > 0, data.key, self.folds)

        def answers(which: Int[Array, ""]) -> Float[Array, "item class"]:
            held = fold == which
            weight = jnp.where(held, 0.0, data.weight)
            labels = jnp.where(held, MISSING, data.labels)
            return aggregator.fit(votes, labels, weight=weight, key=data.key)(votes)

        by_fold = jax.vmap(answers)(jnp.arange(self.folds))
        log_probs = by_fold[jnp.maximum(fold, 0), jnp.arange(votes.n_items)]
        seen = log_seen(log_probs, self.label_noise)
        return mean_score(nll, seen, data.labels, data.weight)


def _folds(used: Bool[Array, " item"], key: PRNGKeyArray, folds: int) -> Int[Array, " item"]:
    """Return the fold of each used item, -1 of the others, whatever stands between them."""
    return jnp.where(used, random_places(used, key) % folds, -1)


@runtime_checkable
class Curator(Protocol):
    """A way of choosing a panel from labelled items; works inside compiled code."""

    def choose(self, aggregator: Aggregator, data: Training) -> Bool[Array, " judge"]:
        """Return which judges belong to the panel."""
        ...


def _check_size(k: int, n_judges: int) -> None:
    if not 0 < k <= n_judges:
        raise JudgeBayesError(f"A panel of {k} was asked for; there are {n_judges} judges.")


def _top(values: Float[Array, " judge"], k: int) -> Bool[Array, " judge"]:
    """Return the k largest; of equal ones those that stand first."""
    best = jnp.argsort(-values, stable=True)[:k]
    return jnp.zeros(values.shape, bool).at[best].set(True)


def _posterior_accuracy(data: Training) -> Float[Array, " judge"]:
    """Return the mean of each judge's Beta(1 + right, 1 + wrong) (P2, section 2.1)."""
    right, wrong = agreement_of_array(data.votes.index, data.labels, data.weight)
    return (1 + right) / (2 + right + wrong)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TopAccuracy:
    """The k judges of highest posterior mean accuracy on the labelled items (P2, section 2.1)."""

    k: int = field(metadata={"static": True})

    def size(self, n_judges: int) -> int:
        """Return how many judges are chosen."""
        _check_size(self.k, n_judges)
        return self.k

    def choose(self, aggregator: Aggregator, data: Training) -> Bool[Array, " judge"]:  # noqa: ARG002
        """Return the panel."""
        return _top(_posterior_accuracy(data), self.size(data.votes.n_judges))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class OnePerFamily:
    """The most accurate judge of every family (P2, section 4.2); `families_of` tells families."""

    families: tuple[int, ...] = field(metadata={"static": True})
    """The family of every judge, numbered from 0."""

    def size(self, n_judges: int) -> int:
        """Return how many families there are."""
        if len(self.families) != n_judges:
            raise JudgeBayesError(
                f"{len(self.families)} families were given for {n_judges} judges."
            )
        return len(set(self.families))

    def choose(self, aggregator: Aggregator, data: Training) -> Bool[Array, " judge"]:  # noqa: ARG002
        """Return the panel."""
        self.size(data.votes.n_judges)
        accuracy = _posterior_accuracy(data)
        panel = jnp.zeros(len(self.families), bool)
        for family in sorted(set(self.families)):
            inside = np.array([f == family for f in self.families])
            panel = panel.at[jnp.argmax(jnp.where(inside, accuracy, -1.0))].set(True)
        return panel


def families_of(names: Sequence[str], families: Mapping[str, str] | None = None) -> tuple[int, ...]:
    """Return the number of each judge's family, in order of first appearance.

    Without a mapping from judges to families, the family is read from the name: what stands before
    the first slash (`GPT-4/CoT`, `openai/gpt-5`), or else the letters before the first digit, dash,
    underscore, colon or space (`claude-haiku-4.5`, `llama3`), in lower case. A vendor's name is
    not always a family: give a mapping where it matters.

    >>> families_of(["gpt-5.4", "gpt-5.4-mini", "Claude 3"])
    (0, 0, 1)

    Raises
    ------
    JudgeBayesError
        If the mapping lacks a judge.
    """
    if families is not None:
        strangers = [name for name in names if name not in families]
        if strangers:
            raise JudgeBayesError(f"The families do not name the judge {strangers[0]!r}.")
        own = [families[name] for name in names]
    else:
        own = [_family(name) for name in names]
    number = {name: i for i, name in enumerate(dict.fromkeys(own))}
    return tuple(number[name] for name in own)


def _family(name: str) -> str:
    if "/" in name:
        return name.split("/")[0].casefold()
    return re.split(r"[\d\-_:\s]", name, maxsplit=1)[0].casefold() or name.casefold()


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RandomPanel:
    """k judges at random, decided by the key: the sanity floor of H.4."""

    k: int = field(metadata={"static": True})

    def choose(self, aggregator: Aggregator, data: Training) -> Bool[Array, " judge"]:  # noqa: ARG002
        """Return the panel."""
        _check_size(self.k, data.votes.n_judges)
        return _top(jax.random.uniform(data.key, (data.votes.n_judges,)), self.k)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class OracleTop:
    """The k judges of highest accuracy on the items whose label the fit does *not* see.

    No method: it cheats, to show what perfect knowledge of the ranking would be worth (H.4). It
    needs the votes of the evaluation items in the fit, `fit_on="all"`.

    Parameters
    ----------
    truth
        The labels of all items, in their order.
    """

    truth: Int[AnyArray, " item"]
    k: int = field(metadata={"static": True})

    def choose(self, aggregator: Aggregator, data: Training) -> Bool[Array, " judge"]:  # noqa: ARG002
        """Return the panel.

        Raises
        ------
        JudgeBayesError
            If the fit sees a part of the items only.
        """
        extra = data.votes.n_items - self.truth.shape[0]
        if extra < 0:
            raise JudgeBayesError(
                f"The oracle knows {self.truth.shape[0]} items and the fit sees "
                f"{data.votes.n_items} of them: evaluate it with fit_on='all'."
            )
        _check_size(self.k, data.votes.n_judges)
        truth = jnp.pad(jnp.asarray(self.truth), (0, extra), constant_values=MISSING)
        hidden = jnp.where(known(data.labels, data.weight) > 0, MISSING, truth)
        return _top(_posterior_accuracy(data._replace(labels=hidden)), self.k)


def _scores(
    criterion: Criterion,
    aggregator: Aggregator,
    data: Training,
    panels: Bool[Array, "panel judge"],
) -> Float[Array, " panel"]:
    """Return the criterion of many panels, one after another; NaN counts as the worst.

    Side by side all would wait for the slowest fit: 64 at once take 2.2 to 3 times as long as one
    (65 to 148 judges, 50 to 1,492 labels, 1 to 20 splits, which are side by side anyway).
    """

    def one(panel: Bool[Array, " judge"]) -> Float[Array, ""]:
        value = criterion(aggregator, data, panel)
        return jnp.where(jnp.isnan(value), jnp.inf, value)

    return jax.lax.map(one, panels)


class _Beams(NamedTuple):
    panels: Bool[Array, "beam judge"]
    best: Bool[Array, " judge"]
    value: Float[Array, ""]
    """The criterion of the best panel."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Beam:
    """Add one judge at a time, keeping the `width` best panels (P2 Table 3: width 3).

    Parameters
    ----------
    additions
        How many judges to add at most.
    width
        How many panels are kept after each addition; 1 is greedy forward selection.
    exact
        Take the best panel of `additions` judges; otherwise the best of any size on the way.
    criterion
        `InSample()`, the paper's, or `CrossValidated()`.
    """

    additions: int = field(metadata={"static": True})
    width: int = field(default=3, metadata={"static": True})
    exact: bool = field(default=False, metadata={"static": True})
    criterion: Criterion = field(default_factory=InSample)

    def choose(self, aggregator: Aggregator, data: Training) -> Bool[Array, " judge"]:
        """Return the panel."""
        n_judges = data.votes.n_judges
        _check_size(self.additions, n_judges)
        code = _codes(n_judges)

        def add(_: Int[Array, ""] | int, beams: _Beams) -> _Beams:
            more = beams.panels[:, None, :] | jnp.eye(n_judges, dtype=bool)
            panels, parents = more.reshape(-1, n_judges), beams.panels
            value = _scores(self.criterion, aggregator, data, panels)
            grown = (panels.sum(1) > jnp.repeat(parents.sum(1), n_judges)) & _first(panels @ code)
            value = jnp.where(grown, value, jnp.inf)
            kept = jnp.argsort(value, stable=True)[: self.width]
            better = (value[kept[0]] < beams.value) | self.exact
            return _Beams(
                panels[kept],
                jnp.where(better, panels[kept[0]], beams.best),
                jnp.where(better, value[kept[0]], beams.value),
            )

        # All beams begin empty: copies of a panel count once, so the first step parts them.
        empty = jnp.zeros((self.width, n_judges), bool)
        begin = _Beams(empty, empty[0], jnp.asarray(jnp.inf))
        return jax.lax.fori_loop(0, self.additions, add, begin).best


def greedy_forward(k: int, criterion: Criterion | None = None) -> Beam:
    """Return greedy forward selection of k judges (P2, section 4.3)."""
    return Beam(k, width=1, exact=True, criterion=InSample() if criterion is None else criterion)


def _codes(n_judges: int) -> Float[Array, " judge"]:
    """Return random numbers whose sums tell panels apart."""
    return jnp.asarray(np.random.default_rng(0).random(n_judges))


def _first(code: Float[Array, " panel"]) -> Bool[Array, " panel"]:
    """Return which panels have no equal before them."""
    same = jnp.abs(code[:, None] - code[None, :]) < 1e-12
    return ~jnp.tril(same, -1).any(1)


class _Elimination(NamedTuple):
    panel: Bool[Array, " judge"]
    value: Float[Array, ""]
    improving: Bool[Array, ""]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BackwardElimination:
    """Drop one judge at a time, as long as dropping one lowers the criterion (P2 Table 3)."""

    criterion: Criterion = field(default_factory=InSample)

    def choose(self, aggregator: Aggregator, data: Training) -> Bool[Array, " judge"]:
        """Return the panel."""
        n_judges = data.votes.n_judges

        def unfinished(at: _Elimination) -> Bool[Array, ""]:
            return at.improving & (at.panel.sum() > 1)

        def drop(at: _Elimination) -> _Elimination:
            fewer = at.panel & ~jnp.eye(n_judges, dtype=bool)
            values = _scores(self.criterion, aggregator, data, fewer)
            values = jnp.where(at.panel, values, jnp.inf)
            spare = jnp.argmin(values)
            better = values[spare] < at.value
            return _Elimination(
                jnp.where(better, fewer[spare], at.panel),
                jnp.minimum(values[spare], at.value),
                better,
            )

        everyone = jnp.ones((1, n_judges), bool)
        value = _scores(self.criterion, aggregator, data, everyone)[0]
        begin = _Elimination(everyone[0], value, jnp.asarray(True))
        return jax.lax.while_loop(unfinished, drop, begin).panel


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Exhaustive:
    """Every panel from a small pool of judges: one of each family, or the most accurate.

    P2 Table 3 takes the nine families of JudgeBench: 511 panels.
    """

    pool: TopAccuracy | OnePerFamily
    criterion: Criterion = field(default_factory=InSample)

    def choose(self, aggregator: Aggregator, data: Training) -> Bool[Array, " judge"]:
        """Return the panel.

        Raises
        ------
        JudgeBayesError
            If the pool is larger than 14 judges: 16,383 panels.
        """
        n_judges = data.votes.n_judges
        size = self.pool.size(n_judges)
        if size > MOST_EXHAUSTIVE:
            raise JudgeBayesError(
                f"A pool of {size} judges has {2**size - 1} panels; try all of them for at most "
                f"{MOST_EXHAUSTIVE} judges, and Beam for more."
            )
        where = jnp.nonzero(self.pool.choose(aggregator, data), size=size)[0]
        subsets = (np.arange(1, 2**size)[:, None] >> np.arange(size)) & 1
        panels = jnp.zeros((len(subsets), n_judges), bool).at[:, where].set(subsets.astype(bool))
        return panels[jnp.argmin(_scores(self.criterion, aggregator, data, panels))]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class L1Logistic:
    r"""The judges with a weight other than 0 in a sparse logistic regression on the votes (H.4).

    .. math:: \min_{w, c} \; \tfrac1n \sum_i \log(1 + e^{-y_i (x_i^T w + c)}) + \lambda \|w\|_1

    with x = +1 for the higher class, -1 for the lower, 0 where missing. If no judge is left, the
    most accurate one is taken.

    Parameters
    ----------
    penalty
        lambda; scikit-learn's C is 1 / (n lambda).
    label_noise
        The known share e of the labels that are wrong: the likelihood is that of the seen label,
        :math:`e + (1 - 2 e) / (1 + e^{-y_i (x_i^T w + c)})`. Weights are then those of the true
        label, larger by about 1 / (1 - 2 e), so that the same lambda weighs more.
    """

    penalty: float = 0.01
    label_noise: float = 0.0

    def choose(self, aggregator: Aggregator, data: Training) -> Bool[Array, " judge"]:  # noqa: ARG002
        """Return the panel.

        Raises
        ------
        JudgeBayesError
            If there are more than two classes.
        """
        if data.votes.n_classes != 2:
            raise JudgeBayesError(
                f"L1Logistic is for two classes; the votes have {data.votes.n_classes}."
            )
        weights = sparse_weights(data, self.penalty, self.label_noise)[0]
        alone = _top(_posterior_accuracy(data), 1)
        return jnp.where((weights != 0).any(), weights != 0, alone)


class _Descent(NamedTuple):
    place: Float[Array, " parameter"]
    ahead: Float[Array, " parameter"]
    momentum: Float[Array, ""]
    step: Int[Array, ""]
    gap: Float[Array, ""]


def sparse_weights(
    data: Training, penalty: Scalar, noise: Scalar = 0.0
) -> tuple[Float[Array, " judge"], Float[Array, ""]]:
    """Return weights and offset of the L1-penalised logistic regression, by FISTA with restarts.

    With label noise the objective is not convex, but no more curved: the step stays safe, and the
    answer is the minimum reached from zero weights.
    """
    counts = data.votes.counts().astype(float)
    x = (counts[..., 1] - counts[..., 0]) / jnp.maximum(counts.sum(-1), 1)
    weight = known(data.labels, data.weight)
    weight = weight / jnp.maximum(weight.sum(), 1e-300)
    sign = jnp.where(data.labels == 1, 1.0, -1.0)
    wide = jnp.concatenate([x, jnp.ones((len(x), 1))], 1)
    steepest = 0.25 * jnp.linalg.eigvalsh(wide.T @ (wide * weight[:, None]))[-1]
    shrink = jnp.full(wide.shape[1], penalty / steepest).at[-1].set(0.0)

    # Log-odds of a label that is seen since it is true, against one that is wrong by chance.
    by_chance = jnp.log(jnp.asarray(noise)) - jnp.log1p(-2 * jnp.asarray(noise))

    def advance(at: _Descent) -> _Descent:
        margin = sign * (wide @ at.ahead)
        meant = jax.nn.sigmoid(jax.nn.log_sigmoid(margin) - by_chance)
        slope = wide.T @ (-sign * weight * jax.nn.sigmoid(-margin) * meant)
        moved = at.ahead - slope / steepest
        there = jnp.sign(moved) * jnp.maximum(jnp.abs(moved) - shrink, 0.0)
        # Restart where the momentum points uphill (O'Donoghue & Candes 2015).
        uphill = (at.ahead - there) @ (there - at.place) > 0
        faster = jnp.where(uphill, 1.0, (1 + jnp.sqrt(1 + 4 * at.momentum**2)) / 2)
        carried = jnp.where(uphill, 0.0, (at.momentum - 1) / faster)
        gap = jnp.abs(there - at.ahead).max()
        return _Descent(there, there + carried * (there - at.place), faster, at.step + 1, gap)

    def unfinished(at: _Descent) -> Bool[Array, ""]:
        return (at.step < L1_STEPS) & (at.gap > L1_TOLERANCE)

    zero = jnp.zeros(wide.shape[1])
    begin = _Descent(zero, zero, jnp.asarray(1.0), jnp.asarray(0), jnp.asarray(jnp.inf))
    found = jax.lax.while_loop(unfinished, advance, begin).place
    return found[:-1], found[-1]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Curated:
    """Choose a panel on the labelled items, then fit the aggregator to its votes alone.

    `Curated(Calibrated(OneCoin(), Beta()), TopAccuracy(5))` is P2's top-5 arm: it chooses on all
    labelled items. `Calibrated(Curated(OneCoin(), TopAccuracy(5)), Beta())` chooses on the
    aggregator's share of them.
    """

    aggregator: Aggregator
    curator: Curator

    @in_float64
    def fit(
        self,
        votes: Votes,
        labels: Int[AnyArray, " item"],
        *,
        weight: Float[AnyArray, " item"] | None = None,
        key: PRNGKeyArray | None = None,
    ) -> "FittedCurated":
        """Return the panel and the aggregator fitted to its votes.

        Raises
        ------
        JudgeBayesError
            If the curator asks for more judges than there are, lengths differ, or a weight is
            negative.
        """
        return _fit(self, *training(votes, labels, weight, key, labelled_only=False))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FittedCurated:
    """A panel, and an aggregator fitted to its votes."""

    panel: Bool[Array, "*batch judge"]
    aggregator: FittedAggregator

    __repr__ = summary

    @property
    def status(self) -> Int[Array, "*batch"]:
        """How the aggregator's fit ended."""
        return self.aggregator.status

    @in_float64
    def __call__(self, votes: Votes) -> Float[Array, "item class"]:
        """Return the log-probabilities of the items, from the panel's votes alone."""
        return self.aggregator(masked(votes, self.panel))


@jax.jit
def _fit(
    method: Curated,
    votes: Votes,
    labels: Int[Array, " item"],
    weight: Float[Array, " item"],
    key: PRNGKeyArray,
) -> FittedCurated:
    own, rest = jax.random.split(key)
    panel = method.curator.choose(method.aggregator, Training(votes, labels, weight, own))
    fitted = method.aggregator.fit(masked(votes, panel), labels, weight=weight, key=rest)
    return FittedCurated(panel, fitted)


def top_k(aggregator: Aggregator, k: int) -> Curated:
    """Return the aggregator on the k judges most accurate on the labelled items (P2's top-k).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import judgebayes as jb
    >>> panel = {"ann": [1, 1, 0, 0, 1, 0], "ben": [1, 1, 0, 1, 1, 0], "cy": [0, 1, 1, 0, 0, 1]}
    >>> votes, _ = jb.encode_wide(pd.DataFrame(panel).rename_axis("item"))
    >>> labels = np.array([1, 1, 0, 0, -1, -1])
    >>> fit = jb.top_k(jb.OneCoin(), 2).fit(votes, labels)
    >>> fit.panel.tolist()
    [True, True, False]
    """
    return Curated(aggregator, TopAccuracy(k))
