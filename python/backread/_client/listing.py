"""Lazily fetched lists of the service: `Listing` and `AsyncListing`."""

from __future__ import annotations

import re
import warnings
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Sequence,
)
from contextlib import aclosing, closing
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeVar

from backread._frames import (
    DtypeBackend,
    arrow_table,
    check_dtype_backend,
    no_array,
    pandas_frame,
    polars_frame,
)

if TYPE_CHECKING:
    from typing import TypeAlias

    import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    import polars  # type: ignore[import-not-found, unused-ignore]
    import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]

    from backread._backread import NativePrivacy
    from backread._backread import Walk as Walk
    from backread.models import Page, WalkReport

    Parts: TypeAlias = (
        "tuple[str, Callable[[int | None], Walk], bool, int | None, Callable[[bool], Any] | None]"
    )
    """The arguments of a listing."""


__tracebackhide__ = True

T_co = TypeVar("T_co", covariant=True)
Frame = TypeVar("Frame")
Value = TypeVar("Value")


class _BaseListing(Generic[T_co]):
    """The state and Arrow interface that both kinds of listing share."""

    __slots__ = (
        "_as_dict",
        "_is_planned",
        "_max_items",
        "_original",
        "_short_page",
        "_start",
        "_title",
        "_walk",
    )

    _reading: ClassVar[tuple[str, ...]]
    """Examples of reading it, for a notebook."""

    def __init__(
        self,
        title: str,
        start: Callable[[int | None], Walk],
        as_dict: bool,
        max_items: int | None = None,
        short_page: Callable[[bool], Any] | None = None,
    ) -> None:
        self._title = title
        # Starts a walk of at most that number of items.
        self._start = start
        self._as_dict = as_dict
        self._max_items = max_items
        # Requests one row as sent, blocking or not.
        self._short_page = short_page
        self._walk: Walk | None = None
        # The listing whose progress this one displays: both have the same report.
        self._original: _BaseListing[T_co] | None = None
        # A query engine requests the schema before the rows. DuckDB does, and checks for Ctrl-C
        # itself; it may stop after a few rows, so it gets them as they arrive.
        self._is_planned = False

    @property
    def report(self) -> WalkReport:
        """What the latest walk requested, received and proved; updated while the walk runs.

        Before the first walk all counts are 0 and the certificate is ``uncertified``.
        """
        return _unread() if self._walk is None else self._walk.report

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The list as an Arrow stream, in bounded memory; each call starts a new walk.

        Libraries that read Arrow accept a listing directly: ``polars.DataFrame(listing)``,
        ``pyarrow.table(listing)``, ``pandas.DataFrame.from_arrow(listing)``. The columns are the
        documented fields, typed, regardless of ``as_dict`` and of a requested schema, to which the
        library converts them. Reading the stream blocks, and reading it a second time is an error.
        """
        return self._begin().arrow_stream(not self._is_planned)

    def __arrow_c_schema__(self) -> object:
        """The schema of the stream; sends no request."""
        self._is_planned = True
        return self._start(self._max_items).__arrow_c_schema__()

    @property
    def __array__(self) -> Callable[..., NoReturn]:
        # pandas makes proper columns from dicts, so it may iterate those.
        if self._as_dict:
            raise AttributeError("a listing of dicts is no array")
        return no_array(self)

    def _begin(self, most: int | None = None) -> Walk:
        """Starts a walk over the listing, or over its first ``most`` items."""
        limits = [each for each in (self._max_items, most) if each is not None]
        walk = self._start(min(limits, default=None))
        listing: _BaseListing[T_co] | None = self
        while listing is not None:
            listing._walk = walk
            listing = listing._original
        return walk

    # Coroutines that await nothing if they block, see `run_blocking`.

    async def _first(self, blocking: bool) -> T_co | None:
        walk = self._begin(1)
        try:
            items = walk.next_items(self._as_dict, blocking)
            items = items if blocking else await items
            if not items:
                warn_of_unread(walk.report)
        finally:
            walk.stop()
        return items[0] if items else None

    async def _count(self, blocking: bool) -> int | None:
        if self._short_page is None:
            raise TypeError(
                f"no request of the service counts {self._title}; for one user, use "
                "client.messages.list(user_id).count(), and for all, the column messages of "
                "mirror.table('conversations') after mirror.sync(client)"
            )
        page = self._short_page(blocking)
        total = (page if blocking else await page).get("total")
        return total if type(total) is int else None

    # Without the walk: an unpickled listing starts a new one.
    def __reduce__(self) -> tuple[Any, ...]:
        state = self._title, self._start, self._as_dict, self._max_items, self._short_page
        return type(self), state

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._title}>"

    def _repr_html_(self) -> str:
        from backread._display.html import Html, badge, card, quiet, safe

        rows: list[tuple[str, Any]] = []
        mark: str = badge("open", "not read yet")
        if self._walk is None:
            note = "No request is sent until it is read."
        else:
            report = self._walk.report
            mark, rows = report._badge(), report._rows()
            note = "This is the report of its latest walk; each reading is a new walk."
        item = self._title.partition(" ")[0].removesuffix("s")
        ways = " ".join(f"<code>{way.format(item=item)}</code>" for way in self._reading)
        rows += [("read it with", Html(ways)), ("", quiet(note))]
        return card(Html(f"{type(self).__name__} of {safe(self._title)} {mark}"), rows)


class Listing(_BaseListing[T_co]):
    """A list of the service, fetched while you iterate.

    Each iteration is a new walk from the start of the list: pages are prefetched, each row is
    returned once, and ``report`` says afterwards what was proved. Nothing is sent until the first
    item is requested. Ending an iteration early ends its requests.

    Raises:
        DeadlineExceededError: The walk passed the client's ``deadline``.
        IncompleteError: A walk with ``strict=True`` ended and could not prove completeness.
        BackreadError: A request failed, after its retries.

    Example:
        ``listing = client.users.list()``; ``for user in listing: ...``;
        ``listing.report.certificate`` is then, for example, ``"linked"``.
    """

    __slots__ = ()

    _reading = (
        "for {item} in listing",
        "listing.to_list()",
        "listing.to_polars()",
        "listing.to_pandas()",
        "listing.to_arrow()",
        "polars.DataFrame(listing)",
    )

    def __iter__(self) -> Iterator[T_co]:
        __tracebackhide__ = True
        with closing(self._batches()) as batches:
            for items in batches:
                yield from items

    def _batches(self) -> Generator[list[T_co], None, None]:
        walk = self._begin()
        try:
            while (items := walk.next_items(self._as_dict, True)) is not None:
                yield items
            warn_of_unread(walk.report)
        finally:
            walk.stop()

    def pages(self) -> Generator[Page[T_co], None, None]:
        """The same walk page by page; repeats are left out here too, so a page may be short."""
        walk = self._begin()
        try:
            while (found := walk.next_page(self._as_dict, True)) is not None:
                yield found[1]
            warn_of_unread(walk.report)
        finally:
            walk.stop()

    def _pages_of(self) -> Generator[tuple[int | None, Page[T_co]], None, None]:
        # Each page with the user whose messages it holds; None for users.
        walk = self._begin()
        try:
            while (found := walk.next_page(self._as_dict, True)) is not None:
                yield found
        finally:
            walk.stop()

    def first(self) -> T_co | None:
        """The first item, or None if there is none.

        Of users or of one user's messages, this is one request for one row. ``report`` describes
        this walk, which proves nothing of the rest.

        Example:
            ``message = client.messages.list(42).first()``
        """
        return run_blocking(self._first(True))

    def count(self) -> int | None:
        """The number of items by the service's ``total``, from one request for one row.

        It ignores ``max_items``; None if the service sends no total.

        Raises:
            TypeError: No request counts these items, such as those of ``messages.all()``.

        Example:
            ``client.users.list().count()``
        """
        return run_blocking(self._count(True))

    def to_list(self) -> list[T_co]:
        """All items, in memory."""
        rows: list[T_co] = []
        for items in self._batches():
            rows += items
        return rows

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a ``pyarrow.Table``. Raises ImportError if pyarrow is not installed."""
        return ArrowSource(self).read_stoppably(arrow_table)

    def to_polars(self) -> polars.DataFrame:
        """All rows as a ``polars.DataFrame``. Raises ImportError if polars is not installed."""
        return ArrowSource(self).read_stoppably(polars_frame)

    def to_pandas(self, *, dtype_backend: DtypeBackend = None) -> pandas.DataFrame:
        """All rows as a ``pandas.DataFrame``.

        Args:
            dtype_backend: ``"pyarrow"`` keeps Arrow's types and memory (``pandas.ArrowDtype``);
                without it, numbers and flags with nulls become floats and objects.

        Raises:
            ImportError: pandas or pyarrow is not installed.
            ValueError: ``dtype_backend`` is neither ``"pyarrow"`` nor None.
        """
        check_dtype_backend(dtype_backend)
        convert = partial(pandas_frame, dtype_backend=dtype_backend)
        return ArrowSource(self).read_stoppably(convert)


