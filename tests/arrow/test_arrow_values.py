"""Arrow columns: a requested schema loses no value, and `extra` is the JSON that was sent."""

import json
from typing import Any

import pytest

from backread._client import listing as listing_module
from helpers.api_rows import envelope, message
from helpers.scripted_server import ScriptedServer, answer

pa = pytest.importorskip("pyarrow")


@pytest.fixture(params=["listing", "page"])
def source(request: pytest.FixtureRequest, backread_client: Any) -> Any:
    users = backread_client.users
    return users.list() if request.param == "listing" else users.page(limit=50)


def changed(schema: Any, name: str, kind: Any) -> Any:
    place = schema.get_field_index(name)
    return schema.set(place, schema.field(name).with_type(kind))


@pytest.mark.parametrize(
    ("name", "kind"), [("id", pa.int8()), ("name", pa.int64()), ("created_at", pa.timestamp("s"))]
)
def test_values_that_do_not_fit_are_an_error_and_not_null(source, name, kind):
    schema = changed(pa.table(source).schema, name, kind)
    with pytest.raises(pa.ArrowInvalid):
        pa.table(source, schema=schema)


def test_values_that_fit_are_converted(source):
    plain = pa.table(source)
    wide = pa.table(source, schema=changed(plain.schema, "name", pa.large_string()))
    assert wide["name"].type == pa.large_string()
    assert wide["name"].to_pylist() == plain["name"].to_pylist()


def test_columns_keep_their_names_whatever_order_is_requested(source):
    plain = pa.table(source)
    names = plain.schema.names
    name, email = names.index("name"), names.index("email")
    names[name], names[email] = "email", "name"
    names[-1] = "other"
    schema = pa.schema([plain.schema.field(at).with_name(each) for at, each in enumerate(names)])
    read = pa.RecordBatchReader.from_stream(source, schema=schema).read_all()
    assert read["email"].to_pylist() == plain["email"].to_pylist()


def test_an_error_whose_text_has_a_nul_ends_no_process(backread_mock, monkeypatch):
    def warn(_: object) -> None:
        raise ValueError("a\0b")

    monkeypatch.setattr(listing_module, "warn_of_unread", warn)
    backread_mock.on("messages", user=backread_mock.world.user_ids()[0]).fail("status(500)")
    with backread_mock.client(max_retries=0) as client:
        messages = client.messages.all()
        # Its schema was asked for, so nothing is read ahead.
        messages.__arrow_c_schema__()
        with pytest.raises(Exception, match="a\u2400b"):
            pa.RecordBatchReader.from_stream(messages).read_all()


OWN = "$serde_json::private::"


@pytest.mark.parametrize(
    "value",
    [
        {"x": {OWN + "Number": "12"}},
        {"x": {OWN + "Number": "abc"}},
        {"x": [{OWN + "RawValue": "[1, 2]"}]},
        {OWN + "RawValue": "no JSON"},
        {"ordinary": [1, 2.5, None, 'a "b" \\ c']},
    ],
)
@pytest.mark.parametrize("escaped", [False, True])
def test_extra_column_is_the_json_that_was_sent(face, value, escaped):
    row = json.dumps(message(1, seen=True, more=value))
    if escaped:
        row = row.replace("$serde", "\\u0024serde")
    body = json.dumps(envelope([0], key="messages", total=1)).replace("[0]", f"[{row}]")
    with ScriptedServer(lambda _: answer(200, body.encode())) as server:
        table = pa.table(face.client(server).messages.list(1))
    [extra] = table["extra"].to_pylist()
    assert json.loads(extra) == {"seen": True, "more": value}
