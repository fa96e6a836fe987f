"""The one-coin model: data simulated by the program, fitted by NUTS, replicated."""

from typing import Any

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import MCMC, NUTS, Predictive

from judgebayes.models.base import PanelData
from judgebayes.models.one_coin import OneCoinModel, OneCoinPrior


def main(samples: int = 500) -> Any:
    """Return the posterior of simulated data, with replicated data; print it beside the truth."""
    of_data, of_fit, of_replicated = jax.random.split(jax.random.key(0), 3)
    model = OneCoinModel(n_classes=2, prior=OneCoinPrior((4.0, 2.0)))
    voted = jnp.ones((200, 4, 1), bool).at[::5, 0].set(False)  # a judge skips every fifth item
    blank = PanelData(voted=voted)
    drawn = Predictive(model, num_samples=1)(of_data, blank)  # what is None is sampled
    data = PanelData(votes=drawn["votes"][0], labels=drawn["label"][0])

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
    right = (data.votes == data.labels[:, None, None]).sum((0, 2))
    exact = (4 + right) / (6 + voted.sum((0, 2)))  # the mean of the Beta posterior
    print(az.summary(fit).assign(truth=truth, exact=exact))
    return fit


if __name__ == "__main__":
    main()
