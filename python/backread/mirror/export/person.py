"""Writes everything that the snapshot holds about one person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfile

from backread._display.words import full_name, line, plain
from backread.errors import MirrorError
from backread.mirror.export.cells import as_json_value, as_text, selected
from backread.mirror.export.job import Job, TableQuery
from backread.mirror.export.plan import Selection
from backread.mirror.export.target import ATTACHMENT
from backread.mirror.published.conversation import MESSAGE_ORDER
from backread.mirror.published.search import SENDER
from backread.mirror.store.engine import Rows
from backread.mirror.store.folder import file_path
from backread.mirror.store.schema import REJECTED_ID

SOURCES = {
    "users": "FROM users WHERE id = {id}",
    "conversations": "FROM conversations WHERE user_id = {id}",
    "messages": "FROM messages WHERE user_id = {id}",
    "lists": "FROM lists WHERE user_id = {id}",
    "files": "FROM files WHERE user_id = {id}",
    "rejects": "FROM rejects WHERE user_id = {id} OR (resource = 'users' "
    f"AND (id = {{id}} OR {REJECTED_ID} = '{{id}}'))",
    "forgotten": "FROM forgotten WHERE user_id = {id}",
}
"""All tables with rows about a person."""

ORDERS = {"messages": MESSAGE_ORDER, "files": "message_id", "rejects": "first_seen_at, id"}

SPOKEN = ("created_at", "sender_type", *SENDER, "body", "file_url", "deleted_at")


def person_queries(rows: Rows, selection: Selection) -> list[TableQuery]:
    """The rows about the one user, deleted ones too; raises `MirrorError` if there are none."""
    found = [
        TableQuery.over(rows, name, source.format(id=selection.person), ORDERS.get(name, ""))
        for name, source in SOURCES.items()
    ]
    if not any(table.rows for table in found):
        raise MirrorError(
            f"the published snapshot holds nothing about a user {selection.person}; check the id"
        )
    return found


def write_attachments(job: Job, folder: Path, mirror: Path) -> None:
    """A copy of each stored attachment, named by its message's id and its link."""
    [table] = [each for each in job.tables if each.name == "files"]
    stored = f"SELECT message_id, name, sha256 FROM ({table.query}) WHERE sha256 IS NOT NULL"
    for rows in job.batches(stored):
        for message_id, name, sha256 in rows:
            try:
                copyfile(file_path(mirror, sha256), folder / f"{ATTACHMENT}{message_id}-{name}")
            except FileNotFoundError:
                raise MirrorError(
                    f"the mirror in {mirror} has lost the file of message {message_id}; fetch it "
                    "again (backread files), or export to a name that ends in .json"
                ) from None


def write_person(job: Job, path: Path, user_id: int) -> None:
    """One JSON document: a list of rows for each table, one row on a line."""
    with path.open("x", encoding="utf-8", newline="\n") as file:
        file.write(f'{{\n"user_id": {user_id},\n')
        file.write(f'"exported_at": "{datetime.now(UTC).isoformat(timespec="seconds")}"')
        for table in job.begin_tables():
            file.write(f",\n{json.dumps(table.name)}: [")
            gap = "\n"
            for text in _json_rows(job, table):
                file.write(f"{gap}  {text}")
                gap = ",\n"
            file.write("\n]" if table.rows else "]")
        file.write("\n}\n")


def _json_rows(job: Job, table: TableQuery) -> Iterator[str]:
    # DuckDB's text, because json would change numbers that a float cannot hold.
    query = selected(map(as_json_value, table.columns), table.query)
    for rows in job.batches(f"SELECT CAST(to_json(each) AS VARCHAR) FROM ({query}) AS each"):
        yield from (text for (text,) in rows)


def write_conversation(job: Job, path: Path) -> None:
    """The messages as plain text, a line each; times in UTC, deleted ones marked."""
    [table] = [each for each in job.tables if each.name == "messages"]
    columns = [column for name in SPOKEN for column in table.columns if column[0] == name]
    with path.open("x", encoding="utf-8", newline="\n") as file:
        for rows in job.batches(selected(map(as_text, columns), table.query)):
            file.writelines(f"{_line(*row)}\n" for row in rows)


def _line(created_at: str | None, sender_type: str | None, *names_and_rest: str | None) -> str:
    *names, body, file_url, deleted_at = names_and_rest
    # For people: without a fraction of zero.
    moment = (created_at or "????-??-??T??:??:??Z").replace(".000000", "")
    sender = line(full_name(*names) or sender_type or "unknown")
    # Lines of one message are indented, so that none looks like another message.
    said = plain(body or "").replace("\n", "\n    ")
    parts = [
        said,
        f"[{line(file_url)}]" if file_url else "",
        f"(deleted, as noticed at {deleted_at})" if deleted_at else "",
    ]
    return f"{moment}  {sender}: {' '.join(filter(None, parts))}"
