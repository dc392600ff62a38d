"""A service of given rows for the probe's tests, and what must hold of every profile."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from backread import ServiceProfile
from helpers.api_rows import Row, envelope
from helpers.scripted_server import Request, answer

WORLD = {"seed": 7, "users": 250, "messages_per_user": (8, 300)}
"""The mock's world where a test does not say otherwise."""

MOST = 120
"""What a probe sends at the most."""

# What may be None without being a finding that is missing: parts of findings.
PARTS = ("applied",)


def missing(value: Any, path: str = "") -> Iterator[str]:
    """The paths of the findings that a profile lacks."""
    if value is None:
        if path.rpartition(".")[2] not in PARTS:
            yield path
    elif is_dataclass(value):
        for each in fields(value):
            yield from missing(getattr(value, each.name), f"{path}.{each.name}".lstrip("."))


def check(profile: ServiceProfile) -> ServiceProfile:
    """What holds of every profile: it reads back, and says why each missing finding is missing."""
    assert ServiceProfile.from_json(profile.to_json()) == profile
    assert sorted(missing(profile)) == sorted(profile.notes)
    assert all(profile.notes.values())
    return profile


class Rows:
    """A service over given users and messages, in their sequence, that takes any limit up to 99."""

    default = 20

    def __init__(
        self,
        users: Sequence[Row],
        messages: Mapping[int, Sequence[Row]],
        head: Callable[[Request], Mapping[str, str]] = lambda request: {},
    ) -> None:
        self.users, self.messages, self.head = users, messages, head

    def __call__(self, request: Request) -> bytes:
        parts = request.path.split("/")[3:]
        if not parts:
            return self.list(request, self.users, "users")
        messages = self.messages.get(int(parts[0]))
        if parts[1:] == ["messages"] and messages is not None:
            return self.list(request, messages, "messages")
        return answer(404, {"message": "nothing here"})

    def list(self, request: Request, rows: Sequence[Row], key: str) -> bytes:
        offset = int(request.query.get("offset", 0))
        limit = min(int(request.query.get("limit", self.default)), 99)
        page = rows[offset : offset + limit]
        body = envelope(page, key=key, limit=limit, offset=offset, total=len(rows))
        return answer(200, body, self.head(request))


def probed(face: Any, server: Any, **options: Any) -> ServiceProfile:
    """The profile of a server; ``options`` are the probe's."""
    return check(face.call(face.client(server).probe, **options))
