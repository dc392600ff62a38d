"""What the tests of exports share: a mirror of hostile rows, and what it holds."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from backread.mirror import Mirror
from helpers.mirrors import BatchSource, batch

TEXTS = [
    "plain words",
    "",
    "=1+1",
    " =1+1",
    "\t=1",
    "\x00=1",
    "\u3000=1",
    "\uff1d1",
    "'=1",
    "-5",
    "007",
    "3/5/2024",
    "http://127.0.0.1:9/",
    "first\nsecond",
    "first\r\nsecond\rthird",
    'a "quoted", text;\t|',
    "NUL \x00 inside, ESC \x1b, DEL \x7f, C1 \x9b",
    "line\u2028and\u2029separators\x85",
    "noncharacter \uffff",
    "_x0041_ and _x005F_",
    "<b>&amp;</b> ]]>",
    "<r>ok</r>",
    "<r><t>A & B</t></r>",
    '<r><t>x</t></r></is></c><c r="C1"><f>HYPERLINK("http://127.0.0.1:9/")</f></c><c><is><r></r>',
    "emoji 👩‍👩‍👧 שלום مرحبا 日本",
    "{'a': 1} [1] $x {uuid}",
    "C:\\new\\table",
    "NULL",
]
GUARDED = {"=1+1", " =1+1", "\t=1", "\x00=1", "\u3000=1", "\uff1d1", "'=1", "-5"}

EXTRA = '{"n": 123456789012345678901234567890, "list": [1, null], "t": "é\\u0000"}'
FIRST = datetime(2024, 1, 1, 12, tzinfo=UTC)
SECOND = datetime(2024, 2, 1, 0, 0, 0, 123456, tzinfo=UTC)

ALICE, BOB, GONE, SILENT = 1, 2, 3, 2**62
"""Alice said all texts in January, Bob one in February; the third is gone, the fourth is silent."""


def fill(folder: Path) -> Mirror:
    """A mirror with four users, made by two full syncs."""
    attributes = [{"name": "plan", "value": "=2+2", "extra": '{"a": 1}'}, {"name": "x"}]
    alice = {"id": ALICE, "name": "=Alice", "user_attributes": attributes, "extra": EXTRA}
    people = [alice | {"created_at": FIRST}, {"id": BOB, "user_attributes": []}, {"id": SILENT}]
    said = [
        {
            "user_id": ALICE,
            "id": place,
            "body": text,
            "created_at": FIRST,
            "sender_type": "user",
            "read_by_user": True,
        }
        for place, text in enumerate(TEXTS)
    ]
    said.append({"user_id": BOB, "id": 1, "body": "hello", "created_at": SECOND})
    said.append({"user_id": BOB, "id": 2, "body": None, "created_at": None})
    lost = {"user_id": GONE, "id": 1, "body": "goodbye", "created_at": FIRST}
    lists = dict.fromkeys((ALICE, BOB, SILENT), "snapshot")
    BatchSource(
        batch([*people, {"id": GONE, "name": "Gone"}], swept="snapshot"),
        batch(messages=[*said, lost], lists=lists | {GONE: "snapshot"}),
    ).sync_into(folder)
    refused = {"resource": "messages", "user_id": ALICE, "id": None, "json": '{"id": "?"}'}
    BatchSource(
        batch(people, swept="snapshot"),
        batch(messages=said, lists=lists, rejects=[refused]),
    ).sync_into(folder, "full")
    return Mirror(folder)


def keys(mirror: Mirror, table: str, condition: str = "deleted_at IS NULL") -> set[Any]:
    """The keys of a table's rows."""
    columns = {"users": "id", "messages": "(user_id, id)"}.get(table, "user_id")
    return {
        each
        for (each,) in mirror.sql(f"SELECT {columns} FROM {table} WHERE {condition}").fetchall()
    }
