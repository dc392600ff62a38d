"""Lists of users that change as they are read, in memory and in PostgreSQL."""

import lists
import pytest
from database import Table
from origin import Memory, newest_first
from reading import PAGE

USERS = 3_000
WALKS = 12
OLD_REASON = "moved with unchanged content"


@pytest.mark.parametrize(("after", "rows"), [(5, 600), (5, 900), (10, 1_500)])
@pytest.mark.parametrize("where", ["memory", "postgresql"])
def test_an_import_at_the_front_costs_no_row(where, after, rows, database):
    there = newest_first(USERS)
    store = Memory(there) if where == "memory" else Table(database, there, "created_at desc")
    read = lists.import_at_front(store, USERS, after, rows, plain=False)
    assert read.error is None
    assert read.missed(range(1, USERS + 1)) == 0
    assert read.report is not None
    assert read.report.proving_requests <= 16 + 8 * (USERS + rows) / PAGE


@pytest.mark.parametrize("seconds", [5, 0], ids=["cached", "missing"])
def test_a_total_that_is_late_or_missing_does_not_cost_the_certificate(seconds, database):
    users = Table(database, newest_first(1_000), "created_at desc")
    walks = lists.counted_late(users, 1_000, seconds, WALKS, seed=1)
    assert walks.missed == 0
    # Rows come and go with each page: where they move the end each time, it stays unproved.
    assert walks.certified >= 0.5 * walks.walks, walks.reasons
    assert walks.requests <= 2 * walks.plain_requests


@pytest.mark.parametrize("order", ["created_at desc", "updated_at", "updated_at desc", None])
def test_no_row_that_stayed_is_lost_as_others_move(order, database):
    walks = lists.moving(database, order, 1_000, WALKS, seed=1)
    assert walks.missed == 0
    assert walks.requests <= 2 * walks.plain_requests


@pytest.mark.parametrize("position", [96, 97, 98])
def test_an_update_in_the_overlap_is_not_called_unexplained(position, database):
    read = lists.updated_in_overlap(database, position)
    assert read.missed(range(1, 201)) == 0
    assert read.report is not None
    assert OLD_REASON not in (read.report.reason or "")


@pytest.mark.parametrize("updates", [0, 1], ids=["static", "updated"])
def test_ties_cost_fewer_requests_and_fewer_rows(updates, database):
    walks = lists.tied(database, 2_000, 2, seed=1, updates=updates)
    assert walks.certified == 0
    assert walks.missed < walks.plain_missed
    # Passes end once they bring little; the bound is 16 requests and 8 a page.
    assert walks.requests < 8.1 * walks.plain_requests
