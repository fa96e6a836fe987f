"""Draws from the posterior with NumPyro's No-U-Turn sampler."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpyro import infer
from numpyro.infer.util import initialize_model

from judgebayes.arrays import Key
from judgebayes.compiled.backend import on_cpu
from judgebayes.inference.problem import Chains, Problem, Result, Sites, numpyro_lock
from judgebayes.inference.status import Status, when
from judgebayes.measures.scores import Score

RHAT_LIMIT = 1.01
STRIDE = 100
"""Most steps of all chains in one call of the compiled program."""
FIRST = 1
"""Steps of the first call, which includes the compilation."""
PAUSE = 0.3
"""Seconds between two progress reports of `draw`."""
LEAST_KEPT = 20
"""Fewest draws of each chain for an interrupted run to return its draws."""
RADIUS = 2.0
"""Half-width of the chains' random starts around a given start, on the unconstrained scale; NumPyro's
around 0 have the same."""


@dataclass(frozen=True)
class Sampling:
    """The progress of a sampler."""

    steps: int
    """Steps of each chain so far, out of `warmup` + `draws`."""
    per_second: float
    """Steps of all chains together per second, since the last report."""
    diverging: int
    """Number of divergent draws."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NUTS:
    r"""Sample the posterior of the parameters.

    Without a `score`, the posterior is the ordinary one,
    :math:`\pi(\theta) \prod_i p_\theta(y_i | x_i)^{w_i}`. With one, it is the generalised-Bayes
    posterior of that score at `temperature` (`Problem.generalised`), the only one of a DRPS fit.
    """

    temperature: float = 1.0
    score: Score | None = field(default=None, metadata={"static": True})
    draws: int = field(default=1000, metadata={"static": True})
    warmup: int = field(default=1000, metadata={"static": True})
    chains: int = field(default=4, metadata={"static": True})
    target_accept: float = field(default=0.9, metadata={"static": True})

    @on_cpu
    def solve(self, problem: Problem, key: Key) -> Result:
        """Return the draws of all chains; `status` is UNMIXED where the chains do not agree."""

        @jax.jit
        @numpyro_lock
        def run(key: Key) -> Chains:
            state, step, record = self._chains(problem, key)
            steps = self.warmup + self.draws
            # One loop, because a step takes seconds to compile; warm-up is overwritten.
            return _by_chain(_steps(step, record, state, steps, self.draws, self.warmup)[1])

        chains = run(key)
        quantities = list(chains.draws.values())
        if problem.convergence_targets is not None:
            quantities = [jax.vmap(jax.vmap(problem.convergence_targets))(chains.draws)]
        rhat = jnp.stack([split_rhat(x).max() for x in quantities]).max()
        mixed = (rhat < RHAT_LIMIT) & ~chains.diverging.any()
        finite = jnp.stack([jnp.isfinite(x).all() for x in chains.draws.values()]).all()
        return Result(
            draws={k: v.reshape(-1, *v.shape[2:]) for k, v in chains.draws.items()},
            status=jnp.maximum(when(~mixed, Status.UNMIXED), when(~finite, Status.NONFINITE)),
            chains=chains,
        )

    @on_cpu
    def draw(
        self, problem: Problem, key: Key, callback: Callable[[Sampling], object] | None = None
    ) -> Chains:
        """Return the draws that `solve` makes, with progress reports; not for compiled code.

        All chains run together for a fraction of a second at a time, so that progress can be shown and
        an interrupt is handled. The length of these rounds changes no draw. An interrupted run returns
        the draws so far if each chain has at least `LEAST_KEPT`.

        Parameters
        ----------
        problem
            What to sample.
        key
            Random key of the starts and the draws.
        callback
            Called with the progress after each round.

        Raises
        ------
        KeyboardInterrupt
            If the run is interrupted with fewer draws.
        """

        @jax.jit
        @numpyro_lock
        def begin(key: Key) -> Any:
            return self._chains(problem, key)[0]

        @jax.jit
        @numpyro_lock
        def advance(key: Key, state: Any, steps: Int[Array, ""]) -> tuple[Any, Any]:
            # Built anew, because its traced values must not leave the program.
            _, step, record = self._chains(problem, key)
            return _steps(step, record, state, steps, STRIDE)

        done, stride, state = 0, FIRST, begin(key)
        parts: list[Any] = []
        try:
            while done < self.warmup + self.draws:
                phase_end = self.warmup if done < self.warmup else self.warmup + self.draws
                steps = min(stride, phase_end - done)
                began = time.monotonic()
                state, records = advance(key, state, jnp.asarray(steps))
                jax.block_until_ready(state.i)
                if done >= self.warmup:
                    parts.append(jax.tree.map(lambda x, n=steps: np.asarray(x)[:n], records))
                done += steps
                took = max(time.monotonic() - began, 1e-4)
                if callback is not None:
                    diverging = int(sum(part[1].sum() for part in parts))
                    callback(Sampling(done, steps * self.chains / took, diverging))
                # At most doubled, because the first call includes the compilation.
                stride = max(1, min(2 * steps, STRIDE, int(steps * PAUSE / took)))
        except KeyboardInterrupt:
            if sum(len(part[1]) for part in parts) < LEAST_KEPT:
                raise
        return _by_chain(jax.tree.map(lambda *x: jnp.asarray(np.concatenate(x)), *parts))

    def _chains(
        self, problem: Problem, key: Key
    ) -> tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]:
        """Return the chains' first state, a step of all of them, and what is recorded of a state."""
        sampled, back = self._for_sampler(problem)
        of_program, of_start, of_chain = jax.random.split(key, 3)
        initial = initialize_model(
            jax.random.split(of_program, self.chains),
            sampled.posterior(self.score, self.temperature),
            init_strategy=infer.init_to_uniform
            if problem.start is None
            else infer.init_to_value(values=problem.start),
        )
        positions = self._apart(problem, initial.param_info.z, of_start)
        kernel = infer.NUTS(
            potential_fn=initial.potential_fn, target_accept_prob=self.target_accept
        )

        def begin(key: Key, position: Any) -> Any:
            return kernel.init(key, self.warmup, position, (), {})

        def record(state: Any) -> tuple[Any, ...]:
            sites = back(initial.postprocess_fn(state.z))
            drawn = {name: sites[name] for name in problem.latent}
            return drawn, state.diverging, state.energy, state.num_steps, state.accept_prob

        # Together, a step of all chains takes as long as the longest of their trajectories. This costs
        # more than it saves where they differ and a gradient takes long.
        def step(state: Any) -> Any:
            one = partial(kernel.sample, model_args=(), model_kwargs={})
            return jax.lax.map(one, state) if problem.in_turns else jax.vmap(one)(state)

        state = jax.vmap(begin)(jax.random.split(of_chain, self.chains), positions)
        return state, step, jax.vmap(record)

    def _apart(self, problem: Problem, positions: Any, key: Key) -> Any:
        """Return starts that differ between chains.

        NumPyro draws starts at random, unless the problem has one: the same for all chains, so that none
        could show that the others miss a mode.
        """
        if problem.start is None:
            return positions
        leaves, form = jax.tree.flatten(positions)
        keys = jax.random.split(key, len(leaves))
        moved = [
            z + jax.random.uniform(k, z.shape, z.dtype, -RADIUS, RADIUS)
            for z, k in zip(leaves, keys, strict=True)
        ]
        return jax.tree.unflatten(form, moved)

    def _for_sampler(self, problem: Problem) -> tuple[Problem, Callable[[Sites], Sites]]:
        """Return the problem in the program's form for samplers, if it has one, and the map back."""
        form = getattr(problem.model, "for_sampler", None)
        if self.score is not None or form is None:
            return problem, lambda sites: sites
        model, back = form(problem.data)
        return replace(problem, model=model, log_likelihood=None), back


