"""The mixture of Beta-Binomials: counts simulated by the program, fitted by NUTS, replicated."""

from typing import Any

import arviz as az
import jax
import jax.numpy as jnp
from numpyro.infer import MCMC, NUTS, Predictive

from judgebayes.models.beta_binomial import BetaBinomialModel, CountData


def main(samples: int = 500) -> Any:
    """Return the posterior of simulated data, with replicated data; print it beside the truth."""
    of_data, of_fit, of_replicated = jax.random.split(jax.random.key(0), 3)
    model = BetaBinomialModel(most=7, ordered=False)  # samplers run on either order of components
    blank = CountData(correct=None, given=jnp.where(jnp.arange(200) < 50, 5, 7))
    drawn = Predictive(model, num_samples=1)(of_data, blank)  # what is None is sampled
    data = blank._replace(correct=drawn["correct"][0])

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

    def errors(draw: dict[str, jax.Array]) -> jax.Array:
        """Return the errors of majorities of three sizes, which do not depend on the order."""
        return model.quantities(draw, data)["majority_error"]

    of_draws = jax.vmap(errors)(mcmc.get_samples()).reshape(2, samples, -1)
    truth = errors({name: drawn[name][0] for name in fit.posterior})
    print(az.summary({"majority_error": of_draws}).assign(truth=truth))
    return fit


if __name__ == "__main__":
    main()
