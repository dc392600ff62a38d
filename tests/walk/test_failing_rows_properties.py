"""Whatever rows fail, and whatever lengths: all others are read, or the list ends with an error."""

import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st

from backread import ServerError
from helpers.api_rows import failing, ids, users
from helpers.scripted_server import ScriptedServer


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    bad=st.sets(st.integers(99, 249) | st.integers(185, 200), max_size=9),
    most=st.sampled_from([99, 60, 12]),
)
def test_no_row_that_can_be_read_is_ever_lost(bad, most):
    """Two side by side end the list, with the error."""
    rows = users(250)

    def fails(page: range) -> bool:
        return (page.start > 0 and len(page) > most) or bool(bad.intersection(page))

    with (
        ScriptedServer(failing(rows, "users", fails)) as server,
        server.client(max_retries=0) as client,
    ):
        read = client.users.list()
        try:
            got = ids(read.to_list())
        except ServerError:
            assert any(one + 1 in bad for one in bad)
            return
    assert sorted(got) == [row["id"] for at, row in enumerate(rows) if at not in bad]
    assert read.report.unreadable_rows == len(bad)
    assert (read.report.certificate == "uncertified") == bool(bad)