class AsyncListing(_BaseListing[T_co]):
    """A list of the service, fetched while you iterate with ``async for``.

    Awaiting it gives the list of all items: ``users = await client.users.list()``. Otherwise it is
    like `Listing`. Reading the Arrow stream itself blocks; the ``to_…`` methods read it
    in a thread, and cancelling them ends their requests.

    An iteration ends with the exception that interrupts it, as those of all generators do: after a
    cancelled ``anext`` there is no next item, and ``report`` is ``uncertified``. Iterate anew.
    """

    __slots__ = ()

    _reading = (
        "async for {item} in listing",
        "await listing",
        "await listing.to_polars()",
        "await listing.to_pandas()",
        "await listing.to_arrow()",
    )

    def __await__(self) -> Generator[Any, Any, list[T_co]]:
        return self.to_list().__await__()

    # Not for type checkers, which would let a plain loop pass.
    if not TYPE_CHECKING:

        def __iter__(self) -> NoReturn:
            raise TypeError(
                "an AsyncListing is read with `async for item in listing`, or with "
                "`await listing` for a list of all items"
            )

    async def __aiter__(self) -> AsyncIterator[T_co]:
        __tracebackhide__ = True
        async with aclosing(self._batches()) as batches:
            async for items in batches:
                for item in items:
                    yield item

    async def _batches(self) -> AsyncGenerator[list[T_co], None]:
        walk = self._begin()
        try:
            while (items := await walk.next_items(self._as_dict, False)) is not None:
                yield items
            warn_of_unread(walk.report)
        finally:
            walk.stop()

    async def pages(self) -> AsyncGenerator[Page[T_co], None]:
        """The same walk page by page; repeats are left out here too, so a page may be short."""
        walk = self._begin()
        try:
            while (found := await walk.next_page(self._as_dict, False)) is not None:
                yield found[1]
            warn_of_unread(walk.report)
        finally:
            walk.stop()

    async def first(self) -> T_co | None:
        """The first item, or None if there is none.

        Of users or of one user's messages, this is one request for one row. ``report`` describes
        this walk, which proves nothing of the rest.

        Example:
            ``message = await client.messages.list(42).first()``
        """
        return await self._first(False)

    async def count(self) -> int | None:
        """The number of items by the service's ``total``, from one request for one row.

        It ignores ``max_items``; None if the service sends no total.

        Raises:
            TypeError: No request counts these items, such as those of ``messages.all()``.

        Example:
            ``await client.users.list().count()``
        """
        return await self._count(False)

    async def to_list(self) -> list[T_co]:
        """All items, in memory."""
        rows: list[T_co] = []
        async for items in self._batches():
            rows += items
        return rows

    async def to_arrow(self) -> pyarrow.Table:
        """All rows as a ``pyarrow.Table``. Raises ImportError if pyarrow is not installed."""
        return await ArrowSource(self).read_in_thread(arrow_table)

    async def to_polars(self) -> polars.DataFrame:
        """All rows as a ``polars.DataFrame``. Raises ImportError if polars is not installed."""
        return await ArrowSource(self).read_in_thread(polars_frame)

    async def to_pandas(self, *, dtype_backend: DtypeBackend = None) -> pandas.DataFrame:
        """All rows as a ``pandas.DataFrame``.

        Args:
            dtype_backend: ``"pyarrow"`` keeps Arrow's types and memory (``pandas.ArrowDtype``);
                without it, numbers and flags with nulls become floats and objects.

        Raises:
            ImportError: pandas or pyarrow is not installed.
            ValueError: ``dtype_backend`` is neither ``"pyarrow"`` nor None.
        """
        check_dtype_backend(dtype_backend)
        convert = partial(pandas_frame, dtype_backend=dtype_backend)
        return await ArrowSource(self).read_in_thread(convert)


