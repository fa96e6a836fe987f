"""The help of a command: its options under headings, in two columns that keep every word."""

import textwrap
from collections.abc import Iterable
from typing import Any

LEFT, WIDTH = 24, 78
"""The width of the column of names, and of the whole."""


class TwoColumns:
    """The formatter that Cyclopts calls."""

    def __call__(self, console: Any, options: Any, panel: Any) -> None:  # noqa: ARG002
        """Print the commands or options under one heading."""
        rows = []
        for entry in panel.entries:
            with console.capture() as captured:
                console.print(entry.description, soft_wrap=True, markup=False, highlight=False)
            says = [captured.get()]
            says += [] if entry.default is None else [f"[default: {entry.default}]"]
            says += ["[required]"] if entry.required else []
            rows.append((", ".join(entry.display_labels_with_metavar), " ".join(says)))
        if rows:
            _print(console, "\n".join([f"{panel.title}:", *definitions(rows), ""]))

    def render_usage(self, console: Any, options: Any, usage: Any) -> None:  # noqa: ARG002
        """Print how the command is called."""
        _print(console, f"Usage: {str(usage or '').strip()}\n")


def _print(console: Any, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def paragraphs(doc: str) -> str:
    """Return a docstring whose paragraphs are as wide as the help."""
    return "\n\n".join(textwrap.fill(" ".join(p.split()), WIDTH) for p in doc.split("\n\n"))


def definitions(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Return names with what they mean beside them, or below those that are long."""
    lines: list[str] = []
    for name, text in rows:
        wrapped = textwrap.wrap(" ".join(text.split()), WIDTH - LEFT, break_on_hyphens=False)
        beside = len(name) < LEFT - 3
        lines.append(f"  {name:<{LEFT - 2}}{wrapped.pop(0)}" if beside and wrapped else f"  {name}")
        lines += [" " * LEFT + line for line in wrapped]
    return lines
