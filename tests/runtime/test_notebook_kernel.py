"""In a notebook's kernel, where an event loop runs already: both clients work, cell after cell."""

import asyncio
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")

from backread.testing import MockServer, World
from helpers.command_line import settings_of

CELLS = """\
import asyncio
from backread import AsyncClient, Client
client, awaited = Client(), AsyncClient()
# %%
ids = [user.id for user in client.users.list()]
len(ids)
# %%
(await awaited.users.get(ids[0])).id == client.users.get(ids[0]).id
# %%
messages = [message async for message in awaited.messages.all()]
len(messages) == len(client.messages.all().to_list())
# %%
users = await asyncio.gather(*(awaited.users.get(one) for one in ids))
[user.id for user in users] == ids
# %%
seen = []
handle = asyncio.get_running_loop().call_soon(lambda: seen.append(client.users.get(ids[0]).id))
# %%
seen == ids[:1]
# %%
async with AsyncClient() as other:
    page = await other.users.page(limit=5)
page
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the kernel's event loop is another there")
def test_both_clients_work_in_cells(tmp_path, monkeypatch):
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    with MockServer(World(seed=7, users=50, messages_per_user=(0, 20))) as server:
        for name, value in settings_of(server).items():
            monkeypatch.setenv(name, value)
        outputs = executed(CELLS.split("# %%\n"), tmp_path)
    assert [one.get("text/plain") for one in outputs] == [
        None,
        "50",
        "True",
        "True",
        "True",
        None,
        "True",
        outputs[-1]["text/plain"],
    ]
    assert "<table" in outputs[-1]["text/html"]
    assert server.secret not in str(outputs)


def executed(cells: list[str], folder: Path) -> list[dict[str, Any]]:
    """What each cell shows as its value, by media type."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    client = nbclient.NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    with warnings.catch_warnings():
        # How the parts of Jupyter call each other is theirs.
        warnings.simplefilter("ignore")
        asyncio.run(client.async_execute())
    shown = [
        [output["data"] for output in cell["outputs"] if output["output_type"] == "execute_result"]
        for cell in notebook["cells"]
    ]
    return [dict(values[0]) if values else {} for values in shown]
