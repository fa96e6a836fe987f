"""`python -m judgebayes.experiments.coverage [NAME]...`: coverage of every printed interval."""

import os
import time
from pathlib import Path
from typing import Annotated, Optional

import typer

from judgebayes.experiments.core import Run
from judgebayes.experiments.coverage import report
from judgebayes.experiments.coverage.engine import Setting, Trials, assess
from judgebayes.experiments.coverage.subjects import SUBJECTS


def check(
    names: Annotated[
        Optional[list[str]],  # noqa: UP045  (typer reads it)
        typer.Argument(metavar="[NAME]...", help=f"{', '.join(SUBJECTS)}; without a name, all."),
    ] = None,
    data: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Folder of the public votes; default: JUDGEBAYES_DATA."),
    ] = None,
    replays: Annotated[
        int, typer.Option(min=4, help="Number of data sets for each interval.")
    ] = 400,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results/coverage"),
) -> None:
    """Count how often intervals contain the truth; write coverage.csv and coverage.png."""
    for name in names or []:
        if name not in SUBJECTS:
            raise typer.BadParameter(f"There is no {name!r}; choose one of: {', '.join(SUBJECTS)}.")
    folder = data or (
        Path(os.environ["JUDGEBAYES_DATA"]) if "JUDGEBAYES_DATA" in os.environ else None
    )
    setting = Setting(Run(folder, seed=seed), replays)
    all_trials: list[Trials] = []
    for name in names or SUBJECTS:
        started = time.perf_counter()
        all_trials += SUBJECTS[name].trials(setting)
        typer.echo(f"{name}: {time.perf_counter() - started:.0f} s", err=True)
    table = assess(all_trials)
    report.write(table, out)
    typer.echo("\n".join(report.markdown(table)))


if __name__ == "__main__":
    typer.run(check)