def run_blocking(work: Coroutine[Any, Any, Value]) -> Value:
    """The value of a coroutine that awaits nothing; both kinds of listing share such work."""
    try:
        work.send(None)
    except StopIteration as end:
        value: Value = end.value
        return value
    raise RuntimeError("blocking work awaited something")


class ArrowSource:
    """A listing during one conversion, which remembers the walk it started and can end it.

    Its rows leave out what ``privacy`` says.
    """

    def __init__(self, listing: _BaseListing[Any], privacy: NativePrivacy | None = None) -> None:
        self._listing = listing
        self._privacy = privacy
        self._walk: Walk | None = None
        self._stopped = False

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        self._walk = walk = self._listing._begin()
        # A cancelled conversion may reach this line after stop() found no walk to end.
        if self._stopped:
            walk.stop()
        return walk.arrow_stream(True, self._privacy)

    def __arrow_c_schema__(self) -> object:
        return self._listing.__arrow_c_schema__()

    def read(self, convert: Callable[[ArrowSource], Frame]) -> Frame:
        try:
            return convert(self)
        except BaseException:
            # Arrow passes errors as text only; the walk still has the original exception.
            error = None if self._walk is None else self._walk.take_error()
            if error is None:
                raise
        finally:
            self.stop()
        raise error

    def read_stoppably(self, convert: Callable[[ArrowSource], Frame]) -> Frame:
        """Like `read`, but an exception that another thread sets for this one ends it at once.

        Task runners set one at a timeout. Python raises it only where Python code runs, and a
        consumer runs none until it has the whole list; so a separate thread reads the list.
        """
        from contextvars import copy_context
        from threading import Thread, get_ident, main_thread

        if get_ident() == main_thread().ident:
            return self.read(convert)
        frames: list[Frame] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                frames.append(self.read(convert))
            except BaseException as error:
                errors.append(error)

        # In the caller's context, for log filters and traces.
        reader = Thread(target=copy_context().run, args=(work,), name="backread-arrow")
        # The exception may come while the thread starts, and that has sent requests by then.
        try:
            try:
                reader.start()
            except RuntimeError:
                # There may be no more threads, or the interpreter ends and waits for this one.
                return self.read(convert)
            while reader.is_alive():
                reader.join(SECONDS_BETWEEN)
        finally:
            self.stop()
        if errors:
            raise errors.pop()
        return frames.pop()

    async def read_in_thread(self, convert: Callable[[ArrowSource], Frame]) -> Frame:
        import asyncio

        try:
            return await asyncio.to_thread(self.read, convert)
        finally:
            self.stop()

    def stop(self) -> None:
        self._stopped = True
        if self._walk is not None:
            self._walk.stop()


