"""`judgebayes posterior` and `compare`: seven models on one file, with checked numbers.

Six of the seven draw from their priors here, which compiles fast and suffices to check what is
computed from draws; the one-coin model, whose posterior has a closed form, is sampled. `-m slow`
samples all of them.
"""

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pandas as pd
import pytest
from runner import CliRunner, Result
from scipy import integrate, stats
from scipy.special import expit, logsumexp

from judgebayes.cli import app
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import NUTS, nuts, posterior
from judgebayes.inference.nuts import Sampling
from judgebayes.inference.posterior import read_stored, write_stored
from judgebayes.inference.problem import Chains, Problem
from judgebayes.posteriors.models import MODELS, PRIORS, build
from judgebayes.workflow import posterior as question
from judgebayes.workflow.posterior_options import PRIORS as PRIORS_OF_HELP
from judgebayes.workflow.posterior_options import PosteriorRequest, read_priors, usual_priors

ITEMS, JUDGES, LABELLED = 24, ("ann", "bob", "cy"), 18
BINARY = ("--set", "classes=B,A", "--set", "pairwise=true")


def table(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, ITEMS)
    right = rng.random((ITEMS, 3)) < (0.9, 0.75, 0.6)
    vote = np.where(right, label[:, None], 1 - label[:, None])
    item, judge = (x.ravel() for x in np.indices(vote.shape))
    names = np.array([f"item {i:02d}" for i in range(ITEMS)])
    long = pd.DataFrame(
        {
            "item": names[item],
            "judge": np.array(JUDGES)[judge],
            "vote": np.array(["B", "A"])[vote.ravel()],
            "generator": np.array(["g one", "g two"])[item % 2],
        }
    ).drop(index=[4, 11])  # bob is silent on item 01, cy on item 03
    gold = pd.DataFrame({"item": names, "label": np.array(["B", "A"])[label]})
    return long, gold.iloc[:LABELLED]


def run(*args: object) -> Result:
    result = CliRunner().invoke(app, [str(a) for a in args])
    if not isinstance(result.exception, JudgeBayesError | SystemExit | None):
        raise result.exception
    return result


def from_prior(
    nuts: NUTS,
    problem: Problem,
    key: jax.Array,
    callback: Callable[[Sampling], object] | None = None,
) -> Chains:
    """Draw from the prior what a sampler would draw from the posterior."""

    def one(key: jax.Array) -> dict[str, jax.Array]:
        trace = numpyro.handlers.trace(numpyro.handlers.seed(problem.prior, key)).get_trace()
        return {name: site["value"] for name, site in trace.items() if site["type"] == "sample"}

    shape = nuts.chains, nuts.draws
    drawn = jax.jit(lambda keys: jax.lax.map(one, keys))(jax.random.split(key, shape[0] * shape[1]))
    blank = jnp.zeros(shape)
    draws = {name: x.reshape(*shape, *x.shape[1:]) for name, x in drawn.items()}
    energy = jax.random.normal(key, shape)
    return Chains(draws, jnp.zeros(shape, bool), energy, blank + 3, blank + 0.9)


class Files:
    """Posteriors of the same votes and labels, and what was said of each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: dict[str, str] = {}
        self.loaded: dict[str, Any] = {}
        for name, frame in zip(("votes.csv", "labels.csv"), table(), strict=True):
            frame.to_csv(folder / name, index=False)

    def sample(self, model: str, *options: object, name: str | None = None) -> Result:
        out = self.folder / f"{name or model}.npz"
        source = self.folder / "votes.csv", "--labels", self.folder / "labels.csv", *BINARY
        small = ("--draws", 40, "--warmup", 20, "--chains", 2)
        done = run("posterior", *source, "--model", model, "-o", out, *small, *options)
        self.said[name or model] = done.output
        return done

    def load(self, name: str) -> Any:
        """Return a file's posterior, read once: no test changes it."""
        if name not in self.loaded:
            self.loaded[name] = posterior.load(self.folder / f"{name}.npz")
        return self.loaded[name]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    made = Files(tmp_path_factory.mktemp("posteriors"))
    sampled = made.sample(
        "one-coin", "--draws", 6000, "--warmup", 200, "--seed", 4, "--plot", made.folder / "p.svg"
    )
    assert sampled.exit_code == 0, sampled.output
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NUTS, "draw", from_prior)
        for model in MODELS:
            if model != "one-coin":
                done = made.sample(model)
                assert done.exit_code == 0, (model, done.exception)
    return made


