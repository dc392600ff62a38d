"""The users and the messages of the service: ``client.users`` and ``client.messages``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

from backread._client.arguments import (
    identifier,
    identifiers,
    item_cap,
    known_options,
    page_limit,
    page_offset,
    walk_options,
)
from backread._client.listing import AsyncListing, Listing

if TYPE_CHECKING:
    from typing import Protocol, Unpack

    from backread._backread import NativeClient, Walk, WalkOptions
    from backread._client.listing import Parts
    from backread.models import Message, Page, User
    from backread.typed_dicts import MessageDict, PageDict, UserDict

    class Reader(Protocol):
        """The part of a client that its resources need."""

        @property
        def _native(self) -> NativeClient: ...


__tracebackhide__ = True

# ``list`` and ``all`` are annotated with a bare class below their overloads, because jedi, which
# completes names in notebooks, does not follow a generic one.


class ListOptions(TypedDict, total=False):
    """The options of a listing, besides ``as_dict``, which decides the type of its items."""

    strict: bool
    page_size: int
    max_items: int | None


class _Resource:
    __slots__ = ("_client",)

    def __init__(self, client: Reader) -> None:
        self._client = client

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._client!r}>"

    # Without ``user_id``, of the list of users. What is ``blocking`` is not awaited.

    def _walk(self, user_id: int | None, options: WalkOptions, max_items: int | None) -> Walk:
        return self._client._native.walk(user_id, {**options, "max_items": max_items})

    def _walk_all(
        self, users: tuple[int, ...] | None, options: WalkOptions, max_items: int | None
    ) -> Walk:
        return self._client._native.walk_all_messages(users, {**options, "max_items": max_items})

    def _short_page(self, user_id: int | None, blocking: bool) -> Any:
        return self._client._native.page(user_id, 0, 1, True, blocking)

    def _list(
        self,
        user_id: int | None,
        as_dict: bool,
        strict: bool,
        page_size: int,
        max_items: int | None,
    ) -> Parts:
        title = "users" if user_id is None else f"messages of user {user_id}"
        start = partial(self._walk, user_id, walk_options(strict, page_size))
        return title, start, as_dict, item_cap(max_items), partial(self._short_page, user_id)

    def _all(
        self,
        users: Iterable[int] | None,
        as_dict: bool,
        strict: bool,
        page_size: int,
        max_items: int | None,
    ) -> Parts:
        chosen = identifiers("users", users)
        start = partial(self._walk_all, chosen, walk_options(strict, page_size))
        title = "every user" if chosen is None else f"{len(chosen)} users"
        return f"messages of {title}", start, as_dict, item_cap(max_items), None

    def _page(
        self, user_id: int | None, offset: int, limit: int, as_dict: bool, blocking: bool
    ) -> Any:
        place, rows = page_offset(offset), page_limit("limit", limit)
        return self._client._native.page(user_id, place, rows, as_dict, blocking)


class Users(_Resource):
    """The users of the service: ``client.users``."""

    __slots__ = ()

    @overload
    def list(
        self, *, as_dict: Literal[False] = False, **options: Unpack[ListOptions]
    ) -> Listing[User]: ...
    @overload
    def list(
        self, *, as_dict: Literal[True], **options: Unpack[ListOptions]
    ) -> Listing[UserDict]: ...
    @overload
    def list(
        self, *, as_dict: bool, **options: Unpack[ListOptions]
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
        return Listing(*self._list(None, as_dict, strict, page_size, max_items))

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
        return self._page(None, offset, limit, as_dict, True)

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


class AsyncUsers(_Resource):
    """The users of the service: ``client.users`` of an `AsyncClient`."""

    __slots__ = ()

    @overload
    def list(
        self, *, as_dict: Literal[False] = False, **options: Unpack[ListOptions]
    ) -> AsyncListing[User]: ...
    @overload
    def list(
        self, *, as_dict: Literal[True], **options: Unpack[ListOptions]
    ) -> AsyncListing[UserDict]: ...
    @overload
    def list(
        self, *, as_dict: bool, **options: Unpack[ListOptions]
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
        return AsyncListing(*self._list(None, as_dict, strict, page_size, max_items))

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
        return await self._page(None, offset, limit, as_dict, False)

    @overload
    async def get(self, user_id: int, *, as_dict: Literal[False] = False) -> User: ...
    @overload
    async def get(self, user_id: int, *, as_dict: Literal[True]) -> UserDict: ...
    @overload
    async def get(self, user_id: int, *, as_dict: bool) -> User | UserDict: ...
    async def get(self, user_id: int, *, as_dict: bool = False) -> Any:
        """The async version of `Users.get`."""
        return await self._client._native.get(identifier("user_id", user_id), None, as_dict, False)


class Messages(_Resource):
    """The messages of the service's users: ``client.messages``."""

    __slots__ = ()

    @overload
    def list(
        self, user_id: int, *, as_dict: Literal[False] = False, **options: Unpack[ListOptions]
    ) -> Listing[Message]: ...
    @overload
    def list(
        self, user_id: int, *, as_dict: Literal[True], **options: Unpack[ListOptions]
    ) -> Listing[MessageDict]: ...
    @overload
    def list(
        self, user_id: int, *, as_dict: bool, **options: Unpack[ListOptions]
    ) -> Listing[Message] | Listing[MessageDict]: ...
    @known_options
    def list(
        self,
        user_id: int,
        *,
        as_dict: bool = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Listing:  # type: ignore[type-arg]
        """All messages of one user.

        Args:
            user_id: The user whose messages are listed.
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
            ``for message in client.messages.list(42): print(message.body)``
        """
        return Listing(
            *self._list(identifier("user_id", user_id), as_dict, strict, page_size, max_items)
        )

    @overload
    def all(
        self,
        *,
        users: Iterable[int] | None = None,
        as_dict: Literal[False] = False,
        **options: Unpack[ListOptions],
    ) -> Listing[Message]: ...
    @overload
    def all(
        self,
        *,
        users: Iterable[int] | None = None,
        as_dict: Literal[True],
        **options: Unpack[ListOptions],
    ) -> Listing[MessageDict]: ...
    @overload
    def all(
        self, *, users: Iterable[int] | None = None, as_dict: bool, **options: Unpack[ListOptions]
    ) -> Listing[Message] | Listing[MessageDict]: ...
    @known_options
    def all(
        self,
        *,
        users: Iterable[int] | None = None,
        as_dict: bool = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> Listing:  # type: ignore[type-arg]
        """All messages of all users; the users' lists are read concurrently.

        They come in the order of the list of users, or of ``users``, and those of one user in the
        order of their list; each `Message` has its ``user_id``. The report has the weakest
        certificate of the lists, the number of lists by certificate, and the users whose list is
        uncertified.

        Args:
            users: User ids; reading raises `NotFoundError` if the service does not know one. By
                default the list of users is read first, and a user who is gone since is left out.
            as_dict: Return the JSON objects as sent instead of models.
            strict: Raise `IncompleteError` at the end of a walk that could not prove completeness.
            page_size: The ``limit`` of each request for messages, 1 to 99 rows. The list of users
                is read with 99.
            max_items: End the walk after this number of items; its report is then ``uncertified``,
                even if there are no more.

        Returns:
            A `Listing`, which is fetched while you iterate; this call sends nothing.

        Raises:
            ValueError: A number is out of bounds.

        Example:
            ``polars.DataFrame(client.messages.all(users=[42, 43]))``
        """
        return Listing(*self._all(users, as_dict, strict, page_size, max_items))

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
        """One page of a user's messages, from one request and its retries.

        Args:
            user_id: The user whose messages are read.
            offset: The position of the first row, 0 or more.
            limit: The number of rows, 1 to 99.
            as_dict: Return the whole response as sent instead of a `Page` of models.

        Raises:
            ValueError: A number is out of bounds; nothing is sent.
            BackreadError: The request failed.
        """
        return self._page(identifier("user_id", user_id), offset, limit, as_dict, True)

    @overload
    def get(self, user_id: int, message_id: int, *, as_dict: Literal[False] = False) -> Message: ...
    @overload
    def get(self, user_id: int, message_id: int, *, as_dict: Literal[True]) -> MessageDict: ...
    @overload
    def get(self, user_id: int, message_id: int, *, as_dict: bool) -> Message | MessageDict: ...
    def get(self, user_id: int, message_id: int, *, as_dict: bool = False) -> Any:
        """One message of one user.

        Args:
            user_id: The user whose message it is.
            message_id: The id of the message.
            as_dict: Return the JSON object as sent instead of a model.

        Raises:
            NotFoundError: There is no such message.
            ValueError: An id is negative; nothing is sent.
            BackreadError: The request failed in another way.
        """
        return self._client._native.get(
            identifier("user_id", user_id), identifier("message_id", message_id), as_dict, True
        )


class AsyncMessages(_Resource):
    """The messages of the service's users: ``client.messages`` of an `AsyncClient`."""

    __slots__ = ()

    @overload
    def list(
        self, user_id: int, *, as_dict: Literal[False] = False, **options: Unpack[ListOptions]
    ) -> AsyncListing[Message]: ...
    @overload
    def list(
        self, user_id: int, *, as_dict: Literal[True], **options: Unpack[ListOptions]
    ) -> AsyncListing[MessageDict]: ...
    @overload
    def list(
        self, user_id: int, *, as_dict: bool, **options: Unpack[ListOptions]
    ) -> AsyncListing[Message] | AsyncListing[MessageDict]: ...
    @known_options
    def list(
        self,
        user_id: int,
        *,
        as_dict: bool = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> AsyncListing:  # type: ignore[type-arg]
        """All messages of one user, for ``async for``; otherwise like `Messages.list`."""
        return AsyncListing(
            *self._list(identifier("user_id", user_id), as_dict, strict, page_size, max_items)
        )

    @overload
    def all(
        self,
        *,
        users: Iterable[int] | None = None,
        as_dict: Literal[False] = False,
        **options: Unpack[ListOptions],
    ) -> AsyncListing[Message]: ...
    @overload
    def all(
        self,
        *,
        users: Iterable[int] | None = None,
        as_dict: Literal[True],
        **options: Unpack[ListOptions],
    ) -> AsyncListing[MessageDict]: ...
    @overload
    def all(
        self, *, users: Iterable[int] | None = None, as_dict: bool, **options: Unpack[ListOptions]
    ) -> AsyncListing[Message] | AsyncListing[MessageDict]: ...
    @known_options
    def all(
        self,
        *,
        users: Iterable[int] | None = None,
        as_dict: bool = False,
        strict: bool = False,
        page_size: int = 99,
        max_items: int | None = None,
    ) -> AsyncListing:  # type: ignore[type-arg]
        """All messages of all users, for ``async for``; otherwise like `Messages.all`."""
        return AsyncListing(*self._all(users, as_dict, strict, page_size, max_items))

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
        """The async version of `Messages.page`."""
        return await self._page(identifier("user_id", user_id), offset, limit, as_dict, False)

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
        """The async version of `Messages.get`."""
        return await self._client._native.get(
            identifier("user_id", user_id), identifier("message_id", message_id), as_dict, False
        )
