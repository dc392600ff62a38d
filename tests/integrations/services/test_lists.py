"""Lists of PostgreSQL that change as they are read: newest first, by a column, in no order."""

import lists
import pytest
from database import Table
from origin import newest_first
from reading import PAGE

USERS = 3_000
WALKS = 6


def test_an_import_at_the_front_costs_no_row(database):
    table = Table(database, newest_first(USERS), "created_at desc")
    read = lists.import_at_front(table, USERS, 5, 900)
    assert read.error is None
    assert read.missed(range(1, USERS + 1)) == 0
    assert read.report is not None
    assert read.report.evidence["proving_requests"] <= 16 + 8 * (USERS + 900) / PAGE


@pytest.mark.parametrize(
    "seconds", [pytest.param(5, marks=pytest.mark.long), 0], ids=["cached", "missing"]
)
def test_a_total_that_is_late_or_missing_does_not_cost_the_certificate(seconds, database):
    table = Table(database, newest_first(1_000), "created_at desc")
    walks = lists.counted_late(table, 1_000, seconds, WALKS, seed=1)
    assert walks.missed == 0
    # Rows come and go with each page: where they move the end each time, it stays unproved.
    assert walks.certified >= 0.5 * walks.walks, walks.reasons
    assert walks.requests <= 2 * walks.plain_requests


@pytest.mark.parametrize("order", ["updated_at", None])
def test_no_row_that_stayed_is_lost_as_others_move(order, database):
    walks = lists.moving(database, order, 1_000, WALKS, seed=1)
    assert walks.missed == 0
    assert walks.requests <= 2 * walks.plain_requests


def test_ties_cost_fewer_requests_and_fewer_rows(database):
    walks = lists.tied(database, 600, 2, seed=1, updates=1)
    assert walks.certified == 0
    assert walks.missed < walks.plain_missed
    # Passes end once they bring little; the bound is 16 requests and 8 a page.
    assert walks.requests < 8.1 * walks.plain_requests
