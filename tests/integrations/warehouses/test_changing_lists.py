"""`users.list` of a table in PostgreSQL that changes with each page: in an order, or in none."""

import math
import random
import threading
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from helpers.api_rows import envelope, user
from helpers.scripted_server import Request, ScriptedServer, answer

USERS = 1_000
PAGE = 99
WALKS = 6


class Table(ScriptedServer):
    """The users of a table of their own; one of them is updated after each page."""

    def __init__(self, database: Path, order: str, seed: int) -> None:
        self.moved: set[int] = set()
        self.pages = 0
        self._random = random.Random(seed)
        self._order = f"ORDER BY {order}" if order else ""
        self._lock_of_rows = threading.Lock()
        self._rows = psycopg2.connect(host=str(database), user="backread", dbname="postgres")
        self._rows.set_session(isolation_level="REPEATABLE READ", autocommit=True)
        self._execute(
            "CREATE TEMP TABLE users AS SELECT id, mod(id, 5) AS few, "
            "now() - id * interval '1 s' AS updated_at "
            f"FROM generate_series(1, {USERS}) AS id ORDER BY random()"
        )
        super().__init__(self._reply)

    def _execute(self, statement: str, *values: Any) -> Any:
        with self._rows.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else None

    def _reply(self, request: Request) -> bytes:
        *_, last = request.path.split("/")
        if last != "users":
            return answer(200, user(int(last))) if 0 < int(last) <= USERS else answer(404)
        limit, offset = int(request.query["limit"]), int(request.query["offset"])
        with self._lock_of_rows:
            self.pages += 1
            # One statement sees one instant.
            page = self._execute(
                f"SELECT id FROM users {self._order} LIMIT %s OFFSET %s", limit, offset
            )
            one = self._random.randrange(USERS) + 1
            self.moved.add(one)
            self._execute("UPDATE users SET updated_at = clock_timestamp() WHERE id = %s", one)
        rows = [user(identifier) for (identifier,) in page]
        return answer(200, envelope(rows, limit=limit, offset=offset, total=USERS))


def plain_loop(table: Table) -> set[int]:
    """The ids that a short program reads, page after page up to the total."""
    with table.client() as client:
        pages = (client.users.page(offset, PAGE) for offset in range(0, USERS, PAGE))
        return {each.id for page in pages for each in page}


@pytest.mark.parametrize("order", ["id DESC", "updated_at", "updated_at DESC", ""])
def test_users_list_loses_no_row_that_stayed_while_others_moved(order, database):
    pages = 0
    for seed in range(WALKS):
        with Table(database, order, seed) as table, table.client() as client:
            held = {each.id for each in client.users.list()}
        assert set(range(1, USERS + 1)) - table.moved <= held
        pages += table.pages
    # A plain loop reads each page once.
    assert pages <= 2 * WALKS * math.ceil(USERS / PAGE)


def test_users_list_reads_more_than_a_plain_loop_where_ties_have_no_order(database):
    read = plain = 0
    for seed in range(2):
        with Table(database, "few", seed) as table:
            with table.client() as client:
                listing = client.users.list()
                read += len({each.id for each in listing})
            assert listing.report.certificate == "uncertified"
            plain += len(plain_loop(table))
    assert read > plain
