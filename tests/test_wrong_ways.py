"""Ways of making a frame that look right and are not: each says what to write, and asks nothing."""

from __future__ import annotations

from typing import Any

import pytest

import handed
from backread.mirror import Mirror
from backread.testing import Lane, MockServer
from consumers import load

server, mirror, source = handed.server, handed.mirror, handed.source


def test_polars_from_arrow_says_what_to_write(server: MockServer, source: Any) -> None:
    polars = load("polars")
    before = server.counts()
    with pytest.raises(TypeError, match=r"one column of structs; write polars.DataFrame\(x\)"):
        polars.from_arrow(source)
    assert server.counts() == before


def test_what_else_polars_makes_of_it_is_a_frame(source: Any) -> None:
    polars = load("polars")
    expected = source.to_polars()
    for frame in (
        polars.DataFrame(source),
        polars.LazyFrame(source).collect(),
        polars.from_dataframe(source),
        polars.Series(source).struct.unnest(),
    ):
        assert frame.sort(polars.all()).equals(expected.sort(polars.all()))


def test_a_function_of_the_same_name_is_no_wrong_way(source: Any) -> None:
    polars = load("polars")

    def from_arrow(given: Any) -> Any:
        return polars.DataFrame(given)

    assert from_arrow(source).height == source.to_polars().height


def test_a_frame_of_pandas_says_what_to_write(server: MockServer, source: Any) -> None:
    pandas, numpy = load("pandas"), load("numpy")
    before = server.counts()
    for make in (pandas.DataFrame, numpy.asarray):
        with pytest.raises(TypeError, match=r"x.to_pandas\(\) or pandas.DataFrame.from_arrow\(x\)"):
            make(source)
    assert server.counts() == before


def test_a_series_of_pandas_says_what_to_write(server: MockServer, source: Any) -> None:
    pandas = load("pandas")
    before = server.counts()
    with pytest.raises(TypeError, match=r"write .*x.to_pandas\(\)"):
        pandas.Series(source)
    assert server.counts() == before


def test_rows_that_are_handed_to_pandas_one_by_one_are_objects(server: MockServer) -> None:
    pandas = load("pandas")
    with server.client() as client:
        listing = client.users.list()
        names = pandas.Series([user.name for user in listing])
        frame = pandas.DataFrame((user.id, user.name) for user in listing)
    assert len(names) == len(frame) == server.world.total_users


SPARK = """
def createDataFrame(data):
    return _createFromLocal(data)

def _createFromLocal(data):
    return list(data)
"""


@pytest.fixture
def create_data_frame() -> Any:
    """As PySpark does where its data are not of a kind that it knows; it needs a JVM itself."""
    names: dict[str, Any] = {"__name__": "pyspark.sql.session"}
    exec(SPARK, names)
    return names["createDataFrame"]


def test_spark_is_told_what_to_take(
    server: MockServer, source: Any, create_data_frame: Any
) -> None:
    before = server.counts()
    with pytest.raises(TypeError, match=r"x.to_arrow\(\)"):
        create_data_frame(source)
    assert server.counts() == before


def test_spark_may_iterate_dicts_and_what_its_tasks_give(
    backread_mock: Lane, create_data_frame: Any
) -> None:
    client = backread_mock.client()
    dicts = client.users.list(as_dict=True)
    assert create_data_frame(dicts) == dicts.to_list()
    [page, *_] = client.users.list(as_dict=True).pages()
    assert create_data_frame(page) == list(page.items)
    names: dict[str, Any] = {"__name__": "pyspark.serializers"}
    exec("def dump_stream(iterator): return [each for each in iterator]", names)
    assert names["dump_stream"](client.users.list()) == client.users.list().to_list()