def arrays() -> tuple[np.ndarray, np.ndarray]:
    """Votes (item, judge) and labels as class indices, -1 where there is none."""
    long, gold = table()
    wide = long.pivot_table(
        index="item", columns="judge", values="vote", aggfunc="first"
    ).sort_index()
    code = {"B": 0, "A": 1}
    votes = wide[list(JUDGES)].map(lambda v: code.get(v, -1)).to_numpy()
    labels = gold.set_index("item")["label"].map(code).reindex(wide.index).fillna(-1)
    return votes, labels.to_numpy(int)


def drawn(data: Any, name: str) -> np.ndarray:
    """The draws of a variable, chains and draws as one axis; items in the order of their names."""
    values = data["posterior"][name].to_numpy()
    return values.reshape(-1, *values.shape[2:])


def likelihood(data: Any, name: str) -> np.ndarray:
    array = data["log_likelihood"][name]
    items = array.coords[array.dims[-1]].to_numpy()
    assert list(items) == [f"item {i:02d}" for i in range(len(items))]
    return array.to_numpy().reshape(-1, len(items))


# --- every file ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_every_file_has_its_groups_names_and_attributes(files: Files, model: str) -> None:
    data = files.load(model)
    for group in (
        "posterior",
        "sample_stats",
        "log_likelihood",
        "prior",
        "prior_predictive",
        "posterior_predictive",
        "observed_data",
    ):
        assert len(data[group].data_vars), group
    draws, prior = data["posterior"], data["prior"]
    assert set(draws.data_vars) == set(prior.data_vars)
    if "judge" in draws.coords:
        assert tuple(draws.coords["judge"].to_numpy()) == JUDGES
    if model == "generator-validator":
        assert tuple(draws.coords["generator"].to_numpy()) == ("g one", "g two")
    attributes = data.attrs
    assert attributes["model"] == model
    assert attributes["seed"] == (4 if model == "one-coin" else 0)
    assert attributes["data"] == "24 items, 3 judge(s), 70 votes, 18 labels"
    assert json.loads(attributes["settings"])["chains"] == 2
    assert json.loads(attributes["versions"])["numpyro"]
    assert f"--model {model}" in attributes["command"]
    said = files.said[model]
    assert "seed" in said
    assert "R-hat" in said
    assert "Predicting" in said
    assert "statistics" in said


@pytest.mark.parametrize("model", MODELS)
def test_replicated_data_have_the_shape_and_the_holes_of_the_observed(
    files: Files, model: str
) -> None:
    data = files.load(model)
    for name, seen in data["observed_data"].data_vars.items():
        for group in ("prior_predictive", "posterior_predictive"):
            again = data[group][name].to_numpy()
            assert again.shape[2:] == seen.shape, (group, name)
            if seen.ndim > 1:  # votes
                assert ((again < 0) == (seen.to_numpy() < 0)).all()
            if name != "statistics":
                assert again.std() > 0


# --- likelihoods, against NumPy ------------------------------------------------------------------


def test_one_coin_likelihoods(files: Files) -> None:
    data, (votes, labels) = files.load("one-coin"), arrays()
    known = labels >= 0
    r = drawn(data, "accuracy")[:, None]
    given = (votes >= 0)[known]

    def of(y: np.ndarray) -> np.ndarray:
        return np.where(given, np.log(np.where(votes[known] == y, r, 1 - r)), 0).sum(-1)

    right, wrong = of(labels[known][:, None]), of(1 - labels[known][:, None])
    np.testing.assert_allclose(likelihood(data, "votes"), right, atol=1e-10)
    np.testing.assert_allclose(
        likelihood(data, "label"), right - np.logaddexp(right, wrong), atol=1e-10
    )


