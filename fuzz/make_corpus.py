"""Writes what the fuzzer starts from: pages of the mock in its dialects, and odd ones by hand.

Usage: ``python fuzz/make_corpus.py``, with backread installed. ``cargo test`` runs the same files,
and those that were added because something went wrong with them, which this leaves alone.
"""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

from backread.testing import Lane, MockServer, World

CORPUS = Path(__file__).parent / "corpus" / "page"
DIALECTS = {
    "documented": "documented",
    "hostile": "hostile order=id",
    "nulls": "nulls=both",
    "gaps": "nulls=missing total=null",
    "others": "sender_type=others extra_fields=some",
    "large": "ids=large",
    "text": "ids=text",
}
MESSAGE = (
    '{"id":7,"body":"Hello \\ud83d\\ude00","read_by_user":true,"read_by_operator":null,'
    '"created_at":"2024-03-05T09:31:07.042Z","file_url":null,"auto_invitation":false,'
    '"sender_type":"operator","sender":{"id":3,"forename":"A\\"n","surname":"L","email":null,'
    '"picture_thumb_url":"https://example.com/a.png"}}'
)
USER = (
    '{"id":1,"name":"Ann \\u00d6n","email":null,"reference":"","created_at":'
    '"2024-03-05T10:31:07+01:00","updated_at":null,"online_at":"1969-12-31 23:59:59.999Z",'
    '"last_url":"https:\\/\\/example.com","user_attributes":[{"name":"plan","value":"pro"}]}'
)
ODD = {
    "spaces": ' {\r\n "users" : [ \t{ "id" : 1 , "name" : "a" } , {"id":2} ] , "total" : 2 }\n',
    "escaped-keys": '{"us\\u0065rs":[{"\\u0069d":1,"n\\u0061me":"a","x\\n":1}]}',
    "twice": '{"users":[],"users":[{"id":1,"id":2,"name":"a","name":"b","x":1,"x":2}]}',
    "sender-first": '{"messages":[{"sender":{"id":4,"name":"A"},"id":7,"sender_type":"user"}]}',
    "sender-crossed": '{"messages":[{"sender":{"id":4,"forename":"A"},"id":7,"sender_type":"user"},'
    '{"sender":{"id":4,"name":"A"},"id":8,"sender_type":"operator"}]}',
    "sender-alone": '{"messages":[{"id":7,"sender":{"id":4}},{"id":8,"sender_type":"user"}]}',
    "sender-nobody": '{"messages":[{"id":7,"sender_type":"user","sender":{"id":null,"x":[]}}]}',
    "attributes": '{"users":[{"id":1,"user_attributes":[{},{"value":null,"unit":{"a":[1.50]}}]}]}',
    "attribute-null": '{"users":[{"id":1,"user_attributes":[null]}]}',
    "numbers": '{"users":[{"id":-0},{"id":1.0},{"id":1e2},{"id":-9223372036854775808},'
    '{"id":9223372036854775808},{"id":5,"a":[1e400,-0.0,1E-7,123456789012345678901234567890]}]}',
    "wrong": '{"messages":[{"id":1,"body":5},{"id":2,"read_by_user":"yes"},{"id":3,"sender":[]}]}',
    "moments": '{"users":[{"id":1,"created_at":"9999-12-31T23:59:59.999Z"},{"id":2,"created_at":'
    '"2024-02-30T00:00:00.000Z"},{"id":3,"created_at":"2024-03-05T23:59:60.000Z"},'
    '{"id":4,"created_at":"2024-03-05T09:31:07.042\\u005a"},{"id":5,"created_at":"0000-01-01"}]}',
    "no-rows": '{"limit":99,"offset":0,"total":0,"users":[],"messages":[]}',
    "no-objects": '{"users":[1,"a",null,[],{}],"messages":[true,-1.5e3]}',
    "envelope": '{"limit":"99","offset":1.0,"total":-1,"users":[{"id":1}],"more":{"a":[true]}}',
    "deep": '{"users":[{"id":1,"a":' + "[" * 70 + "]" * 70 + "}]}",
    "halves": '{"users":[{"id":1,"name":"\\ud83d","x\\ude00":"\\\\ud83d \\ude00\\ud83d"}]}',
    "cut": f'{{"messages":[{MESSAGE},{MESSAGE[:150]}',
    "private": '{"users":[{"id":1,"x":{"$serde_json::private::Number":"5"},'
    '"$serde_json::private::RawValue":"{}"}]}',
}


def page(lane: Lane, target: str) -> bytes:
    headers = {
        "Authorization": f"Bearer {lane.secret}",
        "Accept": f"application/vnd.{lane.vendor}.v1+json",
    }
    request = urllib.request.Request(lane.url + target, headers=headers)
    with urllib.request.urlopen(request) as answer:
        body: bytes = answer.read()
    return body


def main() -> None:
    CORPUS.mkdir(parents=True, exist_ok=True)
    with MockServer(World(seed=5, users=40, messages_per_user=(4, 9))) as server:
        for name, dialect in DIALECTS.items():
            with server.lane(dialect=dialect) as lane:
                users = page(lane, "/external/users?offset=9&limit=3")
                first = json.loads(users)["users"][0]["id"]
                messages = page(lane, f"/external/users/{first}/messages?limit=4")
            (CORPUS / f"users-{name}").write_bytes(users)
            (CORPUS / f"messages-{name}").write_bytes(messages)
    many = ",".join(MESSAGE.replace(":7,", f":{identifier},") for identifier in range(20))
    (CORPUS / "messages-many").write_text(f'{{"total":20,"messages":[{many}]}}')
    (CORPUS / "users-many").write_text(f'{{"users":[{",".join([USER] * 20)}]}}')
    (CORPUS / "message-alone").write_text(MESSAGE)
    (CORPUS / "user-alone").write_text(USER)
    for name, body in ODD.items():
        (CORPUS / name).write_text(body)
    (CORPUS / "no-unicode").write_bytes(b'\xef\xbb\xbf{"users":[{"id":1,"na\xffme":"\xf0\x9f"}]}')


if __name__ == "__main__":
    main()
