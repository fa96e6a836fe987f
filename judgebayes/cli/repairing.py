"""`judgebayes repair`: votes from answers that review several items, also from malformed ones."""

from judgebayes.cli.importing import import_file
from judgebayes.cli.requests import ImportedColumns, ImportRequest, RepairRequest
from judgebayes.workflow.machine import CommandResult

__all__ = ["repair_answers"]


def repair_answers(request: RepairRequest) -> CommandResult:
    """Match the verdicts to the items, write the votes, and print what was repaired and what was lost.

    Raises
    ------
    JudgeBayesError
        If a file cannot be read or written, or an answer's group has no items.
    """
    columns = ImportedColumns(
        item=request.item,
        judge=request.judge,
        sample=request.sample,
        label=request.label,
        text=request.text,
        items=request.items,
        group=request.group,
        encoding=request.encoding,
    )
    return import_file(
        ImportRequest(
            form="reviews",
            path=request.path,
            out=request.out,
            labels_out=request.labels_out,
            columns=columns,
        )
    )
