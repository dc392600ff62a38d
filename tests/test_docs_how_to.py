"""The pages of docs/how-to name the types that their packages see: of listings, of the mirror."""

from typing import Any

import pytest

import consumers
from consumers import load
from documents import IN_CHECKOUT, ROOT, Document
from mirrors import sync

if not IN_CHECKOUT:
    pytest.skip("the wheel check takes no pages along", allow_module_level=True)

from backread.mirror import Mirror

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
