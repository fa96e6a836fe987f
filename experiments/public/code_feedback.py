"""The release of "Beyond consensus": votes of 14 validators on feedback to student programs."""

import ast
from pathlib import Path
from typing import Any

import pandas as pd

LEVELS = ("noRepair", "fc", "fcnh", "fcnhp")
WITH_ITEMS = LEVELS[1:]
"""The repair levels whose item votes are in the repository."""
SCRIPTS = "src/validation/generated_scripts"
COUNTS = {
    "total_fids": "validation_total_fids",
    "failed_fids": "validation_failed_fids",
    "merge_failed_fids": "merge_failed_fids",
    "complete_failed_sids": "complete_failed_sids",
    "partial_failed_sids": "partial_failed_sids",
}


def convert(folder: Path) -> dict[str, pd.DataFrame]:
    """Return item votes, labels and texts, and the released matrix and confusion counts.

    The release's Python files contain only numbers; they are parsed as literals, not run. The rows of
    the matrix are the generators, in the order of the validators.
    """
    sheets = {level: _sheets(folder, level) for level in WITH_ITEMS}
    first = sheets[WITH_ITEMS[0]]
    judges = [
        str(c).removeprefix("y_") for c in next(iter(first.values())) if str(c).startswith("y_")
    ]
    annotated = list(first)
    votes = pd.concat(
        [_votes(sheets[level], level, generator, judge)
         for level in WITH_ITEMS for judge in judges for generator in annotated],
        ignore_index=True,
    )  # fmt: skip
    names = ["repair", "item", "validator"]
    labels, items = _labels(first)
    matrix, confusion = [], []
    for level in LEVELS:
        judged = _literals(folder / SCRIPTS / f"llm_as_judge_{level}.py")
        failed = _literals(folder / SCRIPTS / f"summary_{level}.py")
        for row, generator in enumerate(judges):
            for column, judge in enumerate(judges):
                record = {"repair": level, "generator": generator, "validator": judge}
                counts = {name: failed[source][row][column] for name, source in COUNTS.items()}
                precision = {"predicted_precision": judged["GV"][row][column]}
                matrix.append(record | precision | counts)
        for row, generator in enumerate(annotated):
            for column, judge in enumerate(judges):
                cell = judged["confusion_matrix_validators"][row][column]
                record = {"repair": level, "generator": generator, "validator": judge}
                confusion.append(record | dict(zip(("tn", "fp", "fn", "tp"), cell, strict=True)))
    return {
        "votes.parquet": votes.astype(dict.fromkeys(names, "category")),
        "labels.parquet": labels,
        "items.parquet": items,
        "gv_matrix.csv": pd.DataFrame(matrix),
        "confusion.csv": pd.DataFrame(confusion),
    }


def _sheets(folder: Path, level: str) -> dict[str, pd.DataFrame]:
    path = folder / "output" / "ensemble" / f"ensemble_results_{level}.xlsx"
    return pd.read_excel(
        path, sheet_name=None, engine="calamine", keep_default_na=False, na_values=[""]
    )


def _votes(sheets: dict[str, pd.DataFrame], level: str, generator: str, judge: str) -> pd.DataFrame:
    column = sheets[generator][f"y_{judge}"]
    cast = column.notna().to_numpy()
    items = pd.Series([f"{generator}#{row}" for row in range(len(column))])[cast]
    return pd.DataFrame(
        {
            "repair": level,
            "item": items.to_numpy(),
            "validator": judge,
            "vote": column[cast].to_numpy("int8"),
        }
    )


def _labels(sheets: dict[str, pd.DataFrame]) -> tuple[pd.DataFrame, pd.DataFrame]:
    labels, items = [], []
    for generator, sheet in sheets.items():
        names = [f"{generator}#{row}" for row in range(len(sheet))]
        items.append(pd.DataFrame({"item": names, "text": sheet["feedback"].astype(str)}))
        labels.append(
            pd.DataFrame(
                {
                    "item": names,
                    "generator": generator,
                    "sid": sheet["sid"].astype("Int32"),
                    "line_number": sheet["line_number"].astype(str),
                    "label": sheet["y"].astype(float),
                }
            )
        )
    return pd.concat(labels, ignore_index=True), pd.concat(items, ignore_index=True)


def _literals(path: Path) -> dict[str, Any]:
    """Return the literals that a Python file assigns to names, without running it."""
    return {
        line.targets[0].id: ast.literal_eval(line.value)
        for line in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
    }
