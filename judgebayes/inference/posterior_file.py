"""The file of a posterior: numbers and JSON in an archive of plain arrays (`.npz`).

A file may come from anywhere: it has no pickle, and its sizes are checked before its arrays are read.
"""

import json
import zipfile
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError

NUMBERS = "fiub"
"""Kinds of arrays: floats, whole numbers, booleans."""
REST = "rest"
"""The array with the JSON, as bytes."""
SMALL_BYTES = 128 * 2**20
"""A posterior of at most this size in memory is read, however small its file is."""
MOST_RATIO = 100
"""The largest ratio of the size in memory to that of the file: draws cannot be packed well."""


Arrays = dict[str, np.ndarray]
"""The arrays of a posterior by group and name: `posterior/accuracy`."""


def write_stored(arrays: Arrays, rest: Mapping[str, Any], path: Path) -> None:
    """Write a posterior atomically.

    Parameters
    ----------
    arrays
        The arrays.
    rest
        What becomes JSON: the names of each array's `axes`, the `coords` along the axes of each group,
        and the `attributes`.
    path
        The file.

    Raises
    ------
    JudgeBayesError
        If the folder cannot be written to.
    """
    json_bytes = np.frombuffer(json.dumps(rest).encode(), np.uint8)
    with atomically(path) as part, part.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays, **{REST: json_bytes})


def read_stored(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the rest of a posterior in a file, as `write_stored` takes them.

    Raises
    ------
    JudgeBayesError
        If it would need far more memory than it has bytes.
    Exception
        If it is no such file, or is damaged: NumPy and zipfile raise many kinds of errors.
    """
    with zipfile.ZipFile(path) as archive:
        _check_sizes(archive, path)
    with np.load(path, allow_pickle=False) as content:
        arrays = {name: content[name] for name in content.files}
    return arrays, json.loads(arrays.pop(REST).tobytes())


def _check_sizes(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse an archive that needs far more memory than its file has bytes.

    Raises
    ------
    JudgeBayesError
        If it does.
    ValueError
        If an array is not of numbers, or has fewer bytes than its shape needs.
    """
    most = max(SMALL_BYTES, MOST_RATIO * path.stat().st_size)
    if sum(member.file_size for member in archive.infolist()) > most:
        raise JudgeBayesError(
            f"{str(path)!r} would need more than {most / 2**20:,.0f} MiB of memory, which is the most "
            "for a file of its size: this is no posterior that `judgebayes posterior` wrote."
        )
    for member in archive.infolist():
        with archive.open(member) as file:
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            if (
                dtype.kind not in NUMBERS
                or file.tell() + prod(shape) * dtype.itemsize != member.file_size
            ):
                raise ValueError("an array has another size")


def check_draws(posterior: Any, path: Path) -> None:
    """Check that every variable of a posterior has a finite number for each chain and draw.

    Raises
    ------
    JudgeBayesError
        If there is none, or for the first variable that has not.
    """
    for name, values in posterior.data_vars.items():
        if tuple(values.dims[:2]) != ("chain", "draw") or not values.size:
            raise JudgeBayesError(
                f"Variable {name!r} of {str(path)!r} has the axes {', '.join(map(str, values.dims))}; "
                "it must have a number for each chain and draw. Sample the posterior again."
            )
        wrong = int((~np.isfinite(values.to_numpy())).sum())
        if wrong:
            raise JudgeBayesError(
                f"Variable {name!r} of {str(path)!r} has {wrong:,} of {values.size:,} values that are "
                "not finite; sample the posterior again."
            )
    if not posterior.data_vars:
        raise JudgeBayesError(f"{str(path)!r} has no draws.")
