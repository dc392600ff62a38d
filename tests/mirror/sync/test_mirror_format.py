"""A mirror of another format: refused with what to do instead, and left as it is."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from backread import MirrorError
from helpers.mirrors import BatchSource, batch

pytest.importorskip("duckdb")

import duckdb

from backread.mirror import Mirror
from backread.mirror.published.manifest import DataFile, Manifest
from backread.mirror.published.views import PUBLISHED_TABLES
from backread.mirror.store.schema import FORMAT, create_statements

OTHERS = [FORMAT - 1, FORMAT + 1]
SHAPE = "d9ef"
"""Of what format 7 stores. If it differs, raise `FORMAT` and put the new one here."""


def refused(found: object) -> Any:
    sentence = rf"has format {found}, and this backread reads only format {FORMAT}; sync into a new"
    return pytest.raises(MirrorError, match=sentence)


def fill(folder: Path) -> Mirror:
    BatchSource(batch([{"id": 1}], swept="snapshot")).sync_into(folder)
    return Mirror(folder)


def set_format(mirror: Mirror, number: object) -> None:
    with duckdb.connect(str(mirror.folder / "mirror.duckdb")) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", [str(number)])
    path = mirror.folder / "published" / "current" / "snapshot.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | {"format": number}))


@pytest.mark.parametrize("number", OTHERS)
def test_a_mirror_of_another_format_is_neither_read_nor_written(mirror, number):
    fill(mirror.folder)
    set_format(mirror, number)
    before = {each: each.read_bytes() for each in mirror.folder.rglob("*") if each.is_file()}
    uses = [lambda: fill(mirror.folder), lambda: mirror.forget(1), lambda: mirror.sql("FROM users")]
    for use in uses:
        with refused(number):
            use()
    assert before == {each: each.read_bytes() for each in before}
    # A killed first sync has published nothing.
    (mirror.folder / "published" / "current").unlink()
    with refused(number):
        fill(mirror.folder)


def test_other_tables_or_another_manifest_are_another_format():
    stored = [*create_statements("id"), PUBLISHED_TABLES, Manifest.__annotations__]
    shape = hashlib.sha256(repr([*stored, DataFile.__annotations__]).encode()).hexdigest()
    assert shape[:4] == SHAPE, "raise FORMAT, since mirrors made before cannot be read"