def test_dawid_skene_likelihoods_sum_the_class_out(files: Files) -> None:
    data, (votes, labels) = files.load("dawid-skene"), arrays()
    pi, confusion = np.log(drawn(data, "pi")), np.log(drawn(data, "confusion"))
    of_class = np.stack(
        [
            sum(
                np.where(votes[:, j] >= 0, confusion[:, j, k][:, np.maximum(votes[:, j], 0)], 0)
                for j in range(3)
            )
            for k in (0, 1)
        ],
        axis=-1,
    )  # draw item class
    joint = of_class + pi[:, None]
    item = np.arange(ITEMS)
    expected = np.where(
        labels >= 0, of_class[:, item, np.maximum(labels, 0)], logsumexp(joint, axis=-1)
    )
    np.testing.assert_allclose(likelihood(data, "votes"), expected, atol=1e-10)
    at_label = joint[:, item, np.maximum(labels, 0)] - logsumexp(joint, axis=-1)
    np.testing.assert_allclose(likelihood(data, "label"), at_label[:, labels >= 0], atol=1e-10)


def test_davidson_and_stacking_likelihoods(files: Files) -> None:
    votes, labels = arrays()
    votes, sign = votes[labels >= 0], 2 * labels[labels >= 0] - 1
    data = files.load("davidson")
    margin = 0.5 * np.log(((votes == 1).sum(1) + 1) / ((votes == 0).sum(1) + 1))
    u = drawn(data, "beta")[:, None] * margin
    np.testing.assert_allclose(likelihood(data, "label"), np.log(expit(2 * u * sign)), atol=1e-8)
    data = files.load("stacking")
    place = np.where(votes < 0, 0, 2 * votes - 1)
    u = drawn(data, "weight") @ place.T
    np.testing.assert_allclose(likelihood(data, "label"), -np.log1p(np.exp(-u * sign)), atol=1e-8)


def test_beta_binomial_likelihood(files: Files) -> None:
    data, (votes, labels) = files.load("beta-binomial"), arrays()
    known = labels >= 0
    correct = (votes[known] == labels[known][:, None]).sum(1)
    given = (votes[known] >= 0).sum(1)
    share, mean, dispersion = (
        drawn(data, name)[:, None] for name in ("share", "mean", "dispersion")
    )
    each = stats.betabinom.pmf(
        correct[:, None], given[:, None], mean / dispersion, (1 - mean) / dispersion
    )
    expected = np.log((share * each).sum(-1))
    np.testing.assert_allclose(likelihood(data, "correct"), expected, rtol=1e-6)
    chance = drawn(data, "majority_error")[:, 0]
    np.testing.assert_allclose(chance, 1 - (share * mean)[:, 0].sum(-1), rtol=1e-6)


def test_irt_likelihood_has_the_items_parameters_integrated_out(files: Files) -> None:
    data, (votes, labels) = files.load("irt"), arrays()
    ability, log_lik = drawn(data, "ability"), likelihood(data, "votes")

    def exact(theta: np.ndarray, item: int) -> float:
        given = votes[item] >= 0
        sign = np.where(votes[item] == labels[item], 1, -1)[given]

        def density(log_a: float, b: float) -> float:
            chance = expit(sign * np.exp(log_a) * (theta[given] - b)).prod()
            return float(chance * stats.norm.pdf(b, 0, 2) * stats.norm.pdf(log_a, 0, 0.5))

        return float(np.log(integrate.dblquad(density, -12, 12, -2.5, 2.5, epsabs=1e-5)[0]))

    for draw, item in ((17, 1), (60, 5)):
        np.testing.assert_allclose(log_lik[draw, item], exact(ability[draw], item), atol=2e-3)


