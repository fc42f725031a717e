"""Workbooks in the smallest form of their standard (ECMA-376)."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def book(path: Path, **sheets: Sequence[Sequence[str | float | bool | None]]) -> Path:
    """A workbook in the smallest form of its standard (ECMA-376), with texts in the cells."""
    kinds = "".join(
        f'<Override PartName="/xl/worksheets/{name}.xml" ContentType='
        '"application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
        for name in sheets
    )
    listed = "".join(f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>' for i, name in enumerate(sheets, 1))
    targets = "".join(
        f'<Relationship Id="r{i}" Type="{_RELATION}/worksheet" Target="worksheets/{name}.xml"/>'
        for i, name in enumerate(sheets, 1)
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" ContentType='
            '"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" '
            'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
            f"{kinds}</Types>",
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
            f'Type="{_RELATION}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{_SHEET}" xmlns:r="{_RELATION}"><sheets>{listed}</sheets></workbook>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{_PACKAGE}/relationships">{targets}</Relationships>'
        )
        for name, rows in sheets.items():
            body = "".join(
                f'<row r="{i}">{"".join(_cell(i, j, value) for j, value in enumerate(row))}</row>'
                for i, row in enumerate(rows, 1)
            )
            archive.writestr(
                f"xl/worksheets/{name}.xml", f'<worksheet xmlns="{_SHEET}"><sheetData>{body}</sheetData></worksheet>'
            )
    return path


def _cell(row: int, column: int, value: str | float | bool | None) -> str:
    if value is None:
        return ""
    place = f'r="{chr(65 + column)}{row}"'
    if isinstance(value, bool):
        return f'<c {place} t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return f'<c {place} t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
    return f"<c {place}><v>{value}</v></c>"
