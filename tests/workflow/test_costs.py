"""Methods that are too large for `auto`."""

import numpy as np

from judgebayes.votes import Votes
from judgebayes.workflow.methods import suited, too_large


def panel(items: int, judges: int, classes: int) -> Votes:
    return Votes(np.zeros((items, judges, 1), np.int8), None, None, None, classes)  # type: ignore[arg-type]


def test_only_methods_that_declare_their_cost_are_left_out() -> None:
    crowd = panel(5000, 1000, 20)
    assert set(too_large(crowd)) == {"stacking", "dawid-skene", "pool"}
    assert {"one-coin", "davidson", "top-3", "best-constant"} <= set(suited(crowd))


def test_a_usual_panel_loses_no_method() -> None:
    assert too_large(panel(2000, 20, 2)) == []
    assert too_large(panel(700, 44, 10)) == ["pool"]
    assert too_large(panel(2000, 148, 2)) == []
