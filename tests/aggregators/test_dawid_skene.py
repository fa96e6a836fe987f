import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from panels import confused, judged

from judgebayes import EM, DawidSkene, Status
from judgebayes.models.dawid_skene import DawidSkenePrior
from judgebayes.votes import Votes

FLAT = DawidSkenePrior(0.0, 0.0, 0.0)
Naive = tuple[list[list[float]], float]


def naive(votes: Votes, labels: np.ndarray, prior: DawidSkenePrior, steps: int) -> Naive:
    """Dawid and Skene's EM in plain Python: p(class) of every item, and the log posterior."""
    index, classes = np.asarray(votes.index).tolist(), range(votes.n_classes)
    n, judges = votes.n_classes, range(votes.n_judges)
    pseudo = [[prior.right if k == v else prior.wrong / (n - 1) for v in classes] for k in classes]
    theta = []
    for j in judges:
        rows = []
        for k in classes:
            row = [4 * (0.75 if k == v else 0.25 / (n - 1)) for v in classes]
            for i, item in enumerate(index):
                for vote in item[j]:
                    if labels[i] == k and vote >= 0:
                        row[vote] += 1
            rows.append([x / sum(row) for x in row])
        theta.append(rows)
    pi = [1 / n for _ in classes]
    for _ in range(steps + 1):
        responsibilities, value = [], 0.0
        for i, item in enumerate(index):
            p = []
            for k in classes:
                joint = pi[k] if labels[i] in (-1, k) else 0.0
                for j in judges:
                    for vote in item[j]:
                        joint *= theta[j][k][vote] if vote >= 0 else 1.0
                p.append(joint)
            value += math.log(sum(p))
            responsibilities.append([x / sum(p) for x in p])
        value += sum(prior.classes * math.log(pi[k]) for k in classes)
        value += sum(
            pseudo[k][v] * math.log(theta[j][k][v]) if pseudo[k][v] else 0.0
            for j in judges
            for k in classes
            for v in classes
        )
        share = [prior.classes + sum(b[k] for b in responsibilities) for k in classes]
        pi = [s / sum(share) for s in share]
        theta = []
        for j in judges:
            rows = []
            for k in classes:
                row = list(pseudo[k])
                for b, item in zip(responsibilities, index, strict=True):
                    for vote in item[j]:
                        if vote >= 0:
                            row[vote] += b[k]
                rows.append([max(x / sum(row), 1e-12) for x in row])
            theta.append(rows)
    return responsibilities, value


@pytest.fixture(scope="module")
def panel() -> tuple[Votes, np.ndarray]:
    """Three classes, four judges, two samples, missing votes; a quarter of the labels known."""
    votes, labels = judged(
        np.array([0.9, 0.7, 0.6, 0.5]), 60, n_classes=3, samples=2, missing=0.2, seed=4
    )
    return votes, np.where(np.arange(60) % 4 == 0, labels, -1)


@pytest.mark.parametrize("prior", [FLAT, DawidSkenePrior()])
def test_it_is_em_in_plain_python(panel: tuple[Votes, np.ndarray], prior: DawidSkenePrior) -> None:
    votes, labels = panel
    fit = DawidSkene(prior=prior).fit(votes, labels)
    assert int(fit.status) == Status.CONVERGED
    responsibilities, value = naive(votes, labels, prior, int(fit.details["steps"]))
    assert float(fit.details["log_posterior"]) == pytest.approx(value, rel=1e-9)
    unknown = labels < 0
    probs = np.exp(np.asarray(fit(votes)))
    np.testing.assert_allclose(probs[unknown], np.array(responsibilities)[unknown], atol=1e-6)


def test_more_steps_never_lower_the_posterior(panel: tuple[Votes, np.ndarray]) -> None:
    values = [
        float(DawidSkene(EM(max_steps=n)).fit(*panel).details["log_posterior"])
        for n in (1, 2, 4, 8, 16)
    ]
    assert (np.diff(values) >= 0).all()


