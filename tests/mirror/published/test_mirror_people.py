"""Finding people of a mirror, and reading parts of their conversations."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backread import MirrorError
from backread.mirror import Mirror
from backread.mirror.published.conversation import read_window
from backread.mirror.published.people import People, PeopleQuery
from backread.mirror.published.snapshot_reader import SnapshotReader
from helpers.mirrors import BatchSource, batch

START = datetime(2024, 3, 1, 12, tzinfo=UTC)
LONG = "some.very.long.inbox.of.somebody@example"
USERS: list[dict[str, Any]] = [
    {"id": 1, "name": "Ada Lovelace", "email": "ada@example.com", "reference": "order/42"},
    {"id": 2, "name": "José Núñez", "email": f"{LONG}.com", "reference": None},
    {"id": 3, "name": None, "email": None, "reference": None},
    {"id": 42, "name": "Ada Byron", "email": f"{LONG}.org", "reference": "100%"},
]


def message(user_id: int, number: int, **fields: Any) -> dict[str, Any]:
    """The message of a user, ``number`` hours after the start."""
    return {
        "user_id": user_id,
        "id": user_id * 1000 + number,
        "body": f"message {number}",
        "created_at": START + timedelta(hours=number),
        "sender_type": "user",
        "sender_id": user_id,
        "read_by_user": True,
        "read_by_operator": True,
    } | fields


def operator(operator_id: int, **fields: Any) -> dict[str, Any]:
    return {
        "sender_type": "operator",
        "sender_id": operator_id,
        "sender_forename": "Grace",
        "sender_surname": f"No. {operator_id}",
    } | fields


MESSAGES = [
    message(1, 0),
    message(1, 1, **operator(7)),
    message(1, 2, **operator(8), auto_invitation=True, body="Need help?" * 50),
    message(2, 30, read_by_operator=False),
    message(2, 31, read_by_operator=False, file_url="https://files.example.com/a.pdf"),
    message(42, 50, **operator(7), read_by_user=False),
    message(42, 51, created_at=None, body="when?"),
]


def source(users: list[dict[str, Any]], messages: list[dict[str, Any]]) -> BatchSource:
    lists: Any = {each["id"]: "snapshot" for each in users}
    return BatchSource(batch(users, messages, swept="snapshot", lists=lists))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    mirror = Mirror(tmp_path / "chats")
    source(USERS, MESSAGES).sync_into(mirror.folder, "full")
    return mirror.folder


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> People:
    mirror = Mirror(tmp_path_factory.mktemp("people") / "chats")
    source(USERS, MESSAGES).sync_into(mirror.folder, "full")
    return People(SnapshotReader(mirror.folder))


def found(people: People, **query: Any) -> list[int]:
    return [each.user_id for each in people.find(PeopleQuery(**query)).people]


@pytest.mark.parametrize(
    ("order", "ids"),
    [
        ("newest", [42, 2, 1, 3]),
        ("oldest", [1, 2, 42, 3]),
        ("longest", [1, 2, 42, 3]),
        ("unread", [2, 42, 1, 3]),
        ("name", [42, 1, 2, 3]),
        ("id", [1, 2, 3, 42]),
    ],
)
def test_people_are_sorted_by_each_order(people, order, ids):
    assert found(people, order=order) == ids


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("ada", [42, 1]),
        ('"ada lovelace"', [1]),
        ('"lovelace ada"', []),
        ("jose NUNEZ", [2]),
        (f"{LONG}.com", [2]),
        ("42", [42, 1]),
        ("#42", [42]),
        ("3", [3]),
        ("100%", [42]),
        ("_da", []),
        ("'; DROP TABLE users; --", []),
        ("9" * 400, []),
        ("   ", [42, 2, 1, 3]),
        ("example.com", [2, 1]),
    ],
)
def test_words_are_looked_for_in_names_addresses_references_and_ids(people, words, ids):
    assert found(people, words=words) == ids


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({"unread": "operator"}, [2]),
        ({"unread": "user"}, [42]),
        ({"last_sender": "user"}, [42, 2]),
        ({"last_sender": "operator"}, [1]),
        ({"operator": 7}, [42, 1]),
        ({"files": True}, [2]),
        ({"since": "2024-03-02"}, [42, 2]),
        ({"until": "2024-03-02"}, [1]),
        ({"since": "2024-03-02", "until": "2024-03-03T12:00"}, [2]),
        ({"words": "ada", "operator": 7, "since": "2024-03-02"}, [42]),
    ],
)
def test_people_are_filtered(people, query, ids):
    assert found(people, **query) == ids
    assert people.find(PeopleQuery(**query)).total == len(ids)


def test_figures_and_the_last_message(people):
    ada = people.find(PeopleQuery("lovelace")).people[0]
    assert (ada.messages, ada.user_messages, ada.operator_messages, ada.auto_invitations) == (
        3, 1, 1, 1,
    )  # fmt: skip
    assert (ada.name, ada.email, ada.reference) == ("Ada Lovelace", "ada@example.com", "order/42")
    assert ada.last_message_at == START + timedelta(hours=2)
    assert ada.last_body is not None
    assert ada.last_body.startswith("Need help?")
    assert len(ada.last_body) < 200
    silent = people.find(PeopleQuery("3")).people[0]
    assert (silent.messages, silent.name, silent.last_message_at, silent.last_body) == (
        0, None, None, None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"unread": "nobody"}, "unread must be 'user' or 'operator'"),
        ({"order": "colour"}, "order must be"),
        ({"since": "yesterday"}, "since must be a date"),
        ({"since": "2024-03-02", "until": "2024-03-01"}, "since must be earlier than until"),
        ({"operator": -1}, "operator"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(query, said):
    with pytest.raises(ValueError, match=said):
        PeopleQuery(**query)


def test_more_words_than_can_be_searched_for_are_refused(people):
    """DuckDB would work on 3,000 words for a minute."""
    with pytest.raises(ValueError, match="words must have at most 1,000 characters, not 16,889"):
        people.find(PeopleQuery(" ".join(f"w{each}" for each in range(3_000))))
    assert people.find(PeopleQuery("w" * 1_000)).total == 0


# --- Windows --------------------------------------------------------------------------------------

COUNT = 30


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> SnapshotReader:
    mirror = Mirror(tmp_path_factory.mktemp("long") / "chats")
    messages = [message(1, number) for number in range(COUNT)]
    source([{"id": 1}, {"id": 2}], messages).sync_into(mirror.folder, "full")
    return SnapshotReader(mirror.folder)


def places(reader: SnapshotReader, **options: Any) -> tuple[list[int], bool, bool]:
    window = read_window(reader, 1, limit=10, **options)
    numbers = [each.id - 1000 for each in window.conversation]
    assert numbers == list(range(window.start, window.end))
    assert window.total == COUNT
    return numbers, window.start > 0, window.end < window.total


@pytest.mark.parametrize(("around", "first"), [(0, 0), (15, 10), (29, 20)])
def test_a_window_around_a_message_is_full_where_it_can_be(long, around, first):
    numbers, _, _ = places(long, around=1000 + around)
    assert numbers == list(range(first, first + 10))


def test_windows_beside_a_message(long):
    assert places(long, before=1020) == (list(range(10, 20)), True, True)
    assert places(long, before=1004) == (list(range(4)), False, True)
    assert places(long, before=1000) == ([], False, True)
    assert places(long, at="first") == (list(range(10)), False, True)
    assert places(long, after=1019) == (list(range(20, 30)), True, False)
    assert places(long, after=1029) == ([], True, False)


def test_messages_without_a_time_are_last(folder):
    window = read_window(SnapshotReader(folder), 42)
    assert [each.id for each in window.conversation] == [42050, 42051]


def test_what_is_not_there_is_said(long):
    with pytest.raises(MirrorError, match="no user 9"):
        read_window(long, 9)
    with pytest.raises(MirrorError, match="user 1 has no message 77"):
        read_window(long, 1, around=77)
    with pytest.raises(ValueError, match="only one"):
        read_window(long, 1, around=1001, before=1002)
