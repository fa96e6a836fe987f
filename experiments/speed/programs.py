"""`python -m judgebayes.experiments.speed.programs [ROW]...`: what programs do, without a clock.

Command: python -m judgebayes.experiments.speed.programs --data DIR
Runtime: three minutes on two cores.
Expected: the table in README.md.

Each row runs on this CPU by the program of a CPU and by that of an accelerator (`compiled.backend`), as
if its device had the memory of an H100. Counted are the trips of all loops, those of loops in turn
added; the passes over the items in them; the kernels of a trip, which are the fusions, products and
calls in the optimised body of the largest innermost loop; and the bytes that leave the device.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import cyclopts
from cyclopts import Parameter

from judgebayes.show.console import say_plainly

ROWS = ("p1-sweep", "p4-fig6", "one-coin-beta")
MEMORY = 80 * 10**9
KERNEL = re.compile(r" (?:fusion|call|custom-call|dot|reduce|convolution|scatter|sort)\(")
LOOP = re.compile(r" while\(.*body=%?([\w.\-]+)")
HEAD = re.compile(r"(?:ENTRY )?%?([\w.\-]+) \(.*\{$")


def kernels(program: str) -> int:
    """Return the kernels in the body of the largest innermost loop of an optimised program."""
    bodies: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in program.splitlines():
        head = HEAD.match(line)
        if head:
            lines = bodies.setdefault(head[1], [])
        lines.append(line)
    loops = {name for found in LOOP.finditer(program) for name in found.groups()}
    inner = [bodies[name] for name in loops if not any(map(LOOP.search, bodies[name]))]
    return max((sum(map(bool, map(KERNEL.search, body))) for body in inner), default=0)


@contextmanager
def counted_loops(trips: list[int]) -> Iterator[None]:
    """Add the trips of each `jax.lax.while_loop` that runs to a list: over lanes, the longest's."""
    import jax
    import jax.numpy as jnp
    from jax.custom_batching import custom_vmap

    original = jax.lax.while_loop

    def while_loop(running: Callable[..., Any], step: Callable[..., Any], start: Any) -> Any:
        @custom_vmap
        def report(count: Any) -> Any:
            jax.debug.callback(lambda n: trips.append(int(n)), count)
            return count

        @report.def_vmap
        def _(size: int, batched: Any, count: Any) -> Any:
            return report(count.max()), False

        end, count = original(
            lambda state: running(state[0]),
            lambda state: (step(state[0]), state[1] + 1),
            (start, jnp.asarray(0)),
        )
        report(count)
        return end

    with mock.patch.object(jax.lax, "while_loop", while_loop):
        yield


def row(what: str, work: Callable[[], Any], accelerator: bool) -> str:
    """Return a row of the table."""
    import jax

    from judgebayes.compiled import backend
    from judgebayes.evaluate import engine
    from judgebayes.evaluate.engine import aggregate
    from judgebayes.experiments.beyond_consensus import true_minimum
    from judgebayes.inference.optimise import STEPS_A_TRIP

    trips: list[int] = []
    by_program: list[int] = []
    left: list[int] = []

    def watched(program: Any) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            by_program.append(kernels(program.lower(*arguments).compile().as_text()))
            results = program(*arguments)
            if arguments[0] is not aggregate:  # whose answers the maps use
                left.append(sum(x.nbytes for x in jax.tree.leaves(results)))
            return results

        return call

    with ExitStack() as patched:
        patched.enter_context(mock.patch.object(backend, "ACCELERATOR", accelerator))
        patched.enter_context(mock.patch.object(engine, "memory", return_value=MEMORY))
        patched.enter_context(counted_loops(trips))
        for module, name in ((engine, "_each_lane"), (true_minimum, "_minimum_from_starts")):
            program = watched(getattr(module, name))
            patched.enter_context(mock.patch.object(module, name, program))
        jax.clear_caches()
        work()
        jax.effects_barrier()
    steps = STEPS_A_TRIP if accelerator else 1
    cells = (
        what,
        "accelerator" if accelerator else "CPU",
        f"{len(by_program)}",
        f"{len(trips)}",
        f"{sum(trips):,}",
        f"{sum(trips) * steps:,}",
        f"{max(by_program)}",
        f"{sum(left):,}",
    )
    return f"| {' | '.join(cells)} |"


def main(
    rows: Annotated[list[str] | None, Parameter()] = None,
    data: Annotated[Path | None, Parameter(help="Folder of the public data sets.")] = None,
) -> None:
    """Count and print the table."""
    from judgebayes.experiments.speed.duel import workload

    columns = [
        "what",
        "program of",
        "calls",
        "loops",
        "trips",
        "passes",
        "kernels a trip",
        "bytes out",
    ]
    say_plainly(f"| {' | '.join(columns)} |\n|" + "---|" * len(columns))
    for name in rows or ROWS:
        work = workload(name, data)
        for accelerator in (False, True):
            say_plainly(row(name, work, accelerator))


if __name__ == "__main__":
    cyclopts.run(main)
