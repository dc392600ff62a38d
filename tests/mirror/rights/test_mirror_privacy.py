"""Privacy: what of a person a mirror holds, and which later syncs it refuses."""

import base64
import hmac
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from backread import ConfigurationError, Mirror, MirrorError
from helpers.api_rows import envelope
from helpers.mirrors import rows, sync
from helpers.scripted_server import answer

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

    def reply(request: Any) -> Any:
        of_messages = request.path.endswith("/messages")
        page = envelope(MESSAGES, key="messages") if of_messages else envelope([PERSON])
        return answer(200, page)

    return scripted(reply)


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
