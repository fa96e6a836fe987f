"""What `collect` pays for when it is killed: answers, booked calls and requests after kill -9.

python tests/killing.py --kills 10 --seed 1         # the table of docs/security.md

A run wants 1,440 answers from a fake server. It gets SIGKILL after a random number of requests, and is
started again with the same command; the last run ends by itself. Then every question must have one
answer, no request may have left without being booked, and the calls that were booked in vain are at most
the requests that were under way at the kills.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from endpoint import Fake, Reply, serving

from judgebayes.collect.bookings import bookings_path

ITEMS, VOTES = 120, 12
WANTED = ITEMS * VOTES
CONCURRENCY = 8
ANSWER_SECONDS = 0.1


@dataclass(frozen=True)
class Account:
    """The state of the files and the server when a run has ended."""

    answers: int
    unique: int
    booked: int
    received: int
    """Requests that the server has received so far."""

    @property
    def in_vain(self) -> int:
        """Calls that are booked and have no answer."""
        return self.booked - self.answers


def answer(prompt: str, before: int) -> Reply:
    """Answer after a while, so that requests are under way at a kill."""
    return Reply("[[A]]", wait=ANSWER_SECONDS * random.uniform(0.5, 1.5))


def put_items(path: Path) -> None:
    """Write pairs of responses."""
    names = [f"q{n}" for n in range(ITEMS)]
    table = {"id": names, "prompt": names, "response_a": "one", "response_b": "two"}
    pd.DataFrame(table).to_csv(path, index=False)


def start(folder: Path, fake: Fake) -> subprocess.Popen[str]:
    """Start the run, or continue it."""
    words = ["collect", folder / "items.csv", "--judge", f"j@{fake.url}", "-n", VOTES]
    words += ["--concurrency", CONCURRENCY, "-o", folder / "votes.jsonl", "--quiet"]
    return subprocess.Popen(
        [sys.executable, "-m", "judgebayes", *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"NO_PROXY": "127.0.0.1"},
    )


def account(folder: Path, fake: Fake) -> Account:
    """Count answers, bookings and requests; a line that a kill has cut off counts as none."""
    path = folder / "votes.jsonl"
    lines = list(map(json.loads, _whole_lines(path)))
    answers = [line for line in lines if "vote" in line]
    keys = Counter((a["item"], a["judge"], a["sample"], a["order"]) for a in answers)
    booked = sum(json.loads(line)["calls"] for line in _whole_lines(bookings_path(path)))
    return Account(len(answers), len(keys), booked, fake.asked.total())


def _whole_lines(path: Path) -> list[str]:
    text = path.read_text() if path.exists() else ""
    return [line for line in text.split("\n")[:-1] if line.strip()]


def kill(folder: Path, fake: Fake, rng: random.Random, share: int) -> Account | None:
    """Kill a run after a random number of requests; None if it had ended before."""
    until = fake.asked.total() + rng.randint(1, share)
    process = start(folder, fake)
    while fake.asked.total() < until and process.poll() is None:
        time.sleep(0.002)
    time.sleep(rng.uniform(0, ANSWER_SECONDS))
    ended = process.poll() is not None
    process.kill()
    process.communicate()
    time.sleep(3 * ANSWER_SECONDS)  # what is under way reaches the server
    return None if ended else account(folder, fake)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    columns = ["kill", "answers", "booked", "requests", "booked in vain", "by this kill"]
    print(f"| {' | '.join(columns)} |\n|" + "---|" * len(columns), flush=True)
    worst, before, wrong = 0, 0, 0
    with tempfile.TemporaryDirectory() as home, serving(answer) as fake:
        folder = Path(home)
        put_items(folder / "items.csv")
        for number in range(1, args.kills + 1):
            state = kill(folder, fake, rng, 2 * WANTED // (args.kills + 1))
            if state is None:
                print("the run ended before its kill")
                return 1
            lost, before = state.in_vain - before, state.in_vain
            worst = max(worst, lost)
            wrong += state.unique < state.answers or state.booked < state.received
            cells = [number, state.answers, state.booked, state.received, state.in_vain, lost]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
        process = start(folder, fake)
        said = process.communicate()[1]
        state = account(folder, fake)
        print(f"end, exit code {process.returncode}: {state} {said}")
    wrong += state.unique != WANTED or state.answers != WANTED or state.booked < state.received
    return int(wrong > 0 or worst > CONCURRENCY or state.in_vain > before)


if __name__ == "__main__":
    sys.exit(main())
