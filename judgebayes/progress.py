"""Progress of long work, for someone who watches."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["stepped", "tracked"]

T = TypeVar("T")


@contextmanager
def tracked(things: Collection[T], what: str, shown: bool) -> Iterator[Iterable[T]]:
    """Give things to loop over; show how many are done and the time left, if asked and if it is seen.

    The bar goes to standard error, in a terminal or a notebook, and is gone when the block ends, by an
    interrupt too. Elsewhere, in a log say, nothing is written.
    """
    if not shown:
        yield things
        return
    with _bar() as progress:
        yield progress.track(things, description=what)


@contextmanager
def stepped(total: int) -> Iterator[Callable[[int, str], None] | None]:
    """Give what to call with how many of `total` steps are done, and with words beside the bar.

    The bar stands where that of `tracked` does; None is given where nobody would see it.
    """
    with _bar() as progress:
        bar = progress.add_task("compiling", total=total)

        def tell(done: int, words: str) -> None:
            progress.update(bar, completed=done, description=words)

        yield None if progress.disable else tell


def _bar() -> "Progress":
    """Return a bar of progress on standard error, hidden where that is not watched."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    text = TextColumn("{task.description}")
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    hidden = not (console.is_terminal or console.is_jupyter)
    return Progress(*columns, console=console, transient=True, disable=hidden)
