"""The options of a record: its fields with an `Option` or a help text."""

import inspect
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, get_args, get_type_hints

from judgebayes.workflow.options import Option


@dataclass(frozen=True)
class Leaf:
    """An option: a field of a record."""

    name: str
    type: Any
    option: Option
    default: Any

    @property
    def shown(self) -> str:
        """What a user types."""
        return self.name if self.option.key else f"--{self.name.replace('_', '-')}"


def leaves(record: type, fixed: Mapping[str, object]) -> list[Leaf]:
    """Return the options of a record, in the order of its fields."""
    hints, every = get_type_hints(record, include_extras=True), list[Leaf]()
    for own in fields(record):
        bare, marks = parts_of(hints[own.name])
        if marks and own.name not in fixed:
            option = Option(marks[0]) if isinstance(marks[0], str) else marks[0]
            default = inspect.Parameter.empty if own.default is MISSING else own.default
            every.append(Leaf(own.name, bare, option, default))
    return every


def parts_of(hint: Any) -> tuple[Any, list[Any]]:
    """Return the type of an annotation, and its metadata."""
    bare, *marks = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
    return bare, marks
