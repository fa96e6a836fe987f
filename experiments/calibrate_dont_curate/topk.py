"""Placeholder until curate is merged."""
import jax, jax.numpy as jnp
from dataclasses import dataclass, field, replace
from judgebayes.models import one_coin
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TopK:
    aggregator: object
    k: int
    def fit(self, votes, labels, *, weight=None, key=None):
        w = jnp.ones(votes.n_items) if weight is None else weight
        c, x = one_coin.agreement(votes.index, jnp.asarray(labels), w)
        acc = (1 + c) / (2 + c + x)
        keep = jnp.argsort(jnp.argsort(-acc, stable=True)) < self.k
        own = replace(votes, index=jnp.where(keep[:, None], votes.index, -1))
        return Fitted(self.aggregator.fit(own, labels, weight=weight, key=key), keep)
@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Fitted:
    inner: object
    keep: object
    @property
    def status(self): return self.inner.status
    def __call__(self, votes):
        return self.inner(replace(votes, index=jnp.where(self.keep[:, None], votes.index, -1)))
