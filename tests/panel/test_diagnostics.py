"""All checks together, on panels without a fault and on three classes."""

import numpy as np
import pytest
from diagnosed import as_votes, topics

from judgebayes.errors import JudgeBayesError
from judgebayes.panel.diagnostics import diagnose, panel_curve
from judgebayes.panel.judges import judge_table


def test_a_sound_panel_has_one_good_finding(index: np.ndarray, labels: np.ndarray) -> None:
    findings = diagnose(as_votes(index), labels)
    assert [f.severity for f in findings] == ["good"]


def test_three_classes_have_all_checks_but_the_curve() -> None:
    rng = np.random.default_rng(6)
    labels = rng.integers(0, 3, 300)
    cast = np.where(rng.random((300, 4)) < 0.7, labels[:, None], rng.integers(0, 3, (300, 4)))
    cast[:, 3] = (labels + 1) % 3
    findings = diagnose(as_votes(cast, 3), labels)
    assert topics(findings, "bad") == {"leak"}
    assert "tpr" not in judge_table(as_votes(cast, 3), labels)
    with pytest.raises(JudgeBayesError, match="two classes"):
        panel_curve(as_votes(cast, 3), labels)
