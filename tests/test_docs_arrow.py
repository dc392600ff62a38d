"""docs/how-to/arrow.md names the columns that there are, with their types."""

import re

import pytest

from documents import IN_CHECKOUT, ROOT

pyarrow = pytest.importorskip("pyarrow")
if not IN_CHECKOUT:
    pytest.skip("the wheel check takes no pages along", allow_module_level=True)

ROW = re.compile(r"^\| `(\w+)` \| `([^`]+)` \|", re.MULTILINE)


@pytest.fixture(scope="module")
def sections() -> dict[str, str]:
    text = (ROOT / "docs/how-to/arrow.md").read_text(encoding="utf-8")
    users, messages = text.split("### Users")[1].split("### Messages")
    return {"users": users, "messages": messages}


@pytest.mark.parametrize("resource", ["users", "messages"])
def test_the_columns_are_those_of_the_page(resource, sections, backread_client):
    listing = {
        "users": backread_client.users.list(),
        "messages": backread_client.messages.all(users=[]),
    }[resource]
    schema = pyarrow.schema(listing)
    assert [(field.name, str(field.type)) for field in schema] == ROW.findall(sections[resource])
