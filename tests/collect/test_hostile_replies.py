"""Replies that no honest server sends: each costs its own question, and the key stays where it is."""

import asyncio
import gzip
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from judgebayes.collect.endpoint import Endpoint, Judge, NoAnswerError, RetryPolicy
from judgebayes.collect.ledger import Budget, Ledger, Spending
from judgebayes.collect.replies import without_key

httpx2 = pytest.importorskip("httpx2")
KEY = "sk-Zq8v1Lw3Xt5Rb7Nm9Kd2"
GOOD = {"choices": [{"message": {"content": "[[A]]"}, "finish_reason": "stop"}]}
BOMB = gzip.compress(b" " * 2**25)


class Free(Spending):
    """A budget without end, and without a file."""

    def __init__(self) -> None:
        pass

    def book(self, what: str) -> bool:  # noqa: ARG002
        return True

    def failed(self, what: str, *, charged: bool) -> None:
        pass


def ask(reply: "httpx2.Response", monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("SOME_KEY", KEY)

    async def asking() -> object:
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: reply)) as client:
            judge = Judge("j", "m", "http://h/v1", "SOME_KEY")
            policy = RetryPolicy(retries=0)
            return await Endpoint(judge, client, policy, {}, asyncio.Event()).ask(
                "?", "j on q", Free(), lambda answer: answer
            )

    return asyncio.run(asking())


def streamed(content: bytes, status: int = 200, **headers: str) -> "httpx2.Response":
    """A reply whose body is sent as it is, whatever its headers say."""

    async def parts():  # type: ignore[no-untyped-def]
        yield content

    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, headers=named, content=parts())


@pytest.mark.parametrize(
    ("content", "headers"),
    [
        (b"no gzip", {"content_encoding": "gzip"}),
        (b"no brotli", {"content_encoding": "br"}),
        (b"[" * 5000 + b"]" * 5000, {}),
        (b"[" * 200_000, {}),
        (b"\xff\xfe", {"content_type": "application/json; charset=base64"}),
        (b"<html>", {"content_type": "text/html; charset=zip"}),
        (b'{"choices": 1' + b"0" * 5000 + b"}", {}),
        (json.dumps(GOOD).encode().replace(b'"content"', b'"content": "[[B]]", "content"'), {}),
        (BOMB, {"content_encoding": "gzip"}),
    ],
)
def test_a_bad_reply_is_no_answer(
    content: bytes, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NoAnswerError) as error:
        ask(streamed(content, **headers), monkeypatch)
    assert not error.value.fatal
    assert (content is BOMB) == ("a reply of more than 8 MiB" in str(error.value))


@pytest.mark.parametrize(
    "spelling",
    [
        *(KEY, KEY[3:15], quote(KEY, safe=""), f"{KEY[:5]}***{KEY[-4:]}", f"...{KEY[-4:]}"),
        *(KEY[::-1], KEY[::-1][4:14], KEY.encode().hex(), KEY.encode().hex().upper()[::-1]),
    ],
)
def test_no_field_holds_the_key(spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = f"Your key is {spelling} ok"
    choice = {"message": {"content": said}, "finish_reason": said}
    reply = json.dumps({"choices": [choice], "model": said}).encode()
    answer = ask(streamed(reply), monkeypatch)
    shown = repr(answer)
    assert "ok" in shown
    assert KEY[-4:] not in shown
    assert KEY[3:9] not in shown
    assert spelling[2:14] not in shown
    escaped = "".join(f"\\u{ord(c):04x}" for c in said)
    for text in (said, f'{{"message": "{escaped}"}}'):
        with pytest.raises(NoAnswerError) as error:
            ask(streamed(text.encode(), 400), monkeypatch)
        assert "Your key is" in str(error.value)
        assert KEY[-4:] not in str(error.value)


@pytest.mark.parametrize("text", ["llama3.1:8b", "The llama.cpp answer is better. See v1.2"])
def test_words_that_resemble_a_short_key_stay(text: str) -> None:
    assert without_key(text, "ollama") == text


def test_lost_calls_count_in_later_runs(tmp_path: Path) -> None:
    made = 0
    for _ in range(3):
        with Ledger(tmp_path / "v.jsonl", {}) as ledger:
            spending = Spending.of(Budget(calls=4), ledger, None)
            while spending.book("j on q"):
                made += 1
                spending.failed("j on q", charged=True)
    assert made == 4


def test_refused_calls_are_taken_back(tmp_path: Path) -> None:
    with Ledger(tmp_path / "v.jsonl", {}) as ledger:
        spending = Spending.of(Budget(1), ledger, None)
        assert spending.book("j on q")
        spending.failed("j on q", charged=False)
        assert spending.book("j on q")
        assert not spending.book("j on q")


FULL = """
import resource, sys
from pathlib import Path
from judgebayes.collect.ledger import Ledger, Line
from judgebayes.errors import JudgeBayesError
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
line = Line("q", "j", "A", 1, "AB", None, None, "x" * 1000, None, 1, 1, None, "c")
try:
    with Ledger(Path(sys.argv[1]), {}) as ledger:
        for _ in range(9):
            ledger.append(line)
except JudgeBayesError as error:
    print(error)
"""


def test_a_full_disk_is_one_sentence_and_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    said = subprocess.run(
        [sys.executable, "-c", FULL, path], capture_output=True, text=True, check=True
    )
    assert "cannot be written" in said.stdout
    assert said.stderr == ""
    assert [json.loads(line)["item"] for line in path.read_text().splitlines()] == ["q", "q"]
