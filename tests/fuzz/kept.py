"""Further subjects: answers that review items, server replies, ledgers and posteriors."""

import functools
import json
import random
import tempfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

from fuzz.mutators import damage_bytes, damage_path, damage_value, to_json_bytes
from fuzz.seeds import HOSTILE
from judgebayes.collect.ledger import Ledger, Line
from judgebayes.collect.redact import Redactor
from judgebayes.collect.replies import UnreadableError, answer_of
from judgebayes.errors import JudgeBayesError
from judgebayes.inference import posterior
from judgebayes.inference.posterior_file import Stored, write_stored
from judgebayes.io.formats import import_votes
from judgebayes.io.options import Options
from judgebayes.posterior.compare import targets

__all__ = ["ledger", "posterior_file", "reply", "reviews", "small_posterior"]

KEY = "sk-abcdefghijklmnop0123456789"
ITEMS = [("a", "the sum is wrong"), ("b", "the sum is right"), ("c", "a loop never ends")]


def reviews(rng: random.Random, folder: Path) -> None:
    """A table of answers with lists of verdicts: each item gets its own verdict, or none."""
    items = [
        {"item": name, "group": "g", "line": n + 1, "text": text}
        for n, (name, text) in enumerate(ITEMS)
    ]
    truth = {name: rng.randrange(2) for name, _ in ITEMS}
    verdicts = [
        {
            "line": each["line"],
            "text": each["text"],
            "label": ["invalid", "valid"][truth[each["item"]]],
        }
        for each in items
    ]
    whole = rng.random() < 0.3
    content = verdicts if whole else damage_value(verdicts, rng)
    answer = to_json_bytes(content, False).decode("utf-8", "replace")
    around = rng.choice(("{}", "Here it is:\n```json\n{}\n```\nThat is all.", "Verdicts: {} Done."))
    answer = around.replace("{}", answer)
    path, names = folder / "answers.csv", folder / "items.csv"
    pd.DataFrame({"group": ["g"], "judge": ["j"], "text": [answer]}).to_csv(path, index=False)
    pd.DataFrame(items).to_csv(names, index=False)
    if rng.random() < 0.2:
        which = rng.choice((path, names))
        which.write_bytes(damage_bytes(which.read_bytes(), rng))
        whole = False
    imported = import_votes("reviews", path, Options(items=names))
    assert imported.read == len(imported.votes) + sum(imported.dropped.values())
    assert set(imported.votes["vote"].dropna()) <= {"valid", "invalid"}
    if whole:
        voted = dict(zip(imported.votes["item"], imported.votes["vote"], strict=True))
        assert voted == {name: ["invalid", "valid"][truth[name]] for name in truth}


