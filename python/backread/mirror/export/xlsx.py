"""Writes an Excel workbook with XlsxWriter: a sheet per table, with typed cells."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from backread.mirror.export.cells import Column, as_naive, selected
from backread.mirror.export.job import Job, TableQuery
from backread.mirror.export.target import TargetError, WriterError

MOST_ROWS = 1_048_575
"""The rows of a sheet, without its header."""

LONGEST_TEXT = 32_767
"""The length of a text cell, in UTF-16 code units."""

LARGEST_NUMBER = 10**15
"""Numbers from here on would lose digits, because Excel keeps 15."""

FIRST_YEAR = 1900
"""Excel has no dates before."""

LAST_TIME = datetime.fromisoformat("9999-12-31T23:59:59.999499")
"""Excel counts milliseconds, and has no dates after this year."""

BODY_WIDTH = 60
"""The characters of a message that its column shows."""

NUMBERS = ("BIGINT", "DOUBLE", "HUGEINT", "INTEGER")

# XML 1.0, section 2.2: of the control characters, it has only TAB, LF and CR.
ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def load_xlsxwriter() -> Any:
    """The module; if it is missing, an ImportError says how to install it."""
    try:
        import xlsxwriter  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ModuleNotFoundError as error:
        if error.name != "xlsxwriter":
            raise
        raise ImportError(
            "an export to XLSX needs XlsxWriter, which is not installed; "
            'run: pip install "backread[xlsx]"',
            name="xlsxwriter",
        ) from None
    return xlsxwriter


def check_xlsx(tables: tuple[TableQuery, ...]) -> None:
    """Raises `TargetError` if a table has more rows than a sheet."""
    for table in tables:
        if table.rows > MOST_ROWS:
            raise TargetError(
                f"{table.name} has {table.rows:,} rows, and a sheet of XLSX has room for "
                f"{MOST_ROWS:,}; export to CSV or Parquet, or fewer rows with since, until or users"
            )


def write_xlsx(job: Job, path: Path) -> None:
    """All tables as one workbook, in memory that does not grow with the rows."""
    xlsxwriter = load_xlsxwriter()
    options = {
        "constant_memory": True,
        "tmpdir": str(job.folder),
        "strings_to_formulas": False,
        "strings_to_urls": False,
        "strings_to_numbers": False,
    }
    workbook = xlsxwriter.Workbook(str(path), options)
    try:
        workbook.use_zip64()
        formats = {
            "header": workbook.add_format({"bold": True}),
            "time": workbook.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
        }
        for table in job.begin_tables():
            _write_sheet(job, table, workbook.add_worksheet(table.name), formats)
        workbook.close()
    except xlsxwriter.exceptions.XlsxWriterException as error:
        raise WriterError(str(error)) from error
    finally:
        for sheet in workbook.worksheets():
            # The temporary file of its rows, which stays open after an error.
            sheet.row_data_fh.close()


def _write_sheet(job: Job, table: TableQuery, sheet: Any, formats: dict[str, Any]) -> None:
    sheet.freeze_panes(1, 0)
    for place, column in enumerate(table.columns):
        # Before the first row: in constant memory, XlsxWriter takes no width later.
        sheet.set_column(place, place, _width(column))
        sheet.write_string(0, place, column[0], formats["header"])
    writers = [_cell_writer(job, sheet, column, formats) for column in table.columns]
    line = 0
    for rows in job.batches(selected(map(as_naive, table.columns), table.query)):
        for row in rows:
            line += 1
            for place, value in enumerate(row):
                if value is not None:
                    writers[place](line, place, value)
    # The arrows in the header that sort and filter.
    sheet.autofilter(0, 0, line, len(table.columns) - 1)


def _width(column: Column) -> int:
    """In characters. A time in a narrow column would show as ``####``."""
    name, kind = column
    room = len(name) + 4  # for bold letters, and the arrow of the filter
    if name == "body":
        return BODY_WIDTH
    if kind.startswith("TIMESTAMP"):
        return max(room, 20)
    return max(room, 12 if kind in NUMBERS or kind == "BOOLEAN" else 24)


def _cell_writer(
    job: Job, sheet: Any, column: Column, formats: dict[str, Any]
) -> Callable[[int, int, Any], object]:
    def text(line: int, place: int, value: str) -> None:
        # As `_x000D_`, a CR would be text to pandas and openpyxl.
        value = value.replace("\r\n", "\n").replace("\r", "\n")
        cell = ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", value)
        job.replaced_cells += cell != value
        kept = _fitting(cell)
        job.cut_cells += kept != cell
        if kept.startswith("<r>") and kept.endswith("</r>"):
            # XlsxWriter takes such a text for markup, which would be that of a stranger.
            marked_up = f'<r><t xml:space="preserve">{escape(kept)}</t></r>'
            if _fitting(marked_up) == marked_up:
                kept = marked_up
            else:
                kept = f"\N{REPLACEMENT CHARACTER}{kept[1:]}"
                job.replaced_cells += cell == value
        sheet.write_string(line, place, kept)

    def number(line: int, place: int, value: float) -> None:
        if abs(value) < LARGEST_NUMBER:
            sheet.write_number(line, place, value)
        else:
            sheet.write_string(line, place, str(value))

    def time(line: int, place: int, value: datetime) -> None:
        if value.year >= FIRST_YEAR and value <= LAST_TIME:
            sheet.write_datetime(line, place, value, formats["time"])
        else:
            sheet.write_string(line, place, f"{value.isoformat(timespec='microseconds')}Z")

    kind = column[1]
    if kind == "BOOLEAN":
        flag: Callable[[int, int, Any], object] = sheet.write_boolean
        return flag
    if kind.startswith("TIMESTAMP"):
        return time
    return number if kind in NUMBERS else text


def _fitting(text: str) -> str:
    """As much of the text as a cell holds."""
    if 2 * len(text) <= LONGEST_TEXT:
        return text
    units = text.encode("utf-16-le")
    # Half of a surrogate pair at the end is dropped.
    return units[: 2 * LONGEST_TEXT].decode("utf-16-le", "ignore")
