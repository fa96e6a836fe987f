"""What a number was computed with."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from judgebayes import __version__

__all__ = ["show_versions", "versions"]

PACKAGES = ("jax", "jaxlib", "numpyro", "numpy", "scipy", "pandas", "scikit-learn")
OTHERS = ("arviz", "optax", "matplotlib", "pyarrow", "rapidfuzz", "typer", "sentence-transformers")
"""What `show_versions` adds: no number of a result comes from these."""
SETTINGS = ("JAX_PLATFORMS", "JAX_ENABLE_X64", "XLA_FLAGS", "OPENBLAS_NUM_THREADS")


def versions() -> list[tuple[str, str]]:
    """Return Python, the platform and the packages that results depend on, with their versions."""
    found = [("Python", platform.python_version()), ("platform", platform.platform(terse=True))]
    # The version of the code that runs, also beside an older installation.
    found.append(("judgebayes", __version__))
    return found + [(name, _version(name, "not installed as a package")) for name in PACKAGES]


def show_versions() -> None:
    """Print what a bug report needs: versions, devices and the settings that change results."""
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
    print("\n".join(f"{name:<{width}}  {told}" for name, told in rows))  # noqa: T201


def _version(name: str, absent: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return absent
