"""Generators and judges, item by item: data simulated by the program, fitted by NUTS, replicated."""

from typing import Any

import arviz as az
import jax
import jax.numpy as jnp
from numpyro.infer import MCMC, NUTS, Predictive

from judgebayes.models.item_validator import ItemData, ItemModel


def main(samples: int = 500) -> Any:
    """Return the posterior of simulated data, with replicated data."""
    of_data, of_fit, of_replicated = jax.random.split(jax.random.key(0), 3)
    model = ItemModel(n_generators=3)
    voted = jnp.ones((200, 4, 1), bool).at[::5, 0].set(False)  # a judge skips every fifth item
    blank = ItemData(votes=None, labels=None, generator=jnp.arange(200) % 3, voted=voted)
    drawn = Predictive(model, num_samples=1)(of_data, blank)  # what is None is sampled
    data = blank._replace(votes=drawn["votes"][0], labels=drawn["label"][0].at[::2].set(-1))

    mcmc = MCMC(NUTS(model), num_warmup=samples, num_samples=samples, progress_bar=False)
    mcmc.run(of_fit, data)
    replicated = Predictive(model, mcmc.get_samples())(of_replicated, blank)
    fit = az.from_numpyro(mcmc, posterior_predictive=replicated)
    print(az.summary(fit))
    return fit


if __name__ == "__main__":
    main()
