"""What the answers of the MCP server say of what is not in their rows, and of where it is."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")
pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from mcp import Client

from backread.integrations.mcp import create_server, tools
from helpers import mcp_client
from helpers.mcp_client import ADA, MOMENT, call, fill, rows, said, used
from helpers.mirrors import BatchSource, batch

folder = mcp_client.folder

HIDDEN = "users.email, conversations.email, messages.sender_email have the same text"


@pytest.mark.parametrize("emails", [False, True])
def test_queries_are_told_which_columns_hold_no_addresses(folder, emails: bool):
    async def listed(client: Client) -> Any:
        return (await client.list_tools()).tools

    server = create_server(folder, emails=emails, sql=True)
    [described] = [each.description for each in used(server, listed) if each.name == "run_sql"]
    answer = call(server, "run_sql", query="SELECT count(DISTINCT email) FROM users")
    assert rows(answer)[1:] == [[2 if emails else 1]]
    assert (HIDDEN in described) is (HIDDEN in answer) is not emails
    assert "\n    " not in described


def test_a_time_of_a_query_is_found_again(tmp_path):
    moment = MOMENT + timedelta(microseconds=120_500)
    server = create_server(fill(tmp_path / "chats", said(1, "one", created_at=moment)), sql=True)
    answer = call(server, "run_sql", query="SELECT created_at, [created_at] FROM messages")
    [_, [time, _]] = rows(answer)
    assert time == "2024-03-05T09:00:00.120500Z"
    query = f"SELECT id FROM messages WHERE created_at = '{time}'"
    assert rows(call(server, "run_sql", query=query)) == [["id"], [1]]


@pytest.mark.parametrize("length", [10, 1_000])
def test_following_the_hints_of_a_search_shows_every_message_once(tmp_path, length: int):
    messages = [
        said(
            each,
            "order " + "\u202e" * length,
            created_at=MOMENT + timedelta(milliseconds=each // 2),
            user_id=42 + each % 2,
        )
        for each in range(120)
    ]
    server = create_server(fill(tmp_path / "chats", *messages))
    seen: list[int] = []
    arguments: dict[str, Any] = {}
    while True:
        answer = call(server, "search_messages", words="order", limit=50, **arguments)
        found = [each["message_id"] for each in rows(answer)]
        after = f" after the first {len(seen)}" if seen else ""
        assert f"{len(found)} messages found{after}, newest first." in answer
        seen += found
        hint = re.search(r"There are more; offset=(\d+) continues\.", answer)
        if hint is None:
            break
        arguments = {"offset": int(hint[1])}
    assert len(seen) == 120
    assert sorted(seen) == list(range(120))


def test_a_search_with_very_many_messages_is_to_be_narrowed(folder, monkeypatch):
    monkeypatch.setattr(tools, "MOST_SKIPPED", 0)
    answer = call(create_server(folder), "search_messages", words="o", limit=1)
    assert "There are more; narrow the search." in answer


@pytest.fixture
def shrunk(tmp_path: Path) -> Path:
    """A mirror whose service has deleted user 43 with a message, and one message of user 42."""
    first, *others = (said(each, f"body {each}") for each in (1, 2, 3))
    of_43 = said(9, "body 9", user_id=43)
    folder = fill(tmp_path / "chats", first, *others, of_43)
    now = batch([ADA], others, swept="snapshot", lists={42: "snapshot"})
    BatchSource(now).sync_into(folder, "full")
    return folder


def test_a_conversation_says_what_is_deleted(shrunk):
    server = create_server(shrunk)
    gone = call(server, "read_conversation", user_id=43)
    assert "0.\nThe service no longer has this user.\n1 deleted message is not shown.\n" in gone
    kept = call(server, "read_conversation", user_id=42)
    assert "no longer has" not in kept
    assert "\n1 deleted message is not shown.\n" in kept


def test_the_status_says_how_many_rows_are_deleted(shrunk):
    status = call(create_server(shrunk), "mirror_status")
    assert "\nRows of users: 2, of which 1 deleted.\n" in status
    assert "\nRows of messages: 4, of which 2 deleted.\n" in status
    assert "\nRows of runs: 2.\n" in status
