"""Draws from the posterior with NumPyro's No-U-Turn sampler."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from numpyro import infer
from numpyro.infer.util import initialize_model
from scipy.special import ndtri

from judgebayes.inference.numpyro_lock import alone
from judgebayes.inference.problem import Chains, Problem, Result, Sites
from judgebayes.inference.status import Status, when
from judgebayes.measures.scores import Score

__all__ = ["NUTS", "Sampling", "split_rhat"]

RHAT_LIMIT = 1.01
STRIDE = 100
"""Steps of all chains that one call of the compiled program takes at most."""
FIRST = 1
"""Steps of the first call, which compiles."""
PAUSE = 0.3
"""Seconds between two looks of whoever waits for `draw`."""
NEAR = 0.1
"""How far apart chains start on the unconstrained scale around a given start."""
LEAST_KEPT = 20
"""Draws of each chain that an interrupted run keeps, and R-hat is told from."""
REST = 50
"""R-hat takes at most one part in so many of the time."""


@dataclass(frozen=True)
class Sampling:
    """How far a sampler is, for someone who waits."""

    steps: int
    """Of each chain, of `warmup` + `draws`."""
    per_second: float
    """Steps of all chains together in a second, since the warm-up or the draws began."""
    diverging: int
    """Of the draws."""
    rhat: float
    """The largest R-hat of ranks (Vehtari et al. 2021) so far, NaN before there are enough draws."""
    ess: float
    """The smallest bulk effective sample size so far, likewise."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NUTS:
    r"""Sample the posterior of the parameters.

    Without a `score`, the posterior is the ordinary one,
    :math:`\pi(\theta) \prod_i p_\theta(y_i | x_i)^{w_i}`. With one, it is the generalised-Bayes
    posterior of that score at `temperature` (`Problem.generalised`): a DRPS fit has no other.
    """

    temperature: float = 1.0
    score: Score | None = field(default=None, metadata={"static": True})
    draws: int = field(default=1000, metadata={"static": True})
    warmup: int = field(default=1000, metadata={"static": True})
    chains: int = field(default=4, metadata={"static": True})
    target_accept: float = field(default=0.9, metadata={"static": True})

    def solve(self, problem: Problem, key: PRNGKeyArray) -> Result:
        """Return the draws of all chains; `status` tells whether the chains agree."""
        model, fold = self._target(problem)
        mcmc = infer.MCMC(
            infer.NUTS(
                model,
                target_accept_prob=self.target_accept,
                init_strategy=_beginning(problem.start),
            ),
            num_warmup=self.warmup,
            num_samples=self.draws,
            num_chains=self.chains,
            chain_method="vectorized",
            progress_bar=False,
        )
        mcmc.run(key, extra_fields=("diverging", "energy", "num_steps", "accept_prob"))
        extra = mcmc.get_extra_fields(group_by_chain=True)
        drawn = jax.vmap(jax.vmap(fold))(mcmc.get_samples(group_by_chain=True))
        chains = _chains(
            {name: drawn[name] for name in problem.latent},
            extra["diverging"],
            extra["energy"],
            extra["num_steps"],
            extra["accept_prob"],
        )
        watched = list(chains.draws.values())
        if problem.watched is not None:
            watched = [jax.vmap(jax.vmap(problem.watched))(chains.draws)]
        rhat = jnp.stack([split_rhat(x).max() for x in watched]).max()
        mixed = (rhat < RHAT_LIMIT) & ~chains.diverging.any()
        finite = jnp.stack([jnp.isfinite(x).all() for x in chains.draws.values()]).all()
        return Result(
            draws={k: v.reshape(-1, *v.shape[2:]) for k, v in chains.draws.items()},
            status=jnp.maximum(when(~mixed, Status.UNMIXED), when(~finite, Status.NONFINITE)),
            objective=jnp.asarray(jnp.nan),
            projected_gradient=jnp.asarray(jnp.nan),
            chains=chains,
        )

    def draw(
        self,
        problem: Problem,
        key: PRNGKeyArray,
        told: Callable[[Sampling], object] | None = None,
    ) -> Chains:
        """Return draws as `solve` makes them, told of while they are made.

        For someone who waits, not for compiled code: the chains go on together for a fraction of a
        second at a time, so that progress can be shown and an interrupt is heard. Where they pause
        changes no draw. An interrupted run returns the draws that it has, from `LEAST_KEPT` of each
        chain on.

        Parameters
        ----------
        problem
            What to sample.
        key
            Random key of the starts and the draws.
        told
            Called with how far the sampler is, if given.

        Raises
        ------
        KeyboardInterrupt
            If it is interrupted with fewer draws.
        """
        start, walk = jax.random.split(key)

        # Made anew inside each program: what it computes of the model must not leave it.
        def machine(state_key: PRNGKeyArray) -> tuple[Any, infer.NUTS, Callable[[Any], Sites]]:
            model, fold = self._target(problem)
            keys = jax.random.split(state_key, self.chains)
            found = initialize_model(keys, model, init_strategy=_beginning(problem.start))
            spots = found.param_info.z
            if problem.start is not None:
                leaves, form = jax.tree.flatten(spots)
                moved = [
                    z + jax.random.uniform(k, z.shape, z.dtype, -NEAR, NEAR)
                    for z, k in zip(leaves, jax.random.split(walk, len(leaves)), strict=True)
                ]
                spots = jax.tree.unflatten(form, moved)
            kernel = infer.NUTS(
                potential_fn=found.potential_fn, target_accept_prob=self.target_accept
            )
            state = kernel.init(keys, self.warmup, spots, (), {})
            return state, kernel, jax.vmap(lambda z: fold(found.postprocess_fn(z)))

        @jax.jit
        @alone
        def begin() -> Any:
            return machine(start)[0]

        @jax.jit
        @alone
        def advance(state: Any, steps: Int[Array, ""]) -> tuple[Any, Any]:
            _, kernel, sites = machine(start)

            def seen(at: Any) -> tuple[Any, ...]:
                drawn = {name: x for name, x in sites(at.z).items() if name in at.z}
                return drawn, at.diverging, at.energy, at.num_steps, at.accept_prob

            def step(place: Int[Array, ""], at: tuple[Any, Any]) -> tuple[Any, Any]:
                moved = kernel.sample(at[0], (), {})
                return moved, jax.tree.map(lambda b, x: b.at[place].set(x), at[1], seen(moved))

            blank = jax.tree.map(lambda x: jnp.zeros((STRIDE, *x.shape), x.dtype), seen(state))
            return jax.lax.fori_loop(0, steps, step, (state, blank))

        done, stride, state = 0, FIRST, begin()
        kept: list[Any] = []
        watch = _Watch(problem)
        try:
            while done < self.warmup + self.draws:
                phase_end = self.warmup if done < self.warmup else self.warmup + self.draws
                steps = min(stride, phase_end - done)
                began = time.monotonic()
                state, records = advance(state, jnp.asarray(steps))
                jax.block_until_ready(state.i)
                if done >= self.warmup:
                    kept.append(jax.tree.map(lambda x, n=steps: np.asarray(x)[:n], records))
                done += steps
                took = max(time.monotonic() - began, 1e-4)
                if told is not None:
                    told(watch.look(kept, done, steps * self.chains, took))
                # At most twice as many: the first call compiles.
                stride = max(1, min(2 * steps, STRIDE, int(steps * PAUSE / took)))
        except KeyboardInterrupt:
            if sum(len(part[1]) for part in kept) < LEAST_KEPT:
                raise
        together = jax.tree.map(lambda *parts: np.swapaxes(np.concatenate(parts), 0, 1), *kept)
        return _chains(*jax.tree.map(jnp.asarray, together))

    def _target(self, problem: Problem) -> tuple[Callable[[], None], Callable[[Sites], Sites]]:
        """Return the model to sample, and what makes sites of the problem's out of its own."""
        unordered = getattr(problem.model, "unordered", None)
        if self.score is not None or unordered is None:
            return problem.posterior(self.score, self.temperature), lambda sites: sites
        larger = unordered()
        return partial(larger, problem.data), larger.in_order


