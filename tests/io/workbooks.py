"""Write small workbooks: the parts of `.xlsx` that a reader needs."""

import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

OPEN = "http://schemas.openxmlformats.org"
RELATIONS = f"{OPEN}/officeDocument/2006/relationships"
MAIN = f'xmlns="{OPEN}/spreadsheetml/2006/main" xmlns:r="{RELATIONS}"'


def write_workbook(path: Path, sheets: dict[str, Sequence[Sequence[object]]]) -> Path:
    """Write sheets of up to 26 columns: text and numbers; None is an empty cell."""
    names = [f'<sheet name="{n}" sheetId="{i}" r:id="s{i}"/>' for i, n in enumerate(sheets, 1)]
    files = [f"worksheets/{i}.xml" for i in range(1, len(sheets) + 1)]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_rels/.rels", _links("officeDocument", ["xl/workbook.xml"]))
        archive.writestr("xl/_rels/workbook.xml.rels", _links("worksheet", files))
        book = f"<workbook {MAIN}><sheets>{''.join(names)}</sheets></workbook>"
        archive.writestr("xl/workbook.xml", book)
        for file, rows in zip(files, sheets.values(), strict=True):
            cells = "".join(f'<row r="{r}">{_cells(row, r)}</row>' for r, row in enumerate(rows, 1))
            sheet = f"<worksheet {MAIN}><sheetData>{cells}</sheetData></worksheet>"
            archive.writestr(f"xl/{file}", sheet)
    return path


def _links(kind: str, files: Iterable[str]) -> str:
    link = '<Relationship Id="s{}" Type="{}/{}" Target="{}"/>'
    links = "".join(link.format(i, RELATIONS, kind, file) for i, file in enumerate(files, 1))
    return f'<Relationships xmlns="{OPEN}/package/2006/relationships">{links}</Relationships>'


def _cells(row: Sequence[object], number: int) -> str:
    text = '<c r="{}" t="inlineStr"><is><t>{}</t></is></c>'
    return "".join(
        f'<c r="{chr(65 + n)}{number}"><v>{value}</v></c>'
        if isinstance(value, int | float)
        else text.format(f"{chr(65 + n)}{number}", escape(str(value)))
        for n, value in enumerate(row)
        if value is not None
    )
