"""`judgebayes check`: all problems of a user's files at once, and one command that runs."""

from judgebayes.cli.console import MARKS, say, say_commands, say_plainly, show_rows
from judgebayes.cli.machine import BAD_INPUT
from judgebayes.io.tables import check_writable, write_table
from judgebayes.workflow.checking import check
from judgebayes.workflow.machine import CommandResult
from judgebayes.workflow.options import CheckRequest

GUESS = "[cyan]?[/]"
"""The mark of a guess that needs its option."""


def check_files(request: CheckRequest) -> CommandResult:
    """Print what is wrong with the files, what is guessed and fine, a command, and the questions."""
    check_writable(request.out)
    check_writable(request.save, table=False)
    result = check(request)
    if request.out is not None:
        write_table(result.ids, request.out)
    for severity, mark in MARKS.items():
        own = [each for each in result.findings if each.severity == severity]
        say(*(each.text for each in own if severity != "bad" or not each.option), mark=mark)
        if severity == "bad":  # settled by an option: a guess that the command states
            say(*(each.text for each in own if each.option), mark=GUESS)
    rows = [
        (str(row.question), str(row[2]), f"{'yes' if row.can else 'no'}: {row.why}")
        for row in result.questions.itertuples()
    ]
    head = ("question", "command", "answered")
    show_rows("What these files can answer", head, rows, texts=3)
    say_plainly("")
    if result.command is None:
        say("No command can read these files as they are: mend what is marked with x first.")
    else:
        say_commands(("This command runs:", result.command))
    if request.out is not None:
        say_plainly(f"The items of the labels are in {request.out}.")
    if request.save is not None and result.command is not None:
        say_plainly(f"How the files are read is in {request.save}.")
    return result.for_machines(BAD_INPUT if result.command is None else 0)
