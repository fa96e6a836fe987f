"""The rows of a table of votes as every command reads them."""

from pathlib import Path
from typing import Any

import pandas as pd

from judgebayes.votes.classes import canonical, mapped, written
from judgebayes.workflow.asking import open_files
from judgebayes.workflow.options import ReadRequest
from judgebayes.workflow.sources import Opened


def opened(path: Path, **how: Any) -> Opened:
    """Return a file with the columns and options that are found, and those that are given."""
    return open_files(ReadRequest(votes=path, **how))


def rows_of(given: Opened) -> pd.DataFrame:
    """Return the item, the judge and the vote of each row, None without a vote."""
    judge = given.table[given.judge] if given.judge else pd.Series("judge", given.table.index)
    return pd.DataFrame(
        {
            "item": mapped(given.items, written),
            "judge": mapped(judge, written),
            "vote": mapped(given.votes, canonical),
        }
    )


def votes_of_table(path: Path, **how: Any) -> dict[tuple[str, str], object]:
    """Return the vote by item and judge, None without one."""
    rows = rows_of(opened(path, **how))
    assert not rows.duplicated(["item", "judge"]).any()
    return dict(zip(zip(rows["item"], rows["judge"], strict=True), rows["vote"], strict=True))
