"""Progress of long work, for someone who watches."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

__all__ = ["Progress", "followed", "shown", "stepped", "tracked"]

T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""What long work calls: what is being done, how many parts of it are done, and how many there are."""


def followed(things: Collection[T], what: str, progress: Progress | None) -> Iterator[T]:
    """Yield things, and call `progress` before each and after the last."""
    tell = progress or (lambda *_: None)
    for done, thing in enumerate(things):
        tell(what, done, len(things))
        yield thing
    tell(what, len(things), len(things))


@contextmanager
def shown() -> Iterator[Progress]:
    """Give a callback that draws a bar for each thing that is being done, where `tracked` does."""
    with _bar() as bars:
        tasks: dict[str, TaskID] = {}

        def tell(what: str, done: int, total: int) -> None:
            task = tasks.get(what)
            if task is None:
                task = tasks[what] = bars.add_task(what, total=total)
            bars.update(task, completed=done)

        yield tell


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


def _bar() -> "Bars":
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
