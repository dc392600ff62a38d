"""``backread forget`` and ``backread sync --retention-days``."""

from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
pytest.importorskip("typer")
pytest.importorskip("rich")

from backread.mirror import Mirror
from helpers.command_line import posix_only
from helpers.mirrors import BatchSource, batch, rows
from helpers.pseudo_terminal import on_terminal
from helpers.shards import land


@pytest.fixture
def folder(backread, tmp_path: Path) -> Path:
    chats = tmp_path / "chats"
    assert backread("sync", chats).code == 0
    return chats


def test_forget_says_what_it_removed(backread, server, folder, tmp_path):
    land(tmp_path / "landed", server)
    [first, second, third] = server.world.user_ids()[:3]
    [(count,)] = rows(Mirror(folder), f"SELECT count(*) FROM messages WHERE user_id = {first}")
    s = "" if count == 1 else "s"
    done = backread("forget", folder, first, "--landing", tmp_path / "landed")
    assert done.code == 0
    assert done.out.startswith(
        f"1 user forgotten; 1 user, {count:,} message{s} and 0 rejects removed; "
        f"{count:,} row{s} of 1 landing file removed; "
    )
    done = backread("forget", folder, first, second, third)
    assert done.out.startswith(f"2 users forgotten; forgotten before: {first}; 2 users, ")
    assert rows(Mirror(folder), "SELECT count(*) FROM users") == [(117,)]
    assert backread("sync", folder).code == 0
    assert rows(Mirror(folder), "SELECT count(*) FROM users") == [(117,)]


def test_forget_says_which_of_the_users_messages_stay_in_lists_of_others(backread, tmp_path):
    messages = [
        {"user_id": user_id, "id": number, "sender_type": kind, "sender_id": 42}
        for number, (user_id, kind) in enumerate(
            [(42, "user"), (43, "user"), (43, "user"), (43, "operator"), (43, None)]
        )
    ]
    folder = tmp_path / "chats"
    BatchSource(batch([{"id": 42}, {"id": 43}], messages, swept="linked")).sync_into(folder)
    stay = "; 2 messages of theirs stay in other users' lists, see docs/how-to/forget.md\n"
    for _ in range(2):
        assert backread("forget", folder, 42).out.endswith(stay)
    assert "stay" not in backread("forget", folder, 42, 43).out
    assert Mirror(folder).forget(42).messages_elsewhere == 0


def test_forget_of_an_unknown_user_is_one_line(backread, folder):
    done = backread("forget", folder, 999_999)
    assert done.code == 7
    assert "holds nothing of user 999999, so nothing was changed" in done.line
    assert backread("forget", folder, 999_999, "--anyway").code == 0


def test_a_dry_run_names_the_users_and_removes_nothing(backread, server, folder):
    user_id = server.world.user_ids()[0]
    count = len(server.world.message_ids(user_id))
    done = backread("forget", folder, user_id, "--dry-run")
    assert done.code == 0
    assert done.out.startswith(f"user {user_id}, {server.world.user(user_id)['name']}, ")
    assert done.out.endswith(f": {count} message{'' if count == 1 else 's'}\n")
    assert backread("forget", folder, 999_999, "--dry-run").code == 7
    assert rows(Mirror(folder), "SELECT count(*) FROM users") == [(120,)]


@posix_only
def test_a_terminal_is_asked_unless_it_said_yes(server, folder):
    first, second = server.world.user_ids()[:2]

    def forget(user_id: int, *more: str, typed: str = "") -> tuple[int, str]:
        shown = on_terminal("forget", folder, user_id, *more, typed=typed, TERM="dumb")
        return shown.code, shown.text

    code, text = forget(first, typed="n\n")
    assert code == 2
    assert f"user {first}, " in text
    assert "Remove them for good? [y/N]" in text
    assert "nothing was removed; answer y, or add --yes" in text
    code, text = forget(first, typed="y\n")
    assert (code, "1 user forgotten" in text) == (0, True)
    code, text = forget(second, "--yes")
    assert (code, "for good?" in text) == (0, False)


@pytest.mark.parametrize("arguments", [[], ["-5"], ["Anna"]])
def test_forget_without_a_usable_id_is_a_usage_error(backread, folder, arguments):
    assert backread("forget", folder, *arguments).code == 2


def test_forget_without_a_mirror_or_with_no_landing_is_one_line(backread, folder, tmp_path):
    assert "there is no mirror in" in backread("forget", tmp_path / "none", 1).line
    done = backread("forget", folder, 1, "--landing", tmp_path)
    assert done.code == 7
    assert "is not a landing folder" in done.line


def test_sync_removes_what_is_gone_for_longer(backread, server, folder):
    user_id = server.world.user_ids()[-1]
    server.world.remove_user(user_id)
    assert backread("sync", folder, "--full", "--retention-days", 30).code == 0
    gone = f"SELECT count(*) FROM users WHERE id = {user_id}"
    assert rows(Mirror(folder), gone) == [(1,)]
    assert backread("sync", folder, "--retention-days", 0).code == 0
    assert rows(Mirror(folder), gone) == [(0,)]


def test_sync_says_why_retention_removed_nothing(backread, folder, monkeypatch):
    class Earlier(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) - timedelta(days=365)

    monkeypatch.setattr("backread.mirror.rights.purge.datetime", Earlier)
    done = backread("sync", folder, "--retention-days", 0)
    assert done.code == 0
    assert "nothing was removed by retention, because this machine's clock (" in done.out
    assert "is before the mirror's last run" in done.out
