"""The models as in NumPyro's documentation: the true class is a site, and is enumerated.

`test_textbook.py` compares the programs, whose distributions sum out the class, with these.
"""

from typing import Any

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array

from judgebayes.models.base import PanelData, noise_matrix
from judgebayes.models.beta_binomial import CountData
from judgebayes.models.shared_difficulty import EASE, LOG_EASE

ENUMERATED = {"enumerate": "parallel"}


def observe_class_and_votes(
    y: Array, votes_given: Any, data: Any, n_classes: int, noise: float, labelled_only: bool
) -> None:
    """Observe the noisy label of a class, and votes given it, where there are any."""
    labelled = data.labels >= 0
    with numpyro.handlers.mask(mask=labelled):
        label = dist.Categorical(noise_matrix(noise, n_classes)[y])
        numpyro.sample("label", label, obs=jnp.maximum(data.labels, 0))
    for j in range(data.votes.shape[1]):
        for s in range(data.votes.shape[2]):
            vote = data.votes[:, j, s]
            used = (vote >= 0) & (labelled | (not labelled_only))
            with numpyro.handlers.mask(mask=used):
                numpyro.sample(f"vote {j} {s}", votes_given(j, y), obs=jnp.maximum(vote, 0))


def one_coin(data: PanelData, n_classes: int, noise: float = 0.0) -> None:
    """Each judge has its own accuracy; labels are uniform."""
    n_items, n_judges, _ = data.votes.shape
    with numpyro.plate("judge", n_judges):
        accuracy = numpyro.sample("accuracy", dist.Beta(1.0, 1.0))

    def vote(judge: int, y: Array) -> dist.Categorical:
        right = jnp.arange(n_classes) == y[..., None]
        r = accuracy[judge]
        return dist.Categorical(jnp.where(right, r, (1 - r) / (n_classes - 1)))

    with numpyro.plate("item", n_items):
        y = numpyro.sample(
            "y", dist.Categorical(jnp.full(n_classes, 1 / n_classes)), infer=ENUMERATED
        )
        observe_class_and_votes(y, vote, data, n_classes, noise, labelled_only=True)


def dawid_skene(data: PanelData, n_classes: int, noise: float = 0.0) -> None:
    """Each judge has a confusion matrix; labels are partly known."""
    n_items, n_judges, _ = data.votes.shape
    pi = numpyro.sample("pi", dist.Dirichlet(jnp.full(n_classes, 2.0)))
    wrong = 1 + 0.5 / (n_classes - 1)
    rows = dist.Dirichlet(jnp.where(jnp.eye(n_classes, dtype=bool), 2.0, wrong))
    with numpyro.plate("judge", n_judges, dim=-2), numpyro.plate("class", n_classes, dim=-1):
        confusion = numpyro.sample("confusion", rows)
    with numpyro.plate("item", n_items):
        y = numpyro.sample("y", dist.Categorical(pi), infer=ENUMERATED)
        observe_class_and_votes(
            y,
            lambda judge, y: dist.Categorical(confusion[judge][y]),
            data,
            n_classes,
            noise,
            labelled_only=False,
        )


def shared_difficulty(data: PanelData, n_classes: int, noise: float = 0.0) -> None:
    """Judges share the ease of an item; the ends of the scale have no bias."""
    n_items, n_judges, _ = data.votes.shape
    mean = numpyro.sample("mean", dist.Normal(1.0, 1.0))
    variance = numpyro.sample("variance", dist.InverseGamma(3.0, 1.0))
    ease = numpyro.sample("ease", dist.HalfNormal(2.0))
    z = numpyro.sample("reliability", dist.Normal(0, 1).expand((n_judges,)).to_event(1))
    level = numpyro.sample("level", dist.Normal(0, 1.5).expand((1,)).to_event(1))
    level_variance = numpyro.sample("level_variance", dist.InverseGamma(3.0, 1.0))
    own = numpyro.sample("bias", dist.Normal(0, 1).expand((n_judges, 1)).to_event(2))
    reliability = mean + jnp.sqrt(variance) * z
    inner = level + jnp.sqrt(level_variance) * own
    steps = jnp.abs(jnp.arange(n_classes)[:, None] - jnp.arange(n_classes))
    distance = ((steps > 0) + steps / (n_classes - 1)) / 2
    chance = jnp.tile(jnp.exp(jnp.asarray(LOG_EASE)) / n_classes, n_classes)
    with numpyro.plate("item", n_items):
        state = numpyro.sample("class and ease", dist.Categorical(chance), infer=ENUMERATED)
        y, node = state // len(EASE), state % len(EASE)
        h = jnp.asarray(EASE)[node]

        def vote(judge: int, y: Array) -> dist.Categorical:
            strength = (reliability[judge] + ease * h)[..., None]
            bias = jnp.concatenate([jnp.zeros(1), inner[judge], jnp.zeros(1)])
            return dist.Categorical(logits=-strength * distance.T[y] + bias)

        observe_class_and_votes(y, vote, data, n_classes, noise, labelled_only=True)


