"""A judge behind an OpenAI-compatible endpoint: requests, answers and failures."""

import asyncio
import email.utils
import importlib.util
import os
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from judgebayes.collect.ledger import Spending
from judgebayes.collect.replies import (
    ACCEPT_ENCODING,
    Answer,
    UnreadableError,
    answer_of,
    body_of,
    excerpt,
)
from judgebayes.errors import JudgeBayesError

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
"""HTTP statuses after which the server may answer the same request later."""
FATAL = frozenset({401, 402, 403, 404, 405})
"""HTTP statuses after which the server will not answer any request."""
REFUSED = frozenset({429, 503, 529})
"""HTTP statuses that say, like 4xx except a timeout, that the request was not answered."""
MAX_PAUSE = 60.0
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
    parts = urlsplit(url)
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


def require_client() -> None:
    """Check, before the first request, that the HTTP client is installed.

    Raises
    ------
    JudgeBayesError
        If the HTTP client is not installed.
    """
    if importlib.util.find_spec("httpx2") is None:
        raise JudgeBayesError(
            "judgebayes collect needs an HTTP client: pip install 'judgebayes[collect]'."
        )


@dataclass(frozen=True)
class RetryPolicy:
    """Timeouts and retries of requests."""

    timeout: float = 180.0
    """Seconds for one complete answer."""
    retries: int = 6
    first_pause: float = 1.0
    """Seconds before the first retry; doubled before each further retry, up to a minute."""
    longest_wait: float = 600.0
    """Seconds; a server that requests a longer pause counts as failed."""

    def pause(self, attempt: int) -> float:
        """Return the seconds before retry number `attempt` (from 0), with jitter between 50 and 100 %.

        The jitter spreads the retries of workers that failed at the same time.
        """
        full = min(self.first_pause * 2**attempt, max(MAX_PAUSE, self.first_pause))
        return full * random.uniform(0.5, 1.0)


class NoAnswerError(Exception):
    """No answer after all retries; `fatal` if no other request would get an answer."""

    def __init__(self, reason: str, *, fatal: bool = False) -> None:
        super().__init__(reason)
        self.fatal = fatal


class AbandonedError(NoAnswerError):
    """No answer because the run ends."""


class OverBudgetError(NoAnswerError):
    """No request because the budget does not allow another one."""


@dataclass(eq=False)
class _FailedError(Exception):
    """A failed attempt."""

    reason: str
    charged: bool
    """Whether the server may have answered, and charged for, an answer that did not arrive."""
    wait: float | None = None
    """The seconds until the next attempt, if the server says so."""
    final: bool = False
    """Whether no attempt may follow."""
    fatal: bool = False
    """Whether no other request would get an answer either."""


