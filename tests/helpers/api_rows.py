"""Rows as the interface shows them, and services over such rows that page in odd ways."""

from collections.abc import Callable, Sequence
from typing import Any

from helpers.scripted_server import Request, answer

Row = dict[str, Any]
Service = Callable[[Request], bytes]


def user(identifier: Any, **changes: Any) -> Row:
    """A user with all fields of interface 2.1."""
    return {
        "id": identifier,
        "name": f"User {identifier}",
        "email": f"user{identifier}@example.com",
        "reference": "r-1",
        "created_at": "2024-03-05T09:31:07.042Z",
        "updated_at": "2024-03-06T10:00:00.000Z",
        "online_at": "2024-03-07T11:00:00.000Z",
        "last_url": "https://example.com/",
        "user_attributes": [{"name": "plan", "value": "pro"}],
        **changes,
    }


def message(identifier: Any, **changes: Any) -> Row:
    """A message of an operator with all fields of interface 2.2."""
    return {
        "id": identifier,
        "body": f"Message {identifier}",
        "read_by_user": True,
        "read_by_operator": False,
        "created_at": "2024-03-05T09:31:07.042Z",
        "file_url": None,
        "auto_invitation": False,
        "sender_type": "operator",
        "sender": {
            "id": 3,
            "forename": "Grace",
            "surname": "Hopper",
            "email": "grace@example.com",
            "picture_thumb_url": None,
        },
        **changes,
    }


def users(count: int) -> list[Row]:
    """Users with the ids 1 to ``count``."""
    return [user(identifier) for identifier in range(1, count + 1)]


def envelope(
    rows: Sequence[Any],
    *,
    key: str = "users",
    limit: Any = 99,
    offset: Any = 0,
    total: Any = ...,
) -> Row:
    """A list response (interface 2.3); ``total`` is the number of rows unless it is given."""
    return {
        "limit": limit,
        "offset": offset,
        "total": len(rows) if total is ... else total,
        key: list(rows),
    }


def paged(
    rows: Sequence[Any],
    *,
    key: str = "users",
    at_most: int = 99,
    sent: int | None = None,
    total: Any = ...,
) -> Service:
    """A service over one list, and over each row by its id.

    ``at_most`` is the largest limit it applies, which it says; ``sent`` the most rows it sends,
    which it does not say; ``total`` what it claims, instead of the truth.
    """

    def service(request: Request) -> bytes:
        *_, last = request.path.split("/")
        if last != key:
            named = [row for row in rows if str(row["id"]) == last]
            return answer(200, named[0]) if named else answer(404, b"no such row")
        offset, limit = int(request.query["offset"]), min(int(request.query["limit"]), at_most)
        page = rows[offset : offset + min(limit, sent or limit)]
        claimed = len(rows) if total is ... else total
        return answer(200, envelope(page, key=key, limit=limit, offset=offset, total=claimed))

    return service


def ids(rows: Sequence[Any]) -> list[Any]:
    """The ids of models or of dicts."""
    return [row["id"] if isinstance(row, dict) else row.id for row in rows]


SERVER_ERROR = answer(500, b"oops")


def failing(
    rows: Sequence[Any], key: str, fails: Callable[[range], bool], failure: Any = SERVER_ERROR
) -> Any:
    """A service of one list that fails the pages of which `fails` says so."""
    whole = paged(rows, key=key)

    def service(request: Request) -> Any:
        if not request.path.endswith(key):
            return whole(request)
        offset, limit = int(request.query["offset"]), int(request.query["limit"])
        return failure if fails(range(offset, offset + limit)) else whole(request)

    return service


# A service that refuses pages of users beyond an offset, as support services do past a window.
WINDOW = 300
REFUSALS = {
    "400": answer(400, {"message": "offset + limit must be at most 300"}),
    "404": answer(404, {"message": "no such page"}),
    "413": answer(413, b""),
    "500": answer(500, b""),
    "504": answer(504, b""),
    "a list of another shape": answer(200, {"users": {"300": {"id": 301}}, "total": 500}),
}
REFUSES = f"the service refuses offsets above {WINDOW}"


class Accounts:
    """A service of 500 users with one message each, which may answer no page beyond user 300."""

    def __init__(self, refusal: Any) -> None:
        self.refusal = refusal
        self.refuses = True
        self.users = users(500)
        self.messages = {user["id"]: [message(user["id"])] for user in self.users}

    def __call__(self, request: Request) -> Any:
        if request.path.endswith("/messages"):
            user_id = int(request.path.split("/")[-2])
            return paged(self.messages.get(user_id, []), key="messages")(request)

        def fails(page: range) -> bool:
            return self.refuses and page.stop > WINDOW

        return failing(self.users, "users", fails, self.refusal)(request)
