"""Runs an export: plans it, writes it beside its target, and puts it into place."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Literal, cast, get_args

from backread.mirror.export.copying import UNORDERED, table_writer
from backread.mirror.export.databases import write_duckdb, write_sqlite
from backread.mirror.export.job import Codec, ExportFormat, ExportReport, Job, Tell
from backread.mirror.export.person import (
    person_queries,
    write_attachments,
    write_conversation,
    write_person,
)
from backread.mirror.export.plan import Selection, queries
from backread.mirror.export.target import (
    CONVERSATION_FILE,
    ONE_TABLE,
    PERSON_FILE,
    Target,
    target_errors,
)
from backread.mirror.export.xlsx import check_xlsx, load_xlsxwriter, write_xlsx
from backread.mirror.published.snapshot_reader import SnapshotReader

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

WHOLE_FILE = {"xlsx": write_xlsx, "sqlite": write_sqlite, "duckdb": write_duckdb}

SETTINGS = (
    # DuckDB estimates its progress only with a bar.
    "SET SESSION enable_progress_bar = true",
    "SET SESSION enable_progress_bar_print = false",
)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How the rows are written."""

    format: str | None = None
    raw_csv: bool = False
    excel: bool = False
    codec: Codec | None = None

    def check(self, kind: str) -> None:
        """Raises ValueError for an option of another format."""
        for name, needed in (("raw_csv", "csv"), ("excel", "csv"), ("codec", "parquet")):
            if getattr(self, name) and kind != needed:
                raise ValueError(f"{name} needs the format {needed}")
        if self.codec is not None and self.codec not in get_args(Codec):
            raise ValueError(
                f"codec must be one of {', '.join(get_args(Codec))}, not {self.codec!r}"
            )


def export_mirror(
    reader: SnapshotReader,
    target: str | os.PathLike[str],
    selection: Selection,
    options: ExportOptions,
    *,
    everything: bool,
    replaces: bool,
    tell: Tell | None,
) -> ExportReport:
    """Writes the selected rows to the target; see `Mirror.export`."""
    kind: ExportFormat | Literal["json"]
    if everything:
        kind, is_folder = "json", _is_person_folder(target, selection, options)
    else:
        kind = _format_of(options.format, target)
        options.check(kind)
        is_folder = _is_folder(kind, target, selection)
    place = Target.parse(target, is_folder=is_folder, replaces=replaces)
    if kind == "xlsx":
        load_xlsxwriter()
    snapshot = reader.snapshot()
    tables = tuple((person_queries if everything else queries)(snapshot.rows, selection))
    if kind == "xlsx":
        check_xlsx(tables)
    began = monotonic()
    for setting in (*SETTINGS, *([UNORDERED] if kind in (*ONE_TABLE, "duckdb") else [])):
        snapshot.rows(setting)
    with place.unfinished() as folder:
        job = Job(snapshot.cursor, tables, folder, tell)
        with target_errors(place):
            _write(job, kind, place, selection, options)
            if everything and is_folder:
                write_attachments(job, folder, reader.folder)
            job.report(at_end=True)
    files = tuple(sorted(place.path.iterdir())) if is_folder else (place.path,)
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


def _write(
    job: Job, kind: str, place: Target, selection: Selection, options: ExportOptions
) -> None:
    file = job.folder / place.path.name
    if kind in WHOLE_FILE:
        WHOLE_FILE[kind](job, file)
    elif kind == "json":
        path = job.folder / PERSON_FILE if place.is_folder else file
        write_person(job, path, selection.person)
        if place.is_folder:
            write_conversation(job, job.folder / CONVERSATION_FILE)
    else:
        write_table = table_writer(
            kind, raw_csv=options.raw_csv, excel=options.excel, codec=options.codec or "zstd"
        )
        for table in job.begin_tables():
            path = job.folder / f"{table.name}.{kind}" if place.is_folder else file
            write_table(job, table, path)


def _is_person_folder(
    target: str | os.PathLike[str], selection: Selection, options: ExportOptions
) -> bool:
    """Whether everything about one user is a folder with a JSON file and a text to read."""
    others = replace(selection, users=None, deleted=False)
    if len(selection.users or ()) != 1 or others != Selection():
        raise ValueError("everything takes exactly one user, and neither dates nor tables")
    if options != ExportOptions():
        raise ValueError("everything is written as JSON and text; leave the format out")
    suffix = Path(target).suffix.lower()
    if suffix != ".json" and suffix in SUFFIXES:
        raise ValueError(
            f"everything is written as JSON and text; choose a name without {suffix}, or with .json"
        )
    return suffix != ".json"


def _format_of(given: str | None, target: str | os.PathLike[str]) -> ExportFormat:
    suffix, name = Path(target).suffix.lower(), Path(target).name
    meant, known = SUFFIXES.get(suffix), get_args(ExportFormat)
    if given is not None and given not in known:
        raise ValueError(f"the format must be one of {', '.join(known)}, not {given!r}")
    if given is not None and meant not in (None, given):
        raise ValueError(
            f"the format {given} and the name {name} do not agree; choose a name without {suffix}, "
            "or leave the format out"
        )
    if given is None and meant is None:
        unknown = f"{suffix} is no known format" if suffix else f"{name} does not end in a format"
        raise ValueError(
            f"{unknown}: end the name in one of {', '.join(SUFFIXES)}, "
            f"or name the format, one of {', '.join(known)}"
        )
    return cast("ExportFormat", given or meant)


def _is_folder(kind: ExportFormat, target: str | os.PathLike[str], selection: Selection) -> bool:
    """Whether the target is a folder with a file for each table."""
    if kind not in ONE_TABLE or SUFFIXES.get(Path(target).suffix.lower()) != kind:
        return kind in ONE_TABLE
    if len(selection.tables) > 1:
        raise ValueError(
            f"a file of the format {kind} holds one table, and these are "
            f"{', '.join(selection.tables)}; name a folder, or one table"
        )
    return False
