"""`--laws-table FILE` writes a table with the outcome of every law for every estimator."""

from pathlib import Path

import pytest

HOLDS = "holds"
RESULTS = pytest.StashKey[dict[str, dict[str, str]]]()
HEAD = """# Every estimator, every law

{estimators} estimators, {laws} laws: {holds} pairs pass, {reasons} have a stated exception{broken}.
Made by

    python -m pytest tests/laws/test_laws.py -m slow --laws-table tests/laws/README.md

(continuous integration tests a part of the table, which takes about two minutes).

`+`: the law holds. A number: the reason below why the law does not apply to the estimator, or does
not hold for it (a test checks that it does not). The laws are in [laws.py](laws.py), the estimators,
one line each, in [registry.py](registry.py).
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--laws-table", metavar="FILE", help="Write the table law x estimator.")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[RESULTS] = {}
    report = _Report(config.stash[RESULTS])
    if config.getoption("--laws-table") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(report)


class _Report:
    """Collects the outcomes of laws from tests, also from tests in other processes."""

    def __init__(self, results: dict[str, dict[str, str]]) -> None:
        self.results = results

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties = dict(report.user_properties)
        if report.when == "call" and "laws" in properties:
            self.results[report.nodeid.split("[")[1].rstrip("]")] = dict(properties["laws"])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.results:
            path = Path(session.config.getoption("--laws-table"))
            path.write_text(table(self.results), encoding="utf-8")


def table(results: dict[str, dict[str, str]]) -> str:
    """Return the table with a column per law and a row per estimator, and the numbered reasons."""
    laws = list(dict.fromkeys(law for outcomes in results.values() for law in outcomes))
    outcomes = [(law, says) for each in results.values() for law, says in each.items()]
    broken = sum(says.startswith("BROKEN") for _, says in outcomes)
    reasons = list(dict.fromkeys(says for _, says in outcomes if says != HOLDS))
    number = {says: str(i + 1) for i, says in enumerate(reasons)} | {HOLDS: "+", None: ""}
    head = HEAD.format(
        estimators=len(results),
        laws=len(laws),
        holds=sum(says == HOLDS for _, says in outcomes),
        reasons=sum(says != HOLDS for _, says in outcomes) - broken,
        broken=f", {broken} are BROKEN" if broken else "",
    )
    lines = [head, "| estimator | " + " | ".join(laws) + " |", "|---" * (len(laws) + 1) + "|"]
    for name, says in results.items():
        cells = " | ".join(number[says.get(law)] for law in laws)
        lines.append(f"| {name} | {cells} |")
    lines += ["", *(f"{i + 1}. {says}" for i, says in enumerate(reasons)), ""]
    return "\n".join(lines)
