"""The fields of the API are listed once: what Python derives from them or repeats agrees."""

import subprocess
import sys
import textwrap
from dataclasses import fields
from datetime import datetime
from typing import Any, get_type_hints

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from backread import typed_dicts
from backread._backread import messages_table, users_table
from backread._client.columns import ATTRIBUTE, COLUMNS
from backread.models import Message, OperatorSender, Sender, User, UserAttribute, UserSender
from backread.typed_dicts import OperatorSenderDict, UserAttributeDict, UserSenderDict

ARROW_TYPES: dict[str, pa.DataType] = {
    "int": pa.int64(),
    "bool": pa.bool_(),
    "str": pa.string(),
    "datetime": pa.timestamp("us", "UTC"),
    "dict": pa.string(),
    "tuple": pa.list_(pa.struct([(each.name, pa.string()) for each in ATTRIBUTE])),
}

AS_SENT: dict[Any, Any] = {
    datetime | None: str | None,
    tuple[UserAttribute, ...] | None: list[UserAttributeDict] | None,
    Sender | None: UserSenderDict | OperatorSenderDict | None,
}


@pytest.mark.parametrize(
    ("resource", "native"), [("users", users_table), ("messages", messages_table)]
)
def test_columns_are_those_of_the_arrow_stream(resource, native):
    plain = [
        field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field
        for field in pa.schema(native(()))
    ]
    assert plain == [
        pa.field(each.name, ARROW_TYPES[each.kind], each.nullable) for each in COLUMNS[resource]
    ]


@pytest.mark.parametrize("record", [User, UserAttribute, Message, UserSender, OperatorSender])
def test_typed_dict_has_the_fields_of_its_dataclass(record):
    shape = getattr(typed_dicts, f"{record.__name__}Dict")
    derived = {
        field.name: AS_SENT.get(field.type, field.type)
        for field in fields(record)
        # Not part of the response.
        if field.name not in ("extra", "user_id")
    }
    assert get_type_hints(shape) == derived
    assert shape.__required_keys__ == derived.keys() & {"id"}


def test_a_class_with_other_fields_is_refused():
    program = """
        import dataclasses
        from backread import Client, models

        models.UserSender = dataclasses.make_dataclass(
            "UserSender", ["name", "id", "mood"], frozen=True, slots=True
        )
        try:
            Client("http://127.0.0.1:9", "secret", "vendor")
        except TypeError as error:
            print(error)
        """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "UserSender" in said
    assert '["id", "mood", "name"], not ["email", "extra", "id", "name"]' in said
