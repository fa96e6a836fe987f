"""`judgebayes import`: votes in other tools' formats become a tidy file."""

import shlex
from collections.abc import Hashable
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from judgebayes.cli.requests import ImportRequest
from judgebayes.cli.saying import say_plainly
from judgebayes.errors import JudgeBayesError
from judgebayes.io.formats import import_votes
from judgebayes.io.imported import MAX_CLASSES, Imported
from judgebayes.io.options import Options, join_names
from judgebayes.io.tables import check_writable, write_table
from judgebayes.votes.classes import canonical, infer_classes

__all__ = ["advice", "import_file", "next_command"]

LABELS = "labels.csv"
"""The labels that the user has yet to write."""


def import_file(request: ImportRequest) -> None:
    """Read a format, write the votes (and labels), say what was read and what to run next.

    Raises
    ------
    JudgeBayesError
        If the source cannot be read, it has no labels where some were asked for, or a file cannot
        be written.
    """
    path, out, labels_out = request.path, request.out, request.labels_out
    options = Options(**asdict(request.columns))
    options = options.with_choices(request.verdicts, request.votes_from)
    for place in (out, labels_out):
        check_writable(place)
    if labels_out == out:
        raise JudgeBayesError(f"Votes and labels cannot both be written to {str(out)!r}.")
    found = import_votes(request.form, path, options)
    if labels_out is not None and found.labels is None:
        raise JudgeBayesError(
            f"{str(path)!r} has no labels to write to {str(labels_out)!r}; leave --labels-out away."
        )
    console = Console()
    say_plainly(console, *found.words())
    write_table(found.votes, out)
    if found.labels is not None and labels_out is not None:
        write_table(found.labels, labels_out)
        say_plainly(console, f"Labels: {labels_out}")
    say_plainly(console, f"Votes: {out}", *advice(found, labels_out))
    command = next_command(found, out, labels_out)
    if command is not None:
        say_plainly(console, f"Next: {command}")


def advice(found: Imported, labels_out: Path | None) -> list[str]:
    """Return what the user has to decide or add before the next command."""
    lines = []
    if labels_out is None and found.labels is not None:
        lines.append(f"The source has labels: import it again with --labels-out {LABELS}.")
    elif labels_out is None:
        lines.append(
            f"Label some items first: {LABELS}, with the columns item and label; an item is called "
            f"{found.votes['item'].iloc[0]!r}, for one."
        )
    if "order" in found.votes.columns and found.votes_as is None:
        lines.append(
            "A vote names what was shown, it is taken; if votes in swapped order were mapped back "
            "already, say --votes-as original."
        )
    values = _values_without_order(found)
    if len(values) > MAX_CLASSES:
        lines.append(
            f"Next: the votes take {len(values)} different values; make a few classes of them, since "
            "every other command votes in classes."
        )
    elif len(values) == 1:
        lines.append(
            f"Next: every vote is {values[0]!r}; name the other classes, too, from the lowest to the "
            f"highest: judgebayes calibrate with --classes 'LOW,...,HIGH'."
        )
    elif values and any(isinstance(value, str) for value in values):
        lines.append("Put the classes below in order, from the lowest to the highest.")
    return lines


def next_command(found: Imported, out: Path, labels_out: Path | None) -> str | None:
    """Return the command that calibrates what was written, None where no command can.

    Without labels of the source, the file of labels is a name to replace; classes that have no
    known order are named in the order of the alphabet.
    """
    words = ["judgebayes", "calibrate", str(out), "--labels", str(labels_out or LABELS)]
    if "order" in found.votes.columns:
        # A table of the user's own does not say what its votes name.
        words += ["--votes-as", found.votes_as or "shown"]
    values, usual = _values_without_order(found), found.usual()
    if len(values) > MAX_CLASSES or len(values) == 1:
        return None
    classes = found.classes or tuple(map(str, values))
    if classes:
        words.append(f"--classes={join_names(classes)}")
    if usual is not None:
        words.append(f"--missing={join_names(map(str, usual.odd))}")
    return shlex.join(words)


def _values_without_order(found: Imported) -> list[Hashable]:
    """Return the values of votes and labels whose order is not known, sorted; none where it is."""
    if found.classes is not None or found.usual() is not None:
        return []
    votes = set(map(canonical, found.votes["vote"].dropna()))
    try:
        infer_classes(votes, "")
    except JudgeBayesError:
        labels = set() if found.labels is None else set(map(canonical, found.labels["label"]))
        both = {value for value in votes | labels if value is not None}
        return sorted(both, key=lambda value: (isinstance(value, str), value))
    return []
