"""Any JSON in any field but the id: nothing stops, nothing is missing, in the mirror as elsewhere.

`test_rows_alike` compares dataclasses, dicts and Arrow; here the same rows go through a sync.
"""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hypothesis")
pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import reference
from backread.mirror import Mirror, SyncReport
from canned import message, user
from mirrors import sync
from scripted_server import Request, ScriptedServer, answer

drawn = settings(
    max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    _TEXT,
    st.sampled_from(["", "5", "yesterday", "2024-03-05T09:31:07.042Z", "user", 2**63, -(2**70)]),
)
ANY_JSON = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def rows_of(draw: st.DrawFn, made: Any, first: int) -> list[dict[str, Any]]:
    """Documented rows of which some fields hold anything."""
    rows = []
    for number in range(first, first + draw(st.integers(1, 6))):
        row = made(number)
        fields = st.sampled_from([name for name in row if name != "id"])
        row.update(draw(st.dictionaries(fields, ANY_JSON, max_size=4)))
        if isinstance(row.get("sender"), dict) and draw(st.booleans()):
            row["sender"] = {**row["sender"], **draw(st.dictionaries(_SENDER, ANY_JSON))}
        rows.append(row)
    return rows


_SENDER = st.sampled_from(["id", "name", "email", "forename", "surname", "picture_thumb_url"])


def expected(rows: list[dict[str, Any]], key: str, user_id: int) -> list[dict[str, Any]]:
    body = json.dumps({key: rows}).encode()
    try:
        return [reference.columns(row.model) for row in reference.rows(body, key, user_id)]
    except reference.UnsureError:
        reject()


def held(mirror: Mirror, table: str) -> list[dict[str, Any]]:
    found = mirror.sql(f"SELECT * FROM {table} ORDER BY ALL").to_arrow_table().to_pylist()
    return [reference.loaded(row) for row in found]


@drawn
@given(users=rows_of(user, 1), messages=rows_of(message, 10))
def test_any_value_in_any_field_stops_nothing_and_is_kept(tmp_path_factory, users, messages):
    def service(request: Request) -> bytes:
        key = request.path.rsplit("/", 1)[1]
        rows = users if key == "users" else messages
        return answer(200, {"limit": 99, "offset": 0, "total": len(rows), key: rows})

    mirror = Mirror(Path(tmp_path_factory.mktemp("odd")) / "chats")
    with ScriptedServer(service) as server:
        report = sync(mirror, server)
        with server.client() as client:
            listing = client.messages.all()
            listing.to_list()
    # The listing counts each element of user_attributes that is no object, the mirror their array.
    strays = [
        sum(not isinstance(one, dict) for one in each["user_attributes"])
        for each in users
        if isinstance(each["user_attributes"], list)
    ]
    odd = sum(report.odd_values.values()) + sum(max(0, count - 1) for count in strays)
    assert odd == listing.report.odd_values
    assert (report.rejects, report.users, report.certificate) == (0, len(users), "snapshot")
    wanted_users = expected(users, "users", 0)
    wanted = [row for each in users for row in expected(messages, "messages", each["id"])]
    for table, rows in (("users", wanted_users), ("messages", wanted)):
        keys = ("user_id", "id") if table == "messages" else ("id",)
        found = {tuple(row[key] for key in keys): row for row in held(mirror, table)}
        assert len(found) == len(rows)
        for row in rows:
            stored = found[tuple(row[key] for key in keys)]
            assert {name: stored[name] for name in row} == row


FLASK = "Sat, 06 Jun 2026 15:06:34 GMT"


def test_a_sync_and_a_report_name_the_columns_that_are_null(backread, tmp_path, monkeypatch):
    """As from services whose framework or database writes times and booleans in its own way."""
    listed = [user(1, created_at=FLASK), user(2, user_attributes=[{"name": "visits", "value": 3}])]
    talk = [
        message(10, created_at=FLASK, read_by_user=1, sender={"id": "3", "forename": "Grace"}),
        message(11, created_at=FLASK, sender_type="user", sender={"id": 1, "forename": "Grace"}),
        message(12, sender_type="bot", sender={"id": 1, "name": "Bot"}, channel="web"),
        message(13, sender_type="user", sender={"id": 1, "email": 7}),
    ]

    def service(request: Request) -> bytes:
        key = request.path.rsplit("/", 1)[1]
        rows = listed if key == "users" else talk
        return answer(200, {"limit": 99, "offset": 0, "total": len(rows), key: rows})

    names = {
        "messages.created_at": 4,
        "messages.read_by_user": 2,
        "messages.sender_email": 2,
        "messages.sender_id": 2,
        "users.created_at": 1,
        "users.user_attributes.value": 1,
    }
    says = f"12 values of another type, kept in extra: {', '.join(names)}"
    mirror = Mirror(tmp_path / "chats")
    with ScriptedServer(service) as server:
        assert sync(mirror, server).odd_values == names
        monkeypatch.setenv("BACKREAD_BASE_URL", server.url)
        monkeypatch.setenv("BACKREAD_API_SECRET", server.secret)
        monkeypatch.setenv("BACKREAD_VENDOR", server.vendor)
        # Also where the rows are as before.
        assert f"; {says}; " in backread("sync", mirror.folder).out
        assert f"{says}." in " ".join(backread("report", mirror.folder).out.split())
        assert mirror.figures().coverage.odd_values == names
        # Rows that are gone, or as documented now, do not count.
        talk[:] = [message(11)]
        listed[0] = user(1)
        report = sync(mirror, server, mode="full")
    assert report.odd_values == {"users.user_attributes.value": 1}
    assert SyncReport.from_dict(report.to_dict()) == report
