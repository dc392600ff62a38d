"""Unknown fields as JSON in the column ``extra``: whatever their keys are, none is lost."""

import json

import pytest

from helpers.api_rows import envelope, message
from helpers.scripted_server import ScriptedServer, answer

pa = pytest.importorskip("pyarrow")

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
