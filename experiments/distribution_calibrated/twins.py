"""The twins of the 20 task x judge cells in Tables 3 and 6.

They are fitted to the published label shares (Table 8) and to all that is published about
self-consistency (SC): its MAE and accuracy at 4 and 12 votes (Tables 3, 4, 6, 7), and for two cells the
share of items on which it decides "tie" (Appendix D, Figs 12 to 15, which we take to be at 12 votes).
They are fitted to no published number of the paper's own method. Their parameters and weights are in
`twins.csv`, which

    python -m judgebayes.experiments.distribution_calibrated.twins

writes in about ten minutes. There are fewer published numbers than parameters: `plausible` twins are
those nearest to the judges of a public data set (`centres`), `possible` twins are any solutions that
the starts lead to.

The paper does not say how SC decides when votes are tied. `tie_rules.csv`, which the same command
writes, has for each rule and each share of tie decisions the smallest misfit to SC's MAE and accuracy
over all families: shares that a rule cannot have together with these numbers.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from judgebayes.experiments.core import Run, expected
from judgebayes.experiments.data import Cell, rb2, rb2_judges, rb2_tasks
from judgebayes.experiments.distribution_calibrated.vote_twins import (
    FAMILIES,
    Target,
    Twin,
    draw_votes,
    fit_twins,
    most_likely,
    states,
)

PAPER = "distribution-calibrated"
FITTED_AT = (4, 12)
TWIN_VOTES = 12
COLUMNS = ["task", "judge", "kind", "family", "tie", "misfit", "tie_misfit", "weight", "parameters"]
PATH = Path(__file__).parent / "twins.csv"
RULES_PATH = Path(__file__).parent / "tie_rules.csv"
LEAST_WEIGHT = 0.01
"""Twins of less weight are not drawn."""
SHARES = tuple(round(0.02 * step, 2) for step in range(1, 36))
"""Shares of tie decisions of the profile in `tie_rules.csv`."""


def published_cells() -> list[tuple[str, str]]:
    """Return the (task, judge) pairs whose self-consistency results are printed."""
    table = pd.concat([expected(PAPER, "table3"), expected(PAPER, "table6")])
    cells = table[table["method"] == "sc"][["task", "judge"]].drop_duplicates()
    return list(cells.itertuples(index=False, name=None))


def published_labels(task: str) -> np.ndarray:
    """Return the numbers of labels -1, 0 and +1 of a task (Table 8)."""
    table = expected(PAPER, "table8")
    counts = table[table["task"] == task].set_index("metric")["value"]
    return counts[["label_-1", "label_0", "label_+1"]].to_numpy(int)


def targets() -> dict[tuple[str, str], Target]:
    """Return the published numbers about the votes of each cell."""
    printed = pd.concat([expected(PAPER, f"table{t}") for t in (3, 4, 6, 7)])
    printed = printed[printed["method"] == "sc"].drop_duplicates(["task", "judge", "n", "metric"])
    value = printed.set_index(["task", "judge", "n", "metric"])["value"]
    ties = tie_shares()
    return {
        (task, judge): Target(
            tuple(published_labels(task)),
            {
                n: (value[task, judge, n, "mae"], value[task, judge, n, "accuracy"])
                for n in FITTED_AT
            },
            {TWIN_VOTES: ties[task, judge]} if (task, judge) in ties else {},
        )
        for task, judge in published_cells()
    }


def tie_shares() -> dict[tuple[str, str], float]:
    """Return SC's published shares of tie decisions by task and judge."""
    table = expected(PAPER, "figs12to15")
    sc = table[table["method"] == "sc"]
    return {(row.task, row.judge): float(row.value) for row in sc.itertuples()}


def twins(task: str, judge: str, kind: str = "plausible") -> list[Twin]:
    """Return the stored twins of a cell, `plausible` or `possible`, that have any weight."""
    table = pd.read_csv(PATH)
    own = table[(table["task"] == task) & (table["judge"] == judge) & (table["kind"] == kind)]
    own = own[own["weight"] >= LEAST_WEIGHT]
    return [
        Twin(
            FAMILIES[row.family],
            tuple(float(x) for x in row.parameters.split()),
            row.tie,
            row.misfit,
            row.tie_misfit,
            row.weight / own["weight"].sum(),
        )
        for row in own.itertuples()
    ]


