"""Records of options: the help of each field, instead of a signature that contains it."""

from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from judgebayes.workflow import options

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def hints_of(thing: object) -> dict[str, Any]:
    """Return the annotations of a record of options by field, none of anything else."""
    if getattr(thing, "__module__", None) != options.__name__ or not is_dataclass(thing):
        return {}
    hints = get_type_hints(thing, include_extras=True)
    helps = [hint for hint in hints.values() if get_origin(hint) is Annotated]
    return hints if helps else {}


def without_signature(
    app: "Sphinx",
    what: str,
    name: str,
    thing: object,
    settings: object,
    given: str | None,
    returned: str | None,
) -> tuple[str, None] | None:
    """Leave out the signature of a record of options: its fields are listed below it."""
    return ("", None) if hints_of(thing) else None


def with_fields(
    app: "Sphinx", what: str, name: str, thing: object, settings: object, lines: list[str]
) -> None:
    """List the fields of a record of options, with their help and defaults."""
    hints = hints_of(thing)
    if not hints:
        return
    lines.append("")
    for own in fields(thing):  # type: ignore[arg-type]
        hint = hints[own.name]
        if get_origin(hint) is not Annotated:
            continue  # no option of this command
        mark = get_args(hint)[1]
        text = escaped(mark if isinstance(mark, str) else mark.help)
        default = "" if own.default is MISSING else f" Default: ``{own.default!r}``."
        lines.append(f":param {own.name}: {text}{default}")


def escaped(text: str) -> str:
    """Return text that reStructuredText prints as it is."""
    return "".join(f"\\{sign}" if sign in "\\*`_|" else sign for sign in text)


def setup(app: "Sphinx") -> None:
    """Connect it."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-signature", without_signature)
    app.connect("autodoc-process-docstring", with_fields)
