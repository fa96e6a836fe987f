"""Read files of a repository at a commit through git, by object name.

Nothing is checked out, so no path, link or filter of the repository is followed: the bytes of the named
files are read from git's object store.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from judgebayes.errors import JudgeBayesError

BATCH = 100
"""Number of files per request; at most this many are lost when a download fails."""
STALLED = ("-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60")
"""A connection with less than 1 kB per second over a minute counts as broken."""


def download(
    url: str,
    commit: str,
    paths: Sequence[str],
    store: Path,
    progress: Callable[[int, int], None],
) -> None:
    """Fetch the missing files of a commit into a bare repository.

    Parameters
    ----------
    url, commit, paths
        The repository, the commit and the files to fetch.
    store
        The bare repository; created if it does not exist.
    progress
        Called with the number of files present and the total number.

    Raises
    ------
    JudgeBayesError
        If git is not installed, the repository cannot be reached, or it lacks a file.
    """
    if shutil.which("git") is None:
        raise JudgeBayesError(
            f"Fetching needs git, which is not on the path. Install it, or download {url} at "
            f"commit {commit} manually and pass its folder with --from."
        )
    if not (store / "HEAD").is_file():
        store.mkdir(parents=True, exist_ok=True)
        _git(store, "init", "--quiet", "--bare")
        _git(store, "remote", "add", "origin", url)
    if not has_commit(store, commit):
        _fetch(store, url, "--depth=1", "origin", commit)
    objects = _names(store, commit, paths, url)
    not_stored = _missing(store, commit)
    missing = sorted({oid for oid in objects.values() if oid in not_stored})
    n_stored = len(objects) - len(missing)
    progress(n_stored, len(objects))
    for start in range(0, len(missing), BATCH):
        batch = missing[start : start + BATCH]
        _fetch(store, url, "origin", *batch)
        n_stored += len(batch)
        progress(n_stored, len(objects))


def has_commit(repository: Path, commit: str) -> bool:
    """Tell whether a folder is in a git repository with this commit."""
    if shutil.which("git") is None:
        return False
    return _run(repository, "cat-file", "-e", f"{commit}^{{commit}}").returncode == 0


def read_blobs(repository: Path, commit: str, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a commit with their paths.

    Raises
    ------
    JudgeBayesError
        If the commit or the repository lacks a file.
    """
    names = _names(repository, commit, paths, str(repository))
    for start in range(0, len(paths), BATCH):
        batch = paths[start : start + BATCH]
        request = "".join(f"{names[path]}\n" for path in batch).encode()
        result = _run(repository, "cat-file", "--batch", stdin=request)
        position = 0
        for path in batch:
            end = result.stdout.find(b"\n", position)
            head = result.stdout[position:end].split()
            if end < 0 or len(head) != 3 or head[1] != b"blob":
                raise JudgeBayesError(
                    f"{str(repository)!r} lists {path!r} at commit {commit[:12]}, but does not "
                    "have its content."
                )
            size = int(head[2])
            yield path, result.stdout[end + 1 : end + 1 + size]
            position = end + 1 + size + 1


def _names(repository: Path, commit: str, paths: Sequence[str], where: str) -> dict[str, str]:
    """Return the object name of each path."""
    listed = _git(repository, "ls-tree", "-r", "-z", "--full-tree", commit).stdout.decode("utf-8")
    entries = (entry.partition("\t") for entry in listed.split("\0") if entry)
    object_of = {path: meta.split()[2] for meta, _, path in entries}
    absent = [path for path in paths if path not in object_of]
    if absent:
        raise JudgeBayesError(f"{where} has no file {absent[0]!r} at commit {commit[:12]}.")
    return {path: object_of[path] for path in paths}


def _missing(repository: Path, commit: str) -> set[str]:
    """Return the objects of a commit that are not stored locally, without fetching them."""
    listed = _git(repository, "rev-list", "--objects", "--missing=print", commit).stdout
    return {line[1:] for line in listed.decode("utf-8").splitlines() if line.startswith("?")}


def _fetch(repository: Path, url: str, *what: str) -> None:
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--filter=blob:none")
    result = _run(repository, *STALLED, "fetch", *options, *what)
    if result.returncode != 0:
        messages = result.stderr.decode("utf-8", "replace").strip().splitlines()
        raise JudgeBayesError(
            f"{url} could not be fetched ({messages[-1] if messages else 'no message from git'}); files "
            "already fetched are kept; run the same command again to continue."
        )


def _git(repository: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    result = _run(repository, *words)
    if result.returncode != 0:
        messages = result.stderr.decode("utf-8", "replace").strip().splitlines()
        raise JudgeBayesError(
            f"git {words[0]} failed in {str(repository)!r}: "
            f"{messages[-1] if messages else 'no reason given'}."
        )
    return result


def _run(
    repository: Path, *words: str, stdin: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    # No prompt for a password, and messages in English.
    environment = os.environ | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    command = ["git", "-C", str(repository), *words]
    if stdin is None:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False
        )
    return subprocess.run(command, input=stdin, capture_output=True, env=environment, check=False)
