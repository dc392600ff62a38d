"""Privacy: what of a person a mirror holds, and which later syncs it refuses."""

import base64
import hmac
import json
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backread import ConfigurationError, Mirror, MirrorError
from backread.testing import MockServer, World
from helpers.api_rows import envelope
from helpers.mirrors import rows, sync
from helpers.scripted_server import answer

KEY = bytes(range(7, 7 + 32))
OTHER_KEY = bytes(range(99, 99 + 32))

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


def key_file(folder: Path, key: bytes = KEY, name: str = "key") -> Path:
    """A private file with the key."""
    path = folder / name
    path.write_bytes(base64.b64encode(key) + b"\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A key file beside the mirror."""
    return key_file(tmp_path)


@pytest.fixture
def service(scripted: Any) -> Any:
    """One person, whose fields and messages all name them."""

    def reply(request: Any) -> Any:
        of_messages = request.path.endswith("/messages")
        page = envelope(MESSAGES, key="messages") if of_messages else envelope([PERSON])
        return answer(200, page)

    return scripted(reply)


@pytest.fixture
def server() -> Iterator[MockServer]:
    """A small world."""
    with MockServer(World(seed=5, users=12, messages_per_user=(0, 30))) as running:
        yield running


def held(folder: Path) -> bytes:
    """All bytes of all files of a mirror, in lower case, and their names."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    assert any(file.suffix == ".parquet" for file in files)
    return b"\n".join(file.read_bytes() + str(file).encode() for file in files).lower()


def pseudonym(kind: str, text: str, key: bytes = KEY) -> str:
    """As docs/how-to/privacy.md computes it."""
    return f"{kind}-{hmac.digest(key, f'{kind}:{text}'.encode(), 'sha256').hex()[:32]}"


# --- what is stored -------------------------------------------------------------------------------


def test_no_byte_of_a_mirror_names_the_person(tmp_path, service, key):
    mirror = Mirror(tmp_path / "chats", pseudonymise=key, redact=True)
    for mode in ("incremental", "full"):
        sync(mirror, service, mode=mode)
    content = held(mirror.folder)
    for text in ("privately", "jane", "4917012345678", "1234567", "4111 11", "1111 1111"):
        assert text.encode() not in content, text
    assert base64.b64encode(KEY).lower() not in content
    assert KEY not in content
    [(body,), (other,)] = rows(mirror, "SELECT body FROM messages ORDER BY id")
    assert body == "Reach [email] or [phone], card [card]"
    assert other == MESSAGES[1]["body"]
    [(rejects, reasons)] = rows(mirror, "SELECT count(*), count(DISTINCT reason) FROM rejects")
    assert (rejects, reasons) == (2, 2)


def test_pseudonyms_join_and_are_computed_as_documented(tmp_path, service, key):
    mirror = Mirror(tmp_path / "chats", pseudonymise=key)
    sync(mirror, service)
    [user] = rows(mirror, "SELECT name, email, reference, last_url, extra FROM users")
    name, email, reference, last_url, extra = user
    assert name == pseudonym("name", PERSON["name"])
    assert email == pseudonym("email", PERSON["email"])
    assert reference == pseudonym("reference", PERSON["reference"])
    assert last_url == f"https://shop.example.com/{pseudonym('page', '/privately')}"
    assert json.loads(extra) == {
        "online_at": pseudonym("extra", PERSON["online_at"]),
        "phone": pseudonym("extra", str(PERSON["phone"])),
    }
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
        ({"redact": False}, "pass the same"),
        ({"drop_bodies": True}, "pass the same"),
    ],
)
def test_a_later_sync_must_have_the_same_choice(tmp_path, server, key, changes, why):
    key_file(tmp_path, OTHER_KEY, "other")
    chosen = {"pseudonymise": key, "redact": True}
    sync(Mirror(tmp_path / "chats", **chosen), server)
    if changes.get("pseudonymise"):
        changes = changes | {"pseudonymise": tmp_path / changes["pseudonymise"]}
    asked = sum(server.counts().values())
    before = held(tmp_path / "chats")
    with pytest.raises(MirrorError, match=why) as refused:
        sync(Mirror(tmp_path / "chats", **(chosen | changes)), server)
    assert base64.b64encode(KEY).decode() not in str(refused.value)
    assert sum(server.counts().values()) == asked
    assert held(tmp_path / "chats") == before
    sync(Mirror(tmp_path / "chats", **chosen), server)


# --- the key file ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [KEY, KEY.hex().encode(), base64.urlsafe_b64encode(KEY).rstrip(b"=")],
    ids=["raw", "hexadecimal", "urlsafe base64"],
)
def test_a_key_is_raw_or_text(tmp_path, service, key, content):
    other = tmp_path / "other"
    other.write_bytes(content if content == KEY else content + b"\r\n")
    other.chmod(0o440)
    mirror = Mirror(tmp_path / "chats", pseudonymise=other)
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
def test_what_is_no_key(tmp_path, service, content, why):
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(ConfigurationError, match=why) as refused:
        sync(Mirror(tmp_path / "chats", pseudonymise=path), service)
    assert "openssl rand" in str(refused.value)
    assert service.requests == []
    assert not (tmp_path / "chats").exists()


@pytest.mark.parametrize(
    "text",
    [
        KEY.hex(),
        # Base64 has slashes.
        "part/of/" + base64.b64encode(KEY).decode(),
        base64.urlsafe_b64encode(KEY).decode().rstrip("="),
    ],
)
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
    refuse(elsewhere, "Is a directory|not a regular file")
    refuse(elsewhere / "missing", "cannot be read")
    os.mkfifo(elsewhere / "pipe", 0o600)
    refuse(elsewhere / "pipe", "not a regular file")
    elsewhere.chmod(0o777)
    refuse(key_file(elsewhere), "every user may write to the folder")
    # As Kubernetes mounts a secret.
    (tmp_path / "..data").mkdir()
    key.rename(tmp_path / "..data" / "key")
    key.symlink_to(tmp_path / "..data" / "key")
    sync(Mirror(tmp_path / "chats", pseudonymise=key), service)


def test_a_mirror_pickles_with_the_path_and_without_the_key(tmp_path, service, key, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mirror = Mirror("chats", pseudonymise="key", redact=True)
    monkeypatch.chdir("/")
    pickled = pickle.dumps(mirror)
    assert KEY not in pickled
    assert base64.b64encode(KEY) not in pickled
    sync(pickle.loads(pickled), service)
    sync(mirror, service)
    assert rows(mirror, "SELECT name FROM users") == [(pseudonym("name", PERSON["name"]),)]


def test_the_command_has_the_same_options(tmp_path, backread, server, key):
    folder = tmp_path / "chats"
    chosen = ("--pseudonymise", key, "--drop-bodies", "--redact")
    assert backread("sync", folder, *chosen).code == 0
    assert rows(Mirror(folder), "SELECT count(body) FROM messages") == [(0,)]
    refused = backread("sync", folder, *chosen[:2])
    assert refused.code != 0
    assert "pass the same" in refused.error
    key.chmod(0o644)
    refused = backread("sync", folder, *chosen)
    assert (refused.code, refused.error.count("\n")) == (2, 1)
    assert "every user may access" in refused.error
