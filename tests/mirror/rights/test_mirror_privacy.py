"""Privacy: what of a person a mirror holds and which syncs it refuses; retention: for how long."""

import base64
import hmac
import json
import os
import pickle
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from backread import AuthenticationError, ConfigurationError, Mirror, MirrorError
from backread.mirror.rights import purge
from backread.testing import MockServer
from helpers.api_rows import message, user
from helpers.file_traces import traces
from helpers.mirrors import BatchSource, batch, ended, marked, missed, rows, sync
from helpers.probed_service import Rows

KEY = bytes(range(7, 7 + 32))
BASE64 = base64.b64encode(KEY)

PERSON: dict[str, Any] = {
    "id": 1,
    "name": "Jane Privately",
    "email": "jane.privately@example.com",
    "reference": "crm-privately-77",
    "created_at": "2026-01-02T03:04:05.678Z",
    "last_url": "https://shop.example.com/privately?mail=jane.privately%40example.com",
    "user_attributes": [{"name": "city", "value": "Privately-on-Sea", "since": "privately"}],
    "phone": 4917012345678,
    "online_at": "privately on Monday",
}
MESSAGES: list[Any] = [
    {
        "id": 1,
        "body": "Reach jane.privately@example.com or +49 170 1234567, card 4111 1111 1111 1111",
        "created_at": "2026-01-02T03:04:05.678Z",
        "file_url": "https://files.example.com/privately.png",
        "sender_type": "user",
        "sender": {"id": 1, "name": "Jane Privately", "email": "jane.privately@example.com"},
    },
    {
        "id": 2,
        "body": "Order 123456 of 2026-01-02 is 12.50 EUR",
        "sender_type": "operator",
        "sender": {
            "id": 9,
            "forename": "Privately",
            "surname": "Privately",
            "email": "op@privately.example",
            "picture_thumb_url": "https://files.example.com/privately/op.png",
            "nickname": "privately",
        },
    },
    {"id": "privately", "body": "jane.privately@example.com"},
    "privately: jane.privately@example.com",
]


