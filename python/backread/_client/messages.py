"""The messages of the service's users: `Messages`, and `AsyncMessages` for awaiting."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

from backread._client.arguments import identifier, identifiers, item_cap, page_limit, page_offset
from backread._client.listing import AsyncListing, Listing

if TYPE_CHECKING:
    from backread._client.operations import Reader, Walk
    from backread.models import Message, Page
    from backread.typed_dicts import MessageDict, PageDict

__all__ = ["AsyncMessages", "Messages"]


class _BaseMessages:
    __slots__ = ("_client",)

    def __init__(self, client: Reader) -> None:
        self._client = client

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._client!r}>"

    def _walk(self, user_id: int, strict: bool, page_size: int, max_items: int | None) -> Walk:
        return self._client._native.walk_messages(user_id, strict, page_size, max_items)

    def _walk_all(
        self, users: tuple[int, ...] | None, strict: bool, page_size: int, max_items: int | None
    ) -> Walk:
        return self._client._native.walk_all_messages(users, strict, page_size, max_items)

    def _list(
        self, user_id: int, strict: bool, page_size: int, max_items: int | None
    ) -> tuple[str, Callable[[], Walk]]:
        user_id = identifier("user_id", user_id)
        checked = page_limit("page_size", page_size), item_cap(max_items)
        return f"messages of user {user_id}", partial(self._walk, user_id, strict, *checked)

    def _all(
        self, users: Iterable[int] | None, strict: bool, page_size: int, max_items: int | None
    ) -> tuple[str, Callable[[], Walk]]:
        chosen = identifiers("users", users)
        checked = page_limit("page_size", page_size), item_cap(max_items)
        title = "every user" if chosen is None else f"{len(chosen)} users"
        return f"messages of {title}", partial(self._walk_all, chosen, strict, *checked)


class Messages(_BaseMessages):
    """The messages of the service's users: ``client.messages``."""

    __slots__ = ()

    @overload
    def list(
        self,
        user_id: int,
        *,
        as_dict: Literal[False] = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Listing[Message]: ...
    @overload
    def list(
        self,
        user_id: int,
        *,
        as_dict: Literal[True],
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Listing[MessageDict]: ...
    @overload
    def list(
        self,
        user_id: int,
        *,
        as_dict: bool,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Listing[Message] | Listing[MessageDict]: ...
    def list(
        self,
        user_id: int,
        *,
        as_dict: bool = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Any:
        """Every message of one user, as a `Listing` that is read while it is iterated.

        Nothing is sent yet. ``as_dict`` gives the JSON objects as sent. ``strict`` raises
        `IncompleteError` at the end of a walk that proved nothing. ``page_size`` is the ``limit``
        of each request, 1 to 99 rows. ``max_items`` ends the walk after so many
        items; such a walk, where it leaves rows out, proves nothing. ValueError where a number is
        out of bounds.
        """
        return Listing(*self._list(user_id, strict, page_size, max_items), as_dict)

    @overload
    def all(
        self,
        *,
        users: Iterable[int] | None = None,
        as_dict: Literal[False] = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Listing[Message]: ...
    @overload
    def all(
        self,
        *,
        users: Iterable[int] | None = None,
        as_dict: Literal[True],
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Listing[MessageDict]: ...
    @overload
    def all(
        self,
        *,
        users: Iterable[int] | None = None,
        as_dict: bool,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Listing[Message] | Listing[MessageDict]: ...
    def all(
        self,
        *,
        users: Iterable[int] | None = None,
        as_dict: bool = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Any:
        """Every message of every user, as a `Listing`; lists are read side by side.

        ``users`` names the users by id; by default the list of users is read first. The messages
        of one user come in the order of their list, those of different users in no set order; a
        `Message` knows its ``user_id``. The report has the weakest certificate of the lists, the
        number of lists by certificate, and the users whose list is uncertified. The other
        arguments and errors are those of `list`.
        """
        return Listing(*self._all(users, strict, page_size, max_items), as_dict)

    @overload
    def page(
        self, user_id: int, offset: int = 0, limit: int = 99, *, as_dict: Literal[False] = False
    ) -> Page[Message]: ...
    @overload
    def page(
        self, user_id: int, offset: int = 0, limit: int = 99, *, as_dict: Literal[True]
    ) -> PageDict: ...
    @overload
    def page(
        self, user_id: int, offset: int = 0, limit: int = 99, *, as_dict: bool
    ) -> Page[Message] | PageDict: ...
    def page(self, user_id: int, offset: int = 0, limit: int = 99, *, as_dict: bool = False) -> Any:
        """One response of a user's message list: one request, and its retries.

        ``offset`` is a position in rows, 0 or more; ``limit`` a number of rows, 1 to 99 (interface
        8.1), else ValueError and nothing is sent. ``as_dict`` gives the envelope as sent. Raises
        the errors of `backread.errors`.
        """
        return self._client._native.messages_page(
            identifier("user_id", user_id),
            page_offset(offset),
            page_limit("limit", limit),
            as_dict,
            True,
        )

    @overload
    def get(self, user_id: int, message_id: int, *, as_dict: Literal[False] = False) -> Message: ...
    @overload
    def get(self, user_id: int, message_id: int, *, as_dict: Literal[True]) -> MessageDict: ...
    @overload
    def get(self, user_id: int, message_id: int, *, as_dict: bool) -> Message | MessageDict: ...
    def get(self, user_id: int, message_id: int, *, as_dict: bool = False) -> Any:
        """One message of one user; ``as_dict`` gives the JSON object as sent.

        `NotFoundError` where there is none; ValueError for a negative id, and nothing is sent.
        Raises the other errors of `backread.errors`.
        """
        return self._client._native.message(
            identifier("user_id", user_id), identifier("message_id", message_id), as_dict, True
        )


class AsyncMessages(_BaseMessages):
    """The messages of the service's users: ``client.messages`` of an `AsyncClient`."""

    __slots__ = ()

    @overload
    def list(
        self,
        user_id: int,
        *,
        as_dict: Literal[False] = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> AsyncListing[Message]: ...
    @overload
    def list(
        self,
        user_id: int,
        *,
        as_dict: Literal[True],
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> AsyncListing[MessageDict]: ...
    @overload
    def list(
        self,
        user_id: int,
        *,
        as_dict: bool,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> AsyncListing[Message] | AsyncListing[MessageDict]: ...
    def list(
        self,
        user_id: int,
        *,
        as_dict: bool = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Any:
        """Every message of one user: ``async for``. All else as `Messages.list`."""
        return AsyncListing(*self._list(user_id, strict, page_size, max_items), as_dict)

    @overload
    def all(
        self,
        *,
        users: Iterable[int] | None = None,
        as_dict: Literal[False] = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> AsyncListing[Message]: ...
    @overload
    def all(
        self,
        *,
        users: Iterable[int] | None = None,
        as_dict: Literal[True],
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> AsyncListing[MessageDict]: ...
    @overload
    def all(
        self,
        *,
        users: Iterable[int] | None = None,
        as_dict: bool,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> AsyncListing[Message] | AsyncListing[MessageDict]: ...
    def all(
        self,
        *,
        users: Iterable[int] | None = None,
        as_dict: bool = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Any:
        """Every message of every user: ``async for``. All else as `Messages.all`."""
        return AsyncListing(*self._all(users, strict, page_size, max_items), as_dict)

    @overload
    async def page(
        self, user_id: int, offset: int = 0, limit: int = 99, *, as_dict: Literal[False] = False
    ) -> Page[Message]: ...
    @overload
    async def page(
        self, user_id: int, offset: int = 0, limit: int = 99, *, as_dict: Literal[True]
    ) -> PageDict: ...
    @overload
    async def page(
        self, user_id: int, offset: int = 0, limit: int = 99, *, as_dict: bool
    ) -> Page[Message] | PageDict: ...
    async def page(
        self, user_id: int, offset: int = 0, limit: int = 99, *, as_dict: bool = False
    ) -> Any:
        """One response of a user's message list, awaited. All else as `Messages.page`."""
        return await self._client._native.messages_page(
            identifier("user_id", user_id),
            page_offset(offset),
            page_limit("limit", limit),
            as_dict,
            False,
        )

    @overload
    async def get(
        self, user_id: int, message_id: int, *, as_dict: Literal[False] = False
    ) -> Message: ...
    @overload
    async def get(
        self, user_id: int, message_id: int, *, as_dict: Literal[True]
    ) -> MessageDict: ...
    @overload
    async def get(
        self, user_id: int, message_id: int, *, as_dict: bool
    ) -> Message | MessageDict: ...
    async def get(self, user_id: int, message_id: int, *, as_dict: bool = False) -> Any:
        """One message of one user, awaited. All else as `Messages.get`."""
        return await self._client._native.message(
            identifier("user_id", user_id), identifier("message_id", message_id), as_dict, False
        )
