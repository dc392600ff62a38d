"""Reads of one canned answer, by either face."""

from typing import Any

import pytest

from backread import DecodeError
from helpers.scripted_server import answer


def get_user(face: Any, scripted: Any, body: Any, **options: Any) -> Any:
    server = scripted(answer(200, body))
    return face.call(face.client(server, max_retries=0).users.get, 42, **options)


def get_message(face: Any, scripted: Any, body: Any, **options: Any) -> Any:
    server = scripted(answer(200, body))
    return face.call(face.client(server, max_retries=0).messages.get, 42, 7, **options)


def list_users(face: Any, scripted: Any, body: Any, **options: Any) -> tuple[list[Any], Any]:
    listing = face.client(scripted(answer(200, body)), max_retries=0).users.list(**options)
    return face.collect(listing), listing.report


def decode_error(read: Any, *arguments: Any, **options: Any) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        read(*arguments, **options)
    return caught.value
