"""The twins of the 20 task x judge cells in Tables 3 and 6.

They are fitted to the published label shares (Table 8) and to self-consistency's published MAE and
accuracy at 4 and 12 votes (Tables 3, 4, 6, 7), and to no published number of the paper's own method.
Their parameters are in `twins.csv`, which

    python -m judgebayes.experiments.distribution_calibrated.twins

writes in about three minutes. There are fewer published numbers than parameters: `plausible` twins are
those nearest to the judges of a public data set (`centres`), `possible` twins are any solutions that
the starts lead to.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from judgebayes.experiments.core import Run, expected
from judgebayes.experiments.data import Cell, rb2, rb2_judges, rb2_tasks
from judgebayes.simulate import FAMILIES, Target, Twin, draw_votes, fit_twins, most_likely, states

__all__ = ["TWIN_VOTES", "published_cells", "published_labels", "targets", "twin_cells", "twins"]

PAPER = "distribution-calibrated"
FITTED_AT = (4, 12)
TWIN_VOTES = 12
COLUMNS = ["task", "judge", "kind", "family", "tie", "misfit", "parameters"]
PATH = Path(__file__).parent / "twins.csv"


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
    return {
        (task, judge): Target(
            tuple(published_labels(task)),
            {
                n: (value[task, judge, n, "mae"], value[task, judge, n, "accuracy"])
                for n in FITTED_AT
            },
        )
        for task, judge in published_cells()
    }


def twins(task: str, judge: str, kind: str = "plausible") -> list[Twin]:
    """Return the stored twins of a cell, `plausible` or `possible`."""
    table = pd.read_csv(PATH)
    own = table[(table["task"] == task) & (table["judge"] == judge) & (table["kind"] == kind)]
    return [
        Twin(
            FAMILIES[row.family],
            tuple(float(x) for x in row.parameters.split()),
            row.tie,
            row.misfit,
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
                misfit = round(twin.misfit, 5)
                records.append((task, judge, kind, twin.family.name, twin.tie, misfit, numbers))
    return pd.DataFrame(records, columns=COLUMNS)


if __name__ == "__main__":
    fit().to_csv(PATH, index=False, lineterminator="\n")
