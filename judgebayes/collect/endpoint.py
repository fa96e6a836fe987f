"""A judge behind an OpenAI-compatible endpoint, asked through the OpenAI SDK.

The SDK sends a failed request again; below it, each attempt is booked before it is sent, a reply is
measured while it is read, and kept before anything else.
"""

import asyncio
import sqlite3
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import httpx2
import openai

from judgebayes.collect.items import Judge
from judgebayes.collect.ledger import Question
from judgebayes.collect.replies import Answer, UnreadableError, answer_of, excerpt
from judgebayes.errors import JudgeBayesError

if TYPE_CHECKING:
    from judgebayes.collect.sampling import Run

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
