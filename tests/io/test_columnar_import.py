"""`import tidy` works on columns; here is the same row by row, and what a row may cost in memory."""

import json
import tempfile
import tracemalloc
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebayes.errors import JudgeBayesError
from judgebayes.io.cells import plain_column
from judgebayes.io.options import Options
from judgebayes.votes.classes import canonical, mapped, written
from judgebayes.workflow.importing import import_votes

NAMES = st.sampled_from(["a", " a", "b", "007", "7", 7, 7.0, True, 1, "NaN1", "é"])
VOTES = st.sampled_from(["A", " A ", "b", "1", 1, 1.0, 0.5, True, None, "", "NA", "n/a", -1])
LABELS = st.sampled_from([None, None, None, "A", "1", 1])
RECORDS = st.lists(
    st.fixed_dictionaries({"item": NAMES, "judge": NAMES, "vote": VOTES, "label": LABELS}),
    min_size=1,
    max_size=12,
)


@dataclass
class ByRow:
    """What an import is, found by one loop over the records."""

    votes: list[tuple[str, str, Any]] = field(default_factory=list)
    samples: list[int] = field(default_factory=list)
    labels: dict[str, Any] = field(default_factory=dict)
    missing: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    error: str | None = None


def by_row(records: list[dict[str, Any]], no_vote: set[Any]) -> ByRow:
    result, rows = ByRow(), []
    for record in records:
        raw, vote, label = record["vote"], canonical(record["vote"]), canonical(record["label"])
        reason = f"cell {raw.strip()!r}" if isinstance(raw, str) and raw.strip() else "empty cell"
        if folded(vote) in no_vote:
            vote, reason = None, f"vote {str(vote)!r}"
        label = None if folded(label) in no_vote else label
        rows.append((name_of(record["item"]), name_of(record["judge"]), vote, reason, label))
    voters = {judge for _, judge, vote, _, _ in rows if vote is not None}
    seen: Counter[tuple[str, str]] = Counter()
    for item, judge, vote, reason, label in rows:
        assert item is not None
        assert judge is not None
        if judge not in voters:
            result.dropped[f"{judge} has no vote at all"] += 1
            continue
        seen[item, judge] += 1
        result.votes.append((item, judge, vote))
        result.samples.append(seen[item, judge])
        result.missing.update([reason] if vote is None else [])
        if label is not None and result.labels.setdefault(item, label) != label:
            result.error = result.error or f"{item!r} of .* has two labels"
    if not voters:
        result.error = "There are no votes"
    return result


def name_of(value: Any) -> str | None:
    """Return a name as the file has it: 7.0 is not 7."""
    return str(value) if isinstance(value, float) else written(value)


def folded(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value


def texts(values: list[Any]) -> list[Any]:
    """Return values as they are in a column: all as text if one is text."""
    if any(isinstance(value, str) for value in values):
        return [None if value is None else str(value) for value in values]
    return [None if pd.isna(value) else float(value) for value in values]


@settings(max_examples=100, deadline=None)
@given(RECORDS, st.sampled_from([None, "1", "a,-1"]))
def test_columns_give_what_rows_give(records: list[dict[str, Any]], missing: str | None) -> None:
    for number, record in enumerate(records):
        record["line"] = number  # records are no copies of one another
    expected = by_row(records, {"1": {1}, "a,-1": {"a", -1}}.get(missing or "", set()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "v.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        options = Options(missing=missing)
        if expected.error is not None:
            with pytest.raises(JudgeBayesError, match=expected.error):
                import_votes("tidy", path, options)
            return
        own = import_votes("tidy", path, options)
    table = own.votes
    assert list(zip(table["item"], table["judge"], strict=True)) == [v[:2] for v in expected.votes]
    votes = [None if pd.isna(v) else v for v in table["vote"]]
    assert texts(votes) == texts([vote for _, _, vote in expected.votes])
    if max(expected.samples) > 1:
        assert table["sample"].tolist() == expected.samples
    else:
        assert "sample" not in table
    assert (own.missing, own.dropped) == (expected.missing, expected.dropped)
    assert list(own.missing) == list(expected.missing)
    labels = {} if own.labels is None else dict(own.labels.to_numpy().tolist())
    assert list(labels) == list(expected.labels)
    assert texts(list(labels.values())) == texts(list(expected.labels.values()))


def test_the_row_without_an_item_is_named_by_its_number_in_the_file(tmp_path: Path) -> None:
    rows = ["item,judge,vote", "", *(f"i{n},j,1" for n in range(20)), " ,j,1", "x,,1"]
    path = tmp_path / "v.csv"
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(JudgeBayesError, match=r"Row 23 of .* has no item"):
        import_votes("tidy", path)
    path.write_text("\n".join([*rows[:-2], rows[-1]]) + "\n")
    with pytest.raises(JudgeBayesError, match=r"Row 23 of .* has no judge"):
        import_votes("tidy", path)


def test_equal_cells_of_other_types_are_other_cells() -> None:
    column = pd.Series([True, 1, 1.0, "1", None, [1]], dtype=object)
    assert mapped(column, written).tolist() == ["True", "1", "1", "1", None, "[1]"]


def test_a_column_is_of_numbers_or_of_text() -> None:
    def plain(*cells: object) -> pd.Series:
        return plain_column(pd.Series(cells, dtype=object))

    assert plain("c", 1.0, None).tolist() == ["c", "1", None]
    assert plain(1, None, 0.5).fillna(-1).tolist() == [1.0, -1.0, 0.5]
    assert plain(2**70, 1).tolist() == [float(2**70), 1.0]
    assert plain(1, 2).dtype == "int64"


def test_a_row_costs_few_bytes(tmp_path: Path) -> None:
    rows = 40_000
    items, judges = [f"i{n // 10}" for n in range(rows)], [f"j{n % 10}" for n in range(rows)]
    table = pd.DataFrame({"item": items, "judge": judges, "vote": [n % 2 for n in range(rows)]})
    table.to_csv(tmp_path / "v.csv", index=False)
    import_votes("tidy", tmp_path / "v.csv")  # imports modules
    tracemalloc.start()
    imported = import_votes("tidy", tmp_path / "v.csv")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert imported.votes.equals(table)
    assert peak < 250 * rows  # 700 where each row was an object
