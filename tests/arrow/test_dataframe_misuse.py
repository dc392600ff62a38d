"""Calls that would make wrong columns, or read one stream twice: an error instead."""

import pytest

from backread.mirror import Mirror
from helpers import column_sources
from helpers.arrow_consumers import load

server, mirror, source = column_sources.server, column_sources.mirror, column_sources.source


def test_each_polars_constructor_gives_the_rows_of_to_polars(source):
    polars = load("polars")
    expected = source.to_polars()
    for frame in (
        polars.DataFrame(source),
        polars.LazyFrame(source).collect(),
        polars.from_dataframe(source),
        polars.Series(source).struct.unnest(),
    ):
        assert frame.sort(polars.all()).equals(expected.sort(polars.all()))


def test_pandas_dataframe_of_a_listing_raises_naming_to_pandas(server, source):
    pandas, numpy = load("pandas"), load("numpy")
    before = server.counts()
    for make in (pandas.DataFrame, numpy.asarray):
        with pytest.raises(TypeError, match=r"x.to_pandas\(\) or pandas.DataFrame.from_arrow\(x\)"):
            make(source)
    assert server.counts() == before


def test_pandas_takes_rows_of_users_list_one_by_one(server):
    pandas = load("pandas")
    with server.client() as client:
        listing = client.users.list()
        names = pandas.Series([user.name for user in listing])
        frame = pandas.DataFrame((user.id, user.name) for user in listing)
    assert len(names) == len(frame) == server.world.total_users


def test_pandas_dataframe_of_dict_rows_is_as_sent(backread_mock):
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


def test_iterating_a_mirror_table_raises():
    pyarrow = load("pyarrow")
    table = Mirror("chats").table("messages")
    for wrong in (list, pyarrow.array, pyarrow.Table.from_batches):
        with pytest.raises(TypeError, match=r"x.to_arrow\(\), .*mirror.sql\('from messages'\)"):
            wrong(table)


@pytest.mark.filterwarnings("ignore:.*unstable")
def test_arrow_stream_can_be_read_again(source):
    polars, pyarrow = load("polars"), load("pyarrow")
    lazy = polars.scan_arrow_c_stream(source)
    expected = source.to_polars().height
    assert lazy.collect().height == expected
    reader = pyarrow.RecordBatchReader.from_stream(source)
    assert reader.read_all().num_rows == expected
    for read_again in (lazy.collect, reader.read_all):
        for _ in range(2):
            with pytest.raises((polars.exceptions.ComputeError, pyarrow.ArrowInvalid)) as caught:
                read_again()
            assert "was already read" in str(caught.value)
            assert "take a new stream from its source" in str(caught.value)


def test_polars_lazy_frame_reads_all_rows_each_time(source):
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


def test_duckdb_relation_reads_all_rows_each_time(source):
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
