"""The one-coin model: data simulated by the program, fitted by NUTS, replicated."""

from typing import Any

import arviz as az
import jax
import jax.numpy as jnp
from numpyro.infer import MCMC, NUTS, Predictive

from judgebayes.models.base import PanelData
from judgebayes.models.one_coin import OneCoinModel


def main(samples: int = 500) -> Any:
    """Return the posterior of simulated data, with replicated data."""
    of_data, of_fit, of_replicated = jax.random.split(jax.random.key(0), 3)
    model = OneCoinModel(n_classes=2)
    voted = jnp.ones((200, 4, 1), bool).at[::5, 0].set(False)  # a judge skips every fifth item
    blank = PanelData(voted=voted)
    drawn = Predictive(model, num_samples=1)(of_data, blank)  # what is None is sampled
    data = PanelData(votes=drawn["votes"][0], labels=drawn["label"][0])

    mcmc = MCMC(NUTS(model), num_warmup=samples, num_samples=samples, progress_bar=False)
    mcmc.run(of_fit, data)
    replicated = Predictive(model, mcmc.get_samples())(of_replicated, blank)
    fit = az.from_numpyro(mcmc, posterior_predictive=replicated)
    print(az.summary(fit))
    return fit


if __name__ == "__main__":
    main()
