"""What a server sends takes time that is linear in its length, and never the loop of the requests."""

import asyncio
import json
import time
from collections.abc import AsyncIterator

import httpx2
import pytest

from judgebayes.collect import replies
from judgebayes.collect.endpoint import Endpoint, Judge, NoAnswerError, RetryPolicy
from judgebayes.collect.replies import MAX_TEXT, Answer, answer_of, without_key

KEY = "sk-proj-8Zq1wL3vX5tR7bN9mKd2"


class Free:
    """A budget without limits."""

    def book(self, what: str) -> bool:  # noqa: ARG002
        return True

    def failed(self, what: str, *, charged: bool) -> None:
        pass


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


def test_the_loop_of_requests_runs_while_a_reply_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that takes seconds to read: others go on, and the time limit counts."""
    monkeypatch.setenv("SOME_KEY", KEY)
    content = json.dumps({"choices": [{"message": {"content": "[[A]]"}}]}).encode()

    def slow(answer: Answer) -> str:
        time.sleep(0.6)
        return answer.text

    async def asking(timeout: float) -> tuple[str, int]:
        ticks = 0

        async def ticking() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        async def parts() -> AsyncIterator[bytes]:
            yield content

        transport = httpx2.MockTransport(lambda _: httpx2.Response(200, content=parts()))
        async with httpx2.AsyncClient(transport=transport) as client:
            endpoint = Endpoint(
                Judge("j", "m", "http://h/v1", "SOME_KEY"),
                client,
                RetryPolicy(timeout=timeout, retries=0),
                {},
                asyncio.Event(),
            )
            clock = asyncio.create_task(ticking())
            try:
                return await endpoint.ask("?", "j on q", Free(), slow), ticks
            finally:
                clock.cancel()

    said, ticks = asyncio.run(asking(30.0))
    assert said == "[[A]]"
    assert ticks > 10
    with pytest.raises(NoAnswerError, match=r"no answer within 0\.1 seconds"):
        asyncio.run(asking(0.1))
