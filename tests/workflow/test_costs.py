"""Methods that are too large for `auto`."""

import numpy as np

from judgebayes.votes import Votes
from judgebayes.workflow.methods import cost_of_fit, suited, too_large


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


def test_a_fit_costs_as_much_as_the_items_that_it_sees() -> None:
    crowd = panel(5000, 100, 4)
    assert cost_of_fit("one-coin", crowd, 500) == cost_of_fit("one-coin", panel(500, 100, 4))
    assert cost_of_fit("dawid-skene", crowd, 500) == cost_of_fit("dawid-skene", crowd)
