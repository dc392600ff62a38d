"""What a listing needs of a walk, and a resource of its client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from backread._backread import NativeClient, NativePrivacy, WalkOptions
    from backread.models import WalkReport

Parts: TypeAlias = (
    "tuple[str, Callable[[int | None], Walk], bool, int | None, Callable[[bool], Any] | None]"
)
"""The arguments of a listing."""


class Walk(Protocol):
    """One walk over a list, in progress."""

    @property
    def report(self) -> WalkReport: ...
    def next_items(self, as_dict: bool, blocking: bool) -> Any: ...
    def next_page(self, as_dict: bool, blocking: bool) -> Any: ...
    def next_ids(self, blocking: bool) -> Any: ...
    def stop(self) -> None: ...
    def take_error(self) -> BaseException | None: ...
    def arrow_stream(
        self,
        read_ahead: bool,
        privacy: NativePrivacy | None = None,
        on_end: Callable[[], object] | None = None,
    ) -> object: ...
    def __arrow_c_schema__(self) -> object: ...


class Reader(Protocol):
    """The part of a client that its resources need."""

    @property
    def _native(self) -> NativeClient: ...


def walk_list(
    reader: Reader, user_id: int | None, options: WalkOptions, max_items: int | None
) -> Walk:
    """Starts a walk over the list of users, or of a user's messages."""
    return reader._native.walk(user_id, {**options, "max_items": max_items})
