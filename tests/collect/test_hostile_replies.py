"""Replies that no honest server sends: each costs its own question, and the key stays where it is."""

import base64
import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from endpoint import Reply, serving
from runner import CliRunner

from judgebayes import cli
from judgebayes.collect.replies import without_key

KEY = "sk-Zq8v1Lw3Xt5Rb7Nm9Kd2"
GOOD = {"choices": [{"message": {"content": "[[A]]"}, "finish_reason": "stop"}]}
LONG = b" " * (2**23 + 1)
PACKED = {"content_encoding": "gzip"}
CHARSET = {"content_type": "application/json; charset=base64"}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)


def ask(folder: Path, body: str | bytes, status: int = 200, **headers: str) -> tuple[str, int]:
    """Return what `collect` prints about a reply to its only question, and how many calls count."""
    (folder / "items.jsonl").write_text('{"id": "q", "prompt": "?", "response": "!"}')
    out = folder / f"v{len([*folder.iterdir()])}.jsonl"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with serving(lambda *_: Reply(status=status, body=body, headers=named)) as fake:
        words = ["collect", folder / "items.jsonl", "--judge", f"j@{fake.url}", "-n", "1"]
        words += ["--key-env", "SOME_KEY", "--retries", "0", "-o", out]
        said = CliRunner().invoke(cli.app, list(map(str, words))).output
    with closing(sqlite3.connect(f"{out}.sqlite")) as database:
        return said, database.execute("SELECT count(*) FROM calls").fetchone()[0]


@pytest.mark.parametrize(
    ("content", "headers", "said"),
    [
        (gzip.compress(b" " * 2**25), PACKED, "content-encoding that was not asked for"),
        (json.dumps(GOOD).encode(), {"content_encoding": "br"}, "content-encoding"),
        (LONG, {}, "a reply of more than 8 MiB"),
        (b"[" * 5000 + b"]" * 5000, {}, "not a chat completion"),
        (b"[" * 200_000, {}, "not a chat completion"),
        (b"\xff\xfe", CHARSET, "not a chat"),
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
    printed, calls = ask(tmp_path, content, **headers)
    assert "j did not answer 1 request(s): a" in printed
    assert said in printed
    assert calls == 1


@pytest.mark.parametrize(("body", "headers"), [(b"\xff", PACKED), (b"\xff", CHARSET), (LONG, {})])
@pytest.mark.parametrize(("status", "calls"), [(401, 0), (400, 0), (503, 0), (500, 1), (302, 1)])
def test_a_status_says_enough(
    status: int, calls: int, body: bytes, headers: dict[str, str], tmp_path: Path
) -> None:
    said, counted = ask(tmp_path, body, status, **headers)
    assert f"j did not answer 1 request(s): HTTP {status}" in said
    assert counted == calls


@pytest.mark.parametrize(
    "spelling",
    [
        *(KEY, KEY[3:15], quote(KEY, safe=""), f"{KEY[:5]}***{KEY[-4:]}", f"...{KEY[-4:]}"),
        *(KEY[::-1], KEY[::-1][4:14], KEY.encode().hex(), KEY.encode().hex().upper()[::-1]),
        base64.b64encode(KEY.encode()).decode(),
    ],
)
def test_no_field_holds_the_key(spelling: str, tmp_path: Path) -> None:
    words = f"Your key is {spelling} ok"
    choice = {"message": {"content": words}, "finish_reason": words}
    printed, _ = ask(tmp_path, json.dumps({"choices": [choice], "model": words}))
    written = b"".join(path.read_bytes() for path in tmp_path.glob("v*")).decode("latin-1")
    escaped = "".join(f"\\u{ord(c):04x}" for c in words)
    reasons = [ask(tmp_path, text, 400)[0] for text in (words, f'{{"message": "{escaped}"}}')]
    assert all("Your key is [key]" in shown for shown in (written, *reasons))
    for shown in (written, printed, *reasons):
        assert KEY[-4:] not in shown
        assert KEY[3:9] not in shown
        assert spelling[2:14] not in shown


@pytest.mark.parametrize("text", ["llama3.1:8b", "The llama.cpp answer is better. See v1.2"])
def test_words_that_resemble_a_short_key_stay(text: str) -> None:
    assert without_key(text, "ollama") == text
