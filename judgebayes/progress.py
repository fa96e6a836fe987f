"""Progress bars and progress callbacks for long computations."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""A callback with the name of the task, the number of finished parts, and the number of all parts."""


def followed(items: Collection[T], what: str, progress: Progress | None) -> Iterator[T]:
    """Return an iterator over items that calls `progress`, if given, before each and after the last."""
    return iter(items) if progress is None else _reported(items, what, progress)


def _reported(items: Collection[T], what: str, progress: Progress) -> Iterator[T]:
    for done, item in enumerate(items):
        progress(what, done, len(items))
        yield item
    progress(what, len(items), len(items))


@contextmanager
def shown() -> Iterator[Progress | None]:
    """Yield a callback that shows a progress bar for each task.

    The bars are written to standard error, in a terminal or a notebook, and disappear when the block
    ends, also by an interrupt. Elsewhere, for example in a log, nothing is written: None is yielded.
    """
    with bar() as bars:
        tasks: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int) -> None:
            task = tasks.get(what)
            if task is None:
                task = tasks[what] = bars.add_task(what, total=total)
            bars.update(task, completed=done)

        yield None if bars.disable else report


@contextmanager
def stepped(total: int) -> Iterator[Callable[[int, str], None] | None]:
    """Yield a callback that takes the number of finished steps, out of `total`, and a description.

    The bar is shown under the conditions of `shown`; where it is hidden, None is yielded.
    """
    with bar() as progress:
        task = progress.add_task("compiling", total=total)

        def report(done: int, description: str) -> None:
            progress.update(task, completed=done, description=description)

        yield None if progress.disable else report


def bar() -> "Bars":
    """Return a progress bar on standard error, hidden unless it is a terminal or a notebook."""
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
