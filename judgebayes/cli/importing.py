"""`judgebayes import`: convert votes from other tools' formats into a tidy file."""

import shlex
from dataclasses import fields
from pathlib import Path

from judgebayes.cli.requests import ImportRequest
from judgebayes.io.formats import import_votes
from judgebayes.io.gathering import Imported
from judgebayes.io.options import Options, join_names
from judgebayes.io.tables import check_writable, write_table
from judgebayes.sentence import sentences
from judgebayes.show.console import say_plainly
from judgebayes.workflow.machine import CommandResult
from judgebayes.workflow.results import rows_of

LABELS = "labels.csv"
"""A file name to suggest for labels that do not exist yet."""


def import_file(request: ImportRequest) -> CommandResult:
    """Read a format, write votes and labels, print what was read and the next command.

    The counts of all records are returned.

    Raises
    ------
    JudgeBayesError
        If the source cannot be read, or a file cannot be written.
    """
    path, out, labels_out = request.path, request.out, request.labels_out
    options = Options(**{each.name: getattr(request, each.name) for each in fields(Options)})
    for place in (out, labels_out):
        check_writable(place)
    imported = import_votes(request.form, path, options)
    said = imported.words()
    say_plainly(*said)
    write_table(imported.votes, out)
    if labels_out is not None and imported.labels is None:
        say_plainly(
            f"{str(path)!r} has no labels: {str(labels_out)!r} is not written, the votes are."
        )
        labels_out = None
    if imported.labels is not None and labels_out is not None:
        write_table(imported.labels, labels_out)
        say_plainly(f"Labels: {labels_out}")
    to_do = advice(imported, labels_out)
    say_plainly(f"Votes: {out}", *to_do)
    command = next_command(imported, out, labels_out)
    say_plainly(f"Next: {command}")
    votes = imported.votes
    return CommandResult(
        {
            "votes_file": out,
            "labels_file": labels_out,
            "records": imported.read,
            "votes": int(votes["vote"].notna().sum()),
            "items": votes["item"].nunique(),
            "judges": votes["judge"].nunique(),
            "labels": None if imported.labels is None else len(imported.labels),
            "missing": dict(imported.missing),
            "dropped": dict(imported.dropped),
            "next": command,
            "sentences": sentences([*said, *to_do]),
            "tables": {"judges": rows_of(imported.coverage().reset_index())},
        }
    )


def advice(imported: Imported, labels_out: Path | None) -> list[str]:
    """Return what the user must decide or add before the next command."""
    lines = []
    if labels_out is None and imported.labels is not None:
        lines.append(
            f"The source has labels: import it again with --labels-out {LABELS} to write them."
        )
    elif labels_out is None:
        lines.append(
            f"Label some items first: write {LABELS} with the columns item and label. An example of an "
            f"item is {imported.votes['item'].iloc[0]!r}."
        )
    if "order" in imported.votes.columns and imported.votes_as is None:
        lines.append(
            "Assumed: a vote names the response as it was shown. If votes in swapped order were already "
            "mapped back, use --set votes_as=original."
        )
    return lines


def next_command(imported: Imported, out: Path, labels_out: Path | None) -> str:
    """Return the command that checks the written files, with what the source says and they do not."""
    words = ["judgebayes", "check", str(out)]
    words += [] if labels_out is None else ["--labels", str(labels_out)]
    if "order" in imported.votes.columns:
        # The votes of a user's own table may name responses as shown, or mapped back.
        words += ["--set", f"votes_as={imported.votes_as or 'shown'}"]
    if imported.classes:
        words += ["--set", f"classes={join_names(imported.classes)}"]
    return shlex.join(words)
