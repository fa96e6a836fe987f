"""Posteriors as ArviZ containers, and ArviZ's diagnostics as sentences.

A posterior's file is numbers and JSON in an archive of plain arrays (`.npz`). It may come from anywhere:
it has no pickle, and its sizes are checked before its arrays are read.

The only module that calls ArviZ, whose two lines (0.23 for Python 3.11, 1.x from 3.12) build and
return different containers.
"""

import contextlib
import importlib.util
import json
import warnings
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError
from judgebayes.finding import Finding, Severity
from judgebayes.inference.problem import Chains

RHAT_LIMIT = 1.01
ESS_PER_CHAIN = 100
BFMI_LIMIT = 0.3
INTERVAL = (0.05, 0.95)
NETCDF, ENGINE = ".nc", "h5netcdf"
"""The suffix of an export, and the package that writes it."""
LOG_PRIOR = "log_prior"
K_LIMIT = 0.7
"""Vehtari et al. (2024): above it, PSIS does not approximate leaving the item out."""
CONSTANT = 1e-12
"""A log-likelihood whose range over draws is below this counts as constant."""
ROUNDING = 1e-5
"""A log-probability may be above 0 by rounding."""
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


def arviz() -> ModuleType:
    """Return ArviZ, which is imported when it is needed: that takes a second.

    Version 0.23 announces 1.0 at its import, once a day, and keeps the day in a file. Of two processes
    that do so at the same time, one does not find its temporary file any more, and tries again.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            import arviz
        except FileNotFoundError:
            import arviz

    return arviz


def to_arviz(
    chains: Chains,
    groups: Mapping[str, Mapping[str, np.ndarray]] = MappingProxyType({}),
    *,
    coords: Mapping[str, Sequence[Any]] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    attributes: Mapping[str, str | int] | None = None,
) -> Any:
    """Return draws as ArviZ's own container: InferenceData before 1.0, DataTree from it on.

    Parameters
    ----------
    chains
        The draws and the sampler's records.
    groups
        Further groups by name, such as "log_likelihood", each with its arrays (chain, draw, ...);
        "observed_data" has no such axes, and predictions may be of some draws only.
    coords, dims
        Names of the axes beyond chain and draw; variables that do not exist are ignored.
    attributes
        Attributes of the container, by name.
    """
    import xarray

    content: dict[str, dict[str, np.ndarray]] = {
        "posterior": {name: np.asarray(x) for name, x in chains.draws.items()},
        "sample_stats": {
            "diverging": np.asarray(chains.diverging),
            "energy": np.asarray(chains.energy),
            "tree_depth": np.asarray(chains.tree_depth).astype(int),
            "acceptance_rate": np.asarray(chains.acceptance),
        },
        **{name: dict(group) for name, group in groups.items() if name != LOG_PRIOR},
    }
    variables = {name for group in content.values() for name in group}
    named = {name: list(axes) for name, axes in (dims or {}).items() if name in variables}
    axes = {"coords": dict(coords or {}), "dims": named}
    az = arviz()
    with warnings.catch_warnings():
        # ArviZ warns of the prior's single chain, which is intended.
        warnings.filterwarnings("ignore", message="More chains")
        container = (
            az.from_dict(content, **axes) if _from_1_0(az) else az.from_dict(**content, **axes)
        )
    if LOG_PRIOR in groups:  # a number for each draw, also for variables whose draws have axes
        of_draw = {name: (("chain", "draw"), x) for name, x in groups[LOG_PRIOR].items()}
        places = {
            axis: np.arange(n)
            for axis, n in zip(("chain", "draw"), chains.diverging.shape, strict=True)
        }
        container[LOG_PRIOR] = xarray.Dataset(of_draw, places)
    container.attrs.update(attributes or {})
    return container


def _from_1_0(az: ModuleType) -> bool:
    return int(az.__version__.split(".")[0]) >= 1


def save(data: Any, path: Path, *, overwrite: bool = False) -> None:
    """Write a container atomically: to a file of its numbers for `load`, or as netCDF for others.

    Parameters
    ----------
    data
        What `to_arviz` returned, or another container with variables in groups.
    path
        The file. The suffix `.nc` exports netCDF, which `load` does not read.
    overwrite
        Whether an existing file is replaced.

    Raises
    ------
    JudgeBayesError
        If the file exists and `overwrite` is not set, the folder cannot be written to, or the package
        that writes netCDF is missing.
    """
    if path.exists() and not overwrite:
        raise JudgeBayesError(
            f"{str(path)!r} exists already; choose another file, or use --overwrite."
        )
    check_format(path)
    if path.suffix == NETCDF:
        _export(data, path)
        return
    names = data.children if hasattr(data, "children") else data.groups()
    parts = {str(name): _dataset(data[name]) for name in names}
    variables = {f"{name}/{key}": x for name, p in parts.items() for key, x in p.data_vars.items()}
    rest = {
        "axes": {place: list(map(str, x.dims)) for place, x in variables.items()},
        "coords": {
            name: {str(axis): part.coords[axis].to_numpy().tolist() for axis in part.indexes}
            for name, part in parts.items()
        },
        "attributes": dict(data.attrs),
    }
    write_stored({place: x.to_numpy() for place, x in variables.items()}, rest, path)


def check_format(path: Path) -> None:
    """Check, before the work starts, that a posterior can be written in the format of a path.

    Raises
    ------
    JudgeBayesError
        If it is netCDF, and the package that writes it is missing.
    """
    if path.suffix == NETCDF and importlib.util.find_spec(ENGINE) is None:
        raise JudgeBayesError(
            f"netCDF, for {path.name!r}, needs a package: pip install 'judgebayes[netcdf]'. Or name a "
            "file that ends in .npz."
        )


def _export(data: Any, path: Path) -> None:
    """Write a container as netCDF."""
    options: dict[str, Any] = {"engine": ENGINE}
    if hasattr(data, "children"):
        options["encoding"] = {
            group.path: {
                name: {"zlib": True}
                for name, x in group.data_vars.items()
                if x.dtype.kind in "biuf" and x.ndim
            }
            for group in data.subtree
        }
    with atomically(path) as part:
        data.to_netcdf(str(part), **options)


def load(path: Path) -> Any:
    """Return the container in a file that `save` wrote, but not as netCDF.

    Raises
    ------
    JudgeBayesError
        If the file does not exist, is netCDF or damaged, would need far more memory than it has bytes,
        or has variables without a finite number for each chain and draw.
    """
    if path.suffix == NETCDF:
        raise JudgeBayesError(
            f"{str(path)!r} is netCDF, which is written for other programs and not read: sample the "
            "posterior into a file that ends in .npz."
        )
    if not path.is_file():
        raise JudgeBayesError(f"There is no file {str(path)!r}.")
    try:
        data = _restored(*read_stored(path))
        draws = _dataset(data["posterior"]).data_vars
        if not draws or not all(map(_is_drawn, draws.values())):
            raise ValueError("a variable has other axes, or a number that is not finite")
    except JudgeBayesError:
        raise
    except Exception as error:  # NumPy, zipfile and ArviZ raise many kinds of errors
        raise JudgeBayesError(
            f"{str(path)!r} is damaged, or no posterior; use a file that ends in .npz and that "
            "`judgebayes posterior` wrote."
        ) from error
    return data


def _restored(arrays: Mapping[str, np.ndarray], rest: Mapping[str, Any]) -> Any:
    import xarray

    variables: dict[str, dict[str, Any]] = {name: {} for name in rest["coords"]}
    for place, values in arrays.items():
        group, _, name = place.partition("/")
        variables[group][name] = (rest["axes"][place], values)
    groups = {name: xarray.Dataset(x, rest["coords"][name]) for name, x in variables.items()}
    az = arviz()
    data = xarray.DataTree.from_dict(groups) if _from_1_0(az) else az.InferenceData(**groups)
    data.attrs.update(rest["attributes"])
    return data


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


def _is_drawn(values: Any) -> bool:
    """Return whether a variable has a finite number for each chain and draw."""
    numbers = values.to_numpy()
    return (
        tuple(values.dims[:2]) == ("chain", "draw")
        and numbers.size > 0
        and bool(np.isfinite(numbers).all())
    )


def leave_one_out(data: Any, name: str) -> pd.DataFrame:
    """Return how well the posterior of all other items predicts each item (PSIS-LOO): a row per item.

    `elpd` is its log predictive density, by one variable of the group log_likelihood, and `k` the Pareto
    k of its importance weights, above `K_LIMIT` where the density is unreliable. Vehtari, Gelman & Gabry
    (2017); the computation is ArviZ's.

    Raises
    ------
    JudgeBayesError
        If a log-likelihood is not that of a label or a vote (finite, and at most 0), it has other chains
        and draws than the posterior, an item is named twice, or a score is not finite.
    """
    az = arviz()
    array = _dataset(data["log_likelihood"])[name]
    values = array.to_numpy()
    draws = _dataset(data["posterior"]).sizes
    shape = draws.get("chain"), draws.get("draw")
    axis = array.dims[-1]
    named = array.coords[axis].to_numpy() if axis in array.coords else range(array.sizes[axis])
    items = pd.Index([str(item) for item in named])
    if (
        array.dims[:2] != ("chain", "draw")
        or values.shape != (*shape, len(items))
        or values.dtype.kind != "f"
        or not values.size
        or items.has_duplicates
    ):
        raise JudgeBayesError(
            f"The log-likelihood {name!r} has axes {array.dims} and type {values.dtype}; it must "
            "have a number for each chain and draw of the posterior and each item, none of them "
            "twice. Sample the posterior again."
        )
    wrong = ~(values <= ROUNDING) | ~np.isfinite(values)
    if wrong.any():
        raise JudgeBayesError(
            f"{int(wrong.sum()):,} of {values.size:,} values of the log-likelihood {name!r} are no log "
            f"probabilities, such as {float(values[wrong][0]):g}: this posterior cannot be scored. "
            "Sample it again."
        )
    # A constant log-likelihood has equal weights, and no tail to fit.
    varies = np.ptp(values, axis=(0, 1)) >= CONSTANT
    elpd, k = values[0, 0].copy(), np.zeros(len(items))
    if varies.any():
        with _without_warnings():
            some = data if varies.all() else _with_likelihood(data, name, values[..., varies])
            loo = az.loo(some, pointwise=True, var_name=name)
        each = loo.elpd_i if hasattr(loo, "elpd_i") else loo.loo_i
        elpd[varies], k[varies] = np.asarray(each, float), np.asarray(loo.pareto_k, float)
    if not np.isfinite(elpd).all():
        raise JudgeBayesError(
            f"The log score of {int((~np.isfinite(elpd)).sum())} of {len(elpd)} items is not finite: "
            "this posterior cannot be scored. Sample it again."
        )
    return pd.DataFrame({"elpd": elpd, "k": k}, items)


def unreliable(loo: pd.DataFrame) -> list[str]:
    """Return the items of `leave_one_out` with an unreliable value, the worst first."""
    worst_first = loo["k"].sort_values(ascending=False, kind="stable")
    return [str(item) for item in worst_first.index[~(worst_first <= K_LIMIT)]]


def _with_likelihood(data: Any, name: str, values: Float[np.ndarray, "chain draw some"]) -> Any:
    """Return the posterior with only this log-likelihood."""
    az, draws = arviz(), _dataset(data["posterior"])
    groups = {
        "posterior": {key: x.to_numpy() for key, x in draws.data_vars.items()},
        "log_likelihood": {name: values},
    }
    return az.from_dict(groups) if _from_1_0(az) else az.from_dict(**groups)


@contextlib.contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress ArviZ's warnings; the caller reports unreliable items itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def summary(data: Any, only: Collection[str] | None = None) -> pd.DataFrame:
    """Return a row per parameter: mean, sd, 90 % interval, MCSE, ESS (bulk, tail) and R-hat.

    Parameters
    ----------
    data
        What `to_arviz` returned, or any ArviZ posterior.
    only
        The variables to summarise; all by default.
    """
    az = arviz()
    draws = _dataset(data["posterior"])
    names = list(draws.data_vars if only is None else only)
    draws = draws[names]
    with _without_warnings():  # constants have no R-hat
        columns = {
            "mean": draws.mean(("chain", "draw")),
            "sd": draws.std(("chain", "draw"), ddof=1),
            "low": draws.quantile(INTERVAL[0], ("chain", "draw")),
            "high": draws.quantile(INTERVAL[1], ("chain", "draw")),
            "mcse_mean": _dataset(az.mcse(data, var_names=names, method="mean")),
            "ess_bulk": _dataset(az.ess(data, var_names=names, method="bulk")),
            "ess_tail": _dataset(az.ess(data, var_names=names, method="tail")),
            "r_hat": _dataset(az.rhat(data, var_names=names)),
        }
    return pd.DataFrame({column: _flat(values) for column, values in columns.items()})


def _dataset(group: Any) -> Any:
    return group if hasattr(group, "data_vars") and not hasattr(group, "children") else group.ds


def _flat(dataset: Any) -> dict[str, float]:
    """Return a number for each entry of each variable, named by its coordinates."""
    numbers = {}
    for variable, array in dataset.data_vars.items():
        for position, value in np.ndenumerate(array.to_numpy()):
            labels = [
                str(array.coords[dim].to_numpy()[i]) if dim in array.coords else str(i)
                for dim, i in zip(array.dims, position, strict=True)
            ]
            name = f"{variable}[{', '.join(labels)}]" if labels else str(variable)
            numbers[name] = float(value)
    return numbers


def diagnose(data: Any, only: Collection[str] | None = None) -> list[Finding]:
    """Return findings on R-hat, ESS, divergences and E-BFMI of a posterior.

    Vehtari et al. (2021) for R-hat below 1.01 and an effective sample size of 100 per chain;
    Betancourt (2016) for E-BFMI above 0.3.

    Parameters
    ----------
    data
        What `to_arviz` returned, or any ArviZ posterior.
    only
        The variables to check; all by default.

    Raises
    ------
    JudgeBayesError
        If there is only one chain, so that agreement cannot be checked.
    """
    table = summary(data, only)
    n_chains, n_draws = (data["posterior"].sizes[axis] for axis in ("chain", "draw"))
    if n_chains < 2:
        raise JudgeBayesError(
            "There is only one chain, so convergence cannot be checked; sample two or more chains."
        )
    worst = table["r_hat"].idxmax()
    least = min(float(table["ess_bulk"].min()), float(table["ess_tail"].min()))
    stats = data["sample_stats"]
    diverging = int(np.asarray(stats["diverging"]).sum())
    energy = np.asarray(stats["energy"])
    bfmi = (np.diff(energy, axis=1) ** 2).mean(1) / energy.var(1)
    checks: list[tuple[bool, Severity, str]] = [
        (
            bool((table["r_hat"] < RHAT_LIMIT).all()),
            "bad",
            f"The {n_chains} chains do not agree: R-hat is {table['r_hat'][worst]:.3f} for "
            f"{worst} (it should be below {RHAT_LIMIT}). Take more draws; if this persists, the "
            "posterior may have several modes.",
        ),
        (
            least >= ESS_PER_CHAIN * n_chains,
            "bad",
            f"The draws are worth only {least:.0f} independent draws for some parameter (at "
            f"least {ESS_PER_CHAIN * n_chains} are needed). Take more draws.",
        ),
        (
            not diverging,
            "bad",
            f"{diverging} of {n_chains * n_draws} draws diverged, so they may miss a part of "
            "the posterior. Raise target_accept towards 0.99.",
        ),
        (
            bool((bfmi > BFMI_LIMIT).all()),
            "note",
            f"E-BFMI is {bfmi.min():.2f} in one chain (it should be above {BFMI_LIMIT}): the tails "
            "are explored slowly.",
        ),
    ]
    findings = [Finding(severity, text) for holds, severity, text in checks if not holds]
    agree = (
        f"{n_chains} chains of {n_draws} draws agree (R-hat at most "
        f"{table['r_hat'].max():.3f}), worth at least {least:.0f} independent draws for "
        "every parameter; no divergence."
    )
    return findings or [Finding("good", agree)]
