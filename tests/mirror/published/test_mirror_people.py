"""Finding people of a mirror, and reading parts of their conversations."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backread import MirrorError
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


GRACE = {"sender_type": "operator", "sender_id": 7}
MESSAGES = [
    message(1, 0),
    message(1, 1, **GRACE),
    message(1, 2, **GRACE, auto_invitation=True, body="Need help?" * 50),
    message(2, 30, read_by_operator=False),
    message(2, 31, read_by_operator=False, file_url="https://files.example.com/a.pdf"),
    message(42, 50, **GRACE, read_by_user=False),
    message(42, 51, created_at=None, body="when?"),
]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> SnapshotReader:
    folder = tmp_path_factory.mktemp("people") / "chats"
    BatchSource(batch(USERS, MESSAGES, swept="snapshot")).sync_into(folder)
    return SnapshotReader(folder)


@pytest.fixture(scope="module")
def people(reader: SnapshotReader) -> People:
    return People(reader)


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ({"order": "newest"}, [42, 2, 1, 3]),
        ({"order": "oldest"}, [1, 2, 42, 3]),
        ({"order": "longest"}, [1, 2, 42, 3]),
        ({"order": "unread"}, [2, 42, 1, 3]),
        ({"order": "name"}, [42, 1, 2, 3]),
        ({"order": "id"}, [1, 2, 3, 42]),
        ({"words": "ada"}, [42, 1]),
        ({"words": '"ada lovelace"'}, [1]),
        ({"words": "jose NUNEZ"}, [2]),
        ({"words": "42"}, [42, 1]),
        ({"words": "#42"}, [42]),
        ({"words": "100%"}, [42]),
        ({"words": "_da"}, []),
        ({"words": "'; DROP TABLE users; --"}, []),
        ({"words": "   "}, [42, 2, 1, 3]),
        ({"words": "example.com"}, [2, 1]),
        ({"unread": "operator"}, [2]),
        ({"unread": "user"}, [42]),
        ({"last_sender": "user"}, [42, 2]),
        ({"operator": 7}, [42, 1]),
        ({"files": True}, [2]),
        ({"until": "2024-03-02"}, [1]),
        ({"since": "2024-03-02", "until": "2024-03-03T12:00"}, [2]),
        ({"words": "ada", "operator": 7, "since": "2024-03-02"}, [42]),
    ],
)
def test_people_are_sorted_searched_and_filtered(people, query, ids):
    found = people.find(PeopleQuery(**query))
    assert ([each.user_id for each in found.people], found.total) == (ids, len(ids))


def test_figures_and_the_last_message(people):
    [ada] = people.find(PeopleQuery("lovelace")).people
    assert (ada.messages, ada.user_messages, ada.operator_messages, ada.auto_invitations) == (
        3, 1, 1, 1,
    )  # fmt: skip
    assert (ada.name, ada.email, ada.reference) == ("Ada Lovelace", "ada@example.com", "order/42")
    assert ada.last_message_at == START + timedelta(hours=2)
    assert ada.last_body.startswith("Need help?")
    assert len(ada.last_body) < 200
    [silent] = people.find(PeopleQuery("#3")).people
    assert (silent.messages, silent.name, silent.last_message_at) == (0, None, None)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"unread": "nobody"}, "unread must be 'user' or 'operator'"),
        ({"order": "colour"}, "order must be"),
        ({"since": "yesterday"}, "since must be a date"),
        ({"since": "0001-01-01T00:00+14:00"}, "outside the years"),
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


def test_a_window_is_beside_or_around_a_message_and_full_where_it_can_be(reader, mirror):
    messages = [message(1, number) for number in range(30)]
    BatchSource(batch([{"id": 1}], messages, swept="snapshot")).sync_into(mirror.folder)
    long = SnapshotReader(mirror.folder)
    for options, first, end in (
        ({"around": 1000}, 0, 10),
        ({"around": 1015}, 10, 20),
        ({"around": 1029}, 20, 30),
        ({"before": 1020}, 10, 20),
        ({"before": 1004}, 0, 4),
        ({"before": 1000}, 0, 0),
        ({"at": "first"}, 0, 10),
        ({"after": 1019}, 20, 30),
        ({"after": 1029}, 30, 30),
    ):
        window = read_window(long, 1, limit=10, **options)
        assert (window.start, window.end, window.total) == (first, end, 30), options
        assert [each.id - 1000 for each in window.conversation] == list(range(first, end))
    # Messages without a time are last.
    assert [each.id for each in read_window(reader, 42).conversation] == [42050, 42051]
    with pytest.raises(MirrorError, match="no user 9"):
        read_window(long, 9)
    with pytest.raises(MirrorError, match="user 1 has no message 77"):
        read_window(long, 1, around=77)
    with pytest.raises(ValueError, match="only one"):
        read_window(long, 1, around=1001, before=1002)
