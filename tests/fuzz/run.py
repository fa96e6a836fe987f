"""Run the fuzzer, and count the outcomes of each subject's cases.

python tests/fuzz/run.py --cases 100000 --seed 1
python tests/fuzz/run.py --seed 1 --only tidy --case 4711     # rerun one case, with its traceback
"""

import argparse
import faulthandler
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

OUTCOMES = ("right", "refused in a sentence", "wrong", "crash", "hang")
LIMIT = 60
"""Seconds after which a case counts as hanging: a hundred times a usual case, for busy machines."""
CHUNK = 250
MEMORY = 2 * 2**30
"""Bytes of address space that a case may add."""


@dataclass
class Result:
    """The counts of outcomes per subject, and the cases that failed."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    """By place and error: the subject, one of its cases, and the message."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By subject: the processor time of its longest case."""
    added: dict[str, float] = field(default_factory=dict)
    """By subject: the MB by which its cases raised the largest memory of the process."""

    def add(self, other: "Result") -> None:
        """Add the counts and failures of another part of the run."""
        self.counts += other.counts
        self.failures = other.failures | self.failures
        for mine, its in ((self.seconds, other.seconds), (self.added, other.added)):
            mine |= {name: max(value, mine.get(name, 0.0)) for name, value in its.items()}


class HangError(BaseException):
    """A case took too long; not an Exception, so that no reader catches it."""


def run_cases(seed: int, name: str, first: int, last: int) -> Result:
    """Run some cases of a subject in a temporary folder."""
    from fuzz.subjects import SUBJECTS, check_sentence
    from judgebayes.errors import JudgeBayesError

    def on_alarm(number: int, frame: object) -> None:
        raise HangError

    case = SUBJECTS[name][1]
    result = Result()
    memory = Path("/dev/shm")
    workspace = tempfile.mkdtemp(prefix="fuzz", dir=memory if os.access(memory, os.W_OK) else None)
    old_handler = signal.signal(signal.SIGALRM, on_alarm)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        for number in range(first, last):
            folder = Path(workspace) / f"{name}-{number}".replace("/", " ")
            folder.mkdir()
            # Where C code does not return, no signal is handled: the process ends, and the files of the
            # case stay.
            faulthandler.dump_traceback_later(2 * LIMIT, exit=True, file=2)
            signal.setitimer(signal.ITIMER_REAL, LIMIT)
            began, limits = time.process_time(), _cap()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    try:
                        case(random.Random(f"{seed} {name} {number}"), folder)
                        outcome = "right"
                    except JudgeBayesError as error:
                        check_sentence(str(error))
                        outcome = "refused in a sentence"
            except HangError:
                outcome = "hang"
                result.failures[f"{name} hangs"] = (name, number, "")
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                outcome = "wrong" if isinstance(error, AssertionError) else "crash"
                frames = traceback.extract_tb(error.__traceback__)
                own = [f for f in frames if "judgebayes" in f.filename or "fuzz" in f.filename]
                where = f"{Path(own[-1].filename).name}:{own[-1].lineno} {type(error).__name__}"
                result.failures.setdefault(where, (name, number, str(error)[:300]))
            finally:
                faulthandler.cancel_dump_traceback_later()
                signal.setitimer(signal.ITIMER_REAL, 0)
                resource.setrlimit(resource.RLIMIT_AS, limits)
                took = time.process_time() - began
                result.seconds[name] = max(took, result.seconds.get(name, 0.0))
                shutil.rmtree(folder, ignore_errors=True)
            result.counts[name, outcome] += 1
    finally:
        signal.signal(signal.SIGALRM, old_handler)
        now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result.added[name] = (now - peak) / 1024
        shutil.rmtree(workspace, ignore_errors=True)
    return result


def _cap() -> tuple[int, int]:
    """Limit the address space to `MEMORY` more than now, and return the limits before."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, limits[1]))
    return limits


def shares(cases: int, names: list[str]) -> dict[str, int]:
    """Return the number of cases of each subject."""
    from fuzz.subjects import SUBJECTS

    total = sum(SUBJECTS[name][0] for name in names)
    return {name: max(1, round(cases * SUBJECTS[name][0] / total)) for name in names}


def fuzz(cases: int, seed: int, names: list[str], jobs: int = 1) -> Result:
    """Run cases of subjects, in this process or in several."""
    parts = [
        (seed, name, first, min(first + CHUNK, count))
        for name, count in shares(cases, names).items()
        for first in range(0, count, CHUNK)
    ]
    result = Result()
    if jobs == 1:
        for part in parts:
            result.add(run_cases(*part))
        return result
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for part_result in pool.map(run_cases, *zip(*parts, strict=True)):
            result.add(part_result)
    return result


def table(result: Result) -> list[str]:
    """Return the outcomes as a Markdown table, a row per subject."""
    names = list(dict.fromkeys(name for name, _ in result.counts))
    rows = {name: [result.counts[name, o] for o in OUTCOMES] for name in names}
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    heads = ["read by", "cases", *OUTCOMES, "longest, s of CPU", "memory added, MB"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, row in rows.items():
        longest, added = (
            max(each.values(), default=0.0) if name == "all" else each.get(name, 0.0)
            for each in (result.seconds, result.added)
        )
        cells = [name, f"{sum(row):,}", *(f"{n:,}" for n in row), f"{longest:.1f}", f"{added:.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> int:
    """Run from the command line."""
    from fuzz.subjects import SUBJECTS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", choices=list(SUBJECTS), action="append")
    parser.add_argument("--case", type=int, help="run one case of --only and show its traceback")
    args = parser.parse_args()
    names = args.only or list(SUBJECTS)
    if args.case is not None:
        folder = Path(tempfile.mkdtemp(prefix="fuzz"))
        print(f"in {folder}")
        warnings.simplefilter("error")
        SUBJECTS[names[0]][1](random.Random(f"{args.seed} {names[0]} {args.case}"), folder)
        return 0
    start = time.monotonic()
    result = fuzz(args.cases, args.seed, names, args.jobs)
    print("\n".join(table(result)))
    print(f"\nseed {args.seed}, {time.monotonic() - start:.0f} s")
    for where, (name, number, message) in result.failures.items():
        print(f"\n{where}: --only {name!r} --case {number}\n  {message!r}")
    return 1 if result.failures else 0


if __name__ == "__main__":
    sys.exit(main())
