"""All checks together, on panels without a fault and on three classes."""

import numpy as np
import pytest
from diagnosed import as_votes, topics

from judgebayes.errors import JudgeBayesError
from judgebayes.panel.diagnostics import diagnose
from judgebayes.panel.judges import judge_table
from judgebayes.panel.saturation import panel_curve


def test_a_sound_panel_gets_a_clean_bill(index: np.ndarray, labels: np.ndarray) -> None:
    found = diagnose(as_votes(index), labels)
    assert [f.severity for f in found] == ["good"]


def test_three_classes_have_no_curve_but_all_the_rest() -> None:
    rng = np.random.default_rng(6)
    labels = rng.integers(0, 3, 300)
    cast = np.where(rng.random((300, 4)) < 0.7, labels[:, None], rng.integers(0, 3, (300, 4)))
    cast[:, 3] = (labels + 1) % 3
    found = diagnose(as_votes(cast, 3), labels)
    assert topics(found, "bad") == {"leak"}
    assert "tpr" not in judge_table(as_votes(cast, 3), labels)
    with pytest.raises(JudgeBayesError, match="two classes"):
        panel_curve(as_votes(cast, 3), labels)