def _steps(
    step: Callable[[Any], Any],
    record: Callable[[Any], Any],
    state: Any,
    steps: int | Int[Array, ""],
    kept: int,
    skipped: int = 0,
) -> tuple[Any, Any]:
    """Return the state after some steps, and records of up to `kept` of them after those skipped."""

    def draw(done: Int[Array, ""], at: tuple[Any, Any]) -> tuple[Any, Any]:
        new, place = step(at[0]), jnp.maximum(done - skipped, 0)
        return new, jax.tree.map(lambda b, x: b.at[place].set(x), at[1], record(new))

    blank = jax.tree.map(lambda x: jnp.zeros((kept, *x.shape), x.dtype), record(state))
    return jax.lax.fori_loop(0, steps, draw, (state, blank))


def _by_chain(records: Any) -> Chains:
    """Return records by draw and chain as chains."""
    draws, diverging, energy, num_steps, acceptance = jax.tree.map(
        lambda x: jnp.swapaxes(x, 0, 1), records
    )
    depth = jnp.ceil(jnp.log2(num_steps + 1.0))
    return Chains(draws, diverging, energy, depth, acceptance)


def split_rhat(draws: Float[Array, "chain draw *shape"]) -> Float[Array, "*shape"]:
    """Return split R-hat (Gelman et al. 2013), as ArviZ's `method="split"`, for compiled code."""
    half = draws.shape[1] // 2
    halves = jnp.concatenate([draws[:, :half], draws[:, -half:]])
    within = halves.var(1, ddof=1).mean(0)
    between = halves.mean(1).var(0, ddof=1)
    return jnp.sqrt((within * (half - 1) / half + between) / within)
