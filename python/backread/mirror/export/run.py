"""Runs an export: plans it, writes it beside its target, and puts it into place."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal, cast, get_args

from backread.mirror.export.copying import write_csv, write_jsonl, write_parquet
from backread.mirror.export.duckdb_file import write_duckdb
from backread.mirror.export.job import Job, TableQuery, run_beside
from backread.mirror.export.person import person_queries, write_conversation, write_person
from backread.mirror.export.plan import DEFAULT_TABLES, Selection, check_users, queries
from backread.mirror.export.report import ExportFormat, ExportProgress, ExportReport
from backread.mirror.export.sqlite import write_sqlite
from backread.mirror.export.target import NO_DELTA, Target, names_delta, target_errors
from backread.mirror.export.xlsx import check_xlsx, load_xlsxwriter, write_xlsx
from backread.mirror.published.snapshot_reader import SnapshotReader

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["ExportOptions", "export_mirror", "export_person"]

SUFFIXES: dict[str, ExportFormat] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".xlsx": "xlsx",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
    ".duckdb": "duckdb",
}
"""The formats of files, by how their names end."""

ONE_TABLE: tuple[ExportFormat, ...] = ("parquet", "csv", "jsonl")
"""The formats whose files hold one table."""

EVERYTHING = Selection(DEFAULT_TABLES, None, None, None, deleted=True)
"""The selection of an export of everything, without its user."""

PERSON_FILE = "everything.json"
CONVERSATION_FILE = "conversation.txt"

Tell = Callable[[ExportProgress], object]
WriteTable = Callable[[Job, TableQuery, Path], None]

WHOLE_FILE: dict[ExportFormat, Callable[[Job, Path], None]] = {
    "xlsx": write_xlsx,
    "sqlite": write_sqlite,
    "duckdb": write_duckdb,
}
TABLE_BY_TABLE: dict[ExportFormat, WriteTable] = {
    "parquet": write_parquet,
    "jsonl": write_jsonl,
}


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How the rows are written."""

    format: str | None = None
    raw_csv: bool = False
    excel: bool = False


def export_mirror(
    folder: Path,
    reader: SnapshotReader,
    target: str | os.PathLike[str],
    selection: Selection,
    options: ExportOptions,
    tell: Tell | None,
) -> ExportReport:
    """Writes the selected rows to the target; see `Mirror.export`."""
    kind = _format_of(options.format, target)
    if (options.raw_csv or options.excel) and kind != "csv":
        raise ValueError(f"{'raw_csv' if options.raw_csv else 'excel'} needs the format csv")
    is_folder = _is_folder(kind, target, selection)
    place = Target.parse(target, folder, is_folder=is_folder)
    if kind == "xlsx":
        load_xlsxwriter()
    cursor = reader.cursor()
    rows = partial(reader.rows, cursor, values=[])
    check_users(rows, selection)
    tables = tuple(queries(rows, selection))
    if kind == "xlsx":
        check_xlsx(tables)
    return _run(place, kind, tables, cursor, _writer(kind, place, options), tell)


def export_person(
    folder: Path,
    reader: SnapshotReader,
    target: str | os.PathLike[str],
    selection: Selection,
    options: ExportOptions,
    tell: Tell | None,
) -> ExportReport:
    """Writes everything about one user: a JSON file, or a folder with it and a text to read."""
    users = selection.users or ()
    if len(users) != 1 or replace(selection, users=None, deleted=True) != EVERYTHING:
        raise ValueError("everything takes exactly one user, and neither dates nor tables")
    if options != ExportOptions():
        raise ValueError("everything is written as JSON and text; leave the format out")
    [user_id] = users
    suffix = Path(target).suffix.lower()
    is_folder = suffix != ".json"
    if is_folder and suffix in SUFFIXES:
        raise ValueError(
            f"everything is written as JSON and text; choose a name without {suffix}, or with .json"
        )
    place = Target.parse(target, folder, is_folder=is_folder)
    cursor = reader.cursor()
    tables = person_queries(partial(reader.rows, cursor, values=[]), user_id)

    def write(job: Job) -> None:
        write_person(job, job.folder / (PERSON_FILE if is_folder else place.path.name), user_id)
        if is_folder:
            write_conversation(job, job.folder / CONVERSATION_FILE)

    return _run(place, "json", tables, cursor, write, tell)


def _run(
    place: Target,
    kind: ExportFormat | Literal["json"],
    tables: tuple[TableQuery, ...],
    cursor: DuckDBPyConnection,
    write: Callable[[Job], None],
    tell: Tell | None,
) -> ExportReport:
    began = monotonic()

    def named(job: Job) -> None:
        with target_errors(place):
            write(job)

    with place.unfinished() as unfinished:
        job = Job(cursor, tables, unfinished)
        run_beside(job, named, tell)
    files = _files(place)
    return ExportReport(
        target=place.path,
        format=kind,
        rows={table.name: table.rows for table in tables},
        files=files,
        bytes=sum(file.stat().st_size for file in files),
        seconds=monotonic() - began,
        guarded_cells=job.guarded_cells,
        cut_cells=job.cut_cells,
        replaced_cells=job.replaced_cells,
    )


def _writer(kind: ExportFormat, place: Target, options: ExportOptions) -> Callable[[Job], None]:
    write_file = WHOLE_FILE.get(kind)
    if write_file is not None:
        return lambda job: write_file(job, job.folder / place.path.name)
    write_table: WriteTable = partial(write_csv, raw=options.raw_csv, excel=options.excel)
    write_table = TABLE_BY_TABLE.get(kind, write_table)

    def write(job: Job) -> None:
        for table in job.tables:
            job.begin(table)
            name = f"{table.name}.{kind}" if place.is_folder else place.path.name
            write_table(job, table, job.folder / name)

    return write


def _format_of(given: str | None, target: str | os.PathLike[str]) -> ExportFormat:
    if given == "delta" or names_delta(target):
        raise ValueError(NO_DELTA)
    suffix = Path(target).suffix.lower()
    meant = SUFFIXES.get(suffix)
    known = get_args(ExportFormat)
    if given is None:
        if meant is None:
            name = Path(target).name
            unknown = (
                f"{suffix} is no known format" if suffix else f"{name} does not end in a format"
            )
            raise ValueError(
                f"{unknown}: end the name in one of {', '.join(SUFFIXES)}, "
                f"or name the format, one of {', '.join(known)}"
            )
        return meant
    if given not in known:
        raise ValueError(f"the format must be one of {', '.join(known)}, not {given!r}")
    kind = cast("ExportFormat", given)
    if meant is not None and meant != kind:
        raise ValueError(
            f"the format {kind} and the name {Path(target).name} do not agree; choose a name "
            f"without {suffix}, or leave the format out"
        )
    return kind


def _is_folder(kind: ExportFormat, target: str | os.PathLike[str], selection: Selection) -> bool:
    """Whether the target is a folder with a file for each table."""
    if kind not in ONE_TABLE:
        return False
    is_file = SUFFIXES.get(Path(target).suffix.lower()) == kind
    if is_file and len(selection.tables) > 1:
        raise ValueError(
            f"a file of the format {kind} holds one table, and these are "
            f"{', '.join(selection.tables)}; name a folder, or one table"
        )
    return not is_file


def _files(place: Target) -> tuple[Path, ...]:
    if not place.is_folder:
        return (place.path,)
    return tuple(sorted(place.path.iterdir()))
