"""A judge behind an OpenAI-compatible endpoint, asked through the OpenAI SDK.

The SDK sends a failed request again; below it, each attempt is booked before it is sent, a reply is
measured while it is read, and kept before anything else.

Judges behind OpenAI-compatible endpoints, as a user names them: models, addresses and keys.
"""

import asyncio
import os
import re
import sqlite3
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2
import openai

from judgebayes.collect.ledger import Question
from judgebayes.collect.replies import Answer, UnreadableError, answer_of, excerpt
from judgebayes.errors import JudgeBayesError

if TYPE_CHECKING:
    from judgebayes.collect.sampling import Run

LOCAL = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Judge:
    """A model at an address, and the environment variable with its key."""

    name: str
    """The judge's name in the votes."""
    model: str
    url: str
    """The base address, without `/chat/completions`."""
    key_env: str | None = None
    """The environment variable with its key; None if it needs no key."""

    def key(self) -> str | None:
        """Return the key.

        Raises
        ------
        JudgeBayesError
            If the variable is not set, or contains characters that a header cannot carry.
        """
        if self.key_env is None:
            return None
        key = os.environ.get(self.key_env, "").strip()
        if not key:
            raise JudgeBayesError(
                f"The environment variable {self.key_env} is not set; it must contain the key of "
                f"judge {self.name!r}."
            )
        if not (key.isascii() and key.isprintable()):
            raise JudgeBayesError(
                f"The environment variable {self.key_env} contains characters that are not "
                "allowed in a key."
            )
        return key


def parse_judges(texts: Sequence[str], key_envs: Sequence[str]) -> list[Judge]:
    """Return judges from `[ALIAS=]MODEL@URL`, and the variables of their keys from `[JUDGE=]VARIABLE`.

    The address follows the last `@http`, so a model's name may contain an `@`.

    >>> parse_judges(["small=org/m@http://localhost:8000/v1"], [])
    [Judge(name='small', model='org/m', url='http://localhost:8000/v1', key_env=None)]

    Raises
    ------
    JudgeBayesError
        If a judge does not have this form, two have the same name, an address contains a password or a
        query, or a key belongs to no judge.
    """
    judges = [_parse(text) for text in texts]
    names = [judge.name for judge in judges]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise JudgeBayesError(
            f"Two judges are named {duplicate!r}; give one of them another name: --judge "
            f"NAME={duplicate}@URL."
        )
    keys: dict[str, str] = {}
    for text in key_envs:
        name, _, variable = text.rpartition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable) or (name and name not in names):
            # This text may be a key, so the message does not repeat it.
            raise JudgeBayesError(
                "--key-env takes the NAME of an environment variable, or JUDGE=NAME for one judge of "
                f"{', '.join(map(repr, names))}; never the key itself."
            )
        keys |= {name: variable} if name else {n: variable for n in names if n not in keys}
    return [Judge(j.name, j.model, j.url, keys.get(j.name)) for j in judges]


def _parse(text: str) -> Judge:
    match = re.fullmatch(r"(?:([^=@]+)=)?(.+)@(https?://.+)", text.strip())
    if match is None:
        raise JudgeBayesError(
            f"--judge {_without_secrets(text)!r} is not NAME@URL; examples are "
            "gpt-5.4@https://api.openai.com/v1, and model@http://localhost:8000/v1 for a local server."
        )
    alias, model, url = match.groups()
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise JudgeBayesError(
            f"The address of judge {alias or model!r} is wrong: {error}."
        ) from error
    if parts.username or parts.password or parts.query or parts.fragment:
        raise JudgeBayesError(
            f"The address of judge {alias or model!r} contains a password, a query or a fragment; "
            "put the key into an environment variable (--key-env NAME)."
        )
    if not parts.hostname:
        raise JudgeBayesError(f"The address of judge {alias or model!r} has no host.")
    url = re.sub(r"/chat/completions/?$", "", url).rstrip("/")
    return Judge(alias or model, model, url)


def _without_secrets(text: str) -> str:
    return re.sub(r"//[^/@]*@|\?.*$", "//", text)


def in_the_clear(judge: Judge) -> bool:
    """Tell whether a judge's key would be sent unencrypted to another machine."""
    parts = urlsplit(judge.url)
    return judge.key_env is not None and parts.scheme == "http" and parts.hostname not in LOCAL


MAX_REPLY = 8 * 2**20
"""Bytes of a reply; a longer one is not read further."""
MAX_FAILURES = 5
"""After this many consecutive questions without an answer, a judge is not asked again."""
FATAL = frozenset({401, 402, 403, 404, 405})
"""HTTP statuses after which the server will not answer any request."""


class _LostError(httpx2.RequestError):
    """No reply that can be read; the message says why."""


_ASKED: ContextVar[Question] = ContextVar("_ASKED")
"""The question that a task asks."""


