"""The laws for users' own methods: our methods obey them, and each law detects a fault."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import judgebayes as jb
from judgebayes.testing import check_aggregator, check_calibrator


def test_our_methods_obey_the_laws() -> None:
    assert (check_aggregator(jb.OneCoin())["outcome"] == "holds").all()
    assert (check_calibrator(jb.Platt(), n_classes=3)["outcome"] == "holds").all()
    table = check_aggregator(jb.DawidSkene(), n_classes=3).set_index("law")["outcome"]
    assert "learns from unlabelled" in table["unlabelled rows"]


@dataclass
class Faulty:
    """The one-coin model with a fault; not JAX code."""

    fault: str
    fits: int = 0

    def fit(self, votes: Any, labels: Any, *, weight: Any = None, key: Any = None) -> Any:
        labels = np.asarray(labels)
        weight = np.ones(len(labels)) if weight is None else np.asarray(weight, float)
        if self.fault == "weight 0 = dropped row":
            weight = np.maximum(weight, 0.5)
        if self.fault == "weight 2 = row twice":
            weight = np.minimum(weight, 1.0)
        if self.fault == "unlabelled rows":
            labels = np.where(labels < 0, 0, labels)
        if self.fault == "permuting items":
            weight = weight * np.linspace(0.5, 1.5, len(weight))
        if self.fault == "permuting judges":
            votes = replace(votes, index=votes.index.at[:, 0].set(-1))
        if self.fault == "constant labels" and len(set(labels[labels >= 0])) == 1:
            raise ValueError("one class only")
        if self.fault == "one label" and (labels >= 0).sum() == 1:
            raise ValueError("one label only")
        if self.fault == "fit changes nothing":
            self.fits += 1
        fit = jb.OneCoin().fit(votes, labels, weight=weight, key=key)

        def predict(new: Any) -> Any:
            log_probs = fit(new)
            if self.fault == "answers are probabilities":
                return jnp.exp(log_probs)
            if self.fault == "one item alone":
                return jax.nn.log_softmax(log_probs - log_probs.mean(0), axis=1)
            if self.fault == "most votes missing" and (np.asarray(new.index) < 0).mean() > 0.7:
                return log_probs * np.nan
            return log_probs

        return predict


LAWS = (
    "answers are probabilities",
    "weight 0 = dropped row",
    "weight 2 = row twice",
    "unlabelled rows",
    "permuting items",
    "permuting judges",
    "one item alone",
    "constant labels",
    "one label",
    "most votes missing",
    "fit changes nothing",
)


@pytest.mark.parametrize("law", LAWS)
def test_every_law_detects_its_fault(law: str) -> None:
    with pytest.raises(AssertionError, match="Faulty breaks") as broken:
        check_aggregator(Faulty(law))
    assert f"  {law}: " in str(broken.value)


def test_a_sound_method_without_jax_passes_and_an_exemption_needs_a_law() -> None:
    table = check_aggregator(Faulty("")).set_index("law")["outcome"]
    assert table["compiled = not compiled"] == "it is not JAX code"
    assert set(table.index) == {*LAWS, "compiled = not compiled"}
    excused = check_aggregator(Faulty("one label"), exempt={"one label": "it needs two"})
    assert excused.set_index("law").loc["one label", "outcome"] == "it needs two"
    with pytest.raises(AssertionError, match="There is no law 'two labels'"):
        check_aggregator(Faulty(""), exempt={"two labels": "no"})
