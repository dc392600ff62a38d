"""The public signatures of mirrors, plans, landings and probes, used as a user would, for mypy.

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
    Client,
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
    ExportReport,
    MirrorTable,
    MirrorTables,
    SearchHit,
    SearchResults,
)
from backread.profile import Difference, Follows, LimitAnswer, ListOrder, ListProfile
from backread.typed_dicts import UserDict


def the_mirror(client: Client) -> None:
    mirror = Mirror("chats/")
    assert_type(Mirror(Path("chats")).folder, Path)
    assert_type(mirror.sync(client, mode="full", on_progress=print, progress=True), SyncReport)
    mirror.sync(client, moved=True, max_staleness=timedelta(days=7))
    mirror.sync(client, max_staleness=None, profile=mirror.profile)
    mirror.sync(client, on_progress=lambda now: print(now.users, now.users_total, now.seconds))
    mirror.sql("FROM messages WHERE user_id = ?", [42])
    mirror.sql("FROM messages WHERE user_id = $user", {"user": 42}, unrestricted=True)
    assert_type((mirror.tables, mirror.tables["users"]), tuple[MirrorTables, MirrorTable])
    assert_type(mirror.export("out", format="csv", progress=True), ExportReport)
    mirror.export("out", format="parquet", codec="snappy", replace=True)
    mirror.export(Path("m.csv"), tables=["messages"], raw_csv=True, excel=True, deleted=True)
    mirror.export("chats.xlsx", since="2024-01-01", until=datetime.now(UTC), users=[42])
    report = mirror.export("me.json", users=42, everything=True, on_progress=print)
    assert_type((report.target, report.bytes, report.cut_cells), tuple[Path, int, int])
    table = mirror.table("messages")
    assert_type(table.__arrow_c_stream__(), object)
    assert_type((table.to_arrow(), table.to_polars()), tuple[pyarrow.Table, polars.DataFrame])
    assert_type(table.scan_polars(), polars.LazyFrame)
    assert_type(table.to_pandas(dtype_backend="pyarrow"), pandas.DataFrame)
    changes = mirror.changes(since=1, table="users")
    assert_type(mirror.changes(since=changes.cursor), Changes)
    hits = mirror.search("invoice", since="2024-03-01", until=None, user=42, limit=10)
    assert_type((hits, hits[0], hits[:3]), tuple[SearchResults, SearchHit, SearchResults])
    figures = mirror.figures(opening_hours="mon-fri 9-17", since="2024-01-01", until=None)
    assert_type(figures["responses"]["p50_seconds"], float | None)
    mirror.figures(on_progress=lambda now: print(now.step, now.done, now.seconds))
    assert_type(mirror.report("report.html", since="2024-01-01", on_progress=print), Path)
    conversation = mirror.conversation(42)
    assert_type([message.id for message in conversation], list[int])
    assert_type((conversation[0], conversation[-20:]), tuple[Message, Conversation])


async def shown(client: Client, awaited: AsyncClient) -> None:
    assert_type(progress(client.users.list()), Listing[User])
    assert_type(progress(client.messages.all()), Listing[Message])
    assert_type(progress(client.users.list(as_dict=True)), Listing[UserDict])
    assert_type(progress(awaited.messages.all()), AsyncListing[Message])
    assert_type(await progress(awaited.users.list()).to_list(), list[User])
    assert_type(await awaited.probe(max_requests=60, sample=4), ServiceProfile)


def a_plan(client: Client) -> None:
    messages = plan(client)
    assert_type((messages[0], messages[0].read()), tuple[Shard[Message], Listing[Message]])
    assert_type(plan(client, resource="messages", shards=4, workers=2), Plan[Message])
    users = plan(client, resource="users", strict=True)
    assert_type(users[0].read(secret_file="secret").to_list(), list[User])
    assert_type(join_reports(users, [shard.read().report for shard in users]), WalkReport)


def a_landing(client: Client) -> None:
    shards = plan(client)
    run_id = landing.begin("landed", shards)
    shard = landing.load_shard("landed", run_id, 0)
    landed = [landing.land("landed", shard, on_progress=lambda rows: print(rows))]
    assert_type(landing.commit("landed", run_id, landed), landing.Committed)
    assert_type(landing.runs(Path("landed")), list[landing.Committed])


def a_profile(profile: ServiceProfile) -> None:
    assert_type((profile.largest_page, profile.limit_zero), tuple[int | None, LimitAnswer | None])
    assert_type((profile.users, profile.messages.order), tuple[ListProfile, ListOrder | None])
    assert_type((profile.updated_at_follows, profile.notes), tuple[Follows | None, dict[str, str]])
    assert_type(profile.differences(profile), list[Difference])
    assert_type(ServiceProfile.from_json(profile.to_json(indent=2)), ServiceProfile)
