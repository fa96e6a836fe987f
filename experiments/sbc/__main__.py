"""`python -m judgebayes.experiments.sbc NAME...`: simulations, p-values and figures of models."""

import time
from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter
from cyclopts.validators import Number

from judgebayes.experiments.sbc import report
from judgebayes.experiments.sbc.engine import rank, simulate
from judgebayes.experiments.sbc.subjects import SUBJECTS
from judgebayes.show.console import say_plainly


def check(
    names: Annotated[
        list[str] | None,
        Parameter(help=f"{', '.join(SUBJECTS)}; without a name, all."),
    ] = None,
    simulations: Annotated[
        int, Parameter(validator=Number(gte=20), help="Simulations for each model.")
    ] = 500,
    out: Annotated[Path, Parameter(help="Folder for the results.")] = Path("results/sbc"),
    seed: Annotated[int, Parameter(help="Seed of all random numbers.")] = 0,
    batch: Annotated[int, Parameter(validator=Number(gte=1), help="Simulations run at once.")] = 10,
) -> None:
    """Check samplers by simulation; write MODEL.csv and MODEL.png for every named model."""
    for name in names or []:
        if name not in SUBJECTS:
            raise SystemExit(f"There is no model {name!r}; choose one of: {', '.join(SUBJECTS)}.")
    out.mkdir(parents=True, exist_ok=True)
    for name in names or SUBJECTS:
        started = time.perf_counter()
        subject = SUBJECTS[name]()
        ranks = rank(simulate(subject, simulations, seed=seed, batch=batch), seed=seed)
        table = report.write(name, subject.title, ranks, out)
        say_plainly("\n".join(report.markdown(name, table)))
        say_plainly(f"{subject.title}: {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    cyclopts.run(check)
