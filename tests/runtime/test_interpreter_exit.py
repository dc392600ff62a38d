"""The interpreter's exit with work in flight: code 0, no message, and no waiting for the work."""

import textwrap
import threading
from typing import Any

import pytest

from helpers.api_rows import paged, user, users
from helpers.python_process import run
from helpers.scripted_server import answer

LEFT = {
    "a walk": """
        rows = iter(client.users.list(page_size=1)); next(rows)
    """,
    "a loop that was never closed": """
        loop = asyncio.new_event_loop()
        async def main():
            global task
            task = asyncio.ensure_future(asynchronous.users.get(43))
            while not requests(): await asyncio.sleep(0.01)
        loop.run_until_complete(main())
        task._log_destroy_pending = False
    """,
    "a stream half read": """
        import pyarrow
        reader = pyarrow.RecordBatchReader.from_stream(client.users.list())
        reader.read_next_batch()
    """,
    "an executor with calls": """
        from concurrent.futures import ThreadPoolExecutor
        pool = ThreadPoolExecutor(2)
        for _ in range(4): pool.submit(client.users.list(page_size=50).to_list)
        hang(2)
    """,
    "daemon threads that begin calls as the exit begins": """
        def read():
            while True:
                try: client.users.page(limit=5)
                except Exception: pass
        for _ in range(4): threading.Thread(target=read, daemon=True).start()
    """,
    "daemon threads that hold what a handler of the exit waits for": """
        lock = threading.Lock()
        def read():
            while True:
                with lock: client.users.page(limit=5)
        for _ in range(2): threading.Thread(target=read, daemon=True).start()
        last.append(lambda: lock.acquire())
        time.sleep(0.2)
    """,
    "daemon threads in Arrow streams": """
        import pyarrow
        def read():
            while True: pyarrow.table(client.users.list(page_size=20))
        for _ in range(2): threading.Thread(target=read, daemon=True).start()
        time.sleep(0.2)
    """,
    "tasks that hang, and sys.exit in one of them": """
        async def main():
            tasks = [asyncio.ensure_future(asynchronous.users.get(43)) for _ in range(5)]
            while not requests(): await asyncio.sleep(0.01)
            print("left", flush=True)
            sys.exit(0)
        asyncio.run(main())
    """,
}


@pytest.mark.parametrize("name", LEFT)
def test_the_interpreter_exits_cleanly_whoever_is_at_work(scripted, name):
    if "pyarrow" in LEFT[name]:
        pytest.importorskip("pyarrow")
    hanging = threading.Event()
    listed = paged(users(20_000))

    def service(request: Any) -> Any:
        if request.path == "/hanging/external/users/1":
            return answer(200, user(1)) if hanging.is_set() else answer(404)
        if request.path == "/external/users":
            return listed(request)
        hanging.set()
        return server.stall()

    server = scripted(service)
    code = f"""
    import asyncio, atexit, sys, threading, time
    last = []
    atexit.register(lambda: [handle() for handle in last])
    from backread import AsyncClient, Client, NotFoundError
    client, asynchronous = Client(timeout=None), AsyncClient(timeout=None)
    look = Client(client.base_url + "/hanging")
    def requests():
        try: return look.users.get(1)
        except NotFoundError: return None
    def hang(count):
        for _ in range(count):
            threading.Thread(target=client.users.get, args=(43,), daemon=True).start()
        while not requests(): time.sleep(0.01)
    def left():
        global rows, reader
        {textwrap.indent(textwrap.dedent(LEFT[name]), " " * 8).strip()}
    left()
    print("left", flush=True)
    """
    done = run(code, server, "-W", "ignore::DeprecationWarning")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("left\n")


def test_a_stream_that_is_read_while_the_interpreter_ends_is_an_error(scripted):
    pytest.importorskip("pyarrow")
    code = """
    import pyarrow
    from backread.testing import MockServer, World
    server = MockServer(World(users=900, messages_per_user=250))
    client = server.client()

    class Report:
        def __init__(self):
            self.stream = pyarrow.RecordBatchReader.from_stream(client.messages.all())
        def __del__(self):
            try:
                print(self.stream.read_all().num_rows)
            except Exception as error:
                print(error)

    report = Report()
    """
    done = run(code, scripted(paged([])))
    assert (done.returncode, done.stderr) == (0, "")
    assert "the interpreter is exiting; read before its exit handlers run" in done.stdout
