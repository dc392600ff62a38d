"""In a notebook's kernel, where an event loop runs already: both clients work, cell after cell."""

import asyncio
import sys
import warnings

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
ids = [user.id for user in client.users.list()]
len(ids) == 50
# %%
(await awaited.users.get(ids[0])).id == client.users.get(ids[0]).id
# %%
messages = [message async for message in awaited.messages.all()]
len(messages) == len(client.messages.all().to_list())
# %%
seen = []
handle = asyncio.get_running_loop().call_soon(lambda: seen.append(client.users.get(ids[0]).id))
users = await asyncio.gather(*(awaited.users.get(one) for one in ids))
[user.id for user in users] == ids and seen == ids[:1]
# %%
await awaited.users.page(limit=5)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the kernel's event loop is another there")
def test_both_clients_work_in_cells(tmp_path, monkeypatch):
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    cells = [nbformat.v4.new_code_cell(one) for one in CELLS.split("# %%\n")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    kernel = nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3")
    with MockServer(World(seed=7, users=50, messages_per_user=(0, 20))) as server:
        for name, value in settings_of(server).items():
            monkeypatch.setenv(name, value)
        with warnings.catch_warnings():
            # How the parts of Jupyter call each other is theirs.
            warnings.simplefilter("ignore")
            asyncio.run(kernel.async_execute(cwd=str(tmp_path)))
    *shown, page = [cell["outputs"][0]["data"] for cell in notebook["cells"]]
    assert [one["text/plain"] for one in shown] == ["True"] * 4
    assert "<table" in page["text/html"]
    assert server.secret not in str(page)
