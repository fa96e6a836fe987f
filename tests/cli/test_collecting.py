"""`judgebayes collect` against a server that ties, stalls, fails, rate-limits and talks nonsense."""

import importlib.util
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from endpoint import Fake, Reply, serving
from runner import CliRunner

from judgebayes import cli
from judgebayes.collect.ledger import Ledger, ledger_path
from judgebayes.errors import JudgeBayesError
from judgebayes.workflow.asking import open_files
from judgebayes.workflow.data import encoded
from judgebayes.workflow.options import ReadRequest
from judgebayes.workflow.scales import classes_of

KEY = "sk-very-secret-0123456789"
QUICK = ("--timeout", "20", "--retries", "2")


@pytest.fixture(autouse=True)
def _local(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy between the tests and their server, and failures that are soon tried again.

    A key that the SDK would take from the environment is sent to no judge that is asked without one.
    """
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    monkeypatch.setattr("openai._base_client.MAX_RETRY_DELAY", 0.01)


def pairs(folder: Path, n: int = 4) -> Path:
    path = folder / "items.csv"
    table = {
        "id": [f"q{i}" for i in range(n)],
        "prompt": "Which?",
        "response_a": [f"one {i}." for i in range(n)],
        "response_b": [f"two {i}." for i in range(n)],
    }
    pd.DataFrame(table).to_csv(path, index=False)
    return path


def swapped(prompt: str) -> bool:
    return re.findall(r"(one|two) \d+\.", prompt) == ["two", "one"]


def item_of(prompt: str) -> int:
    return int(re.findall(r"one (\d+)\.", prompt)[0])


def run(fake: Fake, items: Path, *words: object, code: int = 0) -> str:
    out = [] if "-o" in words else ["-o", items.parent / "votes.jsonl"]
    judge = [] if "--judge" in words else ["--judge", f"small@{fake.url}"]
    command = ["collect", items, *judge, *out, *QUICK, *words]
    result = CliRunner().invoke(cli.app, [str(word) for word in command])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def rows(out: Path) -> list[tuple[str, str | None]]:
    """The calls in the ledger of a file of votes: questions and replies."""
    with closing(sqlite3.connect(ledger_path(out))) as database:
        return database.execute("SELECT question, reply FROM calls ORDER BY id").fetchall()


def votes(folder: Path) -> pd.DataFrame:
    return pd.read_json(folder / "votes.jsonl", lines=True)


def first_is_better(prompt: str, before: int) -> Reply:
    """A judge that always prefers "one", wherever it stands."""
    return Reply("[[B]]" if swapped(prompt) else "[[A]]")


def test_half_in_each_order_in_the_labels_frame_and_the_command_that_reads_it(
    tmp_path: Path,
) -> None:
    items = pairs(tmp_path)
    with serving(first_is_better) as fake:
        said = run(fake, items, "-n", "4", "--body", '{"temperature": 0.7}', "--concurrency", "3")
    table = votes(tmp_path)
    assert len(table) == 16
    assert set(table["vote"]) == {"A"}
    assert Counter(table["order"]) == {"AB": 8, "BA": 8}
    assert not table.duplicated(["item", "judge", "sample", "order"]).any()
    assert Counter(map(swapped, fake.asked.elements())) == {True: 8, False: 8}
    assert fake.most_at_once <= 3
    assert {body["temperature"] for body in fake.bodies} == {0.7}
    assert {body["model"] for body in fake.bodies} == {"small"}
    assert fake.keys == [None] * 16
    assert "16 of 16 answers contain a vote (100.0 %)" in said
    assert "Tokens: 160." in said
    command = shlex.split(said.split("Next: ")[1])
    assert command[:3] == ["judgebayes", "calibrate", str(tmp_path / "votes.jsonl")]
    assert "votes_as=original" in command
    # All votes name A: the command names the classes, which could not be inferred.
    assert "classes=B,tie,A" in command


def test_the_command_that_is_printed_finds_votes_and_labels(tmp_path: Path) -> None:
    items = pairs(tmp_path, 12)
    table = pd.read_csv(items)
    table.assign(gold=["A", "B", "tie"] * 4).to_csv(items, index=False)

    def answering(prompt: str, before: int) -> Reply:
        """Right about two thirds of the items, in whichever order."""
        kind = item_of(prompt) % 3
        return Reply("[[tie]]") if kind == 2 else first_is_better(prompt, before)

    with serving(answering) as fake:
        said = run(fake, items, "-n", "2")
    command = shlex.split(said.split("Next: ")[1])
    assert command[command.index("--labels") :][:4] == ["--labels", str(items), "--label", "gold"]
    assert command[command.index("--set") :][:2] == ["--set", "votes_as=original"]
    # What calibrate does with these words.
    request = ReadRequest(votes=command[2], labels=items, label="gold", votes_as="original")
    opened = open_files(request)
    read = encoded(opened, classes_of(opened))
    said = "\n".join(read.words())
    assert "24 votes of 1 judge(s) on 12 items, classes B, tie, A" in said
    assert "12 of 24 votes were given with the responses swapped" in said
    assert opened.labels is not None
    gold = read.coding.labels(opened.labels.table, item=opened.labels.item, label="gold")
    kinds = [int(str(name)[1:]) % 3 for name in read.coding.items]
    assert gold.tolist() == [(2, 0, 1)[kind] for kind in kinds]
    counts = np.asarray(read.votes.pooled_counts()).tolist()
    assert counts == [([0, 0, 2], [0, 0, 2], [0, 2, 0])[kind] for kind in kinds]


def test_what_cannot_be_read_is_a_missing_vote(tmp_path: Path) -> None:
    replies = [
        Reply("[[tie]]"),
        Reply("Hmm, hard to say."),
        Reply("I would say [[A]] but maybe [[B]] or both, in all honesty"),
        Reply("[[A]]", finish="length"),
        Reply(None),
        Reply("<think>[[A]]</think> [[B]]"),
    ]
    items = pairs(tmp_path, len(replies))
    with serving(lambda prompt, _: replies[item_of(prompt)]) as fake:
        said = run(fake, items, "-n", "2", "--judge", f"llm=org/m@{fake.url}")
    table = votes(tmp_path)
    by_item = {
        name: list(part.sort_values("order")["vote"].fillna("-"))
        for name, part in table.groupby("item")
    }
    nothing = ["-", "-"]
    assert by_item["q0"] == ["tie", "tie"]
    assert by_item["q1"] == by_item["q2"] == by_item["q3"] == by_item["q4"] == nothing
    assert by_item["q5"] == ["B", "A"]  # AB, then BA mapped back
    assert "llm: 4 of 12 answers contain a vote (33.3 %)" in said
    for why in ("no verdict found 2", "verdicts contradict 2", "cut off at max_tokens 2"):
        assert why in said
    raw = table[(table["item"] == "q5")]["text"]
    assert set(raw) == {"<think>[[A]]</think> [[B]]"}
    with serving(lambda prompt, _: Reply("tie")) as fake:
        out = tmp_path / "binary.jsonl"
        said = run(fake, items, "-n", "2", "--task", "binary", "-o", out)
    assert "'tie' is not an answer to the task 12" in said


def test_failures_are_tried_again_with_patience_and_paid_once(tmp_path: Path) -> None:
    items = pairs(tmp_path, 5)
    trouble = {
        0: Reply(status=500),
        1: Reply(status=429, headers={"Retry-After": "0.2"}),
        2: Reply(hang_up=True),
        3: Reply(body="<html>busy</html>"),
        4: Reply(wait=1.2),  # longer than the timeout
    }

    def answering(prompt: str, before: int) -> Reply:
        return trouble[item_of(prompt)] if before == 0 else first_is_better(prompt, before)

    with serving(answering) as fake:
        said = run(fake, items, "-n", "2", "--concurrency", "4", "--timeout", "1")
    assert len(votes(tmp_path)) == 10
    assert set(fake.asked.values()) == {2}
    assert "10 requests were sent again" in said
    limited = [times for prompt, times in fake.times.items() if item_of(prompt) == 1]
    assert all(second - first >= 0.2 for first, second in limited)


def test_a_refusal_ends_the_asking_and_never_shows_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = pairs(tmp_path)
    monkeypatch.setenv("SOME_KEY", KEY)
    refusal = json.dumps(
        {"error": {"message": f"Incorrect key {KEY}, that is {KEY[:6]}****{KEY[-4:]}"}}
    )
    with serving(lambda *_: Reply(status=401, body=refusal)) as fake:
        refused = run(fake, items, "-n", "2", "--key-env", "SOME_KEY", "--concurrency", "1", code=1)
    assert set(fake.keys) == {f"Bearer {KEY}"}
    assert len(fake.asked) == 1
    assert "HTTP 401 (Incorrect key [key], that is [key])" in refused
    assert "Missing: 8 answer(s). Run the same command again to continue." in refused
    with serving(lambda *_: Reply(f"You sent {KEY}. [[A]]")) as fake:
        accepted = run(fake, items, "-n", "2", "--key-env", "small=SOME_KEY")
    assert len(votes(tmp_path)) == 8
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"You sent [key]." in written
    for shown in (written.decode("latin-1"), refused, accepted):
        assert KEY not in shown
        assert KEY[-4:] not in shown
    with (
        serving(first_is_better) as fake,
        pytest.raises(JudgeBayesError, match=r"OTHER_KEY.* is not set"),
    ):
        run(fake, items, "-n", "4", "--key-env", "OTHER_KEY")
    with serving(first_is_better) as fake, pytest.raises(JudgeBayesError) as error:
        run(fake, items, "-n", "4", "--key-env", KEY)
    assert KEY not in str(error.value)


def test_a_dead_server_is_not_asked_for_ever(tmp_path: Path) -> None:
    items = pairs(tmp_path, 20)
    with serving(lambda *_: Reply(status=503)) as fake:
        said = run(fake, items, "-n", "2", "--concurrency", "2", code=1)
    assert sum(fake.asked.values()) <= 6 * 3
    assert "HTTP 503" in said
    assert "after 3 attempts" in said
    assert "Missing: 40" in said


def test_budgets_are_kept_over_runs(tmp_path: Path) -> None:
    items = pairs(tmp_path, 5)
    with serving(first_is_better) as fake:
        said = run(fake, items, "-n", "4", "--budget-calls", "6", code=1)
        assert sum(fake.paid.values()) == 6
        assert "The budget of 6 calls does not allow another request." in said
        assert "Missing: 14 answer(s)." in said
        # Each answer is ten tokens, of which the first run paid 60.
        said = run(fake, items, "-n", "4", "--budget-tokens", "95", code=1)
        assert sum(fake.paid.values()) == 9
        assert "The budget of 95 tokens" in said
        run(fake, items, "-n", "4")
        assert sum(fake.paid.values()) == 20
    # The first votes are those of all items, not all votes of the first items.
    assert votes(tmp_path).head(6)["item"].nunique() >= 3
    with serving(lambda *_: Reply("[[A]]", usage=False)) as fake:
        out = tmp_path / "uncounted.jsonl"
        said = run(fake, items, "-n", "2", "--budget-tokens", "95", "-o", out, code=1)
    assert sum(fake.paid.values()) == 1
    assert "does not count tokens" in said


def test_killed_and_resumed_nothing_is_paid_twice(tmp_path: Path) -> None:
    items = pairs(tmp_path, 12)
    out = tmp_path / "votes.jsonl"
    with serving(lambda p, b: Reply(first_is_better(p, b).text, wait=0.03)) as fake:
        words = ["collect", items, "--judge", f"small@{fake.url}", "-n", "2", "-o", out]
        command = [sys.executable, "-m", "judgebayes", *words, "--concurrency", "2"]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL)
        while len(fake.paid) < 5:
            assert process.poll() is None
            time.sleep(0.005)
        process.kill()
        process.wait()
        while fake.at_once:
            time.sleep(0.005)
        assert not out.exists()
        calls = rows(out)
        whole = [asked for asked, reply in calls if reply is not None]
        assert 3 <= len(whole) < 24
        # Each was booked before it was sent, and two were perhaps not sent yet.
        assert 0 <= len(calls) - sum(fake.asked.values()) <= 2
        paid = sum(fake.paid.values())
        said = run(fake, items, "-n", "2")
        assert f"{24 - len(whole)} new, {len(whole)} from earlier runs" in said
        table = votes(tmp_path)
        assert len(table) == 24
        assert not table.duplicated(["item", "sample", "order"]).any()
        before = sum(fake.paid.values())
        assert before == paid + 24 - len(whole)
        assert "Answers: 0 new, 24 from earlier runs" in run(fake, items, "-n", "2")
        assert sum(fake.paid.values()) == before


def test_a_ledger_that_cannot_be_written_ends_the_run_and_keeps_the_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = pairs(tmp_path, 6)
    answered = Ledger.answered

    def full(self: Ledger, *words: object) -> None:
        if len(self.replies) == 5:
            raise sqlite3.OperationalError("database or disk is full")
        answered(self, *words)  # type: ignore[arg-type]

    with serving(first_is_better) as fake, monkeypatch.context() as patched:
        patched.setattr(Ledger, "answered", full)
        with pytest.raises(JudgeBayesError, match="cannot be read or written: database or disk is"):
            run(fake, items, "-n", "2", "--concurrency", "2")
        assert len(votes(tmp_path)) == 5
        assert sum(fake.asked.values()) <= 7
    with serving(first_is_better) as fake:
        run(fake, items, "-n", "2")
        assert sum(fake.paid.values()) == 7


def test_without_the_sdk_a_dry_run_works_and_a_run_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda n: None if n == "openai" else find(n))
    with serving(first_is_better) as fake:
        assert "Dry run" in run(fake, pairs(tmp_path), "-n", "2", "--dry-run")
        with pytest.raises(JudgeBayesError, match=r"pip install 'judgebayes\[collect\]'"):
            run(fake, pairs(tmp_path), "-n", "2")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_keeps_what_is_on_its_way(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    items = pairs(tmp_path, 30)

    def answering(prompt: str, before: int) -> Reply:
        if sum(fake.asked.values()) == 5:
            threading.Timer(0.0, os.kill, (os.getpid(), number)).start()
        return Reply("[[A]]", wait=0.05)

    before = signal.getsignal(number)
    with serving(answering) as fake:
        said = run(fake, items, "-n", "2", "--concurrency", "3", code=code)
    assert signal.getsignal(number) == before
    assert sum(fake.paid.values()) == len(votes(tmp_path)) < 20
    assert "Interrupted; every answer that was received is saved." in said


def test_other_settings_are_refused(tmp_path: Path) -> None:
    items = pairs(tmp_path, 2)
    own = tmp_path / "mine.txt"
    own.write_text('{"a": {response_a}, "b": {response_b}} for {id}: [[A]], [[B]] or [[tie]]?')
    with serving(first_is_better) as fake:
        run(fake, items, "-n", "2")
        for words, what in (
            (("--body", '{"temperature": 0.5}'), "another body"),
            (("--template", own), "another template"),
            (("--judge", f"small=large@{fake.url}"), "another model of judge 'small'"),
            (("--task", "binary"), "another task"),
        ):
            with pytest.raises(JudgeBayesError, match=what):
                run(fake, items, "-n", "4", *words)
        assert sum(fake.paid.values()) == 4
        # Another judge, and more votes, go into the same file.
        run(fake, items, "-n", "4", "--judge", f"small@{fake.url}", "--judge", f"large@{fake.url}")
        assert sum(fake.paid.values()) == 16
        table = pd.read_csv(items).assign(response_a="one 0, changed.")
        table.to_csv(items, index=False)
        with pytest.raises(JudgeBayesError, match="The text of item 'q0' has changed"):
            run(fake, items, "-n", "4")
        out = tmp_path / "own.jsonl"
        run(fake, items, "-n", "2", "--template", own, "-o", out)
    assert fake.bodies[-1]["messages"][0]["content"].startswith('{"a": ')
    # A file of votes that this command cannot continue stays as it is.
    before = (tmp_path / "votes.jsonl").read_bytes()
    ledger_path(tmp_path / "votes.jsonl").unlink()
    with pytest.raises(JudgeBayesError, match=r"has no ledger 'votes\.jsonl\.sqlite' beside it"):
        run(fake, items, "-n", "4")
    assert (tmp_path / "votes.jsonl").read_bytes() == before
    ledger_path(tmp_path / "votes.jsonl").write_text(
        "not a database, but a text of some length" * 99
    )
    with pytest.raises(JudgeBayesError, match="cannot be read or written: file is not a database"):
        run(fake, items, "-n", "4")


def test_one_response_is_valid_or_invalid(tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    rows = [
        {"prompt": "2 + 2? {response}", "response": f"one {i}. two", "label": i % 2}
        for i in range(2)
    ]
    items.write_text("\n".join(map(json.dumps, rows)))
    with serving(lambda p, _: Reply(("[[invalid]]", "Verdict: valid")[item_of(p)])) as fake:
        said = run(fake, items, "-n", "3", "--body", '{"max_tokens": null, "seed": 1}')
    table = votes(tmp_path)
    assert Counter(table["vote"]) == {"invalid": 3, "valid": 3}
    assert "order" not in table.columns
    assert "Items have no names" in said
    assert all("max_tokens" not in body and body["seed"] == 1 for body in fake.bodies)
    # Braces in an item's own text are text.
    assert all("2 + 2? {response}" in prompt for prompt in fake.asked)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("-n", "3"), "cannot be divided"),
        (("--judge", "gpt"), "is not NAME@URL"),
        (("--judge", "gpt@http://me:pw@host/v1"), "password"),
        (("--judge", "gpt@http://[::1/v1"), "Invalid IPv6 URL"),
        (("--judge", "m@http://h/v1", "--judge", "m@http://i/v1"), "Two judges are named 'm'"),
        (("--task", "rank"), "no task 'rank'"),
        (("--response-a", "answer"), "no column 'answer'"),
        (("-o", "votes.csv"), r"must end in \.jsonl"),
        (("--body", '{"n": 3}'), "cannot contain 'n'"),
        (("--body", "n=3"), "must be a JSON object"),
        (("--give-up", "0.1"), "need --until-settled"),
        (("--until-settled",), "needs --fit"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    words: tuple[str, ...], match: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    items = pairs(tmp_path, 2)
    with pytest.raises(JudgeBayesError, match=match):
        run(Fake("http://127.0.0.1:9/v1"), items, *words)
    with pytest.raises(JudgeBayesError, match="--budget-calls is 0, but must be 1 or more"):
        run(Fake("http://127.0.0.1:9/v1"), items, "--budget-calls", "0")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["items.csv"]


@pytest.fixture
def fit(tmp_path: Path) -> Path:
    """A kept fit to eight votes an item, of a judge that mostly repeats itself."""
    import jax.numpy as jnp

    from judgebayes import Davidson
    from judgebayes.inference.fit import Fit
    from judgebayes.votes import Classes
    from judgebayes.workflow.fit_file import SavedFit, VoteProfile, save_fit

    draws = {"beta": jnp.array([2.0]), "eta0": jnp.array([[1.0]]), "gamma": jnp.array([[1.0]])}
    fitted = Fit(Davidson(), draws, jnp.array(0))
    spread = [[0.16, -0.02, -0.14], [-0.02, 0.04, -0.02], [-0.14, -0.02, 0.16]]
    seen = VoteProfile(100, [0.45, 0.1, 0.45], spread, 8.0)
    path = tmp_path / "fit.json"
    save_fit(path, SavedFit("davidson", fitted, Classes(("B", "tie", "A"), True), seen))
    return path


def test_settled_items_are_not_asked_again_and_are_answered(tmp_path: Path, fit: Path) -> None:
    items = pairs(tmp_path, 6)

    def answering(prompt: str, before: int) -> Reply:
        """Three items are clear; the judge is of two minds about the others."""
        if item_of(prompt) < 3:
            return first_is_better(prompt, before)
        return Reply(("[[A]]", "[[B]]", "[[tie]]", "nonsense")[before % 4])

    adaptive = ("--until-settled", "--fit", fit, "--concurrency", "4")
    with serving(answering) as fake:
        stopped = run(fake, items, *adaptive, "--budget-calls", "15", code=1)
        assert sum(fake.paid.values()) == 15
        assert "Missing: at least" in stopped
        said = run(fake, items, *adaptive)
        asked = sum(fake.paid.values())
    table = votes(tmp_path)
    assert len(table) == asked < 48
    each = table.groupby("item").size()
    assert each[["q0", "q1", "q2"]].max() < each[["q3", "q4", "q5"]].min()
    # Every vote in one order has its like in the other.
    assert (table.groupby(["item", "sample"])["order"].nunique() == 2).all()
    assert (
        f"with {asked} answers instead of 48 ({100 * (1 - asked / 48):.0f} % fewer than 8 votes"
        in said
    )
    settled = int(said.split("Settled: ")[1].split()[0])
    assert settled >= 3
    command = f"judgebayes apply {fit} {tmp_path / 'votes.jsonl'} --set votes_as=original"
    assert f"The next command gives the calibrated answers.\nNext: {command}" in said


def test_what_is_given_up_decides_how_often_is_asked(tmp_path: Path, fit: Path) -> None:
    items = pairs(tmp_path, 3)
    asked = []
    for give_up in (0.0, 10.0):
        with serving(lambda p, b: Reply(("[[A]]", "[[B]]")[b % 2])) as fake:
            out = tmp_path / f"{give_up}.jsonl"
            run(fake, items, "--until-settled", "--fit", fit, "--give-up", give_up, "-o", out)
        asked.append(sum(fake.paid.values()))
    assert asked[0] > asked[1] == 6
    nowhere = Fake("http://127.0.0.1:9/v1")
    two = ("--judge", "a@http://h/v1", "--judge", "b@http://h/v1")
    for words, match in (
        (("-n", "12"), "differs from the 8 votes per item that .* was fitted"),
        (two, "takes one judge"),
        (("--task", "binary"), "has the classes B, tie, A, but the votes of this task are B, A"),
    ):
        with pytest.raises(JudgeBayesError, match=match):
            run(nowhere, items, "--until-settled", "--fit", fit, *words)
