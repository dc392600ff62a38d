"""A mirror whose snapshot is of the former layout: read as it is, until the next sync publishes."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from mirrors import BatchSource, batch, rows

pytest.importorskip("duckdb")

from backread import MirrorError
from backread.mirror import Mirror, manifest
from mirror_format2 import make_format2
from mirror_version1 import make_version1

SAID = [
    {"user_id": user, "id": user * 10 + each, "body": f"text {each}"}
    for user in (1, 2, 3)
    for each in range(4)
]


def fill(mirror: Mirror) -> None:
    users = [{"id": each, "name": f"user {each}"} for each in (1, 2, 3)]
    lists = dict.fromkeys((1, 2, 3), "snapshot")
    BatchSource(
        batch(users, SAID, swept="snapshot", lists=lists)  # type: ignore[arg-type]
    ).sync_into(mirror.folder)


def published(mirror: Mirror) -> set[str]:
    return {each.name for each in (mirror.folder / "published").iterdir()}


def test_it_is_read_as_it_is(mirror):
    fill(mirror)
    expected = rows(mirror, "FROM conversations ORDER BY ALL")
    make_format2(mirror.folder)
    reader = Mirror(mirror.folder)
    query = "SELECT user_id, id, body FROM messages ORDER BY ALL"
    assert rows(reader, query) == [(each["user_id"], each["id"], each["body"]) for each in SAID]
    assert rows(reader, "FROM conversations ORDER BY ALL") == expected
    assert [each.body for each in reader.conversation(2)] == [f"text {each}" for each in range(4)]
    assert rows(reader, "SELECT count(*) FROM messages WHERE last_seen_at IS NULL") == [(0,)]


@pytest.mark.parametrize("make", [make_format2, make_version1])
def test_the_next_sync_publishes_anew_and_removes_its_files_in_time(mirror, monkeypatch, make):
    if make is make_format2:
        fill(mirror)
    before = make(mirror.folder) or {
        each for each in published(mirror) if each.endswith(".parquet")
    }
    fill(mirror)
    assert rows(mirror, "SELECT count(*) FROM messages WHERE body LIKE 'text%'") == [(12,)]
    # An open reader needs its files for a while.
    [snapshot] = [each for each in published(mirror) if each.isdigit()]
    assert published(mirror) == {"current", "manifest.json", snapshot, *before}
    assert int(snapshot) > max(int(each.split(".")[1]) for each in before)
    fill(mirror)
    assert before <= published(mirror)
    monkeypatch.setattr(manifest, "RETIRED_FOR", timedelta(0))
    fill(mirror)
    assert not before & published(mirror)
    assert rows(mirror, "SELECT count(*) FROM messages WHERE body LIKE 'text%'") == [(12,)]


def test_an_older_backread_finds_a_format_that_it_refuses(mirror):
    """It read ``manifest.json``, and refused every format that it did not know."""
    fill(mirror)
    make_format2(mirror.folder)
    fill(mirror)
    document = json.loads((mirror.folder / "published" / "manifest.json").read_bytes())
    assert document["format"] == 3


def test_no_file_elsewhere_is_read(mirror):
    fill(mirror)
    make_format2(mirror.folder)
    path = mirror.folder / "published" / "manifest.json"
    written = json.loads(path.read_bytes())
    for name in ("../users.parquet", "/etc/passwd", "users.parquet"):
        path.write_text(json.dumps(written | {"files": written["files"] | {"users": [name]}}))
        with pytest.raises(MirrorError, match=r"manifest\.json is damaged"):
            rows(Mirror(mirror.folder), "FROM users")
    path.write_text(json.dumps(written | {"format": 4}))
    with pytest.raises(MirrorError, match=r"newer backread \(format 4.*upgrade"):
        rows(Mirror(mirror.folder), "FROM users")
    path.unlink()
    path.symlink_to(Path("elsewhere"))
    with pytest.raises(MirrorError, match="symbolic link"):
        rows(Mirror(mirror.folder), "FROM users")
