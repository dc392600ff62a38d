"""Lists and conversations as CSV and XLSX, written as `Mirror.export` writes them."""

from __future__ import annotations

import secrets

from backread._browse.reply import Reply, attached
from backread._files.unfinished import scratch_folder
from backread.mirror.export.copying import table_writer
from backread.mirror.export.job import Job, TableQuery
from backread.mirror.export.xlsx import write_xlsx
from backread.mirror.published.snapshot_reader import OpenSnapshot

__all__ = ["MESSAGES", "PEOPLE", "download"]

MOST_ROWS = 100_000
"""The rows of a download, which is in memory while it is sent; exports have no limit."""

MESSAGES = """SELECT created_at, user_id, id, sender_type,
    nullif(concat_ws(' ', sender_forename, sender_surname, sender_name), '') AS sender, body,
    file_url, auto_invitation, read_by_user, read_by_operator"""
PEOPLE = "SELECT * EXCLUDE (plain)"


def download(snapshot: OpenSnapshot, query: str, order: str, name: str, shape: str) -> Reply:
    """The first rows of a query as a file; ``shape`` is ``csv`` or ``xlsx``."""
    if shape not in ("csv", "xlsx"):
        raise ValueError(f"format must be csv or xlsx, not {shape[:40]!r}")
    query = f"{query} ORDER BY {order} LIMIT {MOST_ROWS}"
    columns = tuple((each[0], each[1]) for each in snapshot.rows(f"DESCRIBE {query}"))
    table = TableQuery(name, query, columns)
    folder = scratch_folder()
    path = folder / f"{secrets.token_hex(8)}.{shape}"
    job = Job(snapshot.cursor, (table,), folder)
    try:
        if shape == "xlsx":
            write_xlsx(job, path)
        else:
            table_writer("csv")(job, table, path)
        return Reply(200, path.read_bytes(), attached(f"{name}.{shape}"))
    finally:
        path.unlink(missing_ok=True)