def test_generator_validator_likelihoods_sum_label_and_leaning_out(files: Files) -> None:
    data, (votes, labels) = files.load("generator-validator"), arrays()
    names = ("quality", "lenience", "discernment", "leaning", "shift")
    quality, alpha, gap, tau, shift = (drawn(data, name) for name in names)
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    weights = weights / weights.sum()
    votes_lik, label_lik = (likelihood(data, name) for name in ("votes", "label"))
    for draw in (0, 33):
        for item in (1, 3, 20):
            g = item % 2
            given = votes[item] >= 0
            sign = (2 * votes[item] - 1)[given]
            of_class = []
            for base, k in ((alpha - gap, 0), (alpha, 1)):
                logit = (base[draw] + shift[draw, k, g])[given][:, None] + tau[draw] * nodes
                of_class.append(float(expit(sign[:, None] * logit).prod(0) @ weights))
            prior = np.array([1 - quality[draw, g], quality[draw, g]])
            joint = prior * of_class
            known = labels[item] >= 0
            expected = of_class[labels[item]] if known else joint.sum()
            np.testing.assert_allclose(votes_lik[draw, item], np.log(expected), atol=5e-3)
            if known:
                share = joint[labels[item]] / joint.sum()
                np.testing.assert_allclose(label_lik[draw, item], np.log(share), atol=5e-3)


# --- the sampler and PSIS-LOO, against closed forms -----------------------------------------------


def test_the_one_coin_posterior_and_its_leave_one_out_are_the_closed_forms(files: Files) -> None:
    data, (votes, labels) = files.load("one-coin"), arrays()
    assert data["posterior"].sizes["draw"] == 6000  # those of the warm-up are not kept
    known = labels >= 0
    right = (votes[known] == labels[known][:, None]) & (votes[known] >= 0)
    wrong = ~right & (votes[known] >= 0)
    a, b = 1 + right.sum(0), 1 + wrong.sum(0)
    summary = posterior.summary(data)
    np.testing.assert_array_less(
        np.abs(summary["mean"] - a / (a + b)), 4.5 * summary["mcse_mean"].to_numpy()
    )
    np.testing.assert_allclose(summary["sd"], stats.beta(a, b).std(), rtol=0.1)
    # Without item i the accuracies are Beta(a - right_i, b - wrong_i), and the votes are its mean.
    a_rest, b_rest = a - right, b - wrong
    chance = np.where(right, a_rest, b_rest) / (a_rest + b_rest)
    exact = np.where(right | wrong, np.log(chance), 0).sum(1)
    own = posterior.leave_one_out(data, "votes")
    assert own.index.tolist() == [f"item {i:02d}" for i in range(LABELLED)]
    np.testing.assert_allclose(own.elpd, exact, atol=0.05)
    assert abs(own.elpd.sum() - exact.sum()) < 0.15
    # It differs from the log score of the fit to all items, which is higher.
    fitted = logsumexp(likelihood(data, "votes"), axis=0) - np.log(2 * 6000)
    assert own.elpd.sum() < fitted.sum() - 0.5
    assert not posterior.unreliable(own)


def test_leave_one_out_is_arviz_own(files: Files) -> None:
    import arviz

    by_hand = arviz.loo(files.load("one-coin"), pointwise=True, var_name="label")
    own = posterior.leave_one_out(files.load("one-coin"), "label")
    total = by_hand.elpd_loo if hasattr(by_hand, "elpd_loo") else by_hand.elpd
    np.testing.assert_allclose(own.elpd.sum(), total, rtol=1e-10)
    np.testing.assert_allclose(own.k, by_hand.pareto_k)


def test_what_is_said_of_the_sampled_model(files: Files) -> None:
    said = files.said["one-coin"]
    for part in (
        "18 of 24 items are labelled",
        "2 chains of 200 warm-up steps and 6000 draws, seed 4",
        "accuracy[ann]",
        "accuracy: how often a judge's vote equals the label.",
        "two votes on an item agree",
        "Predicting the label of an item, given its votes, from all other items",
        "on 18 items, the probability 0.",
        "open it with judgebayes.inference.posterior.load",
    ):
        assert part in said, part
    assert (files.folder / "p.svg").stat().st_size > 5000


