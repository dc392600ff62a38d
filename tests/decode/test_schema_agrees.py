"""The core's table of fields (src/core/schema.rs) against what cannot be derived from it.

The Arrow schemas derive from the table, so they stand for it here. That the native module and the
dataclasses have the same fields is checked whenever a client is made.
"""

import dataclasses
import subprocess
import sys
import textwrap
import typing
from datetime import datetime
from types import NoneType, UnionType
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow

from backread import _backread, models

COLUMNS = {
    int: pyarrow.int64(),
    str: pyarrow.string(),
    bool: pyarrow.bool_(),
    datetime: pyarrow.timestamp("us", "UTC"),
    tuple[models.UserAttribute, ...]: "list",
}
SENDERS = (models.UserSender, models.OperatorSender, models.OtherSender)


def columns(resource: typing.Literal["users", "messages"]) -> dict[str, tuple[Any, bool]]:
    """Type and nullability by name; a dictionary counts as what it holds."""
    schema = pyarrow.schema(_backread.empty_table(resource))
    return {field.name: described(field) for field in schema}


def described(field: pyarrow.Field) -> tuple[Any, bool]:
    kind = field.type
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    return ("list" if pyarrow.types.is_list(kind) else kind), field.nullable


def fields(model: type, *left_out: str, prefix: str = "") -> dict[str, tuple[Any, bool]]:
    """The columns that a dataclass should have, by its annotations."""
    hints = typing.get_type_hints(model)
    found = {"extra": (pyarrow.string(), True)}
    for name in (field.name for field in dataclasses.fields(model)):
        if name not in ("extra", *left_out):
            hint = hints[name]
            optional = isinstance(hint, UnionType) and NoneType in typing.get_args(hint)
            if optional:
                (hint,) = (kind for kind in typing.get_args(hint) if kind is not NoneType)
            found[name] = (COLUMNS[hint], optional)
    return {prefix + name: kind for name, kind in found.items()}


def test_a_user_has_the_fields_of_its_columns():
    assert fields(models.User) == columns("users")
    attributes = pyarrow.schema(_backread.empty_table("users")).field("user_attributes")
    item = attributes.type.value_type
    assert fields(models.UserAttribute) == {field.name: described(field) for field in item}


def test_a_message_and_its_senders_have_the_fields_of_its_columns():
    senders = {
        # A message without a sender has a null id, whatever the sender's class says.
        name: (kind, True)
        for sender in SENDERS
        for name, (kind, _) in fields(sender, "sender_type", prefix="sender_").items()
    }
    assert fields(models.Message, "sender") | senders == columns("messages")


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