def twin_cells(run: Run, task: str, judge: str, kind: str = "plausible") -> list[Cell]:
    """Return votes drawn from each twin of a cell, on as many items as the paper has."""
    return run.remember(("twins", task, judge, kind), lambda: _draw(run, task, judge, kind))


def _draw(run: Run, task: str, judge: str, kind: str) -> list[Cell]:
    labels = np.repeat(np.arange(3), published_labels(task))
    cells = []
    for place, twin in enumerate(run.few(twins(task, judge, kind), 2)):
        votes = draw_votes(twin, labels, TWIN_VOTES, seed=run.seed + place)
        name = f"{kind} {twin.family.name}, ties {twin.tie}"
        cells.append(Cell("twin", task, judge, votes, labels, np.arange(len(labels)), (), name))
    return cells


def centres(run: Run) -> dict[str, pd.DataFrame]:
    """Return each family's maximum-likelihood parameters on the public judges' repeated votes.

    Their means and standard deviations over judges and tasks are the families' `centre` and
    `scale`.
    """
    votes = 8
    places = {tuple(counts): i for i, counts in enumerate(states(votes))}
    observed = {}
    for judge in rb2_judges(run):
        for task in rb2_tasks(run):
            cell = rb2(run, judge, task)
            cell_counts = np.zeros((2, len(places)))
            for counts, label in zip(
                np.asarray(cell.votes.pooled_counts()), cell.labels, strict=True
            ):
                if counts.sum() == votes:
                    for way in (1,) if label == 2 else (-1,) if label == 0 else (1, -1):
                        cell_counts[int(label == 1), places[tuple(counts[::way])]] += 1
            observed[judge, task] = cell_counts
    centre_tables = {}
    for name, family in FAMILIES.items():
        fitted = {
            cell: most_likely(family, cell_counts, votes) for cell, cell_counts in observed.items()
        }
        centre_tables[name] = pd.DataFrame.from_dict(
            fitted, orient="index", columns=family.parameters
        )
    return centre_tables


def fit() -> pd.DataFrame:
    """Fit the twins of all cells and return them as a table."""
    target_values = targets()
    named = {f"{task}|{judge}": target for (task, judge), target in target_values.items()}
    records = []
    for kind, plausibility in (("plausible", 1.0), ("possible", 0.0)):
        for name, candidates in fit_twins(named, plausibility=plausibility).items():
            task, judge = name.split("|")
            for twin in candidates:
                numbers = " ".join(f"{x:.6g}" for x in twin.parameters)
                fitted = (round(x, 5) for x in (twin.misfit, twin.tie_misfit, twin.weight))
                records.append((task, judge, kind, twin.family.name, twin.tie, *fitted, numbers))
    return pd.DataFrame(records, columns=COLUMNS)


def fit_rules() -> pd.DataFrame:
    """Return the smallest misfit to SC's MAE and accuracy by tie rule and share of tie decisions.

    Columns: task, judge, tie, share, misfit. The misfit is that of the best twin of all families, whose
    own share differs from the given one by at most half a step; it is empty where there is none.
    """
    step = SHARES[1] - SHARES[0]
    target_values = targets()
    named = {
        f"{task}|{judge}|{share}": replace(
            target_values[task, judge], tie_share={TWIN_VOTES: share}
        )
        for task, judge in tie_shares()
        for share in SHARES
    }
    fits = fit_twins(named, tolerance=np.inf, plausibility=0.0)
    records = []
    for name, candidates in fits.items():
        task, judge, share = name.split("|")
        for tie in ("middle", "outer", "first"):
            misfits = [
                twin.misfit
                for twin in candidates
                if twin.tie == tie and twin.tie_misfit <= step / 2
            ]
            records.append((task, judge, tie, float(share), min(misfits, default=np.nan)))
    return pd.DataFrame(records, columns=["task", "judge", "tie", "share", "misfit"]).round(5)


if __name__ == "__main__":
    fit().to_csv(PATH, index=False, lineterminator="\n")
    fit_rules().to_csv(RULES_PATH, index=False, lineterminator="\n")
