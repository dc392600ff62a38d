"""Checks that an installed wheel works: reads, mirrors, tests and commands against the mock.

Usage: ``python -I tools/try_wheel.py [--client-only]``. Needs the wheel with its extras ``cli`` and
``mirror``, and pytest. ``--client-only`` needs the wheel alone, for platforms where DuckDB has no
wheels (musl, free-threaded Python). Exit code 0 and one line, or a message or traceback.
"""

import asyncio
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import backread
from backread import AsyncClient, Client
from backread.testing import MockServer, World

Counts = tuple[int, int]

# What a user of the plugin writes; it also shows that pytest finds the plugin by its entry point.
PLUGIN_TEST = """
def test_messages_all_survives_a_bad_day(backread_mock, backread_client):
    backread_mock.clock.virtual()
    backread_mock.fault("users: status(503, retry_after=60) x1")
    assert len(list(backread_client.messages.all())) == backread_mock.world.total_messages
"""


def main(client_only: bool) -> None:
    """Compares what each interface reads of a small world with what the world holds."""
    world = World(seed=7, users=20, messages_per_user=(0, 30))
    expected = (world.total_users, world.total_messages)
    with MockServer(world) as server:
        with server.client() as client:
            compare("Client", read(client), expected)
            if not client_only:
                compare("Mirror.sync", mirrored(client), expected)
        compare("AsyncClient", asyncio.run(read_async(server)), expected)
        if not client_only:
            compare("backread users", (listed(server), expected[1]), expected)
    if not client_only:
        run_plugin()
    # An import that needs the GIL switches it on, so this is after all imports.
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    if gil and sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise SystemExit("importing backread switched the GIL on")
    print(
        f"backread {backread.__version__} on {platform.platform()}, {platform.machine()}, Python "
        f"{platform.python_version()}{'' if gil else ' without a GIL'}: {expected[0]} users and "
        f"{expected[1]} messages read{'' if client_only else ', mirrored and listed'}"
    )


def compare(name: str, counts: Counts, expected: Counts) -> None:
    """Exits with a message if the numbers of users and messages differ."""
    if counts != expected:
        raise SystemExit(f"{name} read {counts} users and messages, not {expected}")


def read(client: Client) -> Counts:
    """Returns the numbers of users and messages that the client lists."""
    return len(client.users.list().to_list()), len(client.messages.all().to_list())


async def read_async(server: MockServer) -> Counts:
    """Does the same with an asynchronous client."""
    client: AsyncClient
    async with server.async_client() as client:
        users = [user async for user in client.users.list()]
        messages = [message async for message in client.messages.all()]
    return len(users), len(messages)


def mirrored(client: Client) -> Counts:
    """Returns the numbers of users and messages in a new mirror after its first sync."""
    from backread import Mirror

    with tempfile.TemporaryDirectory(prefix="backread-try-") as folder:
        mirror = Mirror(Path(folder) / "chats")
        mirror.sync(client)
        users, messages = (mirror.table(name).num_rows for name in ("users", "messages"))
    return users, messages


def listed(server: MockServer) -> int:
    """Returns the number of lines that the command prints for the list of users."""
    settings = {"BASE_URL": server.url, "API_SECRET": server.secret, "VENDOR": server.vendor}
    command = Path(sysconfig.get_path("scripts")) / "backread"
    done = subprocess.run(
        [str(command), "users"],
        env={**os.environ, **{f"BACKREAD_{name}": value for name, value in settings.items()}},
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    return done.stdout.count(b"\n")


def run_plugin() -> None:
    """Runs a test that uses the pytest plugin; exits with its output if it fails."""
    with tempfile.TemporaryDirectory(prefix="backread-try-") as folder:
        Path(folder, "test_plugin.py").write_text(PLUGIN_TEST, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise SystemExit(f"the pytest plugin failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--client-only"]):
        sys.exit("usage: python -I tools/try_wheel.py [--client-only]")
    main(client_only=bool(sys.argv[1:]))
