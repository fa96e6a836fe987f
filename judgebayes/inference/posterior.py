"""Posteriors handed to ArviZ, and what its diagnostics say, in words.

The only module that calls ArviZ, whose two lines (0.23 for Python 3.11, 1.x from 3.12) build and
return different containers.
"""

import warnings
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Num

from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding
from judgebayes.inference.problem import Chains

__all__ = ["diagnose", "summary", "to_arviz"]

RHAT_LIMIT = 1.01
ESS_PER_CHAIN = 100
BFMI_LIMIT = 0.3
INTERVAL = (0.05, 0.95)


def _arviz() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # 0.23 announces 1.0 at import
        import arviz

    return arviz


def to_arviz(
    chains: Chains,
    *,
    log_likelihood: Mapping[str, Float[np.ndarray, "chain draw ..."]] | None = None,
    posterior_predictive: Mapping[str, Num[np.ndarray, "chain draw ..."]] | None = None,
    prior: Mapping[str, Float[np.ndarray, "chain draw ..."]] | None = None,
    observed: Mapping[str, np.ndarray] | None = None,
    coords: Mapping[str, Sequence[Any]] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
) -> Any:
    """Return draws as ArviZ's own container: InferenceData before 1.0, DataTree from it on.

    Parameters
    ----------
    chains
        The draws and the sampler's records.
    log_likelihood, posterior_predictive, prior, observed
        Further groups, where there are any.
    coords, dims
        Names of the axes beyond chain and draw.
    """
    groups: dict[str, dict[str, np.ndarray]] = {
        "posterior": {name: np.asarray(x) for name, x in chains.draws.items()},
        "sample_stats": {
            "diverging": np.asarray(chains.diverging),
            "energy": np.asarray(chains.energy),
            "tree_depth": np.asarray(chains.tree_depth).astype(int),
            "acceptance_rate": np.asarray(chains.acceptance),
        },
    }
    for name, group in (
        ("log_likelihood", log_likelihood),
        ("posterior_predictive", posterior_predictive),
        ("prior", prior),
        ("observed_data", observed),
    ):
        if group is not None:
            groups[name] = {key: np.asarray(x) for key, x in group.items()}
    axes = {"coords": dict(coords or {}), "dims": {k: list(v) for k, v in (dims or {}).items()}}
    arviz = _arviz()
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups, **axes)
    return arviz.from_dict(**groups, **axes)


def summary(data: Any) -> pd.DataFrame:
    """Return a row per parameter: mean, sd, 90 % interval, MCSE, ESS (bulk, tail) and R-hat.

    Parameters
    ----------
    data
        What `to_arviz` returned, or any ArviZ posterior.
    """
    arviz = _arviz()
    draws = _dataset(data["posterior"])
    columns = {
        "mean": draws.mean(("chain", "draw")),
        "sd": draws.std(("chain", "draw"), ddof=1),
        "low": draws.quantile(INTERVAL[0], ("chain", "draw")),
        "high": draws.quantile(INTERVAL[1], ("chain", "draw")),
        "mcse_mean": _dataset(arviz.mcse(data, method="mean")),
        "ess_bulk": _dataset(arviz.ess(data, method="bulk")),
        "ess_tail": _dataset(arviz.ess(data, method="tail")),
        "r_hat": _dataset(arviz.rhat(data)),
    }
    return pd.DataFrame({column: _flat(values) for column, values in columns.items()})


def _dataset(found: Any) -> Any:
    return found if hasattr(found, "data_vars") and not hasattr(found, "children") else found.ds


def _flat(dataset: Any) -> dict[str, float]:
    flat: dict[str, float] = {}
    for name, array in dataset.data_vars.items():
        for place in np.ndindex(array.shape):
            labels = [
                str(array.coords[dim].to_numpy()[i]) if dim in array.coords else str(i)
                for dim, i in zip(array.dims, place, strict=True)
            ]
            flat[f"{name}[{', '.join(labels)}]" if labels else str(name)] = float(array[place])
    return flat


def diagnose(data: Any) -> list[Finding]:
    """Return what R-hat, ESS, divergences and E-BFMI say of a posterior, in words.

    Vehtari et al. (2021) for R-hat below 1.01 and an effective sample size of 100 per chain;
    Betancourt (2016) for E-BFMI above 0.3.

    Raises
    ------
    JudgeBayesError
        If there is one chain only: whether chains agree cannot be told.
    """
    table = summary(data)
    n_chains, n_draws = (data["posterior"].sizes[axis] for axis in ("chain", "draw"))
    if n_chains < 2:
        raise JudgeBayesError("One chain cannot be checked against another: sample two or more.")
    findings = []
    worst = table["r_hat"].idxmax()
    if not (table["r_hat"] < RHAT_LIMIT).all():
        findings.append(
            Finding(
                "bad",
                f"The {n_chains} chains do not agree: R-hat is {table['r_hat'][worst]:.3f} for "
                f"{worst} (below {RHAT_LIMIT} is right). Take more draws; if it stays, the "
                "posterior has several modes.",
            )
        )
    least = min(float(table["ess_bulk"].min()), float(table["ess_tail"].min()))
    if not least >= ESS_PER_CHAIN * n_chains:
        findings.append(
            Finding(
                "bad",
                f"The draws are worth only {least:.0f} independent ones for some parameter "
                f"({ESS_PER_CHAIN * n_chains} is right): take more.",
            )
        )
    stats = data["sample_stats"]
    diverging = int(np.asarray(stats["diverging"]).sum())
    if diverging:
        findings.append(
            Finding(
                "bad",
                f"{diverging} of {n_chains * n_draws} draws diverged: parts of the posterior may "
                "be missed. Raise target_accept towards 0.99.",
            )
        )
    energy = np.asarray(stats["energy"])
    bfmi = (np.diff(energy, axis=1) ** 2).mean(1) / energy.var(1)
    if not (bfmi > BFMI_LIMIT).all():
        findings.append(
            Finding(
                "note",
                f"E-BFMI is {bfmi.min():.2f} in one chain (above {BFMI_LIMIT} is right): the tails "
                "are explored slowly.",
            )
        )
    if not findings:
        findings.append(
            Finding(
                "good",
                f"{n_chains} chains of {n_draws} draws agree (R-hat at most "
                f"{table['r_hat'].max():.3f}), worth at least {least:.0f} independent draws for "
                "every parameter; no divergence.",
            )
        )
    return findings