def test_after_chains_that_failed_nothing_is_called_good(files: Files) -> None:
    for model in MODELS:
        lines = files.said[model].splitlines()
        after = [line for line in lines if line.startswith("  judgebayes")]
        good = [line for line in lines if line.startswith("+ ")]
        if model == "one-coin":
            assert good[0].startswith("+ 2 chains of 6000 draws agree")
            assert "Do not use it" not in files.said[model]
            assert after[-1].strip().startswith("judgebayes compare")
            continue
        assert "x The results below are not reliable until this is fixed." in lines
        assert good == []
        assert "x Do not use it: the chains failed (see above)." in lines
        # What to run next can be read by the command, and asks for more, over the same file.
        words = shlex.split(after[-1])
        _, bound, _ = app.parse_args(words[1:])
        asked = bound.kwargs
        assert (asked["draws"], asked["warmup"], asked["chains"]) == (1000, 1000, 2)
        assert (asked["model"], asked["overwrite"]) == (model, True)
        assert asked["out"] == files.folder / f"{model}.npz"


# --- comparisons ---------------------------------------------------------------------------------


def test_two_posteriors_are_compared_on_the_items_that_both_predict(files: Files) -> None:
    one, other = (files.folder / f"{name}.npz" for name in ("one-coin", "dawid-skene"))
    said = run("compare", one, other).output
    assert "All of 24 items, 3 judge(s), 70 votes, 18 labels." in said
    assert "Predicting the label of an item" in said
    assert "Predicting the votes on an item" in said
    assert "Items that only some of the models predict are left out." in said
    assert "one-coin.npz" in said.replace("\n", "")
    a, b = (posterior.leave_one_out(posterior.load(path), "label") for path in (one, other))
    gap = a.elpd.sum() - b.elpd.sum()
    assert f"{abs(gap):.1f} in total log score" in said
    assert "With only 18 items, the standard errors are too small" in said


def test_what_has_nothing_in_common_is_not_compared(files: Files) -> None:
    paths = [files.folder / f"{name}.npz" for name in ("davidson", "beta-binomial")]
    error = run("compare", *paths).exception
    assert "do not all predict the same" in str(error)
    assert "davidson.npz label" in str(error)
    error = run("compare", *paths[::-1], "--site", "tea").exception
    assert "choose one of: label, votes, correct" in str(error)


def checksum(folder: Path, long: pd.DataFrame, gold: pd.DataFrame) -> str:
    """Return the checksum that the command writes into the posterior of these votes and labels."""
    long.to_csv(folder / "v.csv", index=False)
    gold.to_csv(folder / "l.csv", index=False)
    request = PosteriorRequest(
        votes=folder / "v.csv",
        labels=folder / "l.csv",
        model="one-coin",
        classes="B,A",
        pairwise=True,
    )
    return question.read_data(request)[0].checksum()


def test_posteriors_of_other_data_are_refused(files: Files, tmp_path: Path) -> None:
    other = posterior.load(files.folder / "davidson.npz")
    other.attrs["data_checksum"] = checksum(tmp_path, *table(seed=1))
    posterior.save(other, tmp_path / "other.npz")
    paths = files.folder / "davidson.npz", tmp_path / "other.npz"
    error = str(run("compare", *paths).exception)
    assert "are posteriors of different data, so their scores cannot be compared" in error
    assert "Sample both models on the same votes and labels" in error


@pytest.mark.parametrize("attribute", ["data", "data_checksum"])
@pytest.mark.parametrize("value", [None, [1, 2, 3]])
def test_posteriors_that_do_not_record_their_data_are_refused(
    files: Files, tmp_path: Path, attribute: str, value: list[int] | None
) -> None:
    changed = posterior.load(files.folder / "davidson.npz")
    del changed.attrs[attribute]
    if value is not None:
        changed.attrs[attribute] = value
    other = tmp_path / "other.npz"
    posterior.save(changed, other)
    error = str(run("compare", files.folder / "davidson.npz", other).exception)
    assert "does not record its data" in error


def test_posteriors_of_other_items_are_refused(files: Files, tmp_path: Path) -> None:
    arrays, rest = read_stored(files.folder / "davidson.npz")
    names = rest["coords"]["log_likelihood"]["labelled_item"]
    names[:] = [f"other {name}" for name in names]
    other = tmp_path / "other.npz"
    write_stored(arrays, rest, other)
    error = str(run("compare", files.folder / "davidson.npz", other).exception)
    assert "predict no item in common" in error


