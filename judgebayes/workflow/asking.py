"""Questions about files that are not read as they are: the ways in which `check` would read them."""

import shlex
from dataclasses import fields, replace
from itertools import chain

from judgebayes.errors import AmbiguousStudy, Candidate, JudgeBayesError
from judgebayes.io.in_memory import file_or_table
from judgebayes.workflow.check_draft import Draft, words_of
from judgebayes.workflow.checking import steps
from judgebayes.workflow.data import Data, data_of
from judgebayes.workflow.options import CheckRequest, ReadRequest
from judgebayes.workflow.records import changed, with_options

MOST = 4
SHOWN = 3
"""The candidates of a question, and the items of a preview."""


@with_options
def read(request: ReadRequest) -> Data:
    """Read votes and labels once, for `calibrate`, `diagnose`, `ensemble` and `precision`.

    `votes` and `labels` are paths or tables. Pass the result in place of `votes`, without the options
    that are set here.

    Raises
    ------
    AmbiguousStudy
        If the files are not read as they are, but in ways that `check` finds: what selects each.
    JudgeBayesError
        For other bad input.
    """
    return asked_data(request, detect=True)


def asked_data(request: ReadRequest, *, named: tuple[str, ...] = (), detect: bool = False) -> Data:
    """Return what `data_of` reads; if that is an error, and `check` can read it, raise a question."""
    try:
        return data_of(request, named=named, detect=detect)
    except JudgeBayesError as error:
        raise asked(request, error) from error


def asked(request: ReadRequest, error: JudgeBayesError) -> JudgeBayesError:
    """Return the question how the files are read, or the error itself if they cannot be."""
    names = {each.name for each in fields(CheckRequest)} & {each.name for each in fields(request)}
    plain = CheckRequest(**{name: getattr(request, name) for name in names if name != "out"})
    given = dict(changed(plain))
    labels = None if plain.labels is None else file_or_table(plain.labels, "labels")
    votes = file_or_table(plain.votes, "votes")
    plain = replace(plain, save=None, votes=votes, labels=labels)
    try:
        draft = steps(Draft(plain))
    except JudgeBayesError:
        return error
    best = draft.options()
    ways = chain.from_iterable(each.others for each in draft.findings)
    candidates: list[Candidate] = []
    for options in (best, *(best | dict(other) for other in ways)):
        new = {name: value for name, value in options.items() if given.get(name) != value}
        try:
            data = data_of(replace(draft.request, **options))
        except JudgeBayesError:
            continue
        if new and all(new != each.options for each in candidates):
            words = (
                _words(draft, options) if options is best else f"The same, with {_line(new, best)}."
            )
            candidates.append(Candidate(words, new, _line(new), _preview(data)))
    return AmbiguousStudy(str(error), candidates[:MOST]) if candidates else error


def _words(draft: Draft, options: dict[str, object]) -> str:
    """Return what a draft takes the files for: its findings that have an option."""
    return " ".join(each.sentence for each in draft.findings if each.option) or _line(options)


def _line(options: dict[str, object], known: dict[str, object] | None = None) -> str:
    apart = {k: v for k, v in options.items() if known is None or known.get(k) != v}
    line = shlex.join(words_of(apart))
    return line if line.isprintable() else f"{', '.join(apart)} in Python"


def _preview(data: Data) -> tuple[str, ...]:
    """Return the votes and the label of the first items."""
    coding, index = data.coding, data.votes.index
    lines = []
    for item in range(min(SHOWN, len(coding.items))):
        votes = [
            f"{judge} {coding.classes.names[int(vote)]}"
            for judge, own in zip(coding.judges, index[item], strict=True)
            for vote in own
            if vote >= 0
        ]
        label = int(data.labels[item])
        gold = f"; label {coding.classes.names[label]}" if label >= 0 else ""
        lines.append(f"{coding.items[item]}: {', '.join(votes[:6]) or 'no vote'}{gold}")
    return tuple(lines)
