"""Dawid and Skene's model: data simulated by the program, fitted by NUTS, replicated."""

from typing import Any

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import MCMC, NUTS, Predictive

from judgebayes.models.base import PanelData
from judgebayes.models.dawid_skene import DawidSkeneModel


def main(samples: int = 500) -> Any:
    """Return the posterior of simulated data, with replicated data; print it beside the truth."""
    of_data, of_fit, of_replicated = jax.random.split(jax.random.key(0), 3)
    model = DawidSkeneModel(n_classes=3)
    voted = jnp.ones((200, 4, 1), bool).at[::5, 0].set(False)  # a judge skips every fifth item
    blank = PanelData(voted=voted)
    drawn = Predictive(model, num_samples=1)(of_data, blank)  # what is None is sampled
    labels = drawn["label"][0].at[::2].set(-1)  # every second label is unknown: summed out
    data = PanelData(votes=drawn["votes"][0], labels=labels)

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
    log_probs = jax.vmap(lambda draw: model.predict(draw, data))(mcmc.get_samples())
    found = np.exp(log_probs).mean(0).argmax(-1)
    unknown = labels < 0
    print(f"Unknown classes found: {(found == drawn['label'][0])[unknown].mean():.2f}")
    return fit


if __name__ == "__main__":
    main()
