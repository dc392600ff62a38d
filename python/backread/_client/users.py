"""The users of the service: `Users` and `AsyncUsers`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

from backread._client.arguments import (
    identifier,
    item_cap,
    known_options,
    page_limit,
    page_offset,
    walk_options,
)
from backread._client.listing import AsyncListing, Listing
from backread._client.operations import walk_list

if TYPE_CHECKING:
    from backread._client.operations import Parts, Reader
    from backread.models import Page, User
    from backread.typed_dicts import PageDict, UserDict


__tracebackhide__ = True

# ``list`` is annotated with a bare class below its overloads, because jedi, which completes names
# in notebooks, does not follow a generic one.


class _BaseUsers:
    __slots__ = ("_client",)

    def __init__(self, client: Reader) -> None:
        self._client = client

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._client!r}>"

    def _short_page(self, blocking: bool) -> Any:
        return self._client._native.page(None, 0, 1, True, blocking)

    def _list(self, as_dict: bool, strict: bool, page_size: int, max_items: int | None) -> Parts:
        start = partial(walk_list, self._client, None, walk_options(strict, page_size))
        return "users", start, as_dict, item_cap(max_items), self._short_page


class Users(_BaseUsers):
    """The users of the service: ``client.users``."""

    __slots__ = ()

    @overload
    def list(
        self,
        *,
        as_dict: Literal[False] = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Listing[User]: ...
    @overload
    def list(
        self,
        *,
        as_dict: Literal[True],
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Listing[UserDict]: ...
    @overload
    def list(
        self,
        *,
        as_dict: bool,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Listing[User] | Listing[UserDict]: ...
    @known_options
    def list(
        self,
        *,
        as_dict: bool = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Listing:  # type: ignore[type-arg]
        """All users.

        Args:
            as_dict: Return the JSON objects as sent instead of models.
            strict: Raise `IncompleteError` at the end of a walk that could not prove completeness.
            page_size: The ``limit`` of each request, 1 to 99 rows.
            max_items: End the walk after this number of items; its report is then ``uncertified``,
                even if there are no more.

        Returns:
            A `Listing`, which is fetched while you iterate; this call sends nothing.

        Raises:
            ValueError: A number is out of bounds.

        Example:
            ``frame = client.users.list().to_pandas()``
        """
        return Listing(*self._list(as_dict, strict, page_size, max_items))

    @overload
    def page(
        self, offset: int = 0, limit: int = 99, *, as_dict: Literal[False] = False
    ) -> Page[User]: ...
    @overload
    def page(self, offset: int = 0, limit: int = 99, *, as_dict: Literal[True]) -> PageDict: ...
    @overload
    def page(self, offset: int = 0, limit: int = 99, *, as_dict: bool) -> Page[User] | PageDict: ...
    def page(self, offset: int = 0, limit: int = 99, *, as_dict: bool = False) -> Any:
        """One page of users, from one request and its retries.

        Args:
            offset: The position of the first row, 0 or more.
            limit: The number of rows, 1 to 99.
            as_dict: Return the whole response as sent instead of a `Page` of models.

        Raises:
            ValueError: A number is out of bounds; nothing is sent.
            BackreadError: The request failed.
        """
        return self._client._native.page(
            None, page_offset(offset), page_limit("limit", limit), as_dict, True
        )

    @overload
    def get(self, user_id: int, *, as_dict: Literal[False] = False) -> User: ...
    @overload
    def get(self, user_id: int, *, as_dict: Literal[True]) -> UserDict: ...
    @overload
    def get(self, user_id: int, *, as_dict: bool) -> User | UserDict: ...
    def get(self, user_id: int, *, as_dict: bool = False) -> Any:
        """The user with this id.

        Args:
            user_id: The id of the user.
            as_dict: Return the JSON object as sent instead of a model.

        Raises:
            NotFoundError: There is no such user.
            ValueError: The id is negative; nothing is sent.
            BackreadError: The request failed in another way.
        """
        return self._client._native.get(identifier("user_id", user_id), None, as_dict, True)


class AsyncUsers(_BaseUsers):
    """The users of the service: ``client.users`` of an `AsyncClient`."""

    __slots__ = ()

    @overload
    def list(
        self,
        *,
        as_dict: Literal[False] = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> AsyncListing[User]: ...
    @overload
    def list(
        self,
        *,
        as_dict: Literal[True],
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> AsyncListing[UserDict]: ...
    @overload
    def list(
        self,
        *,
        as_dict: bool,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> AsyncListing[User] | AsyncListing[UserDict]: ...
    @known_options
    def list(
        self,
        *,
        as_dict: bool = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> AsyncListing:  # type: ignore[type-arg]
        """All users, as an `AsyncListing` for ``async for``; otherwise like `Users.list`."""
        return AsyncListing(*self._list(as_dict, strict, page_size, max_items))

    @overload
    async def page(
        self, offset: int = 0, limit: int = 99, *, as_dict: Literal[False] = False
    ) -> Page[User]: ...
    @overload
    async def page(
        self, offset: int = 0, limit: int = 99, *, as_dict: Literal[True]
    ) -> PageDict: ...
    @overload
    async def page(
        self, offset: int = 0, limit: int = 99, *, as_dict: bool
    ) -> Page[User] | PageDict: ...
    async def page(self, offset: int = 0, limit: int = 99, *, as_dict: bool = False) -> Any:
        """The async version of `Users.page`."""
        return await self._client._native.page(
            None, page_offset(offset), page_limit("limit", limit), as_dict, False
        )

    @overload
    async def get(self, user_id: int, *, as_dict: Literal[False] = False) -> User: ...
    @overload
    async def get(self, user_id: int, *, as_dict: Literal[True]) -> UserDict: ...
    @overload
    async def get(self, user_id: int, *, as_dict: bool) -> User | UserDict: ...
    async def get(self, user_id: int, *, as_dict: bool = False) -> Any:
        """The async version of `Users.get`."""
        return await self._client._native.get(identifier("user_id", user_id), None, as_dict, False)
