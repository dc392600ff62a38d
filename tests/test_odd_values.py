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
from backread.mirror import Mirror
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
