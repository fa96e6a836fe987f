import jax
import jax.numpy as jnp
import numpy as np
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.inference import posterior
from judgebayes.inference.problem import Chains


def chains(draws: np.ndarray, diverging: int = 0, energy: np.ndarray | None = None) -> Chains:
    shape = draws.shape[:2]
    flags = np.zeros(shape, bool)
    flags.ravel()[:diverging] = True
    rng = np.random.default_rng(1)
    energy = rng.normal(size=shape) if energy is None else energy
    with jax.enable_x64(True):
        return Chains(
            {"a": jnp.asarray(draws)},
            *map(jnp.asarray, (flags, energy, np.full(shape, 3.0), np.full(shape, 0.9))),
        )


def noise(n_chains: int = 4, n_draws: int = 300) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n_chains, n_draws, 2))


def test_summary_of_independent_draws() -> None:
    draws = noise()
    data = posterior.to_arviz(chains(draws), coords={"k": ["u", "v"]}, dims={"a": ["k"]})
    table = posterior.summary(data)
    assert list(table.index) == ["a[u]", "a[v]"]
    np.testing.assert_allclose(table["mean"], draws.mean((0, 1)))
    np.testing.assert_allclose(table["low"], np.quantile(draws, 0.05, (0, 1)))
    assert (table["ess_bulk"] > 800).all()
    assert (table["r_hat"] < 1.01).all()


def test_further_groups_are_kept() -> None:
    draws = noise()
    data = posterior.to_arviz(
        chains(draws),
        {
            "log_likelihood": {"label": draws},
            "posterior_predictive": {"label": draws},
            "prior": {"a": draws},
            "log_prior": {"a": draws[..., 0]},
            "observed_data": {"label": np.arange(2)},
        },
        dims={"a": ["k"]},
    )
    for group in ("log_likelihood", "posterior_predictive", "prior", "log_prior", "observed_data"):
        assert len(data[group].data_vars) == 1
    assert data["log_prior"]["a"].dims == ("chain", "draw")


@pytest.mark.parametrize(
    ("broken", "severity", "sentence"),
    [
        (chains(noise() + np.arange(4)[:, None, None]), "bad", "do not agree: R-hat"),
        (chains(noise(), diverging=7), "bad", "7 of 1200 draws diverged"),
        (
            chains(np.cumsum(noise(), 1) * 0.01 + 0 * noise()),
            "bad",
            "worth only",
        ),
        (
            chains(noise(), energy=np.cumsum(np.random.default_rng(2).normal(size=(4, 300)), 1)),
            "note",
            "E-BFMI",
        ),
    ],
)
def test_each_fault_is_named(broken: Chains, severity: str, sentence: str) -> None:
    findings = posterior.diagnose(posterior.to_arviz(broken))
    assert any(f.severity == severity and sentence in f.sentence for f in findings)


def test_one_chain_cannot_be_checked() -> None:
    with pytest.raises(JudgeBayesError, match="two or more"):
        posterior.diagnose(posterior.to_arviz(chains(noise(1))))


def test_an_item_with_constant_likelihood_has_that_elpd() -> None:
    draws = noise()
    log_likelihood = np.stack([draws[..., 0] * 0.1 - 1, np.full(draws.shape[:2], -0.7)], -1)
    data = posterior.to_arviz(
        chains(draws),
        {"log_likelihood": {"x": log_likelihood}},
        coords={"item": ["a", "b"]},
        dims={"x": ["item"]},
    )
    own = posterior.leave_one_out(data, "x")
    assert own.index.tolist() == ["a", "b"]
    assert own.elpd["b"] == -0.7
    # The mean of the inverse likelihood, for weights with so light a tail.
    np.testing.assert_allclose(
        own.elpd["a"], -np.log(np.exp(-log_likelihood[..., 0]).mean()), atol=1e-3
    )
    assert posterior.unreliable(own) == []


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 0.5])
def test_a_log_likelihood_from_a_file_is_checked(wrong: float) -> None:
    draws = noise()
    values = np.full((*draws.shape[:2], 2), -0.5)
    values[1, 4, 1] = wrong
    data = posterior.to_arviz(
        chains(draws),
        {"log_likelihood": {"x": values}},
        coords={"item": ["a", "b"]},
        dims={"x": ["item"]},
    )
    with pytest.raises(JudgeBayesError, match="1 of 2,400 values of the log-likelihood 'x'"):
        posterior.leave_one_out(data, "x")
