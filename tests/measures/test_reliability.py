import numpy as np
import pytest
from scipy import stats

from judgebayes.measures.scores import confidence_bins, reliability


def forecasts(n: int = 60, seed: int = 0, decimals: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = np.round(rng.uniform(0.05, 0.95, n), decimals)
    labels = (rng.random(n) < p).astype(int)
    return np.log(np.stack([1 - p, p], 1)), labels


@pytest.mark.parametrize("of", [None, 1])
def test_reliability_is_a_loop_over_bins(of: int | None) -> None:
    log_probs, labels = forecasts(400)
    p = np.exp(log_probs.max(1) if of is None else log_probs[:, 1])
    happened = log_probs.argmax(1) == labels if of is None else labels == 1
    diagram = reliability(log_probs, labels, of=of)
    for b in range(15):
        inside = (p > b / 15) & (p <= (b + 1) / 15)
        assert float(diagram.mass[b]) == inside.sum()
        if inside.any():
            assert float(diagram.predicted[b]) == pytest.approx(p[inside].mean())
            assert float(diagram.observed[b]) == pytest.approx(happened[inside].mean())


@pytest.mark.parametrize("grouped", [False, True])
def test_bins_of_confidence_are_a_loop_over_predictions(grouped: bool) -> None:
    log_probs, labels = forecasts()
    items, groups = np.arange(60) // 3, np.arange(20) // 2 if grouped else None
    table = confidence_bins(log_probs, labels, items, groups, bins=5, level=0.9)
    n_answers = 0
    for each in table.itertuples():
        low, high = each.place / 5, (each.place + 1) / 5
        own = [i for i in range(60) if low < np.exp(log_probs[i]).max() <= high]
        n_answers += len(own)
        share = np.mean([log_probs[i].argmax() == labels[i] for i in own])
        n = len({items[i] // 2 if grouped else items[i] for i in own})
        interval = stats.beta(1 + share * n, 1 + n - share * n).interval(0.9)
        assert each.items == len({items[i] for i in own})
        assert each.share == pytest.approx(len(own) / 60)
        assert each.predicted == pytest.approx(np.mean([np.exp(log_probs[i]).max() for i in own]))
        assert (each.right, each.low, each.high) == pytest.approx((share, *interval))
    assert n_answers == 60
    assert table["place"].tolist() == [2, 3, 4]
