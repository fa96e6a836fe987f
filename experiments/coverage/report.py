"""The results on disk: a CSV, a figure, and the rows of a Markdown table."""

from pathlib import Path

import pandas as pd
from PIL import Image  # which matplotlib needs

from judgebayes.experiments.coverage.engine import LEVELS
from judgebayes.experiments.plots import coverage_panels

COLOURS = 64
"""The colours of the picture."""


def write(table: pd.DataFrame, folder: Path) -> None:
    """Write `coverage.csv` and `coverage.png` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "coverage.csv", index=False, float_format="%.4g", lineterminator="\n")
    picture = folder / "coverage.png"
    coverage_panels(table, title="Coverage of every interval").savefig(picture, dpi=70)
    with Image.open(picture) as image:
        few = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    few.save(picture, optimize=True)  # a quarter of the bytes


def markdown(table: pd.DataFrame) -> list[str]:
    """Return a table with a row per interval and source: coverage in per cent, its error, verdict.

    The error is the largest of the levels'. The verdict names the levels that do not hold.
    """
    head = ["interval", "data", "replays", *(f"{level:.0%}" for level in LEVELS), "+-", "verdict"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for (interval, data), own in table.groupby(["interval", "data"], sort=False):
        shares = [f"{100 * value:.1f}" for value in own["coverage"]]
        wrong = own[own["verdict"] != "holds"]
        verdicts = [
            f"{verdict} ({', '.join(f'{level:.0%}' for level in part['level'])})"
            for verdict, part in wrong.groupby("verdict")
        ]
        n, error = int(own["replays"].iloc[0]), 100 * own["error"].max()
        cells = [interval, data, f"{n}", *shares, f"{error:.1f}", "; ".join(verdicts) or "holds"]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return lines
