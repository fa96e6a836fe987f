r"""The terminal: text of files and servers never acts on it.

A name in a file may contain escape sequences, which would clear the screen, set the title, or forge
output. Every command prints through this console, which shows such characters as `\x1b`.
"""

import os
from collections.abc import Iterable
from typing import IO

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

LAYOUT = "\n\t"


def visible(text: str) -> str:
    r"""Return the text with characters that cannot be printed as escapes; lines and tabs remain.

    >>> visible("a\x1b[2Jb")
    'a\\x1b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in LAYOUT else repr(c)[1:-1] for c in text)


def send_nowhere(file: IO[str]) -> None:
    """Send what is still written to a file nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, file.fileno())
    os.close(nowhere)


class Console(RichConsole):
    """Rich's console; characters that cannot be printed are shown as escapes.

    Rich adds its own sequences for colours after this step. If the reader of a pipe has ended, as
    `head` does, the command goes on without it: its files are written, and its exit code is its own.
    """

    def on_broken_pipe(self) -> None:
        """Send what is still printed nowhere."""
        send_nowhere(self.file)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return the segments of an object, with every text visible."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style, segment.control)
