"""Versions of the software behind a result."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from judgebayes import __version__

PACKAGES = ("jax", "jaxlib", "numpyro", "numpy", "scipy", "pandas", "scikit-learn")
OTHERS = (
    "arviz",
    "optax",
    "matplotlib",
    "pyarrow",
    "rapidfuzz",
    "cyclopts",
    "sentence-transformers",
)
"""Further packages for `show_versions`, which do not affect results."""
SETTINGS = ("JAX_PLATFORMS", "JAX_ENABLE_X64", "XLA_FLAGS", "OPENBLAS_NUM_THREADS")


def versions() -> list[tuple[str, str]]:
    """Return the versions of Python, the platform and the packages that results depend on."""
    system = [("Python", platform.python_version()), ("platform", platform.platform(terse=True))]
    # The version of the code that runs, also beside an older installation.
    system.append(("judgebayes", __version__))
    return system + [(name, _version(name, "not installed as a package")) for name in PACKAGES]


def show_versions() -> None:
    """Print the versions, devices and settings for a bug report."""
    import jax

    devices = ", ".join(f"{d.platform} {d.device_kind}" for d in jax.devices())
    cores = f"{os.cpu_count()} cores"
    rows = [
        *versions(),
        *((name, _version(name, "-")) for name in OTHERS),
        ("devices", f"{devices}; {cores}"),
        *((name, os.environ[name]) for name in SETTINGS if name in os.environ),
    ]
    width = max(len(name) for name, _ in rows)
    print("\n".join(f"{name:<{width}}  {value}" for name, value in rows))  # noqa: T201


def _version(name: str, absent: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return absent
