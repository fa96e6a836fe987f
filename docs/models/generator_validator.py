"""Generators and validators: counts simulated by the program, fitted by NUTS, replicated."""

from typing import Any

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import MCMC, NUTS, Predictive

from judgebayes.experiments.beyond_consensus.flat_program import FlatModel
from judgebayes.experiments.beyond_consensus.generator_counts import Counted


def main(samples: int = 500) -> Any:
    """Return the posterior of simulated data, with replicated data; print it beside the truth."""
    of_data, of_fit, of_replicated = jax.random.split(jax.random.key(0), 3)
    model = FlatModel()
    # Four judges vote on 80 items of each of five generators, and on 20 whose labels are known.
    with_label, without = jnp.full((5, 4), 20.0), jnp.full((5, 4), 80.0)
    blank = Counted(
        judged=without,
        valid_judged=with_label,  # of these two only the sum is used where labels are sampled
        invalid_judged=0 * with_label,
        labelled=with_label[:, 0],
        valid=None,
        true_accepted=None,
        false_accepted=None,
        accepted=None,
    )
    drawn = Predictive(model, num_samples=1)(of_data, blank)  # what is None is sampled
    data = blank.filled(**{name: drawn[name][0] for name in (*model.traits.sites, "valid_judged")})

    mcmc = MCMC(
        NUTS(model),
        num_warmup=samples,
        num_samples=samples,
        num_chains=2,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(of_fit, data)
    replicated = Predictive(model, mcmc.get_samples())(of_replicated, blank)
    fit = az.from_numpyro(mcmc, posterior_predictive=replicated)
    truth = np.concatenate([np.ravel(drawn[name][0]) for name in fit.posterior])
    print(az.summary(fit).assign(truth=truth))
    return fit


if __name__ == "__main__":
    main()
