"""The run-time type checker of the tests: beartype, with int accepted for float."""

from functools import wraps
from typing import Any

from beartype import BeartypeConf, beartype

_checked = beartype(conf=BeartypeConf(is_pep484_tower=True))


def checker(function: Any) -> Any:
    """Check a function's annotations, but not the fields of dataclasses.

    JAX rebuilds its pytrees from tracers, axis numbers and placeholders; what the fields hold is
    checked where functions take them.

    The check is written at the first call: a process calls a small part of the functions, and
    writing all checks at the import takes five times as long as the import.
    """
    if getattr(function, "__qualname__", "").endswith("__init__"):
        return function
    checked = None

    @wraps(function)
    def at_first_call(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked
        if checked is None:
            checked = _checked(function)
        return checked(*args, **kwargs)

    return at_first_call
