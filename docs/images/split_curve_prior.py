"""Draw the prior of the split curve.

python docs/images/split_curve_prior.py    writes split-curve-prior.png beside this file
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from numpyro.infer import Predictive

from judgebayes.models.split_curve import SplitCurveModel, split_data

DRAWS, SHOWN = 4000, 25


def main() -> None:
    """Draw curves from the prior, with their quantiles, and the labels that they predict."""
    margins = jnp.linspace(0.005, 1.0, 200)
    given = jnp.stack([(1 + margins) / 2, (1 - margins) / 2], axis=1)
    data = split_data(given)
    model = SplitCurveModel(2, by_class=False)
    drawn = Predictive(model, num_samples=DRAWS)(jax.random.key(0), data)
    sites = {name: drawn[name] for name in ("alpha", "beta", "bend")}
    right = np.exp(np.asarray(jax.vmap(lambda s: model.predict(s, data))(sites))[:, :, 0])
    figure = Figure(figsize=(7.4, 3.2), layout="constrained")
    curve, share = figure.subplots(1, 2)
    ends = np.quantile(right, (0.05, 0.95), axis=0)
    curve.fill_between(margins, *ends, alpha=0.15, linewidth=0, label="middle 90 %")
    curve.plot(margins, right[:SHOWN].T, color="0.6", linewidth=0.6)
    curve.plot(margins, np.median(right, axis=0), linewidth=2, label="median")
    curve.set(xlabel="margin of the plurality", ylabel="P(plurality is right)", ylim=(0, 1))
    curve.legend(loc="lower right", frameon=False)
    wrong = np.asarray(drawn["label"] != 0).mean(1)
    share.hist(wrong, bins=np.linspace(0, 1, 21), density=True)
    share.set(xlabel="share of items whose plurality is wrong", ylabel="prior predictive density")
    share.set_xlim(0, 1)
    for axes in (curve, share):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("split-curve-prior.png"), dpi=110)


if __name__ == "__main__":
    main()
