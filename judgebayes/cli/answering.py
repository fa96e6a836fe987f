"""Ask a question, print its answer, and write the files that options name."""

import inspect
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from judgebayes.cli.command import command_line, other_command
from judgebayes.cli.console import say, say_commands, say_next, say_plainly, show_blocks
from judgebayes.compiled.store import atomically
from judgebayes.io.tables import check_writable, write_table
from judgebayes.progress import shown
from judgebayes.show.page import Figure
from judgebayes.workflow.machine import CommandResult
from judgebayes.workflow.results import Result

FILES = {"out": True, "next_out": True, "save": False, "html": False}
"""The options of questions that name a file to write, and whether it is a table."""


def answered(context: Any, question: Callable[..., Result], request: Any) -> CommandResult:
    """Ask a question, print the blocks of its answer, write the files, and return the answer.

    Raises
    ------
    JudgeBayesError
        For bad input, or if a file cannot be written, which is checked before the work starts.
    """
    paths: dict[str, Path | None] = {name: getattr(request, name, None) for name in FILES}
    for name, path in paths.items():
        check_writable(path, table=FILES[name])
    with shown() as progress:
        followed = "progress" in inspect.signature(question).parameters
        result = question(request, **({"progress": progress} if followed else {}))
    show_blocks(result.blocks)
    for name, (words, written) in result.files.items():
        path = paths[name]
        if path is None:
            continue
        if isinstance(written, pd.DataFrame):
            write_table(written, path)
        else:
            written(path)
        say(f"{path}: {words}.")
    if paths["html"] is not None:
        from judgebayes.report.pages import page_of  # imports Matplotlib

        with atomically(paths["html"]) as temporary:
            page = page_of(result, shlex.join(command_line(context)))
            temporary.write_text(page, encoding="utf-8")
        say(f"The page is in {paths['html']}.")
    say_next(result.next_steps)
    say_plainly("")
    if paths["html"] is None and any(isinstance(block, Figure) for block in result.blocks):
        say("For a page with figures, add --html FILE.")
    for other, words in result.next_commands.items():
        say_commands((words, other_command(context, other)))
    return result.for_machines()
