"""JSON objects whose fields have different names: of two with one name, it is unknown which counts."""

from collections import Counter
from typing import Any


class SameNameError(ValueError):
    """An object has two fields of the same name, which is the error's argument."""


def unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object from its fields, for `json.loads(text, object_pairs_hook=unique_fields)`.

    Raises
    ------
    SameNameError
        If two fields have the same name.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise SameNameError(next(n for n, k in Counter(n for n, _ in pairs).items() if k > 1))
    return fields
