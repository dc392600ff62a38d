"""Pages of messages as the bytes that came: only their total is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import structs

users = structs.users
id_of = structs.id_of


class Envelope(msgspec.Struct):
    """What a page says of its list."""

    limit: int
    offset: int
    total: int


_envelope = msgspec.json.Decoder(Envelope)


@dataclass
class Page:
    """As long as its rows are many, but one thing to keep."""

    body: bytes
    rows: int

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Iterator[bytes]:
        yield self.body


def messages(body: Any) -> tuple[int, Page]:
    """A page of messages from its bytes."""
    page = _envelope.decode(body)
    return page.total, Page(bytes(body), min(page.limit, page.total - page.offset))
