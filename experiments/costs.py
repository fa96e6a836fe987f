"""The measured cost of each experiment, and an estimate of the time that a run still takes.

`costs.csv` in this folder has the wall time, largest memory and compiled programs of every
experiment, on data and on twins, with 100 splits on two cores. `judgebayes reproduce --costs FILE`
writes such a table.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from judgebayes.compiled.store import atomically
from judgebayes.experiments.core import Experiment
from judgebayes.experiments.runner import Cost

COSTS = Path(__file__).parent / "costs.csv"
HEAD = ("experiment", "twins", "seconds", "peak_mb", "programs")


def known_costs(*, twins: bool) -> dict[str, Cost]:
    """Return the measured costs by `paper/name`, on twins or on data."""
    if not COSTS.exists():
        return {}
    with COSTS.open(encoding="utf-8", newline="") as file:
        return {
            row["experiment"]: Cost(
                float(row["seconds"]), int(row["peak_mb"]) * 10**6, int(row["programs"])
            )
            for row in csv.DictReader(file)
            if row["twins"] == str(int(twins))
        }


def write_costs(path: Path, costs: Mapping[Experiment, Cost], *, twins: bool) -> None:
    """Write the costs of experiments, one row each.

    Raises
    ------
    JudgeBayesError
        If the file cannot be written.
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(HEAD)
    for e, cost in costs.items():
        megabytes = round(cost.peak_bytes / 10**6)
        table.writerow(
            (f"{e.paper}/{e.name}", int(twins), f"{cost.seconds:.1f}", megabytes, cost.programs)
        )
    with atomically(path, new_folder=True) as temporary:
        temporary.write_text(text.getvalue(), encoding="utf-8")


def expected_seconds(experiments: Sequence[Experiment], *, twins: bool) -> dict[Experiment, float]:
    """Return the measured time of each experiment; of a new one, the mean of the others.

    On twins, an experiment that needs data takes none.
    """
    seconds = {name: cost.seconds for name, cost in known_costs(twins=twins).items()}
    usual = sum(seconds.values()) / len(seconds) if seconds else 0.0
    return {
        e: seconds.get(f"{e.paper}/{e.name}", usual) if e.twins or not twins else 0.0
        for e in experiments
    }


class TimeLeft:
    """Estimates how long the remaining experiments take, from measured costs.

    The estimate is the sum of their measured times, multiplied by the ratio of actual to measured
    time over the finished experiments (fewer splits, another machine).
    """

    def __init__(self, experiments: Sequence[Experiment], *, twins: bool) -> None:
        self._measured = expected_seconds(experiments, twins=twins)
        self._expected = self._taken = 0.0

    def skip(self, experiment: Experiment) -> None:
        """Leave out an experiment that does not need to run."""
        del self._measured[experiment]

    def took(self, experiment: Experiment, seconds: float) -> None:
        """Record how long an experiment took."""
        self._expected += self._measured.pop(experiment)
        self._taken += seconds

    def text(self) -> str:
        """Return for example `about 12 min left`; empty before the first experiment has run."""
        if self._expected == 0:
            return ""
        return f"about {duration(sum(self._measured.values()) * self._taken / self._expected)} left"


def duration(seconds: float) -> str:
    """Return a duration in words, to about two digits."""
    if seconds < 60:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
