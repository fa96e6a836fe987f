"""The report's sections on the method and on rerunning it."""

from collections.abc import Sequence

from judgebayes.report.page import Block, Code, Facts, Paragraph, Section, Table


def method_section(
    chosen: Sequence[str],
    compared: Table | None,
    compared_words: Sequence[str],
    settings: Sequence[tuple[str, str]],
) -> Section:
    """Return the section on the method, the comparison with other methods, and the settings."""
    blocks: list[Block] = [*map(Paragraph, chosen)]
    if compared is not None:
        blocks += [compared, *map(Paragraph, compared_words)]
    return Section(
        "Method and settings",
        blocks,
        [Section("Settings", [Facts(settings)], name="settings")],
        name="method",
    )


def rerun_section(
    command: str, answers_command: str, versions: Sequence[tuple[str, str]]
) -> Section:
    """Return the section with the commands that recreate this page and the table of all results."""
    return Section(
        "To run it again",
        [
            Paragraph("This page, from the same files:"),
            Code(command),
            Paragraph("All results as a table, from the same fit:"),
            Code(answers_command),
            Paragraph(
                "The same files, command and versions give the same numbers. The page has no date "
                "and loads nothing: it can be stored and mailed as it is."
            ),
            Facts(versions),
        ],
        name="rerun",
    )
