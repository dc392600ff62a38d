"""`backread mcp` as a command: over stdio, and how it ends."""

import json
import os
import subprocess
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

pytest.importorskip("mcp")
pytest.importorskip("duckdb")
pytest.importorskip("typer")

import anyio
from mcp import Client, StdioServerParameters, stdio_client

from backread.integrations.mcp import server
from helpers import mcp_client
from helpers.mcp_client import HUGE, READING, rows

folder = mcp_client.folder


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "backread", "mcp", *arguments]


def test_the_command_serves_a_client_over_stdio(folder):
    program, *arguments = command(str(folder), "--sql")
    parameters = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))

    async def used_it() -> tuple[set[str], str]:
        async with Client(stdio_client(parameters)) as client:
            names = {each.name for each in (await client.list_tools()).tools}
            result = await client.call_tool("find_users", {"words": "ada"})
            return names, result.content[0].text  # type: ignore[union-attr]

    names, text = anyio.run(used_it)
    assert names == READING | {"run_sql"}
    assert rows(text)[0]["name"] == "Ada"


HELLO = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]  # fmt: skip


def calling(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    """The request that calls a tool."""
    parameters = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": parameters}


def served(folder: Path, *requests: dict[str, Any], answers_read: int) -> tuple[int, Any, str]:
    """The exit code, the answers and stderr of a server whose client goes after some answers."""
    with subprocess.Popen(
        command(str(folder), "--sql"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"{json.dumps(each)}\n" for each in [*HELLO, *requests]))
        process.stdin.flush()
        received = [process.stdout.readline() for _ in range(answers_read)]
        rest, said = process.communicate()
    lines = [*received, *rest.splitlines()]
    return process.returncode, [json.loads(each) for each in lines], said


def test_stdout_has_nothing_but_the_protocol(folder):
    request = calling(2, "read_conversation", user_id=999)
    code, received, said = served(folder, request, answers_read=2)
    assert [each["id"] for each in received] == [1, 2]
    assert received[1]["result"]["isError"]
    assert (code, said) == (0, "")


def test_it_ends_with_its_client_while_a_query_is_running(folder):
    query = calling(2, "run_sql", query=HUGE)
    figures = calling(3, "conversation_figures", since="soon")
    # A refused call must not keep the interpreter from ending.
    began = monotonic()
    code, received, said = served(folder, query, figures, answers_read=2)
    assert [each["id"] for each in received[:2]] == [1, 3]
    assert (code, said) == (0, "")
    assert monotonic() - began < server.SECONDS