def test_rows_of_dicts_make_a_frame_of_pandas_as_they_were_sent(backread_mock: Lane) -> None:
    pandas = load("pandas")
    client = backread_mock.client()
    listing = client.users.list(as_dict=True)
    frame = pandas.DataFrame(listing)
    assert (list(frame), len(frame)) == (
        list(client.users.get(int(frame["id"][0]), as_dict=True)),
        backread_mock.world.total_users,
    )
    # One walk.
    assert listing.report.requests == backread_mock.counts()["users"]
    [first, *_] = client.users.list(as_dict=True).pages()
    assert list(pandas.DataFrame(first)) == list(frame)


def test_the_answer_to_one_who_awaits_says_to_await(face: Any, backread_mock: Lane) -> None:
    polars = load("polars")
    awaits = "await " if face.name == "async" else ""
    with pytest.raises(TypeError, match=rf"or {awaits}x.to_polars\(\)"):
        polars.from_arrow(face.client(backread_mock).users.list())
    assert backread_mock.counts()["users"] == 0


def test_a_table_of_the_mirror_is_not_iterated() -> None:
    pyarrow = load("pyarrow")
    table = Mirror("chats").table("messages")
    for wrong in (list, pyarrow.array, pyarrow.Table.from_batches):
        with pytest.raises(TypeError, match=r"x.to_arrow\(\), .*mirror.sql\('from messages'\)"):
            wrong(table)


@pytest.mark.filterwarnings("ignore:.*unstable")
def test_a_stream_that_polars_would_have_only_once_says_what_to_write(
    server: MockServer, source: Any
) -> None:
    polars = load("polars")
    before = server.counts()
    lazily = r"x.scan_polars\(\)" if hasattr(source, "scan_polars") else r"polars.LazyFrame\(x\)"
    with pytest.raises(TypeError, match=rf"no rows when it is collected again; write {lazily}"):
        polars.scan_arrow_c_stream(source)
    assert server.counts() == before


@pytest.mark.filterwarnings("ignore:.*unstable")
def test_why_that_is_refused(server: MockServer) -> None:
    """Where this fails, polars has mended it, and `refuse_misread` may go."""
    polars, pyarrow = load("polars"), load("pyarrow")
    with server.client() as client:
        reader = pyarrow.RecordBatchReader.from_stream(client.users.list())
        lazy = polars.scan_arrow_c_stream(reader)
        assert [lazy.collect().height for _ in range(2)] == [server.world.total_users, 0]


def test_what_polars_reads_lazily_is_whole_each_time(source: Any) -> None:
    polars = load("polars")
    expected = source.to_polars().height
    ways = [polars.LazyFrame(source), polars.DataFrame(source).lazy(), source.to_polars().lazy()]
    if hasattr(source, "scan_polars"):
        load("pyarrow")
        ways.append(source.scan_polars())
    for lazy in ways:
        # Less than all of it, and a query that ends in the middle: the rest is not what is left.
        assert lazy.filter(polars.col("id") < 0).collect().height == 0
        assert lazy.head(3).collect().height == 3
        for engine in ("in-memory", "streaming"):
            assert lazy.collect(engine=engine).height == expected
            assert polars.concat([lazy, lazy]).collect(engine=engine).height == 2 * expected
        frames = polars.collect_all([lazy, lazy.select(polars.len()), lazy.tail(2)])
        assert [each.height for each in frames] == [expected, 1, 2]


def test_what_duckdb_was_given_is_whole_each_time(source: Any) -> None:
    duckdb = load("duckdb")
    expected = source.to_polars().height
    with duckdb.connect() as connection:
        relation = connection.sql("FROM source")
        connection.register("registered", source)
        connection.execute("CREATE VIEW seen AS FROM source")
        assert len(relation.limit(3).fetchall()) == 3
        for _ in range(2):
            counted = [relation.aggregate("count(*)").fetchall()]
            for name in ("registered", "seen"):
                counted.append(connection.sql(f"SELECT count(*) FROM {name}").fetchall())
            assert counted == [[(expected,)]] * 3
        both = connection.sql("SELECT count(*) FROM (FROM relation UNION ALL FROM seen)")
        assert both.fetchall() == [(2 * expected,)]
