"""`python -m judgebayes.experiments.speed.duel CHECKOUT [ROW]...`: this version against another.

Command: git worktree add /tmp/older COMMIT && python -m judgebayes.experiments.speed.duel /tmp/older
Runtime: about ten minutes on two quiet cores.
Expected: ratios above 1 where this version is faster, with the 95 % interval of their mean.

Each version runs in its own process, with the rows of its own `experiments/speed`. A row's two processes
are warm before they take turns; the one that begins alternates between rounds.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import cyclopts
import numpy as np
from cyclopts import Parameter
from cyclopts.validators import Number
from scipy import stats

from judgebayes.show.console import say_plainly

ROWS = ("p1-sweep", "p4-fig6", "one-coin-beta", "dawid-skene", "2pl", "nuts")
TURN = 0.5
"""Seconds of a turn: shorter calls are repeated, and their mean time counts."""


class Captured(Exception):  # noqa: N818  (not an error: it carries a result)
    """Stops a row before its race; its argument is our side."""


def workload(row: str, data: Path | None) -> Callable[[], Any]:
    """Return our side of a row, from this version's modules."""
    import jax

    from judgebayes.experiments.core import Run, default_data
    from judgebayes.experiments.speed import (
        dawid_skene,
        item_response,
        nuts,
        one_coin_beta,
        p1_sweep,
        p4_fig6,
    )
    from judgebayes.experiments.speed.panels import dense_panel
    from judgebayes.votes import Votes

    def capture(sides: list[Any], rounds: int) -> None:
        raise Captured(sides[0].run)

    run = Run(data=data or default_data())
    if row == "nuts":
        sampler = nuts.ours(dense_panel(nuts.ITEMS, nuts.JUDGES, missing=0.0)[0], nuts.DRAWS)
        return lambda: sampler(0)
    if row == "2pl":  # whose race needs the peer
        from judgebayes.experiments.calibrate_dont_curate.item_response import LearntResponse

        _, right = item_response.simulated(item_response.ITEMS, item_response.JUDGES)
        with jax.enable_x64(True):
            votes = Votes(jax.numpy.asarray(right[..., None]), None, None, None, 2)
        model, labels = LearntResponse(), np.ones(len(right), int)
        return lambda: jax.block_until_ready(model.fit(votes, labels).draws)
    races: dict[str, tuple[Any, Callable[[], object]]] = {
        "p1-sweep": (p1_sweep, lambda: p1_sweep.p1_sweep(run, 1)),
        "p4-fig6": (p4_fig6, lambda: p4_fig6.p4_fig6(run, 1)),
        "one-coin-beta": (one_coin_beta, lambda: one_coin_beta.one_coin_beta(run, 1)),
        "dawid-skene": (dawid_skene, lambda: dawid_skene.against_peers(1)),
    }
    module, begin = races[row]
    module.race = capture
    try:
        begin()
    except Captured as captured:
        side: Callable[[], Any] = captured.args[0]
        return lambda: jax.block_until_ready(side())
    raise RuntimeError(f"The row {row} has no race.")


def serve(row: str, data: Path | None) -> None:
    """Run the row once, then one turn per input line; print the seconds per call of each turn."""
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import jax

    import judgebayes

    jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)
    call = workload(row, data)
    call()
    sys.stdout.write(f"{judgebayes.__file__}\n")
    sys.stdout.flush()
    for _ in sys.stdin:
        calls, started, took = 0, time.perf_counter(), 0.0
        while took < TURN:
            call()
            calls, took = calls + 1, time.perf_counter() - started
        sys.stdout.write(json.dumps(took / calls) + "\n")
        sys.stdout.flush()


def start_server(checkout: Path, row: str, data: Path | None) -> subprocess.Popen[str]:
    """Return a process that serves a row of a checkout."""
    command = [
        sys.executable,
        "-c",
        f"import runpy; runpy.run_path({__file__!r})['serve']({row!r}, ",
    ]
    command[-1] += f"__import__('pathlib').Path({str(data)!r}))" if data else "None)"
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, env=environment, cwd=checkout
    )


def answer(process: subprocess.Popen[str]) -> str:
    """Return a process's next line."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("A version ended without an answer; its own message is above.")
    return line.strip()


def seconds_per_call(process: subprocess.Popen[str]) -> float:
    """Return the seconds per call in one turn."""
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return float(answer(process))


def main(
    checkout: Annotated[Path, Parameter(help="The other version: a folder of its files.")],
    rows: Annotated[list[str] | None, Parameter()] = None,
    data: Annotated[Path | None, Parameter(help="Folder of the public data sets.")] = None,
    rounds: Annotated[
        int, Parameter(validator=Number(gte=2), help="Rounds, with a turn of each version.")
    ] = 15,
) -> None:
    """Run both versions in turns and print a table of ratios."""
    # `judgebayes/experiments` is a link to a folder outside the package.
    folders = [Path(__file__).resolve().parents[2], checkout.resolve()]
    for row in rows or []:
        if row not in ROWS:
            raise SystemExit(f"There is no row {row!r}; choose one of: {', '.join(ROWS)}.")
    say_plainly(
        "| row | this version, s | the other, s | other / this | 95 % interval |\n|" + "---|" * 5
    )
    for row in rows or ROWS:
        sides = [start_server(folder, row, data and data.resolve()) for folder in folders]
        try:
            for side, folder in zip(sides, folders, strict=True):
                if not Path(answer(side)).is_relative_to(folder):
                    raise RuntimeError(f"{folder} does not contain judgebayes.")
            seconds = np.empty((rounds, 2))
            for turn in range(rounds):
                for which in (0, 1) if turn % 2 else (1, 0):
                    seconds[turn, which] = seconds_per_call(sides[which])
        finally:
            for side in sides:
                side.kill()
        ratio = np.log(seconds[:, 1] / seconds[:, 0])
        half = stats.t.ppf(0.975, rounds - 1) * ratio.std(ddof=1) / np.sqrt(rounds)
        low, mean, high = np.exp(ratio.mean() + half * np.array([-1, 0, 1]))
        ours, theirs = np.median(seconds, 0)
        say_plainly(f"| {row} | {ours:.3g} | {theirs:.3g} | {mean:.3f} | {low:.3f} to {high:.3f} |")


if __name__ == "__main__":
    cyclopts.run(main)
