"""Ask a question, print its answer, and write the files that options name."""

import inspect
import shlex
from collections.abc import Callable
from typing import Any

import pandas as pd

from judgebayes.cli.command import OUTPUTS, CommandLine, files_in
from judgebayes.compiled.store import atomically
from judgebayes.errors import JudgeBayesError
from judgebayes.io.tables import check_writable, write_table
from judgebayes.progress import shown
from judgebayes.show.console import say, say_commands, say_next, say_plainly, show_blocks
from judgebayes.show.page import Plot
from judgebayes.workflow.leaves import leaves
from judgebayes.workflow.machine import CommandResult
from judgebayes.workflow.results import Result


def answered(line: CommandLine, question: Callable[..., Result], request: Any) -> CommandResult:
    """Ask a question, print the blocks of its answer, write the files, and return the answer.

    Raises
    ------
    JudgeBayesError
        For bad input, or if a file cannot be written, which is checked before the work starts.
    """
    for leaf in leaves(type(request), {}):
        if leaf.option.writes:
            path = getattr(request, leaf.name)
            check_writable(path, table=leaf.option.writes == "table")
            if leaf.name == "html" and path is not None and path.suffix != ".html":
                raise JudgeBayesError(f"A page ends in .html; {str(path)!r} does not.")
    command, taken = shlex.join(line.words()), inspect.signature(question).parameters
    with shown() as progress:
        given = {"progress": progress, "command": command}
        result = question(request, **{name: x for name, x in given.items() if name in taken})
    show_blocks(result.blocks)
    places: list[str] = []
    for name, (words, written) in result.files.items():
        path = getattr(request, name)
        if path is None:
            continue
        if isinstance(written, pd.DataFrame):
            write_table(written, path)
        else:
            written(path)
        places.append(f"{path}: {words}.")
    if request.html is not None:
        from judgebayes.report import page_of  # imports Matplotlib

        inputs = [value for name, value in vars(request).items() if name not in OUTPUTS]
        read = [path for value in inputs for path in files_in(value) if path.is_file()]
        with atomically(request.html) as temporary:
            temporary.write_text(page_of(result, command, read), encoding="utf-8")
        places.append(f"{request.html}: the page.")
    if places:
        say_plainly("")
        say(*places)
    say_next(result.next_steps)
    if request.html is None and any(isinstance(block, Plot) for block in result.blocks):
        say_plainly("")
        say("For a page with figures, add --html FILE.")
    for other, words in result.next_commands.items():
        say_plainly("")
        say_commands((words, line.other(other)))
    return result.for_machines()