def key_file(path: Path, content: bytes = BASE64) -> Path:
    """A private file with the key."""
    path.write_bytes(content + b"\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A key file beside the mirror."""
    return key_file(tmp_path / "key")


@pytest.fixture
def service(scripted: Any) -> Any:
    """One person, whose fields and messages all name them."""
    return scripted(Rows([PERSON], {1: MESSAGES}))


def held(folder: Path) -> bytes:
    """All bytes of all files of a mirror, in lower case, and their names."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    assert any(file.suffix == ".parquet" for file in files)
    return b"\n".join(file.read_bytes() + str(file).encode() for file in files).lower()


def pseudonym(kind: str, text: str) -> str:
    """As docs/how-to/privacy.md computes it."""
    return f"{kind}-{hmac.digest(KEY, f'{kind}:{text}'.encode(), 'sha256').hex()[:32]}"


# --- what is stored -------------------------------------------------------------------------------


def test_no_byte_of_a_mirror_names_the_person(tmp_path, service, key):
    mirror = Mirror(tmp_path / "chats", pseudonymise=key, redact=True)
    for mode in ("incremental", "full"):
        sync(mirror, service, mode=mode)
    content = held(mirror.folder)
    for text in (b"privately", b"jane", b"4917012345678", b"1234567", b"4111 11", b"1111 1111"):
        assert text not in content
    assert BASE64.lower() not in content
    assert KEY not in content
    [(body,), (other,)] = rows(mirror, "SELECT body FROM messages ORDER BY id")
    assert body == "Reach [email] or [phone], card [card]"
    assert other == MESSAGES[1]["body"]
    [(rejects, reasons)] = rows(mirror, "SELECT count(*), count(DISTINCT reason) FROM rejects")
    assert (rejects, reasons) == (2, 2)


def test_pseudonyms_join_and_are_computed_as_documented(tmp_path, service, key):
    mirror = Mirror(tmp_path / "chats", pseudonymise=key)
    sync(mirror, service)
    [(*fields, last_url, extra)] = rows(
        mirror, "SELECT name, email, reference, last_url, extra FROM users"
    )
    assert fields == [pseudonym(name, PERSON[name]) for name in ("name", "email", "reference")]
    assert last_url == f"https://shop.example.com/{pseudonym('page', '/privately')}"
    others = {name: pseudonym("extra", str(PERSON[name])) for name in ("online_at", "phone")}
    assert json.loads(extra) == others
    joined = "FROM messages JOIN users ON sender_email = email AND sender_name = name"
    assert rows(mirror, f"SELECT count(*) {joined}") == [(1,)]
    # Without the other two, bodies are as sent.
    assert rows(mirror, "SELECT body FROM messages WHERE id = 1") == [(MESSAGES[0]["body"],)]


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"pseudonymise": None, "redact": False}, "none of these"),
        ({"pseudonymise": "other"}, "another key"),
        ({"drop_bodies": True}, "pass the same"),
    ],
)
def test_a_later_sync_must_have_the_same_choice(tmp_path, monkeypatch, server, key, changes, why):
    monkeypatch.chdir(tmp_path)
    key_file(tmp_path / "other", bytes(range(99, 99 + 32)).hex().encode())
    chosen = {"pseudonymise": key, "redact": True}
    sync(Mirror("chats", **chosen), server)
    asked = sum(server.counts().values())
    before = held(tmp_path / "chats")
    with pytest.raises(MirrorError, match=why) as refused:
        sync(Mirror("chats", **(chosen | changes)), server)
    assert BASE64.decode() not in str(refused.value)
    assert sum(server.counts().values()) == asked
    assert held(tmp_path / "chats") == before
    sync(Mirror("chats", **chosen), server)


# --- the key file ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [KEY, KEY.hex().encode() + b"\r\n", base64.urlsafe_b64encode(KEY).rstrip(b"=")],
    ids=["raw", "hexadecimal", "urlsafe base64"],
)
def test_a_key_is_raw_or_text(tmp_path, service, key, content):
    key.write_bytes(content)
    mirror = Mirror(tmp_path / "chats", pseudonymise=key)
    sync(mirror, service)
    assert rows(mirror, "SELECT name FROM users") == [(pseudonym("name", PERSON["name"]),)]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b" \n", "is empty"),
        (base64.b64encode(KEY[:16]), "16 bytes"),
        (b"a pass phrase that somebody thought of.", "neither hexadecimal nor base64"),
        (b"00" * 32, "is not random"),
        (KEY * 1000, "more than 4,096 bytes"),
    ],
)
def test_what_is_no_key(tmp_path, service, key, content, why):
    key.write_bytes(content)
    with pytest.raises(ConfigurationError, match=rf"{why}.*openssl rand"):
        sync(Mirror(tmp_path / "chats", pseudonymise=key), service)
    assert service.requests == []
    assert not (tmp_path / "chats").exists()


@pytest.mark.parametrize("text", [KEY.hex(), "part/of/" + BASE64.decode()])
def test_a_key_in_place_of_its_file_is_not_shown(tmp_path, service, text, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="the path of a file that holds the key") as said:
        sync(Mirror("chats", pseudonymise=text), service)
    assert text[-8:] not in str(said.value)


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_a_key_that_others_may_read_or_replace_is_refused(tmp_path, service, key):
    def refuse(path, why):
        with pytest.raises(ConfigurationError, match=why):
            sync(Mirror(tmp_path / "chats", pseudonymise=path), service)

    for mode, why in ((0o644, "every user may access"), (0o620, "its group may change")):
        key.chmod(mode)
        refuse(key, why)
    key.chmod(0o600)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "link").symlink_to(key)
    refuse(elsewhere / "link", "symbolic link")
    refuse(elsewhere / "missing", "cannot be read")
    os.mkfifo(elsewhere / "pipe", 0o600)
    refuse(elsewhere / "pipe", "not a regular file")
    elsewhere.chmod(0o777)
    refuse(key_file(elsewhere / "key"), "every user may write to the folder")
    # As Kubernetes mounts a secret.
    (tmp_path / "..data").mkdir()
    key.rename(tmp_path / "..data" / "key")
    key.symlink_to(tmp_path / "..data" / "key")
    sync(Mirror(tmp_path / "chats", pseudonymise=key), service)


def test_a_mirror_pickles_with_the_path_and_without_the_key(tmp_path, service, key, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps(Mirror("chats", pseudonymise="key", redact=True))
    monkeypatch.chdir("/")
    assert KEY not in pickled
    assert BASE64 not in pickled
    mirror = pickle.loads(pickled)
    sync(mirror, service)
    assert rows(mirror, "SELECT name FROM users") == [(pseudonym("name", PERSON["name"]),)]


def test_the_command_has_the_same_options(tmp_path, backread, server, key):
    folder = tmp_path / "chats"
    chosen = ("--pseudonymise", key, "--drop-bodies", "--redact")
    assert backread("sync", folder, *chosen).code == 0
    assert rows(Mirror(folder), "SELECT count(body) FROM messages") == [(0,)]
    assert "pass the same" in backread("sync", folder, *chosen[:2]).line
    key.chmod(0o644)
    refused = backread("sync", folder, *chosen)
    assert (refused.code, "every user may access" in refused.line) == (2, True)


# --- retention ------------------------------------------------------------------------------------


MARKS = ["name-Zoë-77d", "body-Zoë-77d", "gone-Zoë-77d"]


@pytest.fixture
def gone(mirror: Mirror, server: MockServer) -> tuple[int, Any]:
    """A user who is gone, as the mirror knows, like a message of another; and the world before."""
    world = server.world
    user_id, other = world.user_ids()[5:7]
    lost = world.message_ids(other)[0]
    world.edit_user(user_id, name=MARKS[0])
    world.edit_message(user_id, world.message_ids(user_id)[0], body=MARKS[1])
    world.edit_message(other, lost, body=MARKS[2])
    sync(mirror, server)
    before = world.snapshot()
    world.remove_user(user_id)
    world.remove_message(other, lost)
    sync(mirror, server, mode="full")
    assert marked(mirror)[0] == [user_id]
    assert {mark for mark in MARKS if traces(mirror.folder, mark)} == {*MARKS}
    return user_id, before


def test_rows_gone_for_longer_are_removed_with_all_their_bytes(mirror, server, gone):
    query = "SELECT * EXCLUDE (last_seen_at) FROM {} WHERE deleted_at IS NULL ORDER BY ALL"
    kept = [rows(mirror, query.format(table)) for table in ("users", "messages")]
    keeping_none = Mirror(mirror.folder, retention=timedelta(0))
    server.fault("users: status(401)")
    with pytest.raises(AuthenticationError):
        sync(keeping_none, server)
    # Nothing is removed before the service answers.
    assert marked(mirror)[0] == [gone[0]]
    server.clear_faults()
    report = sync(keeping_none, server, publish=False)
    assert report.published
    assert traces(mirror.folder, *MARKS) == []
    assert marked(mirror) == ([], [])
    assert kept == [rows(mirror, query.format(table)) for table in ("users", "messages")]
    assert rows(mirror, "SELECT * FROM forgotten") == []
    assert rows(mirror, f"SELECT * FROM lists WHERE user_id = {gone[0]}") == []


def test_a_removed_user_who_comes_back_is_added_again(mirror, server, gone):
    user_id, before = gone
    sync(Mirror(mirror.folder, retention=0), server)
    server.world.restore(before)
    sync(Mirror(mirror.folder, retention=0), server)
    assert missed(mirror, server.world) == []
    assert rows(mirror, f"SELECT name FROM users WHERE id = {user_id}") == [(MARKS[0],)]


@pytest.mark.parametrize("retention", [None, timedelta(days=90)])
def test_rows_gone_for_less_long_stay_and_the_database_is_not_written_anew(
    mirror, server, gone, retention
):
    before = (mirror.folder / "mirror.duckdb").stat().st_ino
    sync(Mirror(mirror.folder, retention=retention), server)
    assert (mirror.folder / "mirror.duckdb").stat().st_ino == before
    assert marked(mirror)[0] == [gone[0]]


def test_rejected_records_gone_for_longer_are_removed_with_all_their_bytes(mirror, scripted):
    service = Rows(
        [user(1), user("2", name=MARKS[0])], {1: [message(5), message("x6", body=MARKS[1])]}
    )
    server = scripted(service)
    keeping_none = Mirror(mirror.folder, retention=0)
    held = "SELECT resource FROM rejects ORDER BY 1"
    for _ in range(3):
        sync(keeping_none, server)
        assert rows(mirror, held) == [("messages",), ("users",)]
    service.users, service.messages = [user(1)], {1: [message(5)]}
    sync(mirror, server)
    sync(Mirror(mirror.folder, retention=3600), server)
    assert rows(mirror, held) == [("messages",), ("users",)]
    assert {mark for mark in MARKS if traces(mirror.folder, mark)} == {*MARKS[:2]}
    sync(keeping_none, server)
    assert rows(mirror, held) == []
    assert traces(mirror.folder, *MARKS) == []


@pytest.mark.parametrize("read", [{"certificate": "uncertified"}, {"kind": "end"}])
def test_rejected_records_stay_until_a_complete_read_does_not_find_them(mirror, read):
    rejects = [{"resource": "users"}, {"resource": "messages", "user_id": 1}]
    for found in (rejects, [], []):
        unsure = batch([{"id": 1}], rejects=found, swept="uncertified", lists=[ended(1, **read)])
        BatchSource(unsure).sync_into(mirror.folder, retention=0)
    assert rows(mirror, "SELECT count(*) FROM rejects") == [(2,)]


HOUR = timedelta(hours=1)
YEARS = timedelta(days=3653)


class Clock:
    """What `datetime.now` says, some time from now; and so a service's Date header."""

    def __init__(self, ahead: timedelta) -> None:
        self.ahead = ahead

    def now(self, zone: Any) -> datetime:
        return datetime.now(zone) + self.ahead

    def headers(self, request: object) -> dict[str, str]:
        return {"date": format_datetime(self.now(UTC), usegmt=True)}


@pytest.mark.parametrize(
    ("local", "service_clock", "retention", "stays", "problem"),
    [
        (YEARS, 0 * HOUR, 90 * 24 * HOUR, [2], "differs from the service's"),
        (0 * HOUR, YEARS, 0 * HOUR, [2], "differs from the service's"),
        (-YEARS, None, 0 * HOUR, [2], "is before the mirror's last run"),
        (YEARS, YEARS, 90 * 24 * HOUR, [], None),
        (20 * HOUR, 2 * HOUR, 10 * HOUR, [2], None),
        (2 * HOUR, 20 * HOUR, 1 * HOUR, [], None),
    ],
)
def test_mirror_retention_does_not_trust_one_clock(
    mirror, scripted, monkeypatch, local, service_clock, retention, stays, problem
):
    service = Rows([user(1), user(2)], {1: [message(5)], 2: [message(6)]})
    server = scripted(service)
    sync(mirror, server)
    service.users = [user(1)]
    sync(mirror, server, mode="full")
    if service_clock is not None:
        service.head = Clock(service_clock).headers
    monkeypatch.setattr(purge, "datetime", Clock(local))
    report = sync(Mirror(mirror.folder, retention=retention), server)
    assert marked(mirror)[0] == stays
    if problem is None:
        assert report.retention_problem is None
    else:
        assert problem in report.retention_problem
