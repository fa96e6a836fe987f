"""The run-time type checker of the tests: beartype, with int accepted for float."""

from typing import Any

from beartype import BeartypeConf, beartype

_checked = beartype(conf=BeartypeConf(is_pep484_tower=True))


def checker(function: Any) -> Any:
    """Check a function's annotations, but not the fields of dataclasses.

    JAX rebuilds its pytrees from tracers, axis numbers and placeholders; what the fields hold is
    checked where functions take them.
    """
    name = getattr(function, "__qualname__", "")
    return function if name.endswith("__init__") else _checked(function)
