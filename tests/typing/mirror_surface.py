"""Every public signature of mirrors, plans, landings and probes, used as a user would, for mypy.

Nothing here runs. A line that stops type-checking is a change that breaks users.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import assert_type

import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
import polars  # type: ignore[import-not-found, unused-ignore]
import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]

from backread import (
    AsyncClient,
    AsyncListing,
    Attempt,
    Client,
    LandingError,
    Listing,
    Message,
    Mirror,
    Plan,
    ServiceProfile,
    Shard,
    SyncReport,
    User,
    WalkReport,
    join_reports,
    landing,
    plan,
    progress,
)
from backread.mirror import (
    Changes,
    Conversation,
    ExportProgress,
    ExportReport,
    Figures,
    FiguresProgress,
    MirrorTable,
    MirrorTables,
    SearchHit,
    SearchResults,
    SyncProgress,
)
from backread.profile import Follows, LimitAnswer, ListOrder, ListProfile, PastEnd
from backread.typed_dicts import (
    UserDict,
)


def the_mirror(client: Client) -> None:
    mirror = Mirror("chats/")
    assert_type(Mirror(Path("chats")).folder, Path)
    assert_type(mirror.sync(client), SyncReport)
    assert_type(mirror.sync(client, mode="full", on_progress=print), SyncReport)
    assert_type(mirror.sync(client, moved=True), SyncReport)
    assert_type(mirror.sync(client, max_staleness=timedelta(days=7)), SyncReport)
    assert_type(mirror.sync(client, max_staleness=None, profile=client.probe()), SyncReport)
    assert_type(mirror.profile, ServiceProfile | None)
    assert_type(
        mirror.sync(client, mode="incremental", on_progress=told, progress=True), SyncReport
    )
    mirror.sql("SELECT count(*) FROM messages")
    mirror.sql("FROM messages WHERE user_id = ?", [42])
    mirror.sql("FROM messages WHERE user_id = $user", {"user": 42}, unrestricted=True)
    assert_type(mirror.tables, MirrorTables)
    assert_type(mirror.tables["users"], MirrorTable)
    assert_type(mirror.export("out", format="csv", progress=True), ExportReport)
    mirror.export("out", format="parquet", codec="snappy", replace=True)
    mirror.export(Path("m.csv"), tables=["messages"], raw_csv=True, excel=True, deleted=True)
    mirror.export("chats.xlsx", since="2024-01-01", until=datetime.now(UTC), users=[42])
    report = mirror.export("me.json", users=42, everything=True, on_progress=exporting)
    assert_type((report.target, report.bytes, report.cut_cells), tuple[Path, int, int])
    table = mirror.table("messages")
    assert_type(table, MirrorTable)
    assert_type((table.columns, table.num_rows), tuple[list[str], int])
    assert_type((table.__arrow_c_stream__(), table.__arrow_c_schema__()), tuple[object, object])
    assert_type(table.to_arrow(), pyarrow.Table)
    assert_type(table.to_polars(), polars.DataFrame)
    assert_type(table.scan_polars(), polars.LazyFrame)
    assert_type(table.to_pandas(dtype_backend="pyarrow"), pandas.DataFrame)
    changes = mirror.changes(since=1, table="users")
    assert_type(changes, Changes)
    assert_type((changes.cursor, changes.num_rows, changes.columns), tuple[str, int, list[str]])
    mirror.changes(since=changes.cursor).to_polars()
    hits = mirror.search("invoice", since="2024-03-01", until=None, user=42, limit=10)
    assert_type(hits, SearchResults)
    assert_type(hits[0], SearchHit)
    assert_type(hits[:3], SearchResults)
    assert_type(hits[0].matches, tuple[tuple[int, int], ...])
    figures = mirror.figures(
        timezone="Europe/Berlin", opening_hours="mon-fri 9-17", since="2024-01-01", until=None
    )
    assert_type(figures, Figures)
    assert_type(figures["responses"]["p50_seconds"], float | None)
    assert_type(figures["coverage"]["proved"], bool)
    mirror.figures(on_progress=computing)
    assert_type(mirror.report("report.html", since="2024-01-01", on_progress=computing), Path)
    conversation = mirror.conversation(42)
    assert_type(conversation, Conversation)
    assert_type(conversation.user, User)
    assert_type([message.id for message in conversation], list[int])
    assert_type(conversation[0], Message)
    assert_type(conversation[-20:], Conversation)
    assert_type((conversation.to_html(), conversation.save("ada.html")), tuple[str, Path])


async def shown(client: Client, awaited: AsyncClient) -> None:
    assert_type(progress(client.users.list()), Listing[User])
    assert_type(progress(client.messages.all()), Listing[Message])
    assert_type(progress(client.users.list(as_dict=True)), Listing[UserDict])
    assert_type(progress(awaited.messages.all()), AsyncListing[Message])
    assert_type(await progress(awaited.users.list()).to_list(), list[User])


def told(state: SyncProgress) -> None:
    assert_type((state.users, state.users_total, state.messages), tuple[int, int | None, int])
    assert_type((state.requests, state.seconds), tuple[int, float])


def a_sync_report(report: SyncReport) -> None:
    assert_type(SyncReport.from_json(report.to_json()), SyncReport)
    assert_type((report.run_id, report.resumed, report.seconds), tuple[int, bool, float])
    assert_type((report.started_at, report.ended_at), tuple[datetime, datetime])
    assert_type(report.lists_by_certificate, dict[str, int])
    assert_type(report.run.requests, int)
    assert_type(report.uncertified_users, tuple[int, ...])


def a_plan(client: Client) -> None:
    messages = plan(client)
    assert_type(messages, Plan[Message])
    assert_type(messages[0], Shard[Message])
    assert_type(messages[0].read(), Listing[Message])
    assert_type(plan(client, resource="messages", shards=4, workers=2), Plan[Message])
    users = plan(client, resource="users", strict=True)
    assert_type(users[0].read(secret_file="secret").to_list(), list[User])
    report = join_reports(users, [shard.read().report for shard in users])
    assert_type(report, WalkReport)
    assert_type(WalkReport.from_json(report.to_json()), WalkReport)


def a_landing(client: Client) -> None:
    shards = plan(client)
    run_id = landing.begin("landed", shards)
    assert_type(run_id, str)
    shard = landing.load_shard("landed", run_id, 0)
    landed = [landing.land("landed", shard, on_progress=lambda rows: print(rows))]
    assert_type(landed, list[landing.Landed])
    run = landing.commit("landed", run_id, landed)
    assert_type(run, landing.Committed)
    assert_type(landing.runs(Path("landed")), list[landing.Committed])
    try:
        landing.load_plan("landed", run_id)
    except LandingError as error:
        assert_type(error.attempts, tuple[Attempt, ...])


def a_probe(client: Client) -> None:
    assert_type(client.probe(), ServiceProfile)
    assert_type(client.probe(max_requests=60, sample=4), ServiceProfile)


async def an_async_probe(client: AsyncClient) -> None:
    assert_type(await client.probe(), ServiceProfile)
    assert_type(await client.probe(max_requests=60, sample=4), ServiceProfile)


def a_profile(profile: ServiceProfile) -> None:
    assert_type((profile.backread, profile.measured_at), tuple[str, datetime])
    assert_type((profile.requests, profile.default_page), tuple[int, int | None])
    assert_type((profile.largest_page, profile.limit_zero), tuple[int | None, LimitAnswer | None])
    assert_type((profile.limit_hundred, profile.users), tuple[LimitAnswer | None, ListProfile])
    assert_type(profile.messages.order, ListOrder | None)
    assert_type(profile.messages.past_end, PastEnd | None)
    assert_type(profile.messages.total_exact, bool | None)
    assert_type(profile.updated_at_follows, Follows | None)
    assert_type(profile.refusals.wrong_secret, int | None)
    assert_type(profile.notes, dict[str, str])
    assert_type(profile.to_json(indent=2), str)
    assert_type(ServiceProfile.from_json("{}"), ServiceProfile)


def computing(now: FiguresProgress) -> None:
    assert_type((now.step, now.done, now.total, now.seconds), tuple[str, int, int, float])


def exporting(now: ExportProgress) -> None:
    assert_type((now.table, now.rows, now.rows_total), tuple[str, int, int])
