"""Judges behind OpenAI-compatible endpoints, as a user names them: models, addresses and keys."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from judgebayes.errors import JudgeBayesError

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
