"""Edited manifests: a mirror or landing that would read files elsewhere is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from backread import Client, LandingError, Mirror, MirrorError, landing, plan
from backread.testing import MockServer
from helpers.mirrors import sync
from helpers.shards import land

NAMES = ["../users.parquet", "/etc/passwd", "a/b.1.parquet", "users.1.parquet\n", "", 7, None]


class Manifest:
    """A manifest as it was written, and reading after an edit."""

    def __init__(self, folder: Path, file: Path) -> None:
        self.folder = folder
        self.file = file
        self.written: dict[str, Any] = json.loads(file.read_bytes())

    def edit(self, **changes: object) -> None:
        self.file.write_text(json.dumps(self.written | changes))

    def refused_by_mirror(self) -> None:
        with pytest.raises(MirrorError, match=r"snapshot\.json is damaged"):
            Mirror(self.folder).sql("SELECT * FROM users")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("edited")


@pytest.fixture(scope="module")
def of_mirror(folder: Path, backread_server: MockServer) -> Manifest:
    mirror = Mirror(folder / "mirror")
    sync(mirror, backread_server)
    return Manifest(mirror.folder, mirror.folder / "published" / "current" / "snapshot.json")


@pytest.fixture(scope="module")
def of_landing(folder: Path, backread_server: MockServer) -> Manifest:
    committed = land(folder / "landing", backread_server)
    name = f"{committed.number:08}.json"
    return Manifest(folder / "landing", folder / "landing" / "manifests" / name)


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_a_manifest_names_only_files_of_its_folder(of_mirror, name):
    tables = of_mirror.written["tables"]
    files = [tables["users"][0] | {"name": name}]
    for edited in (files, []):
        of_mirror.edit(tables=tables | {"users": edited})
        of_mirror.refused_by_mirror()
    of_mirror.edit(tables=tables | {f"{name}/..": tables["users"]})
    of_mirror.refused_by_mirror()
    of_mirror.edit(retired={str(name): "x"})
    of_mirror.refused_by_mirror()


@pytest.mark.parametrize(
    "value", [None, 1, -1.5, "x", [], {}, True, ["x"], {"users": "x"}], ids=repr
)
def test_a_manifest_of_other_types_is_damaged(of_mirror, value):
    written = of_mirror.written
    of_another_type = [name for name, held in written.items() if type(held) is not type(value)]
    for name in {*of_another_type, "seen_at", "tables"} - {"format"}:
        if name in ("seen_at", "retired") and value in (None, {}):
            continue
        of_mirror.edit(**{name: value})
        of_mirror.refused_by_mirror()


def test_a_manifest_that_is_nested_too_deep_is_damaged(of_mirror):
    of_mirror.file.write_text("[" * 200_000)
    with pytest.raises(MirrorError, match=r"snapshot\.json is damaged \(it is nested too deep\)"):
        Mirror(of_mirror.folder).sql("SELECT * FROM users")


@pytest.mark.parametrize("name", ["number", "resource", "rows", "files", "report", "run_id"])
def test_a_manifest_of_a_landing_of_other_types_is_damaged(of_landing, name):
    for value in (None, -1, 1.5, "x", ["x"], {"x": 1}):
        of_landing.edit(**{name: value})
        with pytest.raises(LandingError, match="is damaged"):
            landing.runs(of_landing.folder)


@pytest.mark.parametrize("name", [*NAMES, "run=x/shard=00000/attempt=../../../x.parquet"], ids=repr)
def test_a_manifest_of_a_landing_names_only_files_of_its_run(of_landing, name):
    files = of_landing.written["files"]
    other = files[0].replace(of_landing.written["run_id"], "20260101T000000Z-0")
    for edited in ([name], [other], [name, *files]):
        of_landing.edit(files=edited)
        with pytest.raises(
            LandingError, match=r"is damaged: .* (is not a file of the run|has the wrong type)"
        ):
            landing.runs(of_landing.folder)


def test_what_was_landed_is_a_file_of_the_run(backread_server, tmp_path):
    """It came by way of a scheduler's database, where others may write."""
    server = backread_server
    with Client(server.url, server.secret, server.vendor) as client:
        planned = plan(client, shards=1)
        landing.begin(tmp_path, planned)
        [shard] = planned
        landed = json.loads(landing.land(tmp_path, shard, client=client).to_json())
    (tmp_path / "secret").write_bytes(b"x" * landed["size"])
    forged = landing.Landed.from_json(json.dumps(landed | {"file": "secret"}))
    with pytest.raises(LandingError, match=r"'secret' is .*not one of its files"):
        landing.commit(tmp_path, planned.plan_id, [forged])