def test_confusions_are_recovered_without_labels() -> None:
    rng = np.random.default_rng(0)
    truth = np.stack([0.7 * np.eye(3) + 0.3 * rng.dirichlet(np.ones(3), 3) for _ in range(8)])
    labels = rng.integers(0, 3, 4000)
    fit = DawidSkene().fit(confused(truth, labels, seed=1), np.full(4000, -1))
    np.testing.assert_allclose(np.asarray(fit.draws["confusion"])[0], truth, atol=0.05)


def test_switched_classes_are_detected_unless_labels_confirm_them() -> None:
    """Most judges are adversarial: agreement cannot reveal this, but a few labels can."""
    votes, labels = judged(np.array([0.15, 0.2, 0.1, 0.2, 0.25]), 300, seed=8)
    blind = DawidSkene().fit(votes, np.full(300, -1))
    assert (np.asarray(blind(votes)).argmax(1) == labels).mean() < 0.1
    some = np.where(np.arange(300) < 40, labels, -1)
    with_labels = DawidSkene().fit(votes, some)
    assert int(with_labels.status) == Status.CONVERGED
    assert (np.asarray(with_labels(votes)).argmax(1) == labels).mean() > 0.9
    against = DawidSkene(prior=DawidSkenePrior(right=0.0, wrong=400.0)).fit(votes, np.full(300, -1))
    assert int(against.status) == Status.SWITCHED
    assert "seem to be switched" in Status.SWITCHED.sentence


def test_wrong_labels_do_not_clamp_when_their_share_is_known() -> None:
    votes, labels = judged(np.array([0.95, 0.9, 0.9, 0.85]), 400, seed=9)
    wrong = np.random.default_rng(1).random(400) < 0.2
    noisy_labels = np.where(wrong, 1 - labels, labels)
    with_noise, naive_fit = (
        DawidSkene(label_noise=e).fit(votes, noisy_labels).reliability().mean for e in (0.2, 0.0)
    )
    assert abs(with_noise[0] - 0.95) < 0.03
    assert naive_fit[0] < 0.85


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:The (inplace|copy) keyword"
)  # crowd-kit does not support pandas 3
@pytest.mark.parametrize("name", ["rte", "dog", "d_sentiment", "SP_amt"])
def test_crowd_kit_gives_the_same(name: str, data: Path) -> None:
    """On bluebird, crowd-kit stops after two rounds, before the maximum, so it is not compared."""
    aggregation = pytest.importorskip("crowdkit.aggregation")
    table = pd.read_parquet(data / "crowd_labels" / "votes.parquet")
    table = table[table["dataset"] == name].drop_duplicates(["item", "worker"])
    item, items = pd.factorize(table["item"])
    judge, judges = pd.factorize(table["worker"])
    vote = table["label"].to_numpy()
    index = np.full((len(items), len(judges), 1), -1, np.int8)
    index[item, judge, 0] = vote
    with jax.enable_x64(True):
        votes = Votes(jnp.asarray(index), None, None, None, int(vote.max()) + 1)
    fit = DawidSkene(prior=FLAT).fit(votes, np.full(len(items), -1))
    theirs = aggregation.DawidSkene(n_iter=2000, tol=1e-13)
    long = pd.DataFrame({"task": item, "worker": judge, "label": vote})
    probs = theirs.fit_predict_proba(long).sort_index().sort_index(axis=1).to_numpy()
    ours = np.exp(np.asarray(fit(votes)))
    assert (ours.argmax(1) == probs.argmax(1)).mean() >= 0.999
    prior, errors = theirs.priors_.sort_index(), theirs.errors_
    pi = prior.to_numpy()
    log_joint = np.tile(np.log(np.maximum(pi, 1e-300)), (len(items), 1))
    table = errors.reset_index().set_index(["worker", "label"])
    theta = np.zeros((len(judges), votes.n_classes, votes.n_classes))
    for (worker, label), row in table.iterrows():
        theta[worker, :, label] = row.sort_index().to_numpy()
    for i, j, v in zip(item, judge, vote, strict=True):
        log_joint[i] += np.log(np.maximum(theta[j, :, v], 1e-12))
    top = log_joint.max(1, keepdims=True)
    value = (top[:, 0] + np.log(np.exp(log_joint - top).sum(1))).sum()
    assert float(fit.details["log_posterior"]) == pytest.approx(value, abs=1e-3 * len(items) / 100)
