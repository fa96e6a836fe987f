"""What a server sends takes time that is linear in its length."""

import json
import time

import pytest

from judgebayes.collect import replies
from judgebayes.collect.replies import MAX_TEXT, UnreadableError, answer_of, without_key

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


def test_what_is_too_long_is_not_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def counting(text: str, key: str | None) -> str:
        lengths.append(len(text))
        return without_key(text, key)

    def reply(text: str) -> bytes:
        choice = {"message": {"content": text}, "finish_reason": "f" * 1_000_000}
        return json.dumps({"choices": [choice], "model": "m" * 1_000_000}).encode()

    monkeypatch.setattr(replies, "without_key", counting)
    answer = answer_of(reply("x" * (MAX_TEXT - len(KEY)) + KEY), KEY)
    assert answer.text.endswith("x[key]")
    assert answer.finish is None
    assert answer.answered_by is None
    with pytest.raises(UnreadableError, match="an answer of more than 1,048,576 characters"):
        answer_of(reply("x" * (MAX_TEXT + 1)), KEY)
    assert lengths == [MAX_TEXT]
