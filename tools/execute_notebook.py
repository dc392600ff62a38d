"""Runs a notebook's cells anew and keeps what they show: ``make notebook`` does so with ours.

Usage: ``python tools/execute_notebook.py NOTEBOOK``. It runs in an empty folder that is removed
afterwards, and nothing of this machine is kept in it but what the cells themselves show. Needs
nbclient, and what the notebook imports.
"""

import asyncio
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

SECONDS = 120
"""What a cell may take."""


def executed(path: Path) -> Any:
    """The notebook with the outputs of this run; raises what a cell raised."""
    with warnings.catch_warnings():
        # How the parts of Jupyter import and call each other is theirs.
        warnings.simplefilter("ignore")
        import nbclient
        import nbformat

        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            # Nobody's own settings of IPython play a part.
            environment = {**os.environ, "IPYTHONDIR": str(Path(folder) / "ipython")}
            work = Path(folder) / "work"
            work.mkdir()
            client = nbclient.NotebookClient(
                notebook,
                timeout=SECONDS,
                kernel_name="python3",
                record_timing=False,
                resources={"metadata": {"path": str(work)}},
            )
            asyncio.run(client.async_execute(env=environment))
    # The version of Python, and of how it is coloured.
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def write(notebook: Any, path: Path) -> None:
    """Keeps it as it was read: one line for each change, and a line's end at the end."""
    import nbformat

    path.write_text(nbformat.writes(notebook, version=4).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/execute_notebook.py NOTEBOOK")
    target = Path(sys.argv[1])
    write(executed(target), target)
