"""Lists of users that change while they are read, each scenario a function with figures."""

import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from database import Table
from origin import App, Cached, Origin, Store, newest_first, user
from reading import Read, client, plain_loop, read_all


def import_at_front(table: Table, users: int, after: int, rows: int) -> Read:
    """Rows arrive at the front of a list, newest first, after a number of pages."""
    app = App(table)
    app.after(after, lambda: table.add(newest_first(rows, users + 1)))
    with Origin(app) as origin, client(origin) as reader:
        return read_all(reader.users.list())


@dataclass
class Walks:
    """Many walks, and a plain loop after each: ``false`` were certified and missed a row."""

    walks: int = 0
    certified: int = 0
    false: int = 0
    missed: int = 0
    rows: int = 0
    requests: int = 0
    plain_missed: int = 0
    plain_requests: int = 0
    reasons: list[str] = field(default_factory=list)


class Churn:
    """Rows that come at the front and go anywhere, in half of the gaps between requests."""

    def __init__(self, seed: int, users: int) -> None:
        self._random = random.Random(seed)
        self._next = users + 1
        self.there = list(range(1, users + 1))

    def step(self) -> tuple[int | None, int | None]:
        """The id that is added and the one that is deleted, if any."""
        added = deleted = None
        if self._random.random() < 0.5:
            if self._random.random() < 0.6:
                added = self._next
                self.there.append(added)
                self._next += 1
            else:
                deleted = self.there.pop(self._random.randrange(len(self.there)))
        return added, deleted


def walks(
    store: Store,
    count: int,
    there: Callable[[], Iterable[int]],
    change: Callable[[], Awaitable[None]] | None = None,
    moved: set[int] | None = None,
) -> Walks:
    """Walks over a list that ``change`` changes after each page; ``there`` are its ids now.

    ``change`` adds to ``moved`` what need not be held: rows that moved while they were read.
    """
    moved = set() if moved is None else moved
    app = App(store)
    app.after_each = change
    result = Walks()
    with Origin(app) as origin:
        for _ in range(count):
            before = set(there())
            moved.clear()
            # A new client has learned nothing of the service.
            with client(origin) as reader:
                read = read_all(reader.users.list())
            stayed = (before & set(there())) - moved
            report, missed = read.report, read.missed(stayed)
            assert report is not None
            certified = report.certificate != "uncertified"
            result.walks += 1
            result.certified += certified
            result.false += certified and missed > 0
            result.missed += missed
            result.rows += len(stayed)
            result.requests += read.requests
            if report.reason:
                result.reasons.append(report.reason)
            before = set(there())
            moved.clear()
            loop = plain_loop(origin.url)
            result.plain_missed += loop.missed((before & set(there())) - moved)
            result.plain_requests += loop.requests
    return result


def counted_late(table: Table, users: int, cached: float, count: int, seed: int) -> Walks:
    """Rows come and go while the total is cached for some seconds, or missing with 0."""
    churn = Churn(seed, users)

    async def change() -> None:
        added, deleted = churn.step()
        if added is not None:
            await table.add([user(added)])
        if deleted is not None:
            await table.execute("DELETE FROM {users} WHERE id = $1", deleted)

    return walks(Cached(table, cached), count, lambda: churn.there, change)


def tied(
    database: Path, users: int, count: int, seed: int, *, updates: int, values: int = 5
) -> Walks:
    """Lists sorted by a column of few values; a number of rows is updated after each page."""
    pick = random.Random(seed)
    rows = [user(one, reference=str(pick.randrange(values))) for one in range(1, users + 1)]
    pick.shuffle(rows)
    table = Table(database, rows, "reference")

    async def change() -> None:
        for _ in range(updates):
            # PostgreSQL writes the row anew elsewhere in the table.
            one = pick.randrange(users) + 1
            await table.execute("UPDATE {users} SET updated_at = now() WHERE id = $1", one)

    return walks(table, count, lambda: range(1, users + 1), change if updates else None)


def moving(database: Path, order: str | None, users: int, count: int, seed: int) -> Walks:
    """One row is updated after each page, and moves where the order says so, or none is given."""
    pick = random.Random(seed)
    table = Table(database, newest_first(users), order)
    moved: set[int] = set()

    async def change() -> None:
        one = pick.randrange(users) + 1
        moved.add(one)
        await table.execute("UPDATE {users} SET updated_at = now() WHERE id = $1", one)

    return walks(table, count, lambda: range(1, users + 1), change, moved)
