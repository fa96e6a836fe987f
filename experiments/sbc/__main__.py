"""`python -m judgebayes.experiments.sbc NAME...`: simulations, p-values and figures of models."""

import time
from pathlib import Path
from typing import Annotated, Optional

import typer

from judgebayes.experiments.sbc import report
from judgebayes.experiments.sbc.engine import rank, simulate
from judgebayes.experiments.sbc.subjects import SUBJECTS


def check(
    names: Annotated[
        Optional[list[str]],  # noqa: UP045  (typer reads it)
        typer.Argument(metavar="[MODEL]...", help=f"{', '.join(SUBJECTS)}; without a name, all."),
    ] = None,
    simulations: Annotated[int, typer.Option(min=20, help="Simulations for each model.")] = 500,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results/sbc"),
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    batch: Annotated[int, typer.Option(min=1, help="Simulations run at once.")] = 10,
) -> None:
    """Check samplers by simulation; write MODEL.csv and MODEL.png for every named model."""
    for name in names or []:
        if name not in SUBJECTS:
            raise typer.BadParameter(
                f"There is no model {name!r}; choose one of: {', '.join(SUBJECTS)}."
            )
    out.mkdir(parents=True, exist_ok=True)
    for name in names or SUBJECTS:
        started = time.perf_counter()
        subject = SUBJECTS[name]()
        ranks = rank(simulate(subject, simulations, seed=seed, batch=batch), seed=seed)
        table = report.write(name, subject.title, ranks, out)
        typer.echo("\n".join(report.markdown(name, table)))
        typer.echo(f"{subject.title}: {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    typer.run(check)