@functools.cache
def small_posterior() -> bytes:
    """Return a small file as `judgebayes posterior` writes it."""
    rng = np.random.default_rng(0)
    ability = rng.normal(size=(2, 20, 3))
    votes = np.log(rng.uniform(0.2, 0.9, size=(2, 20, 5)))
    axes = ["chain", "draw"]
    stored = Stored(
        {"posterior/ability": ability, "log_likelihood/votes": votes},
        {"posterior/ability": [*axes, "judge"], "log_likelihood/votes": [*axes, "item"]},
        {"posterior": {"judge": list("abc")}, "log_likelihood": {}},
        {"note": "x"},
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p.npz"
        write_stored(stored, path)
        return path.read_bytes()


def posterior_file(rng: random.Random, folder: Path) -> None:
    """A damaged posterior: refused, or scored with numbers that are finite."""
    path = folder / "p.npz"
    data = small_posterior()
    path.write_bytes(damage_bytes(data, rng) if rng.random() < 0.4 else data)
    if rng.random() < 0.6:
        _damage_arrays(path, rng)
    loaded = posterior.load(damage_path(path, rng) if rng.random() < 0.05 else path)
    for target in targets(loaded):
        scored = posterior.leave_one_out(loaded, target)
        assert np.isfinite(scored.elpd).all()
        assert (scored.elpd <= 1e-6).all()


def _without_key(text: str) -> str:
    assert KEY[:8] not in text
    return text


def _damage_arrays(path: Path, rng: random.Random) -> None:
    """Change numbers, shapes, types and names inside the file, as a program would."""
    wrong = (np.nan, np.inf, -np.inf, 3.0, 1e300)
    try:
        with path.open("rb") as file, np.load(file) as content:
            arrays = dict(content)
    except (OSError, KeyError, RuntimeError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        return  # its bytes were damaged before
    name = rng.choice(list(arrays))
    values = arrays.pop(name)
    match rng.randrange(4):
        case 0 if values.dtype.kind == "f" and values.size:
            values.reshape(-1)[rng.randrange(values.size)] = rng.choice(wrong)
            arrays[name] = values
        case 1:
            arrays[rng.choice(("other", "posterior/draw ", "log_likelihood/вес", "a b"))] = values
        case 2:
            arrays[name] = rng.choice((values[None], values[..., :1], values.astype("U")))
        case _:
            pass
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)


def ledger(rng: random.Random, folder: Path) -> None:
    """A ledger whose lines were damaged: refused, or each line counted and kept."""
    path, settings = folder / "v.jsonl", {"model": "m"}
    with Ledger(path, settings) as kept:
        for n in range(rng.randint(1, 5)):
            kept.append(_line(n))
    whole = path.read_bytes()
    lines = whole.decode().splitlines()
    if rng.random() < 0.6:
        place = rng.randrange(len(lines))
        damaged = damage_value(json.loads(lines[place]), rng)
        lines[place] = to_json_bytes(damaged, False).decode("utf-8", "replace").replace("\n", " ")
        path.write_bytes(("\n".join(lines) + "\n").encode("utf-8", "replace"))
    if rng.random() < 0.4:
        path.write_bytes(damage_bytes(path.read_bytes(), rng))
    before = path.read_bytes()
    with Ledger(path, settings) as kept:
        count, torn = len(kept.lines), kept.torn
        for line in kept.lines:
            assert type(line.sample) is int
            assert isinstance(line.question.item, str)
        assert torn <= len(before)
        kept.append(_line(99))
    with Ledger(path, settings) as kept:
        assert len(kept.lines) == count + 1
        assert kept.lines[-1] == _line(99)


def _line(n: int) -> Line:
    return Line(
        item=f"i{n}",
        judge="m",
        vote="A",
        sample=n,
        order="AB",
        missing=None,
        level="exact",
        text="[[A]]",
        finish="stop",
        prompt_tokens=10,
        completion_tokens=3,
        answered_by="m",
        content="0" * 16,
    )


def reply(rng: random.Random, folder: Path) -> None:
    """The body of a server's answer: read without the key, or unreadable; its size has a limit."""
    spoken = rng.choice(("[[A]]", f"my key is {KEY}", KEY[:12], rng.choice(HOSTILE), "x" * 300_000))
    body = {
        "choices": [{"message": {"content": spoken}, "finish_reason": rng.choice(("stop", KEY))}],
        "usage": {"prompt_tokens": rng.choice((1, -1, 2**70, True, 1.5)), "completion_tokens": 2},
        "model": rng.choice(("m", KEY)),
    }
    content = body if rng.random() < 0.2 else damage_value(body, rng)
    data = to_json_bytes(content, False)
    if rng.random() < 0.3:
        data = damage_bytes(data, rng)
    if rng.random() < 0.05:
        data = b"[" * rng.choice((10, 5000, 200_000))
    redactor = Redactor(KEY)
    try:
        answer = answer_of(data, redactor)
    except UnreadableError as error:
        raise JudgeBayesError(f"No answer: {_without_key(str(error))}.") from None
    shown = " ".join(str(each) for each in (answer.text, answer.finish, answer.model))
    assert KEY[3:12] not in shown
    assert answer.tokens is None or 0 <= answer.tokens < 2**63