def test_rows_in_another_order_are_the_same_data(files: Files, tmp_path: Path) -> None:
    long, gold = table()
    same = checksum(tmp_path, long.sample(frac=1, random_state=0), gold[::-1])
    for model in ("one-coin", "davidson"):
        assert same == files.load(model).attrs["data_checksum"]
    long.loc[0, "vote"] = "B" if long.loc[0, "vote"] == "A" else "A"
    assert checksum(tmp_path, long, gold) != same
    assert checksum(tmp_path, table()[0], gold.iloc[1:]) != same


# --- files and errors -----------------------------------------------------------------------------


def test_a_file_that_exists_is_not_lost(files: Files) -> None:
    before = (files.folder / "one-coin.npz").read_bytes()
    error = files.sample("one-coin", name="one-coin").exception
    assert "exists already; choose another file, or use --overwrite" in str(error)
    assert (files.folder / "one-coin.npz").read_bytes() == before


def test_an_interrupt_leaves_nothing(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(nuts: NUTS, problem: Problem, key: jax.Array, callback: Any) -> Chains:
        raise KeyboardInterrupt

    monkeypatch.setattr(NUTS, "draw", interrupted)
    done = files.sample("davidson", name="cut short")
    assert done.exit_code == 130
    assert "Every file is complete, or as it was before." in done.output
    assert not (files.folder / "cut short.npz").exists()


@pytest.fixture(scope="module")
def interrupted(files: Files) -> Result:
    """The result of a run that is interrupted after 25 draws."""

    @contextmanager
    def stepped(total: int) -> Iterator[Callable[[int, str], None]]:
        def tell(done: int, words: str) -> None:
            assert words.startswith("warming up, " if done <= 20 else "draws, ")
            if done == 20 + 25:
                raise KeyboardInterrupt

        assert total == 60
        yield tell

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(question, "stepped", stepped)
        patch.setattr(nuts, "PAUSE", 0.0)
        return files.sample("one-coin", name="interrupted")


def test_an_interrupt_keeps_the_draws_that_there_are(files: Files, interrupted: Result) -> None:
    assert interrupted.exit_code == 130, interrupted.output
    assert "Interrupted: all below is of 25 of 40 draws of each chain." in interrupted.output
    data = files.load("interrupted")
    assert data["posterior"]["accuracy"].dims == ("chain", "draw", "judge")
    assert data["posterior"].sizes["draw"] == 25
    assert data["log_likelihood"].sizes["draw"] == 25


def test_a_write_that_fails_leaves_no_half_file(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept.npz").write_bytes(b"old")

    def broken(file: Any, **arrays: object) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", broken)
    with pytest.raises(KeyboardInterrupt):
        posterior.save(files.load("davidson"), tmp_path / "kept.npz", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.npz"]
    assert (tmp_path / "kept.npz").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--model", "tea"), "--model 'tea' is not known; choose one of: davidson, dawid-skene"),
        (("--model", "irt", "--variant", "3pl"), "not a variant of irt; choose one of: 2pl"),
        (("--model", "irt", "--set", "only_judge=ann"), "there is only one"),
        (("--model", "generator-validator", "--set", "generator=tea"), "no column 'tea'"),
        (("--target-accept", "1.5"), "must be between 0.5 and 1"),
    ],
)
def test_a_request_that_fails_is_one_sentence(
    files: Files, options: tuple[str, ...], sentence: str
) -> None:
    out = files.folder / "never.npz"
    source = files.folder / "votes.csv", "--labels", files.folder / "labels.csv", *BINARY
    assert sentence in str(run("posterior", *source, "-o", out, *options).exception)
    assert not out.exists()


def test_a_file_without_a_posterior_is_one_sentence(files: Files, tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_text("no")
    good = files.folder / "davidson.npz"
    wrong = str(run("compare", good, tmp_path / "a.npz").exception)
    assert "is damaged, or no posterior" in wrong
    assert "There is no file" in str(run("compare", good, tmp_path / "b.npz").exception)
    assert "named twice" in str(run("compare", good, good).exception)
    assert "two or more files" in str(run("compare", good).exception)


# --- priors --------------------------------------------------------------------------------------


def test_the_help_has_the_priors_of_the_models() -> None:
    assert set(PRIORS_OF_HELP) == set(PRIORS) == set(MODELS)
    said = " ".join(run("posterior", "--help").output.split())
    for model, kind in PRIORS.items():
        listed = {name: numbers for name, (_, numbers) in usual_priors(model).items()}
        stated = {name: np.ravel(value) for name, value in kind()._asdict().items()}
        assert set(listed) == set(stated)
        for name, numbers in listed.items():
            assert numbers == pytest.approx(tuple(stated[name]), abs=5e-4), (model, name)
        assert f"{model}: {PRIORS_OF_HELP[model]}" in said


def test_a_prior_is_used_recorded_and_repeated(files: Files) -> None:
    assert files.sample("one-coin", "--prior", "accuracy=900,100", name="sure").exit_code == 0
    sure = files.load("sure")
    assert json.loads(sure.attrs["prior"]) == {"accuracy": [900.0, 100.0]}
    assert "--prior accuracy=900,100" in sure.attrs["command"]
    assert "one-coin, accuracy, accuracy=900,100: 2 chains" in files.said["sure"]
    np.testing.assert_allclose(drawn(sure, "accuracy").mean(0), 0.9, atol=0.02)
    assert sure["prior"]["accuracy"].to_numpy().mean() == pytest.approx(0.9, abs=0.005)
    usual = files.load("davidson").attrs
    assert json.loads(usual["prior"])["beta"] == [1.5, 1.5]
    assert json.loads(files.load("stacking").attrs["prior"])["kappa"] == 1.0


@pytest.mark.parametrize(
    ("model", "priors", "sentence"),
    [
        (
            "davidson",
            ["bta=1,2"],
            "'bta' is not a prior of davidson; choose one of: beta, eta0, gamma",
        ),
        ("davidson", ["beta"], "'beta' needs a location and a scale above 0"),
        ("davidson", ["beta=1"], "for example beta=1.5,1.5"),
        ("davidson", ["beta=1,2,3"], "a location and a scale above 0"),
        ("davidson", ["beta=one,2"], "a location and a scale above 0"),
        ("davidson", ["beta=nan,2"], "a location and a scale above 0"),
        ("davidson", ["beta=1,inf"], "a location and a scale above 0"),
        ("davidson", ["beta=1,0"], "a location and a scale above 0"),
        ("davidson", ["beta=1,2", "beta=1,2"], "set twice"),
        ("one-coin", ["accuracy=0,1"], "two numbers above 0"),
        ("dawid-skene", ["right=-1"], "a number of 0 or more, for example right=1"),
        ("stacking", ["level=0"], "a number above 0"),
        ("davidson", ["beta=1,1", "delta=0,1"], "delta has no effect on davidson, pooled"),
        ("davidson", ["eta0=0,1"], "eta0 has no effect on davidson, pooled"),
        ("stacking", ["offset=2"], "offset has no effect on stacking, centred"),
    ],
)
def test_an_invalid_prior_is_one_sentence(
    files: Files, model: str, priors: list[str], sentence: str
) -> None:
    given = [word for prior in priors for word in ("--prior", prior)]
    out = files.folder / "never.npz"
    source = files.folder / "votes.csv", "--labels", files.folder / "labels.csv", *BINARY
    error = run("posterior", *source, "-o", out, "--model", model, *given).exception
    assert sentence in str(error)
    assert not out.exists()


@pytest.mark.parametrize(
    ("model", "variant", "prior"),
    [
        ("stacking", "uncentred", "kappa=2"),
        ("beta-binomial", "single", "share=1,1"),
        ("generator-validator", "independent", "log_tau=0,1"),
    ],
)
def test_a_prior_of_another_variant_is_an_error(
    files: Files, model: str, variant: str, prior: str
) -> None:
    source = files.folder / "votes.csv", "--labels", files.folder / "labels.csv", *BINARY
    options = "--model", model, "--variant", variant, "--prior", prior
    error = run("posterior", *source, "-o", files.folder / "never.npz", *options).exception
    assert f"has no effect on {model}, {variant}" in str(error)


def moved(model: str) -> tuple[list[str], dict[str, list[float]]]:
    """Options that move every prior that votes of pairs leave a parameter to, and their numbers."""
    absent = {"davidson": ("eta0", "gamma", "delta"), "stacking": ("level", "offset")}
    expected = {
        name: [x + 0.5 for x in numbers]
        for name, (_, numbers) in usual_priors(model).items()
        if name not in absent.get(model, ())
    }
    return [f"{name}={','.join(map(str, numbers))}" for name, numbers in expected.items()], expected


@pytest.mark.parametrize("model", MODELS)
def test_every_prior_that_a_model_has_is_taken(files: Files, model: str) -> None:
    given, expected = moved(model)
    request = PosteriorRequest(
        votes=files.folder / "votes.csv",
        labels=files.folder / "labels.csv",
        model=model,
        classes="B,A",
        pairwise=True,
    )
    with jax.enable_x64(True):
        built = build(question.read_data(request)[0], model, None, read_priors(model, given))
    kept = vars(built.problem.model)["prior"]._asdict()
    for name, numbers in expected.items():
        assert np.ravel(kept[name]).tolist() == pytest.approx(numbers)


@pytest.mark.parametrize(
    "model",
    [pytest.param(m, marks=[] if m == "davidson" else [pytest.mark.slow]) for m in MODELS],
)
def test_every_prior_that_a_model_has_is_written(
    files: Files, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command; the draws stand for the posterior's."""
    monkeypatch.setattr(NUTS, "draw", from_prior)
    given, expected = moved(model)
    options = [word for prior in given for word in ("--prior", prior)]
    done = files.sample(model, *options, name=f"{model} moved")
    assert done.exit_code == 0, done.exception
    kept = json.loads(files.load(f"{model} moved").attrs["prior"])
    for name, numbers in expected.items():
        assert np.ravel(kept[name]).tolist() == pytest.approx(numbers)


# --- the sampler, all models ---------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("variant", [0, -1])
def test_every_model_is_sampled(files: Files, tmp_path: Path, model: str, variant: int) -> None:
    name = list(MODELS[model])[variant]
    source = files.folder / "votes.csv", "--labels", files.folder / "labels.csv", *BINARY
    few = ("--draws", 500, "--warmup", 500, "--chains", 2, "--model", model, "--variant", name)
    done = run("posterior", *source, "-o", tmp_path / "p.npz", *few)
    assert done.exit_code == 0, done.output
    data = posterior.load(tmp_path / "p.npz")
    assert data["posterior"].sizes["draw"] == 500
    assert (posterior.summary(data)["r_hat"].dropna() < 1.1).all()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["davidson", "dawid-skene", "stacking"])
def test_means_are_those_of_the_fit_that_calibrate_samples(
    files: Files, tmp_path: Path, model: str
) -> None:
    from judgebayes import Davidson, DawidSkene, Stacking
    from judgebayes.votes import encode

    long, gold = table()
    votes, coding = encode(long.drop(columns="generator"), classes=("B", "A"))
    labels = coding.labels(gold)
    nuts = NUTS(draws=4000, warmup=1000)
    method: Any = {
        "davidson": Davidson(nuts, symmetric=True),
        "dawid-skene": DawidSkene(nuts),
        "stacking": Stacking(nuts, symmetric=True),
    }[model]
    fit = method.fit(votes, labels)
    source = files.folder / "votes.csv", "--labels", files.folder / "labels.csv", *BINARY
    run("posterior", *source, "--model", model, "-o", tmp_path / "p.npz", "--draws", 4000)
    table_of = posterior.summary(posterior.load(tmp_path / "p.npz"))
    for name in fit.draws:
        rows = table_of[table_of.index.str.fullmatch(rf"{name}(\[.*\])?")]
        mean = np.asarray(fit.draws[name]).mean(0).ravel()
        assert len(rows) == len(mean)
        np.testing.assert_array_less(
            np.abs(rows["mean"].to_numpy() - mean), 6 * rows["mcse_mean"].to_numpy()
        )
