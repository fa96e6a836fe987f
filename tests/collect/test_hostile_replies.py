"""Replies that no honest server sends: each costs its own question, and the key stays where it is."""

import asyncio
import base64
import gzip
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest

from judgebayes.collect.endpoint import Endpoint
from judgebayes.collect.items import TASKS
from judgebayes.collect.judges import Judge
from judgebayes.collect.ledger import Budget, Question, open_ledger
from judgebayes.collect.replies import Answer, without_key
from judgebayes.collect.sampling import Plan, Run

KEY = "sk-Zq8v1Lw3Xt5Rb7Nm9Kd2"
GOOD = {"choices": [{"message": {"content": "[[A]]"}, "finish_reason": "stop"}]}
LONG = b" " * (2**23 + 1)
PACKED = {"content_encoding": "gzip"}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)


@dataclass
class Asked:
    """What came of a question."""

    answer: Answer | None
    reason: str
    given_up: bool
    calls: int
    """The number of calls that count."""
    written: bytes


def ask(folder: Path, reply: httpx2.Response, timeout: float = 20.0) -> Asked:
    plan = Plan(
        items=(),
        judges=(),
        task=TASKS["valid"],
        template="",
        votes=1,
        body={},
        budget=Budget(),
        timeout=timeout,
        retries=0,
        concurrency=1,
        rule=None,
        class_votes=(),
    )

    async def asking() -> Asked:
        judge = Judge("j", "m", "http://h/v1", "SOME_KEY")
        endpoint = Endpoint(judge, run, transport=httpx2.MockTransport(lambda _: reply))
        async with endpoint.sdk:
            answer = await endpoint.ask(Question("j", "q", 1, "AB", "c"), "?")
        assert not ledger.under_way
        return Asked(answer, run.reasons.get("j", ""), endpoint.given_up, ledger.calls, b"")

    with open_ledger(folder / "v.jsonl", {}) as ledger:
        run = Run(plan, ledger, {}, 0)
        asked = asyncio.run(asking())
    return replace(asked, written=(folder / "v.jsonl.sqlite").read_bytes())


def streamed(content: bytes, status: int = 200, **headers: str) -> httpx2.Response:
    """A reply whose body is sent as it is, whatever its headers say."""

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 2**16):
            yield content[start : start + 2**16]

    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, headers=named, content=parts())


@pytest.mark.parametrize(
    ("content", "headers", "said"),
    [
        (gzip.compress(b" " * 2**25), PACKED, "content-encoding that was not asked for"),
        (json.dumps(GOOD).encode(), {"content_encoding": "br"}, "content-encoding"),
        (LONG, {}, "a reply of more than 8 MiB"),
        (b"[" * 5000 + b"]" * 5000, {}, "not a chat completion"),
        (b"[" * 200_000, {}, "not a chat completion"),
        (b"\xff\xfe", {"content_type": "application/json; charset=base64"}, "not a chat"),
        (b"<html>", {"content_type": "text/html; charset=zip"}, "not a chat completion (<html>"),
        (b"\x1b[31mred\0", {}, "not a chat completion ([31mred)"),
        (b'{"choices": 1' + b"0" * 5000 + b"}", {}, "not a chat completion"),
        (
            json.dumps(GOOD).encode().replace(b'"content"', b'"content": "[[B]]", "content"'),
            {},
            "not a chat completion",
        ),
    ],
)
def test_a_bad_reply_is_no_answer_and_counts(
    content: bytes, headers: dict[str, str], said: str, tmp_path: Path
) -> None:
    asked = ask(tmp_path, streamed(content, **headers))
    assert said in asked.reason
    assert asked.answer is None
    assert not asked.given_up
    assert asked.calls == 1


@pytest.mark.parametrize("headers", [PACKED, {"content_type": "text/html; charset=zip"}, {}])
@pytest.mark.parametrize(("status", "calls"), [(401, 0), (400, 0), (503, 0), (500, 1), (302, 1)])
def test_a_status_says_enough(
    status: int, calls: int, headers: dict[str, str], tmp_path: Path
) -> None:
    asked = ask(tmp_path, streamed(LONG if not headers else b"\xff", status, **headers))
    assert asked.reason.startswith(f"HTTP {status}")
    assert asked.given_up == (status == 401)
    assert asked.calls == calls


def test_a_reply_that_never_ends_is_not_waited_for(tmp_path: Path) -> None:
    async def parts() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.01)

    asked = ask(tmp_path, httpx2.Response(200, content=parts()), timeout=0.1)
    assert asked.reason == "no answer within 0.1 seconds"
    assert asked.calls == 1


@pytest.mark.parametrize(
    "spelling",
    [
        *(KEY, KEY[3:15], quote(KEY, safe=""), f"{KEY[:5]}***{KEY[-4:]}", f"...{KEY[-4:]}"),
        *(KEY[::-1], KEY[::-1][4:14], KEY.encode().hex(), KEY.encode().hex().upper()[::-1]),
        base64.b64encode(KEY.encode()).decode(),
    ],
)
def test_no_field_holds_the_key(spelling: str, tmp_path: Path) -> None:
    said = f"Your key is {spelling} ok"
    choice = {"message": {"content": said}, "finish_reason": said}
    reply = json.dumps({"choices": [choice], "model": said}).encode()
    asked = ask(tmp_path, streamed(reply))
    assert b"Your key is [key]" in asked.written
    for shown in (repr(asked.answer), asked.written.decode("latin-1")):
        assert KEY[-4:] not in shown
        assert KEY[3:9] not in shown
        assert spelling[2:14] not in shown
    escaped = "".join(f"\\u{ord(c):04x}" for c in said)
    for text in (said, f'{{"message": "{escaped}"}}'):
        reason = ask(tmp_path, streamed(text.encode(), 400)).reason
        assert "Your key is" in reason
        assert KEY[-4:] not in reason


@pytest.mark.parametrize("text", ["llama3.1:8b", "The llama.cpp answer is better. See v1.2"])
def test_words_that_resemble_a_short_key_stay(text: str) -> None:
    assert without_key(text, "ollama") == text
