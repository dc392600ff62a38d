"""The pages of docs/how-to name the types that their packages see: of listings, of the mirror."""

from typing import Any

import pytest

import consumers
from consumers import load
from documents import IN_CHECKOUT, ROOT, Document, enter
from mirrors import sync

if not IN_CHECKOUT:
    pytest.skip("the wheel check takes no pages along", allow_module_level=True)

from backread.mirror import Mirror
from backread.testing import MockServer, World

PAGES = {
    "arro3": consumers.Arro3(),
    "deltalake": consumers.DeltaLake(),
    "duckdb": consumers.DuckDB(),
    "pandas": consumers.Pandas(),
    "polars": consumers.Polars(),
    "pyarrow": consumers.PyArrow(),
}


@pytest.fixture(scope="module")
def mirror(backread_server: Any, tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    pytest.importorskip("duckdb")
    made = Mirror(tmp_path_factory.mktemp("how-to") / "chats")
    sync(made, backread_server)
    return made


def test_each_page_is_held_against_what_reads():
    with_types = {
        page.stem
        for page in (ROOT / "docs").glob("**/*.md")
        if "| column | of a listing or a page |" in page.read_text(encoding="utf-8")
    }
    assert with_types == set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_the_types_are_those_of_the_page(page, backread_client, mirror):
    reader = PAGES[page]
    for package in reader.needs:
        load(package)
    table = Document(ROOT / f"docs/how-to/{page}.md").table("column")
    assert set(table) == {
        "id", "body", "read_by_user", "created_at", "sender_type", "user_attributes"
    }  # fmt: skip
    listings = {
        "users": backread_client.users.list(),
        "messages": backread_client.messages.list(42),
    }
    for name, (listed, mirrored, *others) in table.items():
        resource = "users" if name == "user_attributes" else "messages"
        held = mirror.table(resource)
        seen = [reader.schema(listings[resource])[name], reader.schema(held)[name]]
        if others:
            seen.append(str(held.to_pandas(dtype_backend="pyarrow").dtypes[name]))
        named = [each.strip("`| ") for each in (listed, mirrored, *others)]
        assert named == seen, name


def test_a_delta_table_merged_with_what_changed_is_as_the_mirror(tmp_path, monkeypatch, capsys):
    deltalake = load("deltalake")
    load("pyarrow")
    pytest.importorskip("duckdb")
    blocks = Document(ROOT / "docs/how-to/deltalake.md").blocks
    [block] = [each for each in blocks if ".merge(" in each.code]
    with MockServer(World(seed=7, users=20, messages_per_user=(2, 9))) as server:
        enter(tmp_path, monkeypatch, server)
        mirror, world = Mirror("chats"), server.world
        one, other, forgotten = world.user_ids()[:3]
        names = ["user_id", "id", "body", "deleted_at", "changed_at", "changed_in_run"]

        def rows(table: Any) -> list[str]:
            return sorted(map(str, table.select(names).to_pylist()))

        def merged() -> list[int]:
            """The numbers of updated and of inserted rows."""
            block.execute(block.code)
            copy = deltalake.DeltaTable("messages").to_pyarrow_table()
            assert rows(copy) == rows(mirror.table("messages").to_arrow())
            return [int(each) for each in capsys.readouterr().out.split()]

        assert merged() == [0, world.total_messages]
        assert merged() == [0, 0]
        # Its first version was empty.
        assert deltalake.DeltaTable("messages").version() == 1
        world.remove_message(one, world.message_ids(one)[0])
        world.add_messages(other, 2)
        sync(mirror, server, mode="full")
        assert merged() == [1, 2]
        mirror.forget(forgotten)
        assert merged() == [0, 0]
        # As after a kill before the cursor was stored.
        (tmp_path / "messages.cursor").unlink()
        assert merged() == [mirror.table("messages").num_rows, 0]
