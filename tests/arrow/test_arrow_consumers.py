"""What reads Arrow takes listings, pages and tables of a mirror as they are, and again."""

from collections.abc import Iterator
from typing import Any

import pytest

from backread.mirror import Mirror
from backread.testing import MockServer, World
from helpers import arrow_consumers
from helpers.api_rows import envelope, message, paged, users
from helpers.arrow_consumers import KINDS, TEXT, load, sent
from helpers.mirrors import sync
from helpers.scripted_server import answer

consumer = arrow_consumers.consumer


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=5, users=120, messages_per_user=(1, 9))) as running:
        yield running


@pytest.fixture(scope="module")
def mirror(server: MockServer, tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    pytest.importorskip("duckdb")
    made = Mirror(tmp_path_factory.mktemp("mirror") / "chats")
    sync(made, server)
    return made


@pytest.fixture(params=["listing", "page", "table"])
def source(request: pytest.FixtureRequest, server: MockServer) -> Iterator[Any]:
    with server.client() as client:
        if request.param == "listing":
            yield client.messages.all()
        elif request.param == "page":
            yield client.users.page(limit=99)
        else:
            yield request.getfixturevalue("mirror").table("messages")


def fails_later(request: Any) -> bytes:
    first = request.query["offset"] == "0"
    return answer(200, envelope(users(99), total=150)) if first else answer(403)


@pytest.mark.parametrize("resource", ["users", "messages"])
def test_each_takes_listings_and_pages_with_their_types(each_face, server, consumer, resource):
    client, text = each_face.client(server), TEXT[resource]
    if resource == "users":
        listing, page = client.users.list(), each_face.call(client.users.page)
    else:
        listing, page = client.messages.all(), each_face.call(client.messages.page, 42)
    of_page = [(each.id, each.created_at, getattr(each, text)) for each in page]
    types = {name: consumer.types[kind] for name, kind in KINDS[resource].items()}
    for taken, expected in ((listing, sent(server.world, resource)), (page, of_page)):
        for _ in range(2):
            # Within a running loop too, which it blocks.
            rows = each_face.call(consumer.rows, taken, text)
            assert sorted(rows) == sorted(expected) != []
        assert each_face.call(consumer.schema, taken) == types


def test_a_walk_that_fails_is_an_error_and_no_short_table(face, scripted, consumer):
    listing = face.client(scripted(fails_later)).users.list()
    with pytest.raises(Exception, match="offset=96"):
        consumer.rows(listing, "name")


@pytest.mark.filterwarnings("ignore:.*unstable")
def test_a_stream_is_read_once(source):
    polars, pyarrow = load("polars"), load("pyarrow")
    lazy = polars.scan_arrow_c_stream(source)
    reader = pyarrow.RecordBatchReader.from_stream(source)
    assert lazy.collect().height == reader.read_all().num_rows == source.to_polars().height
    failed = (polars.exceptions.ComputeError, pyarrow.ArrowInvalid)
    for read_again in (lazy.collect, reader.read_all) * 2:
        with pytest.raises(failed, match=r"was already read.* take a new stream from its source"):
            read_again()


def test_polars_reads_all_rows_each_time_and_each_source_once(server, source):
    polars = load("polars")
    whole = source.to_polars()
    expected = whole.height
    for frame in (polars.from_dataframe(source), polars.Series(source).struct.unnest()):
        assert frame.sort(polars.all()).equals(whole.sort(polars.all()))
    ways = [polars.LazyFrame(source), polars.DataFrame(source).lazy(), whole.lazy()]
    if hasattr(source, "scan_polars"):
        load("pyarrow")
        ways.append(source.scan_polars())
    before = server.counts()
    for lazy in ways:
        # A query that ends in the middle: the rest is not what is left.
        assert lazy.head(3).collect().height == 3
        for engine in ("in-memory", "streaming"):
            assert polars.concat([lazy, lazy]).collect(engine=engine).height == 2 * expected
        frames = polars.collect_all([lazy, lazy.select(polars.len()), lazy.tail(2)])
        assert [each.height for each in frames] == [expected, 1, 2]
    assert server.counts() == before


def test_duckdb_reads_all_rows_each_time(source):
    duckdb = load("duckdb")
    expected = source.to_polars().height
    with duckdb.connect() as connection:
        relation = connection.sql("FROM source")
        connection.register("registered", source)
        connection.execute("CREATE VIEW seen AS FROM source")
        assert len(relation.limit(3).fetchall()) == 3
        for name in ("relation", "registered", "seen", "relation", "seen"):
            counted = connection.sql(f"SELECT count(*) FROM {name}").fetchall()
            assert counted == [(expected,)]
        both = connection.sql("SELECT count(*) FROM (FROM relation UNION ALL FROM seen)")
        assert both.fetchall() == [(2 * expected,)]


def test_duckdb_can_leave_a_stream_half_read(face, scripted):
    duckdb = load("duckdb")
    scripted_server = scripted(paged(users(50_000)))
    people = face.client(scripted_server).users.list()
    with duckdb.connect() as connection:
        connection.register("people", people)
        assert len(connection.sql("select id from people limit 3").fetchall()) == 3
    assert len(scripted_server.requests) < 506


def test_deltalake_keeps_nothing_of_a_walk_that_failed(face, scripted, tmp_path):
    deltalake = load("deltalake")
    load("pyarrow")
    whole, broken = (face.client(scripted(each)).users for each in (paged(users(5)), fails_later))
    deltalake.write_deltalake(tmp_path, whole.list(), mode="overwrite")
    # A DeltaError, or an Exception of no other type where another of its threads saw it first.
    with pytest.raises(Exception, match="offset=96"):
        deltalake.write_deltalake(tmp_path, broken.list(), mode="append")
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().num_rows == 5


def test_no_buffer_is_copied(source):
    pyarrow = load("pyarrow")
    load("pandas")
    before = pyarrow.total_allocated_bytes()
    held = pyarrow.table(source)
    assert held.nbytes > 10_000
    # What it copies, or casts, it allocates.
    assert pyarrow.total_allocated_bytes() == before
    frame = source.to_pandas(dtype_backend="pyarrow")
    # A few bytes a column, for lists of chunks.
    assert pyarrow.total_allocated_bytes() - before < 100 * len(frame.columns)
    types = [str(kind.pyarrow_dtype) for kind in frame.dtypes]
    assert types == [str(field.type) for field in held.schema]


def test_to_pandas_with_pyarrow_types_keeps_integers_with_nulls(face, scripted):
    pandas = load("pandas")
    big = 2**60 + 1
    rows = [message(1, sender={"id": big}), message(2, sender=None, read_by_user=None)]
    listing = face.client(scripted(paged(rows, key="messages"))).messages.list(42)
    with pytest.raises(ValueError, match="'pyarrow' or None, not 'numpy_nullable'"):
        face.call(listing.to_pandas, dtype_backend="numpy_nullable")
    assert listing.report.requests == 0
    frame = face.call(listing.to_pandas, dtype_backend="pyarrow")
    assert frame["sender_id"].tolist() == [big, pandas.NA]
    assert str(frame["read_by_user"].dtype) == "bool[pyarrow]"
    assert face.call(listing.to_pandas)["sender_id"].dtype == "float64"


def test_calls_that_would_make_wrong_columns_raise_and_send_nothing(server, source):
    pandas, numpy, pyarrow = load("pandas"), load("numpy"), load("pyarrow")
    before = server.counts()
    for make in (pandas.DataFrame, numpy.asarray):
        with pytest.raises(TypeError, match=r"x.to_pandas\(\) or pandas.DataFrame.from_arrow\(x\)"):
            make(source)
    assert server.counts() == before
    for make in (list, pyarrow.array, pyarrow.Table.from_batches):
        with pytest.raises(TypeError, match=r"x.to_arrow\(\), .*mirror.sql\('from messages'\)"):
            make(Mirror("chats").table("messages"))


def test_pandas_takes_the_dicts_of_a_listing_in_one_walk(server):
    pandas = load("pandas")
    with server.client() as client:
        before = server.counts()["users"]
        listing = client.users.list(as_dict=True)
        frame = pandas.DataFrame(listing)
        assert listing.report.requests == server.counts()["users"] - before
        [first, *_] = listing.pages()
        assert list(frame) == list(pandas.DataFrame(first)) == list(first[0])
    assert len(frame) == server.world.total_users
