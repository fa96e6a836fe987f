"""The guide to writing your own methods: its code blocks run and print the documented output."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_guide import agree, blocks, printed

from judgebayes.inference import registry

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "extending.md"


@pytest.fixture
def forgetting() -> Iterator[None]:
    """Remove the guide's declarations afterwards."""
    registries = (registry.AGGREGATORS, registry.CALIBRATORS, registry.FITTED)
    before = [dict(each) for each in registries]
    yield
    for each, own in zip(registries, before, strict=True):
        each.clear()
        each.update(own)


@pytest.mark.usefixtures("forgetting")
def test_the_guide_runs_and_prints_the_documented_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for kind, code, expected in blocks(GUIDE.read_text(encoding="utf-8")):
        output = printed(kind, code, names)
        assert agree(expected, output), output
