"""The mirror's tables in the hands of those that read Arrow: each takes them as they are."""

import pickle
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, get_args

import pyarrow
import pytest

from backread import MirrorError
from backread.mirror import Mirror
from backread.mirror.published.table import TableName
from backread.testing import MockServer, World
from helpers import arrow_consumers
from helpers.arrow_consumers import KINDS, TEXT, load, sent
from helpers.mirrors import BatchSource, batch, data_files, sync

consumer = arrow_consumers.consumer

each_resource = pytest.mark.parametrize("resource", ["users", "messages"])
MOMENT = datetime(2024, 3, 5, 9, 31, 7, 42000, tzinfo=UTC)
MOMENTS = ("first_seen_at", "last_seen_at", "deleted_at", "changed_at")
TECHNICAL = dict.fromkeys(MOMENTS, "moment") | {"changed_in_run": "whole"}


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=5, users=130, messages_per_user=(0, 8))) as running:
        yield running


@pytest.fixture(scope="module")
def mirror(server: MockServer, tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    """One whose second sync put rows beside the parts of its files."""
    made = Mirror(tmp_path_factory.mktemp("mirror") / "chats")
    sync(made, server)
    [talkative, *_] = [each for each in server.world.user_ids() if server.world.message_ids(each)]
    server.world.add_messages(talkative, 1)
    server.world.edit_user(talkative, name="Renamed")
    sync(made, server)
    return made


@each_resource
def test_a_table_is_taken_as_it_is_and_again(mirror, server, consumer, resource):
    table = mirror.table(resource)
    expected = sorted(sent(server.world, resource))
    for _ in range(2):
        assert sorted(consumer.rows(table, TEXT[resource])) == expected


@each_resource
def test_each_sees_the_types_of_a_listing(mirror, consumer, resource):
    # But for those with few values, which the mirror keeps as text.
    kinds = {name: kind.replace("choice", "text") for name, kind in KINDS[resource].items()}
    expected = {name: consumer.types[kind] for name, kind in (kinds | TECHNICAL).items()}
    seen = consumer.schema(mirror.table(resource))
    # DuckDB names the items of a list in its own way, which two of them show.
    for own, plain in (("list<l:", "list<item:"), (", field: 'l'", "")):
        seen = {name: kind.replace(own, plain) for name, kind in seen.items()}
    assert seen == expected


@pytest.mark.parametrize("name", get_args(TableName))
def test_its_columns_and_rows_are_those_of_a_query(mirror, name):
    table = mirror.table(name)
    queried = mirror.sql(f"SELECT * FROM {name}").to_arrow_table()
    assert pyarrow.schema(table) == table.to_arrow().schema == queried.schema
    assert table.columns == queried.column_names
    assert table.num_rows == table.to_arrow().num_rows == queried.num_rows
    assert (table.name, repr(table)) == (name, f"Mirror({str(mirror.folder)!r}).table({name!r})")


def test_table_gives_the_newest_snapshot_each_time_and_the_whole_of_one(server, tmp_path):
    mirror = Mirror(tmp_path / "chats")
    table = mirror.table("messages")
    with pytest.raises(MirrorError, match="nothing is published"):
        pyarrow.table(table)
    sync(mirror, server)
    before = table.num_rows
    lazy = table.scan_polars()
    reader = pyarrow.RecordBatchReader.from_stream(table)
    server.world.add_messages(server.world.user_ids()[0], 3)
    files = data_files(mirror, "messages")
    sync(mirror, server)
    assert data_files(mirror, "messages") != files
    assert reader.read_all().num_rows == lazy.collect().height == before
    assert table.num_rows == pyarrow.table(table).num_rows == before + 3


def test_a_lazy_frame_reads_what_its_query_needs(mirror):
    polars = load("polars")
    lazy = mirror.table("messages").scan_polars()
    whole = mirror.table("messages").to_polars()
    assert isinstance(lazy, polars.LazyFrame)
    assert lazy.collect_schema() == whole.schema
    column = polars.col

    def queries(frame: Any) -> list[Any]:
        keys = frame.select("user_id", "id")
        predicates = (
            column("user_id") == whole["user_id"][0],
            column("created_at") > whole["created_at"].median(),
            column("body").str.contains("a"),
            # A cast that fails gives null, as in an eager frame.
            column("sender_id").cast(polars.Int8, strict=False) > 3,
            column("body").cast(polars.Int64, strict=False).is_null(),
        )
        return [
            *(frame.filter(each).select("user_id", "id") for each in predicates),
            # The frame at several places of a query.
            keys.join(frame.group_by("user_id").len(), on="user_id"),
            polars.concat([keys, keys]),
        ]

    for engine in ("in-memory", "streaming"):
        for query, held in zip(queries(lazy), queries(whole.lazy()), strict=True):
            expected = held.collect().sort(polars.all())
            assert query.collect(engine=engine).sort(polars.all()).equals(expected)
    assert "PROJECT 1/22 COLUMNS" in lazy.group_by("user_id").len().explain()
    # One that is left in the middle is in nobody's way.
    batches = iter(lazy.collect_batches(chunk_size=3))
    assert next(batches).height
    with ThreadPoolExecutor(4) as pool:
        heights = pool.map(lambda _: lazy.collect().height, range(4))
        assert list(heights) == [whole.height] * 4


def test_tables_of_a_mirror_compare_hash_and_pickle(mirror):
    table = mirror.table("users")
    assert {table, mirror.table("users"), pickle.loads(pickle.dumps(table))} == {table}
    assert table not in {mirror.table("messages"), Mirror("elsewhere").table("users")}
    with pytest.raises(ValueError, match=r"users, messages, .* not 'profile' .*only in SQL"):
        mirror.table("profile")


def test_without_pyarrow_others_read_it(mirror, monkeypatch):
    polars = load("polars")
    messages = mirror.table("messages")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert not hasattr(messages, "__arrow_c_schema__")
    assert polars.DataFrame(messages).height == messages.num_rows
    for method in (messages.to_arrow, messages.to_pandas, messages.scan_polars):
        with pytest.raises(ImportError, match="pip install pyarrow"):
            method()
    monkeypatch.undo()
    monkeypatch.setattr(polars, "__version__", "1.32.3")
    with pytest.raises(ImportError, match=r"needs polars 1.33 or later, and 1.32.3 is installed"):
        messages.scan_polars()


def test_a_notebook_shows_messages_like_a_page_of_them(tmp_path):
    mirror = Mirror(tmp_path / "chats")
    row = {"user_id": 1, "id": 7, "created_at": MOMENT, "read_by_user": True}
    users = [{"id": 1, "user_attributes": [{"name": "plan", "value": "pro"}]}]
    BatchSource(batch(users, [row], swept="linked")).sync_into(mirror.folder)
    html = mirror.table("messages")._repr_html_()
    columns = re.findall(r'<th scope="col">(\w+)</th>', html)
    assert columns.index("sender_surname") < columns.index("body")
    assert sorted(columns) == sorted(mirror.table("messages").columns)
    assert ">2024-03-05 09:31:07.042</td>" in html
    assert ">yes</td>" in html
    assert ">plan = pro</td>" in mirror.table("users")._repr_html_()
    assert ">linked" in mirror.table("runs")._repr_html_()
