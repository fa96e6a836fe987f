"""`python -m judgebayes.experiments.speed [ROW]...`: our time and others', as a Markdown table.

Command: python -m judgebayes.experiments.speed --data DIR
Runtime: about ten minutes on two quiet cores; `--smoke` two.
Expected: the table of README.md; ratios, not seconds, carry over to other machines.
"""

import os
from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter
from cyclopts.validators import Number

from judgebayes.show.console import say_plainly

ROWS = (
    "p1-sweep",
    "p4-fig6",
    "one-coin-beta",
    "dawid-skene",
    "growth",
    "nuts",
    "2pl",
    "command-line",
)


def main(
    rows: Annotated[
        list[str] | None,
        Parameter(help=f"{', '.join(ROWS)}; without a name, all."),
    ] = None,
    data: Annotated[Path | None, Parameter(help="Folder of the public data sets.")] = None,
    rounds: Annotated[
        int, Parameter(validator=Number(gte=1), help="Rounds of the programs, in turns.")
    ] = 5,
    released: Annotated[
        bool,
        Parameter(negative=(), help="Also run P4's double loop once, which takes a minute."),
    ] = False,
    runs: Annotated[
        int,
        Parameter(
            validator=Number(gte=0), help="Seeded NUTS runs to test for label switching, e.g. 100."
        ),
    ] = 0,
    smoke: Annotated[bool, Parameter(negative=(), help="Small sizes, one round.")] = False,
    out: Annotated[
        Path | None,
        Parameter(help="A Markdown file to which the tables are also written."),
    ] = None,
) -> None:
    """Measure, print and write the table."""
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # no cache, so that a cold run compiles
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import jax

    # One device per core: a sweep divides its splits between them.
    jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)
    from judgebayes.experiments.core import Run, default_data
    from judgebayes.experiments.speed import (
        command_line,
        dawid_skene,
        item_response,
        nuts,
        one_coin_beta,
        p1_sweep,
    )
    from judgebayes.experiments.speed.growth import slopes
    from judgebayes.experiments.speed.measure import markdown
    from judgebayes.experiments.speed.p4_fig6 import p4_fig6

    for name in rows or []:
        if name not in ROWS:
            raise SystemExit(f"There is no row {name!r}; choose one of: {', '.join(ROWS)}.")
    run = Run(data=data or default_data(), smoke=smoke)
    rounds = 1 if smoke else rounds
    selected = rows or [r for r in ROWS if r in ROWS[3:] or run.data is not None]
    table_rows, notes = [], []
    if "p1-sweep" in selected:
        table_rows += p1_sweep.p1_sweep(run, rounds)
        notes.append(f"Distance to the limit: {p1_sweep.distance_to_the_limit(run, rounds)}")
    if "p4-fig6" in selected:
        table_rows += p4_fig6(run, rounds, released=released)
    if "one-coin-beta" in selected:
        table_rows += one_coin_beta.one_coin_beta(run, rounds)
    if "dawid-skene" in selected:
        table_rows += dawid_skene.against_peers(rounds, 0.02 if smoke else 1.0)
    if "growth" in selected:
        notes.append(slopes(rounds, smoke))
    if "2pl" in selected:
        row = item_response.item_response(rounds, smoke)
        if isinstance(row, str):
            notes.append(row)
        else:
            table_rows += row
    if "nuts" in selected:
        notes.append(nuts.against_samplers(rounds, smoke))
    if runs:
        notes.append(nuts.switched_runs(runs))
    if "command-line" in selected:
        notes.append(command_line.command_line(rounds))
    text = "\n\n".join(([markdown(table_rows)] if table_rows else []) + notes) + "\n"
    say_plainly(text)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)


if __name__ == "__main__":
    cyclopts.run(main)
