"""Those that read Arrow, each as its users have it read a listing or a page.

The versions are those of constraints.txt; a test of one that is not installed is left out.
"""

import importlib
from datetime import datetime
from typing import Any, ClassVar

import pytest

from backread.testing import World

Rows = list[tuple[int, datetime, str]]


def load(name: str) -> Any:
    pytest.importorskip(name.split(".")[0])
    return importlib.import_module(name)


# Each gives (id, created_at, text) of every row, and the schema that it sees.


class PyArrow:
    needs = ("pyarrow",)
    types: ClassVar = {
        "whole": "int64",
        "text": "string",
        "moment": "timestamp[us, tz=UTC]",
        "truth": "bool",
        "choice": "dictionary<values=string, indices=int32, ordered=0>",
        "attributes": "list<item: struct<name: string, value: string, extra: string>>",
    }

    def rows(self, source: Any, text: str) -> Rows:
        table = load("pyarrow").table(source).select(["id", "created_at", text])
        return list(zip(*(column.to_pylist() for column in table), strict=True))

    def schema(self, source: Any) -> dict[str, str]:
        return {field.name: str(field.type) for field in load("pyarrow").schema(source)}


class Polars:
    needs = ("polars",)
    types: ClassVar = {
        "whole": "Int64",
        "text": "String",
        "moment": "Datetime(time_unit='us', time_zone='UTC')",
        "truth": "Boolean",
        "choice": "Categorical",
        "attributes": "List(Struct({'name': String, 'value': String, 'extra': String}))",
    }

    def rows(self, source: Any, text: str) -> Rows:
        return load("polars").DataFrame(source).select("id", "created_at", text).rows()

    def schema(self, source: Any) -> dict[str, str]:
        frame = load("polars").DataFrame(source)
        return {name: str(kind) for name, kind in frame.schema.items()}


class Pandas:
    needs = ("pandas", "pyarrow")
    types: ClassVar = {
        "whole": "int64",
        "text": "str",
        "moment": "datetime64[us, UTC]",
        "truth": "bool",
        "choice": "category",
        "attributes": "object",
    }

    def rows(self, source: Any, text: str) -> Rows:
        frame = load("pandas").DataFrame.from_arrow(source)
        return list(frame[["id", "created_at", text]].itertuples(index=False, name=None))

    def schema(self, source: Any) -> dict[str, str]:
        frame = load("pandas").DataFrame.from_arrow(source)
        return {name: str(kind) for name, kind in frame.dtypes.items()}


class DuckDB:
    needs = ("duckdb",)
    types: ClassVar = {
        "whole": "BIGINT",
        "text": "VARCHAR",
        "moment": "TIMESTAMP WITH TIME ZONE",
        "truth": "BOOLEAN",
        "choice": "VARCHAR",
        "attributes": 'STRUCT("name" VARCHAR, "value" VARCHAR, extra VARCHAR)[]',
    }

    def rows(self, source: Any, text: str) -> Rows:
        with load("duckdb").connect() as connection:
            query = f"select id, created_at, {text} from source"
            return connection.sql(query).fetchall()

    def schema(self, source: Any) -> dict[str, str]:
        with load("duckdb").connect() as connection:
            described = connection.sql("describe select * from source").fetchall()
            return {name: kind for name, kind, *_ in described}


class Arro3:
    needs = ("arro3.core",)
    types: ClassVar = {
        "whole": "Int64",
        "text": "Utf8",
        "moment": 'Timestamp(µs, "UTC")',
        "truth": "Boolean",
        "choice": "Dictionary(Int32, Utf8)",
        "attributes": 'List(Struct("name": Utf8, "value": Utf8, "extra": Utf8))',
    }

    def rows(self, source: Any, text: str) -> Rows:
        table = load("arro3.core").Table.from_arrow(source)
        names = ("id", "created_at", text)
        return list(zip(*([each.as_py() for each in table[name]] for name in names), strict=True))

    def schema(self, source: Any) -> dict[str, str]:
        return {
            field.name: str(field.type).removeprefix("arro3.core.DataType<").rstrip(">\n")
            for field in load("arro3.core").Schema.from_arrow(source)
        }


@pytest.fixture(
    params=[PyArrow(), Polars(), Pandas(), DuckDB(), Arro3()], ids=lambda each: type(each).__name__
)
def consumer(request: pytest.FixtureRequest) -> Any:
    for package in request.param.needs:
        load(package)
    return request.param


KINDS = {
    "users": {
        "id": "whole",
        **dict.fromkeys(("name", "email", "reference"), "text"),
        **dict.fromkeys(("created_at", "updated_at", "online_at"), "moment"),
        "last_url": "text",
        "user_attributes": "attributes",
        "extra": "text",
    },
    "messages": {
        **dict.fromkeys(("user_id", "id"), "whole"),
        "body": "text",
        **dict.fromkeys(("read_by_user", "read_by_operator"), "truth"),
        "created_at": "moment",
        "file_url": "text",
        "auto_invitation": "truth",
        "sender_type": "choice",
        "sender_id": "whole",
        **dict.fromkeys(("sender_name", "sender_email", "sender_forename"), "text"),
        **dict.fromkeys(("sender_surname", "sender_picture_thumb_url", "sender_extra"), "text"),
        "extra": "text",
    },
}
TEXT = {"users": "name", "messages": "body"}


def sent(world: World, resource: str) -> Rows:
    """What a consumer should have of the world's rows."""
    rows = [world.user(each) for each in world.user_ids()]
    if resource == "messages":
        rows = [
            world.message(user["id"], each)
            for user in rows
            for each in world.message_ids(user["id"])
        ]
    return [
        (row["id"], datetime.fromisoformat(row["created_at"]), row[TEXT[resource]]) for row in rows
    ]
