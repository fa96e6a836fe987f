"""Names and tables that are far longer than those of votes: refused in one sentence."""

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.io import tables
from judgebayes.io.tables import read_table
from judgebayes.votes import encode
from judgebayes.votes.columns import MAX_NAME


@pytest.mark.parametrize("column", ["item", "judge", "vote"])
def test_a_long_name_is_refused_and_not_shown(column: str) -> None:
    row = {"item": "a", "judge": "j", "vote": 1}
    table = pd.DataFrame([row, row | {column: "x" * (MAX_NAME + 1)}])
    with pytest.raises(JudgeBayesError, match="has a text of 10,001 characters") as error:
        encode(table)
    assert "x" * 41 not in str(error.value)


def test_a_table_of_too_many_columns(tmp_path: Path) -> None:
    names = [f"j{n}" for n in range(tables.MAX_COLUMNS)]
    (tmp_path / "v.csv").write_text(f"item,{','.join(names)}\n{'1,' * len(names)}1\n")
    (tmp_path / "v.jsonl").write_text(json.dumps(dict.fromkeys(["item", *names], 1)))
    pq.write_table(pa.table({name: [1] for name in ["item", *names]}), tmp_path / "v.parquet")
    for kind in ("csv", "jsonl", "parquet"):
        with pytest.raises(JudgeBayesError, match="has 10,001 columns; a table may have at most"):
            read_table(tmp_path / f"v.{kind}")
