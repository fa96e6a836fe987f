"""Whatever a file holds, a reader returns votes or raises an error of one sentence."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fuzz.seeds import OPTIONS, VALID

from judgebayes.errors import JudgeBayesError
from judgebayes.io.formats import import_votes
from judgebayes.io.options import Options

ABSENT = object()
DEEP: Any = []
for _ in range(80):
    DEEP = [DEEP]
ODD: tuple[Any, ...] = (
    *(None, ABSENT, True, 10**400, [[]], {"a": 1}, "\ud83d", float("nan"), -1, "", [], DEEP),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        for name in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[name], (*path, name))


def changed(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    value = copy.copy(value)
    if odd is ABSENT and len(path) == 1:
        del value[path[0]]
        return value
    value[path[0]] = changed(value[path[0]], path[1:], odd)
    return value


@pytest.mark.parametrize("form", VALID)
def test_one_odd_value_anywhere_gives_votes_or_one_sentence(form: str, tmp_path: Path) -> None:
    name, whole = VALID[form]
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    read = 0
    for number, place in enumerate(places(whole)):
        for step in (0, 4, 7):
            odd = ODD[(number + step) % len(ODD)]
            if odd is ABSENT and not place:
                continue
            content = changed(whole, place, odd)
            lines = name.endswith("jsonl") and isinstance(content, list)
            path.write_text("\n".join(map(json.dumps, content)) if lines else json.dumps(content))
            for options in OPTIONS.get(form, (Options(),)):
                try:
                    imported = import_votes(form, path, options)
                except JudgeBayesError:
                    continue
                assert imported.words()
                imported.votes.to_csv(tmp_path / "votes.csv")
                read += 1
    assert read > 0