SECONDS_BETWEEN = 0.1
"""How long an exception set by another thread may take to be noticed."""

NAMED = 20
"""The most users that a sentence about unread lists names."""

WITHOUT_ID = re.compile(r"(\d+) users have no usable id, so their messages cannot be requested$")


REFUSED = re.compile(r"the list of users: .*?(the service refuses offsets above \d+)")


def warn_of_unread(report: WalkReport) -> None:
    """Warns if the finished walk skipped lists, or users, that could not be read.

    The native module calls it at the end of an Arrow stream.
    """
    from backread.errors import IncompleteWarning

    if refused := users_refused(report.reason):
        warnings.warn(
            f"{refused}. To raise IncompleteError instead, use strict=True",
            IncompleteWarning,
            stacklevel=4,
        )
    unread = report.unread_users
    if not unread:
        return
    warnings.warn(
        f"{unread_lists(unread)}; all other lists were read. Read again later, or raise "
        "IncompleteError instead with strict=True",
        IncompleteWarning,
        stacklevel=4,
    )


def unread_lists(users: Sequence[int]) -> str:
    """Says that the messages of these users could not be read."""
    from backread._display.words import amount, some_ids

    lists = amount(len(users), "list")
    return f"{lists} of messages could not be read, of user {some_ids(users, NAMED)}"


def stopped_by_caller(report: WalkReport) -> bool:
    """Whether ``max_items`` ended the walk; the report says so in its reason alone."""
    return (report.reason or "").startswith("stopped after max_items=")


def users_refused(reason: str | None) -> str:
    """Says that the list of users ended before a page that can never be read, if it did."""
    refused = REFUSED.search(reason or "")
    return f"the list of users was not read to its end: {refused[1]}" if refused else ""


def users_without_id(report: WalkReport) -> int:
    """The number of users whose messages were not requested; the report has it in its reason."""
    found = WITHOUT_ID.search(report.reason or "")
    return int(found[1]) if found else 0


def _unread() -> WalkReport:
    from backread.models import WalkReport

    return WalkReport(
        requests=0,
        pages=0,
        rows=0,
        distinct=0,
        repeats=0,
        total_first=None,
        total_last=None,
        sweeps=0,
        repaired_text=0,
        certificate="uncertified",
        started_at=None,
        ended_at=None,
        reason="not read yet",
    )
