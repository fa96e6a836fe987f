r"""Judges' rates by the difficulty of items, or by the type of error.

Labels that may be wrong are drawn by Gibbs sampling. Of the items of a value, those with the same mean
vote v of a judge are valid with a probability :math:`\rho_v \sim \mathrm{Beta}(1/2, 1/2)`, and an item
with evidence :math:`\lambda_n` with :math:`\mathrm{sigmoid}(\mathrm{logit}\,\rho_v + \lambda_n)`. Given
the labels, a rate has the posterior Beta(1 + right, 1 + wrong).
"""

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import expit, logit

from judgebayes.arrays import ItemFloats, ItemInts, Labels
from judgebayes.panel.judges import judge_table
from judgebayes.votes.array import Votes
from judgebayes.votes.coding import Coding
from judgebayes.votes.columns import Evidence

CHAINS, STEPS, KEPT = 300, 20, 5
"""Chains, their steps, and how many of the last are kept; a step mixes nearly at once."""
SMALL = 1e-12


def rates_by(
    votes: Votes,
    labels: Labels,
    values: Labels,
    names: list[str],
    judges: Coding,
    *,
    groups: Labels | None = None,
    level: float = 0.9,
    evidence: Evidence | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return a row per judge and value: TPR and TNR with intervals, and the items they are of.

    Columns: `judge`, `value`, `tpr`, `tpr_low`, `tpr_high`, `valid` (items labelled valid that the judge
    voted on), and `tnr`, `tnr_low`, `tnr_high`, `invalid`. A rate without items is NaN.

    Parameters
    ----------
    votes, labels, judges, groups, level
        As in `judgebayes.judge_table`; votes of two classes.
    values
        The index of each item's value, such as its difficulty; -1 without one.
    names
        The names of the values.
    evidence
        The evidence of each item's labels, if they may be wrong. Rates and intervals then count this.
    seed
        Seed of the draws of labels.
    """
    labels, values = np.asarray(labels), np.asarray(values)
    cast = (np.asarray(votes.index) >= 0).any(2)
    rng = np.random.default_rng(seed)
    tables = []
    for place, name in enumerate(names):
        own = np.where(values == place, labels, -1)
        table = judge_table(votes, own, judges, groups=groups, level=level)
        parts = {"judge": table["judge"], "value": name}
        for rate, label, noun in (("tpr", 1, "valid"), ("tnr", 0, "invalid")):
            parts |= {column: table[column] for column in (rate, f"{rate}_low", f"{rate}_high")}
            parts[noun] = ((own == label)[:, None] & cast).sum(0)
        table = pd.DataFrame(parts)
        if evidence is not None:
            few = _independent_share(table, level) if groups is not None else {}
            table = _uncertain(table, votes, own, evidence, few, level, rng)
        tables.append(table)
    return pd.concat(tables).sort_index(kind="stable").reset_index(drop=True)


def _uncertain(
    table: pd.DataFrame,
    votes: Votes,
    labels: ItemInts,
    evidence: Evidence,
    few: dict[str, Float[np.ndarray, " judge"]],
    level: float,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Return the table with rates from draws of the labels."""
    index = np.asarray(votes.index)
    columns = {name: table[name].to_numpy().copy() for name in table.columns}
    for judge in range(votes.n_judges):
        here = (labels >= 0) & (index[:, judge] >= 0).any(1)
        if not here.any():
            continue
        share = (index[here, judge] == 1).sum(1) / (index[here, judge] >= 0).sum(1)
        votes_at, valid, total = _drawn(share, evidence.take(here), rng)
        for rate, noun, drawn, right in (
            ("tpr", "valid", valid, votes_at),
            ("tnr", "invalid", total - valid, 1 - votes_at),
        ):
            if not np.isfinite(columns[rate][judge]):
                continue  # no label of this class
            hits, n = drawn @ right, drawn.sum(1)
            part = few[rate][judge] if rate in few else 1.0
            draws = rng.beta(1 + part * hits, 1 + part * (n - hits))
            estimate = hits.mean() / max(n.mean(), SMALL)
            low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
            columns[rate][judge] = estimate
            columns[f"{rate}_low"][judge] = min(low, estimate)
            columns[f"{rate}_high"][judge] = max(high, estimate)
            columns[noun][judge] = round(n.mean())
    return pd.DataFrame(columns)


def _drawn(
    share: ItemFloats, evidence: Evidence, rng: np.random.Generator
) -> tuple[Float[np.ndarray, " vote"], Int[np.ndarray, "draw vote"], Int[np.ndarray, " vote"]]:
    """Return the mean votes that occur, the drawn number of valid items of each, and all items."""
    votes_at, vote_of = np.unique(share, return_inverse=True)
    patterns, pattern_of = np.unique(evidence.nodes, axis=1, return_inverse=True)
    shape = (len(votes_at), patterns.shape[1])
    cell = vote_of.ravel() * shape[1] + pattern_of.ravel()
    count = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    chains = np.repeat(
        np.arange(len(patterns)), np.rint(CHAINS * np.array(evidence.weights)).astype(int)
    )
    odds = patterns[chains][:, None, :]
    total = count.sum(1)
    rho, valid = np.full((len(chains), len(votes_at)), 0.5), []
    for _ in range(STEPS):
        p = expit(logit(np.clip(rho, SMALL, 1 - SMALL))[..., None] + odds)
        valid.append(rng.binomial(count, p).sum(-1))
        rho = rng.beta(0.5 + valid[-1], 0.5 + total - valid[-1])
    return votes_at, np.concatenate(valid[-KEPT:]), total


def _independent_share(table: pd.DataFrame, level: float) -> dict[str, Float[np.ndarray, " judge"]]:
    """Return how many independent items an item of a group counts as, from the width of the interval."""
    from judgebayes.measures.significance import share_interval

    parts = {}
    for rate, noun in (("tpr", "valid"), ("tnr", "invalid")):
        n = table[noun].to_numpy(float)
        low, high = share_interval(np.nan_to_num(table[rate].to_numpy()) * n, n, level=level)
        width = (table[f"{rate}_high"] - table[f"{rate}_low"]).to_numpy()
        ratio = np.divide(high - low, width, out=np.ones_like(n), where=width > 0)
        parts[rate] = np.minimum(ratio**2, 1.0)
    return parts
