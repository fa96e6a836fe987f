"""Write small workbooks: the parts of `.xlsx` that a reader needs."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

OPEN = "http://schemas.openxmlformats.org"
RELATIONS = f"{OPEN}/officeDocument/2006/relationships"
MAIN = f'xmlns="{OPEN}/spreadsheetml/2006/main" xmlns:r="{RELATIONS}"'


def write_workbook(path: Path, sheets: dict[str, Sequence[Sequence[object]]]) -> Path:
    """Write sheets of up to 26 columns: text, numbers, true and false; None is an empty cell."""
    numbered = list(enumerate(sheets, 1))
    names = "".join(f'<sheet name="{n}" sheetId="{i}" r:id="s{i}"/>' for i, n in numbered)
    parts = {"xl/workbook.xml": f"<workbook {MAIN}><sheets>{names}</sheets></workbook>"}
    targets = {"_rels/.rels": ["xl/workbook.xml"]}
    targets["xl/_rels/workbook.xml.rels"] = [f"worksheets/{i}.xml" for i, _ in numbered]
    for name, files in targets.items():
        kind = "worksheet" if "xl/_rels" in name else "officeDocument"
        links = "".join(
            f'<Relationship Id="s{i}" Type="{RELATIONS}/{kind}" Target="{file}"/>'
            for i, file in enumerate(files, 1)
        )
        parts[name] = (
            f'<Relationships xmlns="{OPEN}/package/2006/relationships">{links}</Relationships>'
        )
    for i, name in numbered:
        cells = "".join(
            f'<row r="{r}">{"".join(_cell(f"{chr(65 + c)}{r}", v) for c, v in enumerate(row))}</row>'
            for r, row in enumerate(sheets[name], 1)
        )
        parts[f"xl/worksheets/{i}.xml"] = (
            f"<worksheet {MAIN}><sheetData>{cells}</sheetData></worksheet>"
        )
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def _cell(place: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float):
        return f'<c r="{place}"><v>{value}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t>{escape(str(value))}</t></is></c>'
