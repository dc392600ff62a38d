"""A service that refuses pages of users beyond an offset, as support services do past a window."""

from typing import Any

from helpers.api_rows import failing, message, paged, users
from helpers.scripted_server import Request, answer

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
