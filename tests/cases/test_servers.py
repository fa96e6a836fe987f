"""What a server sends takes time that is linear in its length."""

import json
import time

import pytest

from judgebayes.collect import replies
from judgebayes.collect.replies import MAX_TEXT, answer_of, without_key

KEY = "sk-proj-8Zq1wL3vX5tR7bN9mKd2"


@pytest.mark.parametrize(
    "part", [".", "*", "sk-p", "sk-p.", "9Kd2", ".9Kd2", "mKd2.", KEY, "[key].", "a"]
)
def test_a_long_text_is_cleaned_in_linear_time(part: str) -> None:
    """Twenty thousand dots once took 8 seconds; 300,000 characters of anything take less."""
    text = part * (300_000 // len(part))
    start = time.process_time()
    cleaned = without_key(text, KEY)
    assert time.process_time() - start < 5
    assert KEY not in cleaned


def test_a_text_is_cut_before_it_is_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def counting(text: str, key: str | None) -> str:
        lengths.append(len(text))
        return without_key(text, key)

    monkeypatch.setattr(replies, "without_key", counting)
    # The key begins before the end of what is kept.
    text = "." * (MAX_TEXT - 10) + KEY + "x" * 3_000_000
    reply = {
        "choices": [{"message": {"content": text}, "finish_reason": "f" * 1_000_000}],
        "model": "m" * 1_000_000,
    }
    answer = answer_of(json.dumps(reply).encode(), KEY)
    assert max(lengths) < MAX_TEXT + 100_000
    assert answer.cut
    assert len(answer.text) <= MAX_TEXT
    assert not any(KEY[i : i + 6] in answer.text for i in range(len(KEY) - 5))
    assert sum(length > 1_000_000 for length in lengths) == 1
