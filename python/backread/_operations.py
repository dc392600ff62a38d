"""What the faces ask of the native module, as types: they need no import of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from backread.models import WalkReport


class Walk(Protocol):
    """One walk over a list, under way."""

    @property
    def report(self) -> WalkReport: ...
    def next_page(self, as_dict: bool, blocking: bool) -> Any: ...
    def stop(self) -> None: ...
    def take_error(self) -> BaseException | None: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Operations(Protocol):
    """The reads; ``blocking`` waits for the value, otherwise the answer is an awaitable of it."""

    def user(self, user_id: int, as_dict: bool, blocking: bool) -> Any: ...
    def users_page(self, offset: int, limit: int, as_dict: bool, blocking: bool) -> Any: ...
    def message(self, user_id: int, message_id: int, as_dict: bool, blocking: bool) -> Any: ...
    def messages_page(
        self, user_id: int, offset: int, limit: int, as_dict: bool, blocking: bool
    ) -> Any: ...
    def walk_users(self, strict: bool, page_size: int, max_items: int | None) -> Walk: ...
    def walk_messages(
        self, user_id: int, strict: bool, page_size: int, max_items: int | None
    ) -> Walk: ...
    def walk_all_messages(
        self, users: Sequence[int] | None, strict: bool, page_size: int, max_items: int | None
    ) -> Walk: ...


class Reader(Protocol):
    """A client, as far as its resources need it."""

    @property
    def _native(self) -> Operations: ...
