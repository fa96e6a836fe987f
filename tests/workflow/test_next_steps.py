"""What a summary recommends follows from its own table, and is never what the table calls worse."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from judgebayes.measures.significance import Interval
from judgebayes.workflow.next_steps import (
    calibration_steps,
    diagnosis_steps,
    majority_steps,
    next_file,
    precision_steps,
)

SHARES = st.floats(0, 1)
ENDS = st.tuples(st.floats(-0.5, 0.5), st.floats(0, 0.5), st.floats(0, 0.5))
NO_PANELS = pd.DataFrame({"panel": ["all"], "error": [0.1], "low": [0.05], "high": [0.15]})


def after(
    leads: dict[str, Interval] | None = None,
    method: str | None = "stacking",
    **changed: int,
) -> list[str]:
    """The steps after a calibration with 100 labels and no problem."""
    numbers = {"problems": 0, "labels": 100, "items": 1000} | changed
    return calibration_steps(numbers, leads or {}, method)


@given(st.dictionaries(st.sampled_from(["sc", "best-constant", "margin-threshold"]), ENDS))
def test_a_rule_is_recommended_only_if_the_table_calls_it_better(
    ends: dict[str, tuple[float, float, float]],
) -> None:
    leads = {name: Interval(m, m - below, m + above) for name, (m, below, above) in ends.items()}
    named = re.findall(r"use --method ([\w-]+):", " ".join(after(leads=leads)))
    better = [name for name, lead in leads.items() if lead.high < 0]
    assert len(named) == bool(better)
    assert all(leads[name].mean == min(leads[each].mean for each in better) for name in named)
    assert "use --method" not in " ".join(after(leads=leads, method=None))


def test_the_first_labels_and_problems_come_first() -> None:
    assert after(labels=0)[0].startswith("Label 30 or more random items")
    first, second = after(labels=12, problems=2)
    assert first.startswith("Mend the 2 problem(s)")
    assert second.startswith("Label 18 or more random items")
    (forecast,) = after()
    assert "100 more labels would gain" in forecast
    assert after(items=100) == []
    assert "what 7 more labels" in after(items=107)[0]
    (add,) = after(labels=12, items=12)
    assert add.startswith("Add 18 or more labelled items")
    assert diagnosis_steps({"problems": 1, "labels": 50, "items": 80}) == [
        "Mend the 1 problem(s) that judgebayes diagnose names first."
    ]


@given(st.lists(SHARES, min_size=2, max_size=6))
def test_the_recommended_number_of_votes_has_about_the_least_error(errors: list[float]) -> None:
    sizes, error = 2 * np.arange(len(errors)) + 1, np.asarray(errors)
    (step,) = majority_steps(sizes, error, NO_PANELS)
    match = re.search(r"Ask for (\d+) vote", step)
    assert match
    place = int(np.flatnonzero(sizes == int(match[1]))[0])
    assert error[place] <= error.min() + 0.005
    assert (error[:place] > error.min() + 0.005).all()


@given(st.lists(st.tuples(SHARES, SHARES, SHARES), min_size=1, max_size=4))
def test_a_panel_is_recommended_only_if_its_interval_is_below(
    ends: list[tuple[float, float, float]],
) -> None:
    rows = [[f"panel {k}", *sorted(each)] for k, each in enumerate(ends)]
    panels = pd.DataFrame(rows, columns=["panel", "low", "error", "high"])
    steps = majority_steps(np.array([1]), np.array([0.1]), panels)
    named = re.findall(r"Use (panel \d)", " ".join(steps))
    below = panels[panels["high"] < panels["low"][0]]
    assert len(named) == bool(len(below))
    assert set(named) <= set(below["panel"])


def shares(better: float, labelled: int, items: int = 1000) -> pd.DataFrame:
    """Two generators, the first better with this probability."""
    return pd.DataFrame(
        {
            "generator": ["g", "h"],
            "estimate": [0.6, 0.5],
            "P(better than next)": [better, np.nan],
            "order settled": ["yes" if better >= 0.95 else "no", ""],
            "labelled": labelled,
            "items": items,
        }
    )


def test_so_many_labels_settle_an_order() -> None:
    """With n labels in all, the difference is 1.645 of its standard deviations."""
    (step,) = precision_steps(shares(0.9, 100), these=False)
    match = re.search(r"Label about (\d+) more", step)
    assert match
    deviations = 1.2815516 * np.sqrt((200 + int(match[1])) / 200)
    assert ndtr(deviations) == pytest.approx(0.95, abs=0.001)
    assert "--between g,h" in step


def test_the_file_of_items_to_label_has_an_empty_column_for_the_labels() -> None:
    items = pd.DataFrame({"item": ["a", "b"], "why": [0.2, 0.1]})
    _, table = next_file(items, ["item"])
    assert isinstance(table, pd.DataFrame)
    assert table.to_dict("list") == {"item": ["a", "b"], "label": ["", ""]}
