"""What a sync makes of a row that fails each page that it is part of: it reads around it."""

from collections.abc import Sequence
from typing import Any

import pytest

from canned import message, users
from mirrors import rows
from scripted_server import Request
from test_failing_rows import failing


class Chats:
    """A service of three users, of whom the second has the messages."""

    def __init__(self) -> None:
        self.users = users(3)
        self.messages = [message(number) for number in range(1, 151)]
        self.failing: set[int] = set()

    def __call__(self, request: Request) -> Any:
        if not request.path.endswith("messages"):
            return self._answer(request, self.users, "users")
        rows = self.messages if request.path.endswith("/2/messages") else []
        return self._answer(request, rows, "messages")

    def _answer(self, request: Request, rows: Sequence[Any], key: str) -> Any:
        def fails(page: range) -> bool:
            return any(row["id"] in self.failing for row in rows[page.start : page.stop])

        return failing(rows, key, fails)(request)


@pytest.mark.parametrize("bad", [{3}, {2}, {100}, {149, 151}])
def test_a_sync_reads_all_that_is_new_around_it(mirror, scripted, bad):
    chats = Chats()
    client = scripted(chats).client(max_retries=0)
    mirror.sync(client)
    chats.failing = bad
    chats.messages += [message(number) for number in range(151, 154)]
    chats.users += users(4)[3:]
    report = mirror.sync(client)
    known = set(range(1, 154)) - (bad & {151})
    assert rows(mirror, "SELECT id FROM messages ORDER BY id") == [(one,) for one in sorted(known)]
    assert rows(mirror, "SELECT id FROM users ORDER BY id") == [(1,), (2,), (3,), (4,)]
    assert report.deleted == 0
    chats.failing = set()
    assert mirror.sync(client).certificate != "uncertified"
    assert len(rows(mirror, "SELECT id FROM messages")) == 153