def pooled_dawid_skene(data: PanelData, n_classes: int, noise: float = 0.0) -> None:
    """A judge has an ability, and its confusion matrix varies around that of such a judge."""
    n_items, n_judges, _ = data.votes.shape
    pi = numpyro.sample("pi", dist.Dirichlet(jnp.full(n_classes, 2.0)))
    mean_ability = numpyro.sample("mean_ability", dist.Normal(1.4, 0.7))
    log_spread = numpyro.sample("log_spread", dist.Normal(-0.5, 0.7))
    with numpyro.plate("of_class", n_classes):
        shift = numpyro.sample("shift", dist.Normal(0.0, 0.5))
        log_concentration = numpyro.sample("log_concentration", dist.Normal(jnp.log(8.0), 1.0))
        spread_of_errors = jnp.full(n_classes - 1, 1 + 5 / (n_classes - 1))
        errors = numpyro.sample("errors", dist.Dirichlet(spread_of_errors))
    with numpyro.plate("who", n_judges):
        skill = numpyro.sample("skill", dist.Normal(0.0, 1.0))
    rows = []
    for k in range(n_classes):
        right = 1 / (1 + jnp.exp(-(mean_ability + jnp.exp(log_spread) * skill + shift[k])))
        wrong = [(1 - right) * errors[k, other] for other in range(n_classes - 1)]
        rows.append(jnp.stack([*wrong[:k], right, *wrong[k:]], axis=1))
    alpha = jnp.exp(log_concentration)[:, None] * jnp.stack(rows, axis=1)
    with numpyro.plate("judge", n_judges, dim=-2), numpyro.plate("class", n_classes, dim=-1):
        confusion = numpyro.sample("confusion", dist.Dirichlet(alpha))
    with numpyro.plate("item", n_items):
        y = numpyro.sample("y", dist.Categorical(pi), infer=ENUMERATED)
        observe_class_and_votes(
            y,
            lambda judge, y: dist.Categorical(confusion[judge][y]),
            data,
            n_classes,
            noise,
            labelled_only=False,
        )


def irt(data: PanelData, n_classes: int, noise: float = 0.0) -> None:
    """Able judges and hard items; labels are uniform."""
    n_items, n_judges, _ = data.votes.shape
    with numpyro.plate("judge", n_judges):
        ability = numpyro.sample("ability", dist.Normal(0.0, 1.0))
    with numpyro.plate("item", n_items):
        difficulty = numpyro.sample("difficulty", dist.Normal(0.0, 2.0))
        slope = jnp.exp(numpyro.sample("log_discrimination", dist.Normal(0.0, 0.5)))

        def vote(judge: int, y: Array) -> dist.Categorical:
            chance = 1 / (1 + jnp.exp(-slope * (ability[judge] - difficulty)))[:, None]
            right = jnp.arange(n_classes) == y[..., None]
            return dist.Categorical(jnp.where(right, chance, (1 - chance) / (n_classes - 1)))

        y = numpyro.sample(
            "y", dist.Categorical(jnp.full(n_classes, 1 / n_classes)), infer=ENUMERATED
        )
        observe_class_and_votes(y, vote, data, n_classes, noise, labelled_only=True)


def items_of_generators(data: PanelData, n_generators: int) -> None:
    """Validity by generator, and judges who are independent given it."""
    n_items, n_judges, _ = data.votes.shape
    centre = numpyro.sample(
        "centre", dist.Normal(jnp.array([2.0, 1.5, 1.5]), jnp.array([1.5, 1.0, 1.5])).to_event(1)
    )
    log_sigma = numpyro.sample(
        "log_sigma", dist.Normal(jnp.log(jnp.array([0.3, 0.3])), 0.5).to_event(1)
    )
    follow = numpyro.sample("follow", dist.Normal(0.5, 0.5))
    standard = dist.Normal(0.0, 1.0)
    alpha = centre[0] + 0.7 * numpyro.sample("alpha", standard.expand((n_judges,)).to_event(1))
    gap = centre[1] + 0.7 * numpyro.sample("gap", standard.expand((n_judges,)).to_event(1))
    eta = numpyro.sample("eta", standard.expand((n_generators,)).to_event(1))
    w = numpyro.sample("w", standard.expand((2, n_generators)).to_event(2))
    shift = 1.5 * follow * eta + jnp.exp(log_sigma)[:, None] * w
    quality = 1 / (1 + jnp.exp(-(centre[2] + 1.5 * eta)))[data.generator]
    with numpyro.plate("item", n_items):
        y = numpyro.sample(
            "y", dist.Categorical(jnp.stack([1 - quality, quality], -1)), infer=ENUMERATED
        )

        def vote(judge: int, y: Array) -> dist.Bernoulli:
            base = jnp.stack([alpha - gap, alpha])[:, judge]
            return dist.Bernoulli(logits=base[y] + shift[y, data.generator])

        observe_class_and_votes(y, vote, data, 2, 0.0, labelled_only=False)


def beta_binomial(data: CountData) -> None:
    """Hard and easy items: the component of an item is a site."""
    centre = numpyro.sample("centre", dist.Normal(1.0, 1.5 / jnp.sqrt(2.0)))
    gap = numpyro.sample("gap", dist.HalfNormal(1.5 * jnp.sqrt(2.0)))
    share = numpyro.sample("share", dist.Beta(2.0, 2.0))
    with numpyro.plate("component", 2):
        log_dispersion = numpyro.sample("log_dispersion", dist.Normal(-1.0, 1.25))
    mean = 1 / (1 + jnp.exp(-(centre + gap * jnp.array([-0.5, 0.5]))))
    size = jnp.exp(-log_dispersion)
    with numpyro.plate("item", len(data.given)):
        c = numpyro.sample(
            "component of item", dist.Categorical(jnp.stack([share, 1 - share])), infer=ENUMERATED
        )
        with numpyro.handlers.mask(mask=data.correct >= 0):
            counts = dist.BetaBinomial((mean * size)[c], ((1 - mean) * size)[c], data.given)
            numpyro.sample("correct", counts, obs=jnp.maximum(data.correct, 0))
