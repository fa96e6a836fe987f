"""Davidson's model of ternary labels: simulated by the program, fitted by NUTS, replicated."""

from typing import Any

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, Predictive

from judgebayes.models.davidson import DavidsonData, DavidsonModel, features


def main(samples: int = 500) -> Any:
    """Return the posterior of simulated data, with replicated data; print it beside the truth."""
    of_votes, of_data, of_fit, of_replicated = jax.random.split(jax.random.key(0), 4)
    model = DavidsonModel(n_classes=3)
    votes = dist.DirichletMultinomial(jnp.ones(3), 5).sample(of_votes, (200,))
    blank = DavidsonData(features(votes))  # of each item, votes for each class: given
    drawn = Predictive(model, num_samples=1)(of_data, blank)  # what is None is sampled
    data = blank._replace(labels=drawn["label"][0])

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
