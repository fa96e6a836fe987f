"""Davidson's model: data simulated by the program, fitted by NUTS, replicated."""

from typing import Any

import arviz as az
import jax
from numpyro.infer import MCMC, NUTS, Predictive

from judgebayes.models.davidson import DavidsonData, DavidsonModel, features


def main(samples: int = 500) -> Any:
    """Return the posterior of simulated data, with replicated data."""
    of_data, of_fit, of_replicated = jax.random.split(jax.random.key(0), 3)
    model = DavidsonModel(n_classes=3)
    counts = jax.random.randint(jax.random.key(1), (200, 3), 0, 4)  # votes for each class, given
    blank = DavidsonData(features(counts))
    drawn = Predictive(model, num_samples=1)(of_data, blank)  # what is None is sampled
    data = blank._replace(labels=drawn["label"][0])

    mcmc = MCMC(NUTS(model), num_warmup=samples, num_samples=samples, progress_bar=False)
    mcmc.run(of_fit, data)
    replicated = Predictive(model, mcmc.get_samples())(of_replicated, blank)
    fit = az.from_numpyro(mcmc, posterior_predictive=replicated)
    print(az.summary(fit))
    return fit


if __name__ == "__main__":
    main()
