"""Ways of making a frame that look right and are not: each says what to write, and asks nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from backread.mirror import Mirror
from backread.testing import Lane, MockServer, World
from consumers import load
from mirrors import sync


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=5, users=120, messages_per_user=(1, 4))) as running:
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
            yield client.users.page(limit=9)
        else:
            yield request.getfixturevalue("mirror").table("messages")


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


def test_a_stream_that_polars_scans_is_there_once(backread_mock: Lane) -> None:
    """Why docs/how-to/polars.md says LazyFrame instead."""
    polars = load("polars")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lazy = polars.scan_arrow_c_stream(backread_mock.client().users.list())
    assert lazy.collect().height == backread_mock.world.total_users
    assert lazy.collect().height == 0
