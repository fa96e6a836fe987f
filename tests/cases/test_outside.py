"""Studies in the shape of files in public repositories, made by somebody who had not read the reader.

`outside/truth.json` names the repository and the right reading of each. Texts and votes are made up.
"""

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judgebayes as jb
from judgebayes.errors import AmbiguousStudy, JudgeBayesError

FILES = Path(__file__).parent / "outside"
TRUTH: dict[str, dict[str, Any]] = json.loads((FILES / "truth.json").read_text())
SAID = {
    "02_fastchat_mtbench_pair": "that have no votes",
    "04_judge_bench_qags": "save the votes as a list of objects",
    "05_langfuse_scores": "name it with --label",
    "06_alpaca_eval_weighted": "is the item",
    "07_mturk_batch": "Which column is the vote",
    "08_qualtrics_loop": "Which column is the vote",
    "09_promptfoo_csv": "has two columns named 'Grader Reason'",
    "10_crowd4u_longform": "are 'none': they are read as missing. If it is a class",
}
"""What is said of studies that are not read: what is open, and what to do."""


def reading(data: Any) -> tuple[int, int, list[int], list[int]]:
    """Return the numbers of items and judges, and how many votes and labels each class has."""
    index, labels = np.asarray(data.votes.index), data.labels
    counts = (Counter(each[each >= 0].tolist()) for each in (index, labels))
    votes, given = (sorted(each.values()) for each in counts)
    return len(data.coding.items), len(data.coding.judges), votes, given


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_a_study_is_read_rightly_or_asked_about(name: str) -> None:
    true, folder = TRUTH[name], FILES / name
    paths = folder / true["votes"], true["labels"] and folder / true["labels"]
    right = [true["items"], len(true["judges"])]
    right += [sorted((true[what] or {}).values()) for what in ("votes_by_class", "labels_by_class")]
    ways, said = [], ""
    try:
        ways = [reading(jb.read(*paths))]
    except AmbiguousStudy as question:
        said = str(question)
        for each in question.candidates:
            with suppress(JudgeBayesError):
                ways.append(reading(jb.read(*paths, **each.options)))
    except JudgeBayesError as error:
        said = str(error)
    if name in SAID:
        assert SAID[name] in said
    else:
        assert [*map(list, ways)].count(right) == 1
