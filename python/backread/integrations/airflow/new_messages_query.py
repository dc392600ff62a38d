"""Checks in a few requests whether the service has messages newer than a mark.

Does not import Airflow.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from backread._files.dataclass_json import dataclass_from_json, to_json_value
from backread.errors import NotFoundError
from backread.mirror.schema import ALL_USERS

if TYPE_CHECKING:
    from backread import AsyncClient
    from backread.mirror import Mirror
    from backread.typed_dicts import MessageDict, PageDict, UserDict

__all__ = ["LEAST_REQUESTS", "Look", "Mark", "News", "look", "mark_of"]

WATCHED = 8
"""The number of a mirror's users, the last to write, whose messages each look counts."""

LEAST_REQUESTS = WATCHED + 4
"""Requests for the watched users, two pages of users, and two pages of one user's messages."""

LARGEST_PAGE = 99

LARGEST_ID = 2**63 - 1

# Deleted users stay unmarked until a full run, but no finished run sees them. The service may still
# count those that were forgotten, and it counts those whose record was rejected.
HELD = f"""
WITH newest AS (
    SELECT max(run_id) AS run_id, max(ended_at) AS ended_at FROM runs
    WHERE state = 'finished' AND {ALL_USERS}
)
SELECT (
    SELECT count(*) FROM users
    WHERE deleted_at IS NULL AND coalesce(last_seen_at >= (SELECT ended_at FROM newest), true)
) + (SELECT count(*) FROM forgotten) + (
    SELECT count(DISTINCT coalesce(CAST(id AS VARCHAR), json, '')) FROM rejects
    WHERE resource = 'users' AND coalesce(run_id >= (SELECT run_id FROM newest), true)
        AND (id IS NULL OR id NOT IN (SELECT id FROM users))
)
"""

Unknown: TypeAlias = Callable[[Iterable[int]], Awaitable[AbstractSet[int]]]
"""Returns which of the given user ids are unknown."""


class News(TypedDict):
    """What was found: the sensor's XCom.

    ``user_id`` is None if the number of users changed. ``created_at`` is the time of the new
    message or user as ISO 8601, None if only a count changed.
    """

    user_id: int | None
    created_at: str | None
    reason: str