class _Watch:
    """Looks at the draws now and then: how fast they come, and whether chains agree so far."""

    def __init__(self, problem: Problem) -> None:
        watched = problem.watched
        self.watched = None if watched is None else jax.jit(jax.vmap(jax.vmap(watched)))
        self.rhat = self.ess = np.nan
        self.steps, self.seconds = 0, 0.0
        self.rested, self.cost = 0.0, 0.0
        self.sampling = False

    def look(self, kept: list[Any], done: int, steps: int, took: float) -> Sampling:
        """Return how far the sampler is, after so many steps of all chains in so many seconds."""
        if self.sampling != bool(kept) or self.steps <= steps:
            self.steps, self.seconds = 0, 0.0  # the first calls compile
        self.sampling = bool(kept)
        self.steps, self.seconds, self.rested = (
            self.steps + steps,
            self.seconds + took,
            self.rested + took,
        )
        n = sum(len(part[1]) for part in kept)
        if n >= LEAST_KEPT and self.rested >= REST * self.cost:
            began = time.monotonic()
            self.rhat, self.ess = self._agreement([part[0] for part in kept])
            self.rested, self.cost = 0.0, time.monotonic() - began
        diverging = int(sum(part[1].sum() for part in kept))
        return Sampling(done, self.steps / self.seconds, diverging, self.rhat, self.ess)

    def _agreement(self, parts: list[dict[str, np.ndarray]]) -> tuple[float, float]:
        """Return the largest R-hat and the smallest ESS of what chains must agree on."""
        from numpyro.diagnostics import effective_sample_size, gelman_rubin

        draws = jax.tree.map(lambda *each: np.concatenate(each), *parts)
        if self.watched is not None:
            draws = {"watched": np.asarray(self.watched(draws))}
        flat = np.concatenate([x.reshape(*x.shape[:2], -1) for x in draws.values()], axis=2)
        half = len(flat) // 2
        halves = np.concatenate([flat[:half], flat[-half:]], axis=1)
        halves = halves[..., np.ptp(halves, axis=(0, 1)) > 0]
        if halves.size == 0:
            return np.nan, np.nan
        ranks = halves.reshape(-1, halves.shape[2]).argsort(0).argsort(0).reshape(halves.shape)
        size = half * halves.shape[1]
        normal = np.swapaxes(ndtri((ranks + 0.625) / (size + 0.25)), 0, 1)  # chain, draw, quantity
        return float(gelman_rubin(normal).max()), float(effective_sample_size(normal).min())


def _chains(
    draws: Sites, diverging: Array, energy: Array, num_steps: Array, acceptance: Array
) -> Chains:
    depth = jnp.ceil(jnp.log2(num_steps + 1.0))
    return Chains(draws, diverging, energy, depth, acceptance)


def _beginning(start: Sites | None) -> Callable[..., Any]:
    found: Callable[..., Any] = (
        infer.init_to_uniform if start is None else infer.init_to_value(values=start)
    )
    return found


def split_rhat(draws: Float[Array, "chain draw *shape"]) -> Float[Array, "*shape"]:
    """Return split R-hat (Gelman et al. 2013), the traced twin of ArviZ's `method="split"`."""
    half = draws.shape[1] // 2
    halves = jnp.concatenate([draws[:, :half], draws[:, -half:]])
    within = halves.var(1, ddof=1).mean(0)
    between = halves.mean(1).var(0, ddof=1)
    return jnp.sqrt((within * (half - 1) / half + between) / within)
