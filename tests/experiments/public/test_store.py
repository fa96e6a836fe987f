import subprocess
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.public import SOURCES, Source, get, git, is_whole, table
from judgebayes.experiments.public import store as store_module

CONTENTS = {"a/one.txt": b"1\n", "a/two.txt": b"2\n", "b/three.txt": b"3\n"}


@dataclass(frozen=True)
class Small(Source):
    """Three files that become one table."""

    fails: bool = False

    def checksums(self) -> dict[str, str]:
        return {path: store_module._sha256(content) for path, content in CONTENTS.items()}

    def convert(self, folder: Path) -> dict[str, pd.DataFrame]:
        if self.fails:
            raise KeyboardInterrupt
        numbers = [int((folder / path).read_text()) for path in CONTENTS]
        return {"numbers.csv": pd.DataFrame({"number": numbers})}


def _git(folder: Path, *words: str) -> str:
    result = subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words],
        check=True,
        capture_output=True,
        text=True,
    )
    return result.stdout.strip()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose pinned commit is not the newest, served in the way of GitHub."""
    folder = tmp_path_factory.mktemp("server")
    _git(folder, "init", "--quiet")
    for path, content in CONTENTS.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    (folder / "large.bin").write_bytes(bytes(range(256)) * 999)
    _git(folder, "add", ".")
    _git(folder, "commit", "--quiet", "-m", "pinned")
    _git(folder, "tag", "pinned")
    (folder / "a" / "one.txt").write_bytes(b"100\n")
    _git(folder, "commit", "--quiet", "-am", "newer")
    for name in ("allowFilter", "allowAnySHA1InWant"):
        _git(folder, "config", f"uploadpack.{name}", "true")
    return folder


@pytest.fixture(scope="module")
def source(server: Path) -> Small:
    return Small(
        "small", "small_set", "three", server.as_uri(), _git(server, "rev-parse", "pinned"),
        "1 kB", "CC0", "Nobody (2026)",
    )  # fmt: skip


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """The files without git."""
    for path, content in CONTENTS.items():
        (tmp_path / "plain" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "plain" / path).write_bytes(content)
    return tmp_path / "plain"


def _numbers(home: Path) -> list[int]:
    return pd.read_csv(home / "numbers.csv")["number"].tolist()


@pytest.mark.parametrize("source", SOURCES.values(), ids=list(SOURCES))
def test_every_source_is_pinned_by_commit_and_checksum(source: Source) -> None:
    sums = source.checksums()
    assert len(source.commit) == 40
    assert int(source.commit, 16)
    assert sums
    for path, digest in sums.items():
        assert len(digest) == 64
        assert int(digest, 16)
        assert not Path(path).is_absolute()
        assert ".." not in Path(path).parts
    assert source.licence
    assert source.citation


def test_a_clone_gives_the_pinned_commit_not_the_newest(
    source: Small, server: Path, tmp_path: Path
) -> None:
    assert _numbers(get(source, tmp_path, local=server)) == [1, 2, 3]
    assert is_whole(source, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["small_set"]
    about = (tmp_path / "small_set" / "SOURCE.txt").read_text()
    assert source.commit in about
    assert "CC0" in about


def test_a_changed_source_is_refused_and_nothing_is_kept(
    source: Small, plain: Path, tmp_path: Path
) -> None:
    (plain / "b" / "three.txt").write_bytes(b"4\n")
    with pytest.raises(JudgeBayesError, match=r"three\.txt.* differs from the pinned file"):
        get(source, tmp_path / "cache", local=plain)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_changed_cache_is_replaced(source: Small, plain: Path, tmp_path: Path) -> None:
    home = get(source, tmp_path / "cache", local=plain)
    (home / "numbers.csv").write_text("number\n7\n")
    assert not is_whole(source, tmp_path / "cache")
    assert _numbers(get(source, tmp_path / "cache", local=plain)) == [1, 2, 3]


def test_a_broken_download_resumes(
    source: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "BATCH", 1)
    counts: list[int] = []

    def stop(have: int, _of: int) -> None:
        counts.append(have)
        if have == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(source, tmp_path, progress=stop)
    assert not (tmp_path / "small_set").exists()
    assert counts == [0, 1, 2]
    counts.clear()
    home = get(source, tmp_path, progress=lambda have, _of: counts.append(have))
    assert counts == [2, 3]
    assert _numbers(home) == [1, 2, 3]
    assert not list((tmp_path / ".downloads").iterdir())


def test_a_repository_out_of_reach_is_one_sentence(source: Small, tmp_path: Path) -> None:
    unreachable = Small(
        "small", "small_set", "", (tmp_path / "gone").as_uri(), *list(vars(source).values())[4:]
    )
    with pytest.raises(JudgeBayesError, match="could not be fetched"):
        get(unreachable, tmp_path / "cache")
    with pytest.raises(JudgeBayesError, match="is not a clone with commit"):
        get(source, tmp_path / "cache", local=tmp_path)
    with pytest.raises(JudgeBayesError, match="There is no folder"):
        get(source, tmp_path / "cache", local=tmp_path / "gone")


def test_a_table_is_read_by_name_and_missing_tables_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGEBAYES_DATA", str(tmp_path))
    with pytest.raises(JudgeBayesError, match="`judgebayes data get llmbar` fetches it"):
        table("llmbar", "labels")
    folder = tmp_path / SOURCES["llmbar"].folder
    folder.mkdir()
    pd.DataFrame({"item": ["a"]}).to_parquet(folder / "labels.parquet")
    assert table("llmbar", "labels")["item"].tolist() == ["a"]
    with pytest.raises(JudgeBayesError, match="no table 'votes' of llmbar; choose one of: labels"):
        table("llmbar", "votes")
    with pytest.raises(JudgeBayesError, match="There is no data set 'llm'; choose one of: llmbar"):
        table("llm", "votes")