BLANK_OFFSET = re.compile(r" (?=[+-]\d\d:?\d\d$)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Mark:
    """The known state: messages up to ``since``, and the watched users' message counts by id.

    The first look sets ``since=None`` to the newest time that it sees. ``held`` is the
    number of users that the mirror accounts for; ``total`` the service's count at the last look.
    """

    since: datetime | None = None
    watched: tuple[tuple[int, int], ...] = ()
    held: int | None = None
    total: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The mark as JSON values."""
        values: dict[str, Any] = to_json_value(self)
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Mark:
        """The mark that `to_dict` wrote."""
        return dataclass_from_json(cls, values, "mark")


@dataclass(frozen=True, slots=True)
class Look:
    """The result of a look, and the mark for the next one."""

    news: News | None
    mark: Mark
    requests: int


def moment(text: str) -> datetime:
    """Parses an ISO 8601 time, in UTC if it has no offset; ValueError for other text."""
    try:
        read = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise ValueError(f"{text!r} is not an ISO 8601 time") from None
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)


def mark_of(mirror: Mirror) -> Mark:
    """The mark for a mirror's last run over all users; `MirrorError` if nothing is published.

    ``since`` is by the service's clock unless ours is behind it; messages that arrived during that
    run then count as new, although the mirror may have them.
    """
    cursor = mirror.sql(
        "SELECT epoch_us(least((SELECT max(created_at) FROM messages), "
        f"(SELECT max(started_at) FROM runs WHERE {ALL_USERS})))"
    )
    [(since,)] = cursor.fetchall()
    watched = mirror.sql(
        "SELECT user_id, coalesce(total, rows) FROM lists JOIN conversations USING (user_id) "
        "WHERE coalesce(total, rows) IS NOT NULL "
        f"ORDER BY last_message_at DESC NULLS LAST, user_id LIMIT {WATCHED}"
    ).fetchall()
    [(held,)] = mirror.sql(HELD).fetchall()
    known = None if since is None else datetime.fromtimestamp(since / 1e6, UTC)
    return Mark(known, tuple((int(user_id), int(count)) for user_id, count in watched), int(held))


async def look(
    client: AsyncClient, mark: Mark, max_requests: int, unknown: Unknown | None = None
) -> Look:
    """Looks once, in at most ``max_requests`` sequential requests, not counting retries.

    It counts the messages of the watched users; reads the first and the last page of users, where
    a changed number of users, a user created after the mark and an ``unknown`` one are news; and,
    for users there with times after the mark, latest first, reads the first and the last page of
    messages. Raises the errors of `backread.errors`.
    """
    looking = _Looking(client, mark, max_requests)
    news = await looking.at_the_watched()
    if news is None:
        news = await looking.at_users(unknown)
    return Look(news, looking.mark, looking.requests)


class _Looking:
    def __init__(self, client: AsyncClient, mark: Mark, max_requests: int) -> None:
        self._client = client
        self._left = max_requests
        self.mark = mark
        self.requests = 0

    def _spend(self) -> bool:
        """Whether one more request may be sent; it counts as sent."""
        if self._left == 0:
            return False
        self._left -= 1
        self.requests += 1
        return True

    async def at_the_watched(self) -> News | None:
        for user_id, held in self.mark.watched:
            if not self._spend():
                return None
            try:
                page = await self._messages(user_id, limit=1)
            except NotFoundError:
                continue
            if page.total is not None and page.total > held:
                return News(
                    user_id=user_id, created_at=None, reason=f"{page.total} messages, not {held}"
                )
        return None

    async def at_users(self, unknown: Unknown | None) -> News | None:
        users, total = await self._users()
        news = self._counted(total) or await self._new_user(users, unknown)
        if news is not None:
            return news
        if self.mark.since is None:
            since = max((user.active_at for user in users), default=EARLIEST)
            # The service sends no times: starts now, by this machine's clock.
            self.mark = replace(self.mark, since=datetime.now(UTC) if since == EARLIEST else since)
            return None
        active = [user for user in users if user.active_at > self.mark.since]
        for user in sorted(active, key=lambda user: user.active_at, reverse=True):
            if (created_at := await self._newer_message(user.id, self.mark.since)) is not None:
                return News(
                    user_id=user.id, created_at=created_at.isoformat(), reason="a new message"
                )
        return None

    def _counted(self, total: int | None) -> News | None:
        """Whether the service's count of users changed, or exceeds the mirror's.

        A smaller count may be capped or cached, which a sync would not change.
        """
        before, held = self.mark.total, self.mark.held
        if total is None:
            return None
        self.mark = replace(self.mark, total=total)
        if before is None:
            before = held if held is not None and total > held else total
        if total == before:
            return None
        return News(user_id=None, created_at=None, reason=f"{total} users, not {before}")

    async def _new_user(self, users: list[_Row], unknown: Unknown | None) -> News | None:
        # A mirror may have users that were created after its newest message.
        since = self.mark.since if self.mark.held is None else None
        for user in users:
            if since is not None and user.created_at is not None and user.created_at > since:
                return _user_news(user, "a new user")
        not_held = set() if unknown is None else await unknown(user.id for user in users)
        for user in users:
            if user.id in not_held:
                return _user_news(user, "a user that is not in the mirror")
        return None

    async def _users(self) -> tuple[list[_Row], int | None]:
        """The users on the first and the last page, each once, and how many there are."""
        if not self._spend():
            return [], None
        pages = self._client.users
        first = _Page.of(await pages.page(limit=LARGEST_PAGE, as_dict=True), "users")
        users = first.rows
        if (offset := first.last_offset) is not None and self._spend():
            last = await pages.page(offset=offset, limit=LARGEST_PAGE, as_dict=True)
            users = [*users, *_Page.of(last, "users").rows]
        return list({user.id: user for user in users}.values()), first.total

    async def _messages(self, user_id: int, offset: int = 0, limit: int = LARGEST_PAGE) -> _Page:
        page = await self._client.messages.page(user_id, offset, limit, as_dict=True)
        return _Page.of(page, "messages")

    async def _newer_message(self, user_id: int, since: datetime) -> datetime | None:
        """The newest message after ``since`` on the first and the last page."""
        if not self._spend():
            return None
        try:
            page = await self._messages(user_id)
            newer = page.newer(since)
            if newer is None and (offset := page.last_offset) is not None and self._spend():
                newer = (await self._messages(user_id, offset)).newer(since)
        except NotFoundError:
            return None
        return newer


EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Row:
    """A user or a message; ``active_at`` is the latest of its times, `EARLIEST` without one."""

    id: int
    created_at: datetime | None
    active_at: datetime

    @classmethod
    def of(cls, row: UserDict | MessageDict) -> _Row | None:
        """The row, None if it is no object or has no usable id."""
        if not isinstance(row, dict):
            return None
        row_id = row.get("id")
        if type(row_id) is not int or not 0 <= row_id <= LARGEST_ID:
            return None
        created_at, *others = (
            _time(row.get(name)) for name in ("created_at", "updated_at", "online_at")
        )
        return cls(row_id, created_at, _latest((created_at, *others)) or EARLIEST)


@dataclass(frozen=True, slots=True)
class _Page:
    """A page without the rows that a sync rejects; a page of models would be refused with them."""

    total: int | None
    length: int
    rows: list[_Row]

    @classmethod
    def of(cls, page: PageDict, resource: Literal["users", "messages"]) -> _Page:
        # A service may send an empty list as null.
        total, sent = page.get("total"), page.get(resource) or []
        rows = [row for row in map(_Row.of, sent) if row is not None]
        return cls(total if type(total) is int else None, len(sent), rows)

    @property
    def last_offset(self) -> int | None:
        """The offset of the last page according to the service; None if this first one is it."""
        if self.total is None or self.length == 0 or self.total <= self.length:
            return None
        return max(self.length, self.total - self.length)

    def newer(self, since: datetime) -> datetime | None:
        """The latest time at which a row was created, if it is after ``since``."""
        latest = _latest(row.created_at for row in self.rows)
        return latest if latest is not None and latest > since else None


def _user_news(user: _Row, reason: str) -> News:
    created_at = None if user.created_at is None else user.created_at.isoformat()
    return News(user_id=user.id, created_at=created_at, reason=reason)


def _latest(times: Iterable[datetime | None]) -> datetime | None:
    return max((time for time in times if time is not None), default=None)


def _time(value: object) -> datetime | None:
    """The time in a field as sent, None for another value."""
    if not isinstance(value, str):
        return None
    try:
        # Lower case is allowed (RFC 3339, section 5.6). Ruby writes " UTC", or a blank before the
        # offset.
        text = BLANK_OFFSET.sub("", value.strip().upper().removesuffix(" UTC"))
        return moment(text)
    except (ValueError, OverflowError):
        return None
