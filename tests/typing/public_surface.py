"""The client's public signatures, used as a user would, for mypy --strict and basedpyright.

Nothing here runs. A line that stops type-checking is a change that breaks users.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, assert_type

import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
import polars  # type: ignore[import-not-found, unused-ignore]
import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]

import backread
from backread import (
    AsyncClient,
    AsyncListing,
    Attempt,
    BackreadError,
    Client,
    ConfigurationError,
    ConnectError,
    DeadlineExceededError,
    DecodeError,
    IncompleteError,
    Listing,
    Message,
    MirrorError,
    NotFoundError,
    OperatorSender,
    OtherSender,
    Page,
    RateLimitError,
    RequestTimeoutError,
    ServerError,
    StatusError,
    TransportError,
    User,
    UserAttribute,
    UserSender,
    WalkReport,
)
from backread.models import Certificate
from backread.typed_dicts import (
    MessageDict,
    PageDict,
    UserDict,
)


def construction() -> None:
    Client()
    AsyncClient()
    Client("https://chat.example.com", "secret", "example")
    every_option = Client(
        base_url="https://chat.example.com",
        api_secret="secret",
        vendor="example",
        timeout=timedelta(seconds=30),
        deadline=None,
        max_retries=5,
        max_concurrency=16,
        rate_limit=None,
        on_rate_limit="raise",
        max_response_bytes=64 * 1024 * 1024,
        outage_patience=timedelta(minutes=1),
        proxy=None,
        ca_bundle=Path("bundle.pem"),
        allow_http=False,
        user_agent=None,
        service=None,
        api_secret_file=Path("shop.secret"),
    )
    AsyncClient(service="shop")
    changed = every_option.with_options(timeout=10, rate_limit=2.5, traceparent=True)
    assert_type(changed, Client)
    assert_type((changed.base_url, changed.vendor), tuple[str, str])
    assert_type(AsyncClient().with_options(timeout=1.5), AsyncClient)
    changed.close()
    with Client() as client:
        assert_type(client, Client)
    assert_type(backread.__version__, str)


def sync_users(client: Client, undecided: bool) -> None:
    assert_type(client.users.get(user_id=42, as_dict=False), User)
    assert_type(client.users.get(42, as_dict=True), UserDict)
    assert_type(client.users.get(42, as_dict=undecided), User | UserDict)
    assert_type(client.users.page(99, 10), Page[User])
    assert_type(client.users.page(offset=99, limit=10, as_dict=True), PageDict)
    assert_type(client.users.page(as_dict=undecided), Page[User] | PageDict)
    assert_type(client.users.list(), Listing[User])
    assert_type(client.users.list(as_dict=True), Listing[UserDict])
    assert_type(client.users.list(as_dict=undecided), Listing[User] | Listing[UserDict])
    assert_type(client.users.list(strict=True, page_size=50, max_items=None), Listing[User])


def sync_messages(client: Client, undecided: bool) -> None:
    assert_type(client.messages.get(42, 7), Message)
    assert_type(client.messages.get(user_id=42, message_id=7, as_dict=True), MessageDict)
    assert_type(client.messages.get(42, 7, as_dict=undecided), Message | MessageDict)
    assert_type(client.messages.page(42, 99, 10), Page[Message])
    assert_type(client.messages.page(42, offset=99, limit=10, as_dict=True), PageDict)
    assert_type(client.messages.page(42, as_dict=undecided), Page[Message] | PageDict)
    assert_type(client.messages.list(user_id=42, as_dict=True), Listing[MessageDict])
    assert_type(
        client.messages.list(42, as_dict=undecided), Listing[Message] | Listing[MessageDict]
    )
    assert_type(client.messages.list(42, strict=True, page_size=50, max_items=1), Listing[Message])
    assert_type(client.messages.all(users=range(9), as_dict=True), Listing[MessageDict])
    assert_type(client.messages.all(as_dict=undecided), Listing[Message] | Listing[MessageDict])
    assert_type(client.messages.all(strict=True, page_size=50, max_items=1), Listing[Message])


async def async_users(undecided: bool) -> None:
    async with AsyncClient() as client:
        assert_type(client, AsyncClient)
        assert_type(await client.users.get(42), User)
        assert_type(await client.users.get(42, as_dict=True), UserDict)
        assert_type(await client.users.page(0, 99), Page[User])
        assert_type(await client.users.page(as_dict=undecided), Page[User] | PageDict)
        assert_type(client.users.list(strict=True, max_items=None), AsyncListing[User])
        assert_type(client.users.list(as_dict=True), AsyncListing[UserDict])
    await client.aclose()


async def async_messages(client: AsyncClient, undecided: bool) -> None:
    assert_type(await client.messages.get(42, 7), Message)
    assert_type(await client.messages.get(42, 7, as_dict=undecided), Message | MessageDict)
    assert_type(await client.messages.page(42, 0, 99), Page[Message])
    assert_type(await client.messages.page(42, as_dict=True), PageDict)
    assert_type(client.messages.list(42, page_size=50, max_items=1), AsyncListing[Message])
    assert_type(client.messages.list(42, as_dict=True), AsyncListing[MessageDict])
    assert_type(client.messages.all(users=(1, 2)), AsyncListing[Message])
    assert_type(client.messages.all(as_dict=True), AsyncListing[MessageDict])


def sync_listing(listing: Listing[User]) -> None:
    for user in listing:
        assert_type(user, User)
    for page in listing.pages():
        assert_type(page, Page[User])
    assert_type(wider(listing), list[User | Message])
    assert_type((listing.to_list(), listing.report), tuple[list[User], WalkReport])
    assert_type((listing.first(), listing.count()), tuple[User | None, int | None])
    assert_type(listing.__arrow_c_stream__(requested_schema=None), object)
    assert_type(listing.to_arrow(), pyarrow.Table)
    assert_type(listing.to_polars(), polars.DataFrame)
    assert_type(listing.to_pandas(dtype_backend="pyarrow"), pandas.DataFrame)


def wider(listing: Listing[User | Message]) -> list[User | Message]:
    return listing.to_list()


async def async_listing(listing: AsyncListing[Message]) -> None:
    async for message in listing:
        assert_type(message, Message)
    async for page in listing.pages():
        assert_type(page, Page[Message])
    assert_type((await listing, await listing.to_list()), tuple[list[Message], list[Message]])
    assert_type((await listing.first(), await listing.count()), tuple[Message | None, int | None])
    for wrong in listing:  # type: ignore[attr-defined]
        print(wrong)
    assert_type((listing.report, listing.__arrow_c_stream__()), tuple[WalkReport, object])
    assert_type(await listing.to_arrow(), pyarrow.Table)
    assert_type(await listing.to_polars(), polars.DataFrame)
    assert_type(await listing.to_pandas(dtype_backend="pyarrow"), pandas.DataFrame)


def a_page(page: Page[User]) -> None:
    assert_type((page.items, page[:2]), tuple[tuple[User, ...], tuple[User, ...]])
    assert_type((page[0], [user.id for user in page]), tuple[User, list[int]])
    assert_type(page.resource, Literal["users", "messages"] | None)
    assert_type((page.__arrow_c_stream__(), page.__arrow_c_schema__()), tuple[object, object])
    assert_type(page.to_arrow(), pyarrow.Table)
    assert_type(page.to_polars(), polars.DataFrame)
    assert_type(page.to_pandas(), pandas.DataFrame)
    assert_type(page.to_pandas(dtype_backend=None), pandas.DataFrame)
    assert_type(Page[int](99, 0, None, (1, 2)), Page[int])
    Page[User](99, 0, None, (), "users")


def a_user(user: User) -> None:
    assert_type((user.id, user.name, user.created_at), tuple[int, str | None, datetime | None])
    assert_type(user.user_attributes, tuple[UserAttribute, ...] | None)
    assert_type(user.attributes, dict[str, str | None])
    assert_type(User.from_dict(user.to_dict()), User)
    assert_type(user.extra, dict[str, Any])


def a_message(message: Message) -> None:
    assert_type((message.id, message.user_id, message.body), tuple[int, int, str | None])
    assert_type((message.read_by_user, message.sender_name), tuple[bool | None, str | None])
    match message.sender:
        case UserSender() as sender:
            assert_type((sender.id, sender.name), tuple[int, str | None])
        case OperatorSender() as sender:
            assert_type((sender.id, sender.forename), tuple[int, str | None])
        case OtherSender() as sender:
            assert_type((sender.id, sender.extra), tuple[int | None, dict[str, Any]])
        case nobody:
            assert_type(nobody, None)


def failures(client: Client) -> None:
    try:
        client.users.get(42)
    except RateLimitError as error:
        assert_type(error.retry_after, float | None)
    except (NotFoundError, ServerError) as error:
        status: StatusError = error
        assert_type((status.status_code, status.headers), tuple[int, dict[str, str]])
        assert_type((status.body, status.request_id), tuple[bytes, str | None])
    except (ConnectError, RequestTimeoutError) as error:
        transport: TransportError = error
        assert_type((transport.attempts, transport.url), tuple[tuple[Attempt, ...], str | None])
    except DecodeError as error:
        assert_type((error.path, error.snippet), tuple[str, str])
    except IncompleteError as error:
        assert_type((error.report, error.report.certificate), tuple[WalkReport, Certificate])
    except DeadlineExceededError as error:
        whole_call: TimeoutError = error
        print(whole_call)
        assert_type(error.wait, float | None)
    except (ConfigurationError, MirrorError) as error:
        base: BackreadError = error
        for attempt in base.attempts:
            assert_type((attempt.status, attempt.seconds_taken), tuple[int | None, float])


# Names that there are not, which a checker is to say.
from backread import Clinet  # type: ignore[attr-defined]  # noqa: E402, F401
from backread.testing import Wrold  # type: ignore[attr-defined]  # noqa: E402, F401
