"""What the page hands out as files: attachments that `Mirror.fetch_files` stored, and downloads.

A download is CSV or XLSX, as `Mirror.export` writes it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from backread._files.unfinished import scratch_folder
from backread.errors import MirrorError
from backread.mirror.export.copying import table_writer
from backread.mirror.export.job import Job, TableQuery
from backread.mirror.export.xlsx import write_xlsx
from backread.mirror.published.snapshot_reader import OpenSnapshot
from backread.mirror.store.folder import file_path

PICTURES = {
    rb"\x89PNG\r\n\x1a\n": "image/png",
    rb"\xff\xd8\xff": "image/jpeg",
    rb"GIF8[79]a": "image/gif",
    rb"RIFF.{4}WEBP": "image/webp",
}
"""The media types that are shown, by how their files begin."""

FILES = """
SELECT message_id, sha256, name, bytes
FROM files JOIN messages ON messages.user_id = files.user_id AND messages.id = message_id
WHERE files.user_id = ? AND message_id IN (SELECT unnest(?::BIGINT[])) AND deleted_at IS NULL
    AND regexp_full_match(sha256, '[0-9a-f]{64}')
    AND split_part(files.file_url, '?', 1) = split_part(messages.file_url, '?', 1)
"""

MOST_ROWS = 100_000
"""The rows of a download, which is in memory while it is sent; exports have no limit."""

MESSAGES = """SELECT created_at, user_id, id, sender_type,
    nullif(concat_ws(' ', sender_forename, sender_surname, sender_name), '') AS sender, body,
    file_url, auto_invitation, read_by_user, read_by_operator"""
PEOPLE = "SELECT * EXCLUDE (plain)"


@dataclass(frozen=True, slots=True)
class Reply:
    """A response: its body, or the file that has it."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    file: Path | None = None


def _attached(name: str) -> dict[str, str]:
    """The headers of what a browser saves under a name (RFC 6266), and never shows as a page."""
    return {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
    }


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a message; ``picture`` is its media type if it can be shown."""

    path: Path
    name: str
    bytes: int
    picture: str | None


def stored_files(
    snapshot: OpenSnapshot, user_id: int, message_ids: list[int]
) -> dict[int, StoredFile]:
    """The stored files of some messages of a user, by the id of their message."""
    found = {}
    for message_id, sha256, name, size in snapshot.rows(FILES, [user_id, message_ids]):
        path = file_path(snapshot.mirror, sha256)
        if path.is_file():
            found[message_id] = StoredFile(path, name, size, _picture(path))
    return found


def file_reply(snapshot: OpenSnapshot, user_id: int, message_id: int) -> Reply:
    """The file of a message, which no browser takes for a page: a picture, or a download."""
    stored = stored_files(snapshot, user_id, [message_id]).get(message_id)
    if stored is None:
        raise MirrorError(f"no file of message {message_id} of user {user_id} is stored")
    headers = _attached(stored.name)
    if stored.picture is not None:
        headers = {"Content-Type": stored.picture, "Content-Disposition": "inline"}
    headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return Reply(200, headers=headers, file=stored.path)


def _picture(path: Path) -> str | None:
    with path.open("rb") as file:
        beginning = file.read(16)
    kinds = (kind for sign, kind in PICTURES.items() if re.match(sign, beginning, re.DOTALL))
    return next(kinds, None)


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
        return Reply(200, path.read_bytes(), _attached(f"{name}.{shape}"))
    finally:
        path.unlink(missing_ok=True)
