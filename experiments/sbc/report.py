"""The results of a check on disk: a CSV, a figure, and the lines of a Markdown table."""

from io import BytesIO
from pathlib import Path

import pandas as pd
from PIL import Image

from judgebayes.experiments.plots import ranks as rank_figure
from judgebayes.experiments.sbc.engine import Ranks, assess, bins, ecdf_band

LEVEL = 0.01
COLOURS = 32
HEAD = (
    "| model | quantity | simulations | draws kept | ESS, 5 % quantile | chi-square p | ECDF p | "
    "diverged | ranks |",
    "|---" * 9 + "|",
)


def write(name: str, title: str, ranks: Ranks, folder: Path) -> pd.DataFrame:
    """Write `name`.csv and `name`.png into a folder, and return the table."""
    table = assess(ranks)
    table.to_csv(folder / f"{name}.csv", index=False, float_format="%.4g", lineterminator="\n")
    n = len(ranks.ranks)
    band = ecdf_band(ranks.n_draws, n)
    figure = rank_figure(
        dict(zip(ranks.names, ranks.ranks.T, strict=True)),
        ranks.n_draws,
        (band.low, band.high),
        bins(ranks.n_draws, n),
        title=f"{title}: {n} simulations, ranks among {ranks.n_draws} draws",
    )
    image = BytesIO()
    figure.savefig(image, dpi=80)
    # A palette of few colours makes the file four times smaller.
    Image.open(image).convert("RGB").quantize(COLOURS).save(folder / f"{name}.png", optimize=True)
    return table


def verdict(table: pd.DataFrame) -> str:
    """Return whether the ranks are uniform, at 1 % over all quantities and both tests."""
    p_values = table[["chi_square_p", "ecdf_p"]].to_numpy()
    return "uniform" if p_values.min() * p_values.size >= LEVEL else "not uniform"


def markdown(name: str, table: pd.DataFrame) -> list[str]:
    """Return the rows of a model in the table of results, one per quantity."""
    return [
        f"| {name} | `{row.quantity}` | {row.simulations} | {row.draws_kept} | "
        f"{row.ess_5_percent:.0f} | {row.chi_square_p:.3f} | {row.ecdf_p:.3f} | "
        f"{row.diverged_simulations} | {verdict(table)} |"
        for row in table.itertuples()
    ]