@dataclass
class Endpoint:
    """The client of one judge, shared by all workers."""

    judge: Judge
    client: "httpx2.AsyncClient"
    retry_policy: RetryPolicy
    body: Mapping[str, Any]
    """Fields of every request beside the model and the messages."""
    ended: asyncio.Event
    """Set when the run ends, so that no worker waits for another attempt."""
    retried: int = 0
    _free_at: float = 0.0
    """Time from which the server accepts requests again after it asked for a pause; for all workers."""
    _secret: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Read the key."""
        self._secret = self.judge.key()

    async def ask(
        self, prompt: str, what: str, spending: Spending, read: Callable[[Answer], T]
    ) -> T:
        """Return what `read` makes of the answer to a prompt, whose attempts are booked as `what`.

        It is called in a thread, so that no text that a server sends keeps other requests waiting.

        Raises
        ------
        OverBudgetError
            If the budget does not allow another attempt.
        NoAnswerError
            If the server refuses, or fails more often than the policy allows.
        """
        for attempt in range(self.retry_policy.retries + 1):
            while (wait := self._free_at - time.monotonic()) > 0:
                await self._rest(wait)
            if not spending.book(what):
                raise OverBudgetError("the budget does not allow another request")
            try:
                return await self._attempt(prompt, read)
            except _FailedError as failed:
                spending.failed(what, charged=failed.charged)
                if failed.final or failed.fatal:
                    raise NoAnswerError(failed.reason, fatal=failed.fatal) from None
                if attempt == self.retry_policy.retries:
                    tries = f"after {attempt + 1} attempts" if attempt else "at the first attempt"
                    raise NoAnswerError(f"{failed.reason} {tries}") from None
                pause = self.retry_policy.pause(attempt)
                if failed.wait is not None:
                    if failed.wait > self.retry_policy.longest_wait:
                        raise NoAnswerError(
                            f"{failed.reason}, and requested a pause of {failed.wait:.0f} seconds",
                            fatal=True,
                        ) from None
                    self._free_at = max(self._free_at, time.monotonic() + failed.wait)
                    # Jitter, so that waiting workers do not all continue at once.
                    pause = failed.wait + random.uniform(0, 0.1) * pause
                self.retried += 1
                await self._rest(pause)
        raise AssertionError("unreachable")

    async def _rest(self, seconds: float) -> None:
        """Wait; raise AbandonedError if the run ends meanwhile."""
        try:
            async with asyncio.timeout(seconds):
                await self.ended.wait()
        except TimeoutError:
            return
        raise AbandonedError("the run has ended")

    async def _attempt(self, prompt: str, read: Callable[[Answer], T]) -> T:
        """Send a request and read its reply; every failure is one of this attempt only."""
        import httpx2

        try:
            async with asyncio.timeout(self.retry_policy.timeout):
                return await self._exchange(prompt, read)
        except _FailedError:
            raise
        except TimeoutError:
            reason = f"no answer within {self.retry_policy.timeout:g} seconds"
            raise _FailedError(reason, charged=True) from None
        except UnreadableError as error:
            raise _FailedError(str(error), charged=True) from None
        except httpx2.InvalidURL as error:
            reason = f"{self.judge.url} is not a valid address ({error})"
            raise _FailedError(reason, charged=False, fatal=True) from None
        except httpx2.ConnectError as error:
            reason = f"no connection to {self.judge.url} ({type(error).__name__})"
            raise _FailedError(reason, charged=False) from None
        except httpx2.TransportError as error:
            reason = f"the connection broke ({type(error).__name__})"
            raise _FailedError(reason, charged=True) from None
        except Exception as error:
            # The boundary: whatever a server sends, it costs this question and no other.
            reason = f"a reply that cannot be read ({type(error).__name__})"
            raise _FailedError(reason, charged=True) from None

    async def _exchange(self, prompt: str, read: Callable[[Answer], T]) -> T:
        import httpx2

        headers = {"Accept-Encoding": ACCEPT_ENCODING}
        if self._secret is not None:
            headers["Authorization"] = f"Bearer {self._secret}"
        body = {
            "model": self.judge.model,
            "messages": [{"role": "user", "content": prompt}],
            **self.body,
        }
        async with self.client.stream(
            "POST",
            f"{self.judge.url}/chat/completions",
            json={name: value for name, value in body.items() if value is not None},
            headers=headers,
        ) as reply:
            status = reply.status_code
            if status == 200:
                content = await body_of(reply)
                return await asyncio.to_thread(lambda: read(answer_of(content, self._secret)))
            try:
                message = await asyncio.to_thread(excerpt, await body_of(reply), self._secret)
            except (UnreadableError, httpx2.HTTPError):  # the status says enough
                message = ""
            raise _FailedError(
                f"HTTP {status}{message}",
                charged=not (status in REFUSED or (400 <= status < 500 and status != 408)),
                wait=retry_after(reply.headers, time.time()) if status in RETRYABLE else None,
                final=status not in RETRYABLE,
                fatal=status in FATAL,
            )


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the pause in seconds that a server requests, None if it does not.

    >>> retry_after({"retry-after": "7"}, 0.0)
    7.0
    >>> retry_after({"retry-after": "Thu, 01 Jan 1970 00:00:09 GMT"}, 2.0)
    7.0
    """
    value = ""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"\d+(\.\d+)?", value):
            return float(value) / unit
    try:
        return max(email.utils.parsedate_to_datetime(value).timestamp() - now, 0.0)
    except (ValueError, TypeError, OverflowError, OSError):
        return None