class Endpoint:
    """The client of one judge, shared by all its workers.

    Raises
    ------
    JudgeBayesError
        If the key is missing, or the address is not valid.
    """

    def __init__(self, judge: Judge, run: "Run") -> None:
        self.judge, self.run = judge, run
        self.key = judge.key()
        self.failures = 0
        """Number of consecutive questions without an answer."""
        self.given_up = False
        try:
            self.sdk = openai.AsyncOpenAI(
                api_key=self.key or "none",
                base_url=judge.url,
                timeout=run.plan.timeout,
                max_retries=run.plan.retries,
                http_client=_Attempts(run, self.key),
            )
        except httpx2.InvalidURL as error:
            raise JudgeBayesError(
                f"The address of judge {judge.name!r} is not valid: {error}."
            ) from error

    async def ask(self, question: Question, prompt: str) -> Answer | None:
        """Return the answer to a question; None if the server refuses, or fails too often.

        Raises
        ------
        asyncio.CancelledError
            If the run has ended.
        """
        _ASKED.set(question)
        try:
            await self.sdk.chat.completions.with_raw_response.create(
                model=self.judge.model,
                messages=[{"role": "user", "content": prompt}],
                extra_body=self.run.plan.body,
                extra_headers={} if self.key else {"Authorization": openai.Omit()},
            )
            self.failures = 0
            return self.run.ledger.replies[question]
        except openai.APIStatusError as error:
            reason = f"HTTP {error.status_code}{excerpt(error.response.content, self.key)}"
            self.given_up |= error.status_code in FATAL
        except Exception as error:
            # The boundary: whatever a server sends, it costs this question and no other.
            cause = error.__cause__ or error
            known = isinstance(cause, _LostError)
            reason = str(cause) if known else f"the connection broke ({type(cause).__name__})"
        attempts = self.run.attempts[question]
        tries = f" after {attempts} attempts" if attempts > 1 else ""
        self.run.unanswered[question.judge] += 1
        self.run.reasons[question.judge] = reason + tries
        self.failures += 1
        self.given_up |= self.failures >= MAX_FAILURES
        return None


class _Attempts(httpx2.AsyncClient):
    """The HTTP client of the SDK: each request that it sends is one attempt to get an answer."""

    def __init__(self, run: "Run", key: str | None) -> None:
        limits = httpx2.Limits(max_connections=run.plan.concurrency)
        # Packed replies could unpack to gigabytes.
        super().__init__(headers={"Accept-Encoding": "identity"}, limits=limits)
        self.run, self.key = run, key

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Book an attempt, send it, and keep the answer.

        Raises
        ------
        httpx2.RequestError
            If no reply came that can be read, so that the SDK tries again.
        asyncio.CancelledError
            If the run has ended.
        """
        question, ledger, seconds = _ASKED.get(), self.run.ledger, self.run.plan.timeout
        try:
            call = await self.run.book(question)
            try:
                async with asyncio.timeout(seconds):
                    reply = await super().send(request, **options | {"stream": True})
                    content = await _body(reply)
                if reply.is_success:
                    ledger.answered(call, question, answer_of(content, self.key))
            except httpx2.ConnectError as error:
                ledger.refused(call)
                words = f"no connection to {request.url} ({type(error).__name__})"
                raise _LostError(words, request=request) from None
            except (TimeoutError, httpx2.TimeoutException):
                raise _LostError(f"no answer within {seconds:g} seconds", request=request) from None
            except UnreadableError as error:
                raise _LostError(str(error), request=request) from None
            finally:
                ledger.under_way.discard(call)
            status = reply.status_code
            if status in (503, 529) or (400 <= status < 500 and status != 408):
                ledger.refused(call)
        except sqlite3.Error as error:  # no answer may be paid for that cannot be kept
            self.run.failed = error
            self.run.why.append(str(error))
            raise asyncio.CancelledError from None
        # Nothing else of a reply reaches the SDK.
        named = ("retry-after", "retry-after-ms")
        headers = {name: reply.headers[name] for name in named if name in reply.headers}
        return httpx2.Response(status, headers=headers, content=content, request=request)


async def _body(reply: httpx2.Response) -> bytes:
    """Return the bytes of a reply; none if it is too long or packed, and its status says enough.

    Raises
    ------
    UnreadableError
        If an answer is too long, or packed although that was not asked for.
    """
    content, wrong = bytearray(), None
    if reply.headers.get("content-encoding", "identity").strip().casefold() != "identity":
        wrong = "a reply in a content-encoding that was not asked for"
    try:
        async for part in reply.aiter_raw():
            content += part
            if len(content) > MAX_REPLY:
                wrong = f"a reply of more than {MAX_REPLY / 2**20:.0f} MiB"
                break
    finally:
        await reply.aclose()
    if wrong is not None and reply.is_success:
        raise UnreadableError(wrong)
    return b"" if wrong is not None else bytes(content)
