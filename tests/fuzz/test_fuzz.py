"""The fuzzer's test in continuous integration: 3,000 cases of `run.py --seed 1`."""

from fuzz.run import OUTCOMES, fuzz, table
from fuzz.subjects import SUBJECTS

CASES = 3000


def test_every_case_is_right_or_refused_in_a_sentence() -> None:
    result = fuzz(CASES, seed=1, names=list(SUBJECTS))
    assert not result.failures, "\n".join(map(str, result.failures.items()))
    assert sum(result.counts.values()) >= CASES - len(SUBJECTS)
    for name in SUBJECTS:  # some cases are right and some are refused
        assert result.counts[name, "right"] > 0, name
        assert result.counts[name, OUTCOMES[1]] > 0 or name == "verdict parser", name
    assert len(table(result)) == len(SUBJECTS) + 3
