"""Every public signature, used as a user would, for mypy --strict and basedpyright.

Nothing here runs. A line that stops type-checking is a change that breaks users.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
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
    AuthenticationError,
    BackreadError,
    BadRequestError,
    Client,
    ConfigurationError,
    ConnectError,
    DeadlineExceededError,
    DecodeError,
    IncompleteError,
    Listing,
    Message,
    MirrorBusyError,
    MirrorError,
    NotFoundError,
    OperatorSender,
    OtherSender,
    Page,
    PermissionDeniedError,
    RateLimitError,
    RequestTimeoutError,
    ResponseTooLargeError,
    ServerError,
    StatusError,
    TransportError,
    TruncatedBodyError,
    User,
    UserAttribute,
    UserSender,
    WalkReport,
)
from backread.models import Certificate
from backread.typed_dicts import (
    MessageDict,
    OperatorSenderDict,
    PageDict,
    UserAttributeDict,
    UserDict,
    UserSenderDict,
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
    changed = every_option.with_options(
        timeout=10,
        deadline=timedelta(minutes=5),
        max_retries=0,
        max_concurrency=4,
        rate_limit=2.5,
        on_rate_limit="wait",
        max_response_bytes=1024,
        outage_patience=0,
        traceparent=True,
    )
    assert_type(changed, Client)
    assert_type((changed.base_url, changed.vendor), tuple[str, str])
    assert_type(AsyncClient().with_options(timeout=1.5), AsyncClient)
    changed.close()
    with Client() as client:
        assert_type(client, Client)
    assert_type(backread.__version__, str)


def sync_users(client: Client, undecided: bool) -> None:
    assert_type(client.users.get(42), User)
    assert_type(client.users.get(user_id=42, as_dict=False), User)
    assert_type(client.users.get(42, as_dict=True), UserDict)
    assert_type(client.users.get(42, as_dict=undecided), User | UserDict)
    assert_type(client.users.page(), Page[User])
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
    assert_type(client.messages.page(42), Page[Message])
    assert_type(client.messages.page(42, 99, 10), Page[Message])
    assert_type(client.messages.page(42, offset=99, limit=10, as_dict=True), PageDict)
    assert_type(client.messages.page(42, as_dict=undecided), Page[Message] | PageDict)
    assert_type(client.messages.list(42), Listing[Message])
    assert_type(client.messages.list(user_id=42, as_dict=True), Listing[MessageDict])
    assert_type(
        client.messages.list(42, as_dict=undecided), Listing[Message] | Listing[MessageDict]
    )
    assert_type(client.messages.list(42, strict=True, page_size=50, max_items=1), Listing[Message])
    assert_type(client.messages.all(), Listing[Message])
    assert_type(client.messages.all(users=[1, 2], as_dict=True), Listing[MessageDict])
    assert_type(client.messages.all(users=range(9)), Listing[Message])
    assert_type(client.messages.all(as_dict=undecided), Listing[Message] | Listing[MessageDict])
    assert_type(client.messages.all(strict=True, page_size=50, max_items=1), Listing[Message])


async def async_users(undecided: bool) -> None:
    async with AsyncClient() as client:
        assert_type(client, AsyncClient)
        assert_type(await client.users.get(42), User)
        assert_type(await client.users.get(42, as_dict=True), UserDict)
        assert_type(await client.users.get(42, as_dict=undecided), User | UserDict)
        assert_type(await client.users.page(0, 99), Page[User])
        assert_type(await client.users.page(offset=0, limit=9, as_dict=True), PageDict)
        assert_type(await client.users.page(as_dict=undecided), Page[User] | PageDict)
        assert_type(client.users.list(), AsyncListing[User])
        assert_type(client.users.list(as_dict=True), AsyncListing[UserDict])
        assert_type(
            client.users.list(as_dict=undecided), AsyncListing[User] | AsyncListing[UserDict]
        )
        assert_type(
            client.users.list(strict=True, page_size=50, max_items=None), AsyncListing[User]
        )
    await client.aclose()


async def async_messages(client: AsyncClient, undecided: bool) -> None:
    assert_type(await client.messages.get(42, 7), Message)
    assert_type(await client.messages.get(42, 7, as_dict=True), MessageDict)
    assert_type(await client.messages.get(42, 7, as_dict=undecided), Message | MessageDict)
    assert_type(await client.messages.page(42, 0, 99), Page[Message])
    assert_type(await client.messages.page(42, offset=0, limit=9, as_dict=True), PageDict)
    assert_type(await client.messages.page(42, as_dict=undecided), Page[Message] | PageDict)
    assert_type(client.messages.list(42), AsyncListing[Message])
    assert_type(client.messages.list(42, as_dict=True), AsyncListing[MessageDict])
    assert_type(
        client.messages.list(42, as_dict=undecided),
        AsyncListing[Message] | AsyncListing[MessageDict],
    )
    assert_type(
        client.messages.list(42, strict=True, page_size=50, max_items=1), AsyncListing[Message]
    )
    assert_type(client.messages.all(users=(1, 2)), AsyncListing[Message])
    assert_type(client.messages.all(as_dict=True), AsyncListing[MessageDict])
    assert_type(
        client.messages.all(as_dict=undecided), AsyncListing[Message] | AsyncListing[MessageDict]
    )
    assert_type(client.messages.all(strict=True, page_size=50, max_items=1), AsyncListing[Message])


def sync_listing(listing: Listing[User]) -> None:
    for user in listing:
        assert_type(user, User)
    for page in listing.pages():
        assert_type(page, Page[User])
    iterator: Iterator[User] = iter(listing)
    assert_type(next(iterator), User)
    assert_type((listing.to_list(), listing.report), tuple[list[User], WalkReport])
    assert_type((listing.first(), listing.count()), tuple[User | None, int | None])
    assert_type(listing.__arrow_c_stream__(), object)
    listing.__arrow_c_stream__(requested_schema=None)
    assert_type(listing.to_arrow(), pyarrow.Table)
    assert_type(listing.to_polars(), polars.DataFrame)
    assert_type(listing.to_pandas(), pandas.DataFrame)
    assert_type(listing.to_pandas(dtype_backend="pyarrow"), pandas.DataFrame)
    assert_type(wider(listing), list[User | Message])


def wider(listing: Listing[User | Message]) -> list[User | Message]:
    return listing.to_list()


async def async_listing(listing: AsyncListing[Message]) -> None:
    async for message in listing:
        assert_type(message, Message)
    async for page in listing.pages():
        assert_type(page, Page[Message])
    iterator: AsyncIterator[Message] = aiter(listing)
    assert_type(await anext(iterator), Message)
    assert_type(await listing.to_list(), list[Message])
    assert_type(await listing, list[Message])
    assert_type((await listing.first(), await listing.count()), tuple[Message | None, int | None])
    for wrong in listing:  # type: ignore[attr-defined]
        print(wrong)
    assert_type((listing.report, listing.__arrow_c_stream__()), tuple[WalkReport, object])
    assert_type(await listing.to_arrow(), pyarrow.Table)
    assert_type(await listing.to_polars(), polars.DataFrame)
    assert_type(await listing.to_pandas(), pandas.DataFrame)
    assert_type(await listing.to_pandas(dtype_backend="pyarrow"), pandas.DataFrame)


def a_page(page: Page[User]) -> None:
    assert_type((page.limit, page.offset, page.total), tuple[int | None, int | None, int | None])
    assert_type(page.items, tuple[User, ...])
    assert_type(page[0], User)
    assert_type(page[:2], tuple[User, ...])
    assert_type(len(page), int)
    assert_type([user.id for user in page], list[int])
    assert_type(page.resource, Literal["users", "messages"] | None)
    assert_type((page.__arrow_c_stream__(), page.__arrow_c_schema__()), tuple[object, object])
    assert_type(page.to_arrow(), pyarrow.Table)
    assert_type(page.to_polars(), polars.DataFrame)
    assert_type(page.to_pandas(), pandas.DataFrame)
    assert_type(page.to_pandas(dtype_backend=None), pandas.DataFrame)
    assert_type(Page[int](99, 0, None, (1, 2)), Page[int])
    Page[User](99, 0, None, (), "users")


def a_user(user: User) -> None:
    assert_type((user.id, user.name, user.email), tuple[int, str | None, str | None])
    assert_type((user.reference, user.created_at), tuple[str | None, datetime | None])
    assert_type((user.updated_at, user.online_at), tuple[datetime | None, datetime | None])
    assert_type(user.last_url, str | None)
    assert_type(user.user_attributes, tuple[UserAttribute, ...] | None)
    assert_type(user.attributes, dict[str, str | None])
    assert_type(user.extra, dict[str, Any])
    for attribute in user.user_attributes or ():
        assert_type((attribute.name, attribute.value), tuple[str | None, str | None])
        assert_type(attribute.extra, dict[str, Any])


def a_message(message: Message) -> None:
    assert_type((message.id, message.user_id, message.body), tuple[int, int, str | None])
    assert_type((message.read_by_user, message.read_by_operator), tuple[bool | None, bool | None])
    assert_type((message.created_at, message.file_url), tuple[datetime | None, str | None])
    assert_type((message.auto_invitation, message.sender_type), tuple[bool | None, str | None])
    assert_type((message.extra, message.sender_name), tuple[dict[str, Any], str | None])
    match message.sender:
        case UserSender() as sender:
            assert_type((sender.id, sender.name, sender.email), tuple[int, str | None, str | None])
            assert_type(sender.extra, dict[str, Any])
        case OperatorSender() as sender:
            assert_type((sender.id, sender.forename), tuple[int, str | None])
            assert_type((sender.surname, sender.email), tuple[str | None, str | None])
            assert_type((sender.picture_thumb_url, sender.extra), tuple[str | None, dict[str, Any]])
        case OtherSender() as sender:
            assert_type((sender.id, sender.sender_type), tuple[int | None, str | None])
            assert_type(sender.extra, dict[str, Any])
        case nobody:
            assert_type(nobody, None)


def json_of(user: User, message: Message, page: Page[User], report: WalkReport) -> None:
    assert_type((user.to_dict(), page.to_json()), tuple[dict[str, Any], str])
    if message.sender is not None:
        assert_type(message.sender.to_dict(), dict[str, Any])
    assert_type(User.from_dict(user.to_dict()), User)
    assert_type(Message.from_json(message.to_json()), Message)
    assert_type(Page[User].from_json(page.to_json()), Page[User])
    assert_type(WalkReport.from_dict(report.to_dict()), WalkReport)


def a_report(report: WalkReport) -> None:
    counts: Sequence[int] = [
        report.requests,
        report.pages,
        report.rows,
        report.distinct,
        report.repeats,
        report.sweeps,
        report.repaired_text,
        *report.uncertified_users,
        *report.lists_by_certificate.values(),
    ]
    assert counts
    assert_type((report.total_first, report.total_last), tuple[int | None, int | None])
    assert_type(report.evidence, dict[str, int | None])
    certificate: Certificate = report.certificate
    assert certificate == "snapshot"
    assert_type((report.started_at, report.ended_at), tuple[datetime | None, datetime | None])
    assert_type((report.reason, report.lists_by_certificate), tuple[str | None, dict[str, int]])
    assert_type(report.uncertified_users, tuple[int, ...])


def objects_as_sent(user: UserDict, message: MessageDict, page: PageDict) -> None:
    assert_type(user["id"], int)
    assert_type(user.get("name"), str | None)
    attributes: list[UserAttributeDict] = user.get("user_attributes") or []
    assert_type([attribute.get("value") for attribute in attributes], list[str | None])
    assert_type(message["id"], int)
    assert_type(message.get("created_at"), str | None)
    assert_type(message.get("sender"), UserSenderDict | OperatorSenderDict | None)
    assert_type(page.get("total"), int | None)
    assert_type(page.get("users"), list[UserDict] | None)
    assert_type(page.get("messages"), list[MessageDict] | None)


def failures(client: Client) -> None:
    try:
        client.users.get(42)
    except RateLimitError as error:
        assert_type(error.retry_after, float | None)
    except (
        BadRequestError,
        AuthenticationError,
        PermissionDeniedError,
        NotFoundError,
        ServerError,
    ) as error:
        status: StatusError = error
        assert_type((status.status_code, status.headers), tuple[int, dict[str, str]])
        assert_type((status.body, status.request_id), tuple[bytes, str | None])
    except (
        ConnectError,
        RequestTimeoutError,
        TruncatedBodyError,
        ResponseTooLargeError,
    ) as error:
        transport: TransportError = error
        assert_type(transport.attempts, tuple[Attempt, ...])
        assert_type(transport.url, str | None)
    except DecodeError as error:
        assert_type((error.path, error.snippet), tuple[str, str])
    except IncompleteError as error:
        assert_type(error.report, WalkReport)
    except DeadlineExceededError as error:
        assert_type(error.wait, float | None)
    except (ConfigurationError, MirrorBusyError, MirrorError) as error:
        base: BackreadError = error
        for attempt in base.attempts:
            assert_type((attempt.status, attempt.error), tuple[int | None, str | None])
            assert_type((attempt.seconds_taken, attempt.seconds_waited), tuple[float, float])


def built_in_bases(
    configuration: ConfigurationError,
    connect: ConnectError,
    timeout: RequestTimeoutError,
    deadline: DeadlineExceededError,
) -> None:
    value: ValueError = configuration
    connection: ConnectionError = connect
    one_attempt: TimeoutError = timeout
    whole_call: TimeoutError = deadline
    assert [value, connection, one_attempt, whole_call]


# Names that there are not, which a checker is to say.
from backread import Clinet  # type: ignore[attr-defined]  # noqa: E402, F401
from backread.testing import Wrold  # type: ignore[attr-defined]  # noqa: E402, F401
