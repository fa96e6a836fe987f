"""Sections of how the answers came about, and how to make them again."""

from collections.abc import Sequence

from judgebayes.report.page import Block, Code, Facts, Paragraph, Section, Table

__all__ = ["method_section", "rerun_section"]


def method_section(
    chosen: Sequence[str],
    compared: Table | None,
    compared_words: Sequence[str],
    settings: Sequence[tuple[str, str]],
) -> Section:
    """Return how the answers came about: the method, what it was compared with, the settings."""
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
    """Return the commands that make this page, and the table of all answers, again."""
    return Section(
        "To run it again",
        [
            Paragraph("This page, from the same files:"),
            Code(command),
            Paragraph("All answers as a table, from the same fit:"),
            Code(answers_command),
            Paragraph(
                "The same files, command and versions give the same numbers. The page holds no date "
                "and nothing that is fetched: it can be kept and mailed as it is."
            ),
            Facts(versions),
        ],
        name="rerun",
    )
