"""A folder of converted data sets: each is there whole, or not at all."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from judgebayes.errors import JudgeBayesError
from judgebayes.public import git
from judgebayes.public.sources import SOURCES, Source

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["cache_folder", "get", "is_whole", "table"]

SUMS = "SHA256SUMS"
"""The checksums of a converted data set, as `sha256sum --check` reads them."""
ABOUT = "SOURCE.txt"


def cache_folder() -> Path:
    """Return the folder of public data in the user's cache."""
    from platformdirs import user_cache_path

    return user_cache_path("judgebayes") / "data"


def table(name: str, file: str) -> "pd.DataFrame":
    """Return a table of a data set that `judgebayes data get` fetched.

    Where the environment variable `JUDGEBAYES_DATA` names a folder, it is looked for there instead.

    Parameters
    ----------
    name
        The data set: `judgebayes data list` has the names.
    file
        The table, its file's name without `.parquet`.

    Raises
    ------
    JudgeBayesError
        If there is no such data set or table, or it was not fetched.
    """
    import pandas as pd

    if name not in SOURCES:
        raise JudgeBayesError(f"There is no data set {name!r}; there are {', '.join(SOURCES)}.")
    folder = Path(os.environ.get("JUDGEBAYES_DATA") or cache_folder()) / SOURCES[name].folder
    path = folder / f"{file}.parquet"
    if path.is_file():
        return pd.read_parquet(path)
    tables = ", ".join(sorted(other.stem for other in folder.glob("*.parquet")))
    raise JudgeBayesError(
        f"There is no table {file!r} of {name}; there are {tables}."
        if tables
        else f"{name} is not in {folder}: `judgebayes data get {name}` fetches it."
    )


def is_whole(source: Source, cache: Path) -> bool:
    """Tell whether a converted data set is there, of the pinned commit and without a changed byte."""
    folder = cache / source.folder
    try:
        listed = (folder / SUMS).read_text("utf-8").splitlines()
        sums = {name: digest for digest, _, name in (line.partition("  ") for line in listed)}
        about = (folder / ABOUT).read_text("utf-8")
        same = all(_sha256((folder / name).read_bytes()) == sums[name] for name in sums)
    except (OSError, UnicodeDecodeError):
        return False
    return same and ABOUT in sums and source.commit in about


def get(
    source: Source,
    cache: Path,
    *,
    local: Path | None = None,
    progress: Callable[[int, int], None] = lambda _have, _of: None,
) -> Path:
    """Fetch, check and convert a data set, unless it is there; return its folder.

    A download that broke goes on where it ended. Every file is compared with its SHA-256 before it
    is read, and the converted data set appears in one step.

    Parameters
    ----------
    source
        Which data set.
    cache
        The folder that gets a folder of it.
    local
        A clone of the repository, or a folder with its files, instead of the network.
    progress
        Called with how many files have arrived, and of how many.

    Raises
    ------
    JudgeBayesError
        If the source cannot be reached, lacks a file or has changed; nothing is kept of it then.
    """
    home = cache / source.folder
    if is_whole(source, cache):
        return home
    sums = source.checksums()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        download = cache / ".downloads" / f"{source.name}-{source.commit[:12]}.git"
        if local is None:
            git.download(source.url, source.commit, list(sums), download, progress)
        with tempfile.TemporaryDirectory(prefix=".converting-", dir=cache) as name:
            raw, made = Path(name) / "raw", Path(name) / "made"
            try:
                _keep_checked(_files(local or download, source, list(sums)), sums, raw, source)
            except JudgeBayesError:
                if local is None:
                    shutil.rmtree(download, ignore_errors=True)
                raise
            made.mkdir()
            _write(source, raw, made)
            if home.exists():
                home.rename(Path(name) / "old")
            made.rename(home)
    except OSError as error:
        raise JudgeBayesError(f"{str(cache)!r} cannot be written: {error.strerror}.") from error
    shutil.rmtree(download, ignore_errors=True)
    return home


def _files(place: Path, source: Source, paths: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a clone at the pinned commit, or as they lie in a folder."""
    if not place.is_dir():
        raise JudgeBayesError(f"There is no folder {str(place)!r}.")
    if git.has_commit(place, source.commit):
        yield from git.read_blobs(place, source.commit, paths)
        return
    for path in paths:
        file = place / path
        if not file.is_file():
            raise JudgeBayesError(
                f"{str(place)!r} is no clone with commit {source.commit[:12]} of {source.url}, and "
                f"has no file {path!r} of its own."
            )
        yield path, file.read_bytes()


def _keep_checked(
    found: Iterable[tuple[str, bytes]], sums: dict[str, str], raw: Path, source: Source
) -> None:
    """Write files into a folder, each compared with its checksum first.

    Their names are those of the package's own list, not the repository's.
    """
    for path, content in found:
        digest = _sha256(content)
        if digest != sums[path]:
            raise JudgeBayesError(
                f"{path!r} of {source.name} is not the file that was pinned: its SHA-256 begins "
                f"{digest[:12]}, right would be {sums[path][:12]} (commit {source.commit[:12]} of "
                f"{source.url}); nothing was kept."
            )
        place = raw / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def _write(source: Source, raw: Path, folder: Path) -> None:
    """Convert a data set into a folder, with its origin and its checksums."""
    for name, table in source.convert(raw).items():
        if name.endswith(".csv"):
            table.to_csv(folder / name, index=False, lineterminator="\n")
        else:
            table.to_parquet(folder / name, index=False)
    about = [
        f"{source.folder}: {source.says}",
        f"Source: {source.url} at commit {source.commit}",
        f"Licence: {source.licence}",
        f"Cite: {source.citation}",
    ]
    if source.drawn:
        about.append(f"Drawn by names, not in the source: {source.drawn}")
    (folder / ABOUT).write_text("\n".join(about) + "\n", encoding="utf-8")
    lines = [f"{_sha256(p.read_bytes())}  {p.name}\n" for p in sorted(folder.iterdir())]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
