"""What the repr of a fitted value says: names, small numbers, shapes of large arrays, how it ended."""

import textwrap
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from wadler_lindig import AbstractDoc, TextDoc, bracketed, comma, named_objs, pformat

from judgebayes.inference.status import Status

__all__ = ["FEW", "ended", "summary"]

WIDTH, UNBROKEN = 99, 10**6
"""Columns of a line, and of a text that is broken later."""
FEW = 6
"""Arrays of up to this many numbers are shown, larger ones by type and shape."""


def summary(value: Any) -> str:
    """Return a dataclass on a line, or on a few; what is not there is left out.

    Inside a transformation, where arrays have no values, their shapes stand alone.
    """
    shown: list[tuple[str, Any]] = []
    for each in fields(value):
        found = getattr(value, each.name, None)
        if each.name == "status":
            shown.append((each.name, TextDoc(ended(found))))
        elif found is not None:
            shown.append((each.name, found))
    names = named_objs(
        shown,
        custom=_short,
        indent=2,
        short_arrays=True,
        hide_defaults=False,
        show_type_module=False,
        show_dataclass_module=False,
        show_function_module=False,
        respect_pdoc=True,
        seen_ids=set(),
    )
    begin, end = TextDoc(f"{type(value).__name__}("), TextDoc(")")
    line = pformat(bracketed(begin, names, comma, end, 2), width=UNBROKEN)
    return "\n".join(textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_long_words=False))


def ended(status: Any) -> str:
    """Return how a fit ended, or how many of a batch ended how."""
    try:
        each = np.asarray(status).astype(int).ravel()
    except Exception:  # a tracer, which only JAX can name, or a placeholder inside a transformation
        return "?"
    if np.ndim(status) == 0:
        return Status(int(each[0])).name.lower()
    kinds, counts = np.unique(each, return_counts=True)
    pairs = zip(kinds, counts, strict=True)
    return ", ".join(f"{Status(int(k)).name.lower()} {n}" for k, n in pairs) or "none"


def _short(value: Any) -> AbstractDoc | None:
    """Return small arrays as numbers, and values that have a repr of their own as it says."""
    if is_dataclass(value):
        # A repr that the decorator wrote is wrapped, against recursion.
        written = hasattr(type(value).__repr__, "__wrapped__")
        return None if written or isinstance(value, type) else TextDoc(repr(value))
    if not hasattr(value, "dtype") or not hasattr(value, "shape") or np.prod(value.shape) > FEW:
        return None
    try:
        text = np.array2string(np.asarray(value), precision=3, separator=", ")
    except Exception:  # as above
        return None
    return TextDoc(" ".join(text.split()))
