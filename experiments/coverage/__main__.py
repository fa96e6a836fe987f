"""`python -m judgebayes.experiments.coverage [NAME]...`: coverage of every printed interval."""

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter
from cyclopts.validators import Number

from judgebayes.experiments.core import Run
from judgebayes.experiments.coverage import report
from judgebayes.experiments.coverage.engine import Setting, Trials, assess
from judgebayes.experiments.coverage.subjects import SUBJECTS
from judgebayes.show.console import say_plainly


def check(
    names: Annotated[
        list[str] | None,
        Parameter(help=f"{', '.join(SUBJECTS)}; without a name, all."),
    ] = None,
    data: Annotated[
        Path | None,
        Parameter(help="Folder of the public votes; default: JUDGEBAYES_DATA."),
    ] = None,
    replays: Annotated[
        int, Parameter(validator=Number(gte=4), help="Number of data sets for each interval.")
    ] = 400,
    seed: Annotated[int, Parameter(help="Seed of all random numbers.")] = 0,
    out: Annotated[Path, Parameter(help="Folder for the results.")] = Path("results/coverage"),
) -> None:
    """Count how often intervals contain the truth; write coverage.csv and coverage.png."""
    for name in names or []:
        if name not in SUBJECTS:
            raise SystemExit(f"There is no {name!r}; choose one of: {', '.join(SUBJECTS)}.")
    folder = data or (
        Path(os.environ["JUDGEBAYES_DATA"]) if "JUDGEBAYES_DATA" in os.environ else None
    )
    setting = Setting(Run(folder, seed=seed), replays)
    all_trials: list[Trials] = []
    for name in names or SUBJECTS:
        started = time.perf_counter()
        all_trials += SUBJECTS[name].trials(setting)
        sys.stderr.write(f"{name}: {time.perf_counter() - started:.0f} s\n")
    table = assess(all_trials)
    report.write(table, out)
    say_plainly("\n".join(report.markdown(table)))


if __name__ == "__main__":
    cyclopts.run(check)
