"""The cache of converted data sets; each is written atomically."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from judgebayes.errors import JudgeBayesError
from judgebayes.experiments.public import git
from judgebayes.experiments.public.sources import SOURCES, Source

if TYPE_CHECKING:
    import pandas as pd

SUMS = "SHA256SUMS"
"""The checksums of a converted data set, in the format of `sha256sum --check`."""
ABOUT = "SOURCE.txt"


def cache_folder() -> Path:
    """Return the folder of public data in the user's cache."""
    from platformdirs import user_cache_path

    return user_cache_path("judgebayes") / "data"


def table(name: str, file: str) -> "pd.DataFrame":
    """Return a table of a data set that `judgebayes data get` fetched.

    If the environment variable `JUDGEBAYES_DATA` names a folder, the table is read from there instead.

    Parameters
    ----------
    name
        The data set; `judgebayes data list` prints the names.
    file
        The table: its file name without `.parquet`.

    Raises
    ------
    JudgeBayesError
        If there is no such data set or table, or it has not been fetched.
    """
    import pandas as pd

    if name not in SOURCES:
        raise JudgeBayesError(
            f"There is no data set {name!r}; choose one of: {', '.join(SOURCES)}."
        )
    folder = Path(os.environ.get("JUDGEBAYES_DATA") or cache_folder()) / SOURCES[name].folder
    path = folder / f"{file}.parquet"
    if path.is_file():
        return pd.read_parquet(path)
    tables = ", ".join(sorted(other.stem for other in folder.glob("*.parquet")))
    raise JudgeBayesError(
        f"There is no table {file!r} of {name}; choose one of: {tables}."
        if tables
        else f"{name} is not in {folder}: `judgebayes data get {name}` fetches it."
    )


def is_whole(source: Source, cache: Path) -> bool:
    """Tell whether a converted data set exists, from the pinned commit and unchanged."""
    folder = cache / source.folder
    try:
        listed = (folder / SUMS).read_text("utf-8").splitlines()
        sums = {name: digest for digest, _, name in (line.partition("  ") for line in listed)}
        about = (folder / ABOUT).read_text("utf-8")
        unchanged = all(_sha256((folder / name).read_bytes()) == sums[name] for name in sums)
    except (OSError, UnicodeDecodeError):
        return False
    return unchanged and ABOUT in sums and source.commit in about


def get(
    source: Source,
    cache: Path,
    *,
    local: Path | None = None,
    progress: Callable[[int, int], None] = lambda _have, _of: None,
) -> Path:
    """Fetch, check and convert a data set if it is not in the cache; return its folder.

    An interrupted download resumes. Every file is compared with its SHA-256 before it is read, and the
    converted data set is moved into place in one step.

    Parameters
    ----------
    source
        The data set.
    cache
        The folder in which the data set's folder is created.
    local
        A clone of the repository, or a folder with its files, to use instead of the network.
    progress
        Called with the number of files fetched and the total number.

    Raises
    ------
    JudgeBayesError
        If the source cannot be reached, lacks a file or has changed; then nothing is kept.
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
            raw, converted = Path(name) / "raw", Path(name) / "made"
            try:
                _write_verified(_files(local or download, source, list(sums)), sums, raw, source)
            except JudgeBayesError:
                if local is None:
                    shutil.rmtree(download, ignore_errors=True)
                raise
            converted.mkdir()
            _write(source, raw, converted)
            if home.exists():
                home.rename(Path(name) / "old")
            converted.rename(home)
    except OSError as error:
        raise JudgeBayesError(f"{str(cache)!r} cannot be written: {error.strerror}.") from error
    shutil.rmtree(download, ignore_errors=True)
    return home


def _files(folder: Path, source: Source, paths: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a clone at the pinned commit, or of a plain folder."""
    if not folder.is_dir():
        raise JudgeBayesError(f"There is no folder {str(folder)!r}.")
    if git.has_commit(folder, source.commit):
        yield from git.read_blobs(folder, source.commit, paths)
        return
    for path in paths:
        file = folder / path
        if not file.is_file():
            raise JudgeBayesError(
                f"{str(folder)!r} is not a clone with commit {source.commit[:12]} of {source.url}, and "
                f"has no file {path!r}."
            )
        yield path, file.read_bytes()


def _write_verified(
    contents: Iterable[tuple[str, bytes]], sums: dict[str, str], raw: Path, source: Source
) -> None:
    """Write files into a folder, after comparing each with its checksum.

    The file names come from the package's list, not from the repository.
    """
    for path, content in contents:
        digest = _sha256(content)
        if digest != sums[path]:
            raise JudgeBayesError(
                f"{path!r} of {source.name} differs from the pinned file: its SHA-256 begins with "
                f"{digest[:12]} instead of {sums[path][:12]} (commit {source.commit[:12]} of "
                f"{source.url}); nothing was kept."
            )
        target = raw / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


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
        about.append(
            f"Not in the source, and therefore drawn at random from the names: {source.drawn}"
        )
    (folder / ABOUT).write_text("\n".join(about) + "\n", encoding="utf-8")
    lines = [f"{_sha256(p.read_bytes())}  {p.name}\n" for p in sorted(folder.iterdir())]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
