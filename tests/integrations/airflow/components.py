"""A whole Airflow on loopback: API server, scheduler and DAG processor, each a process.

``Airflow`` starts them, speaks with the API as a user's browser does, and ends them with all that
they started: each leads a process group of its own, and the tasks' groups are found below it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from processes import free_port

from backread import Mirror, landing
from backread.testing import World

COMPONENTS = {
    "api-server": ["api-server", "--host", "127.0.0.1", "--workers", "1"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
}
SECONDS = 180.0
"""What anything may take, on a machine that has much else to do."""

Json = Any


def until(wanted: Callable[[], Any], what: str, seconds: float = SECONDS) -> Any:
    """Asks until there is an answer that is true, and gives it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := wanted():
            return answer
        time.sleep(0.2)
    raise AssertionError(f"in {seconds:.0f} s there was never: {what}")


class Airflow:
    """The running components, by their API."""

    def __init__(self, home: Path, url: str) -> None:
        self.home = home
        self.url = url
        self._token = ""

    def ask(self, method: str, path: str, body: Json = None) -> Json:
        """One request of the public API; its JSON."""
        if not self._token and path != "/auth/token":
            self._token = self.ask("GET", "/auth/token")["access_token"]
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()!r}") from None
        return json.loads(text) if text else None

    def is_up(self) -> bool:
        """Whether all components reported within the last moments that they are healthy."""
        try:
            health = self.ask("GET", "/api/v2/monitor/health")
        except (OSError, AssertionError):
            return False
        needed = ("metadatabase", "scheduler", "dag_processor")
        return all(health[name]["status"] == "healthy" for name in needed)

    def connect(self, conn_id: str, lane: Any, **extra: Json) -> None:
        """Makes a connection of a mock's lane, in Airflow's database."""
        body = {
            "connection_id": conn_id,
            "conn_type": "backread",
            "host": lane.url,
            "password": lane.secret,
            "extra": json.dumps({"vendor": lane.vendor, **extra}),
        }
        until(lambda: self._created(body), f"a connection {conn_id}", 60)

    def _created(self, body: Json) -> bool:
        """Tries once: SQLite refuses a writer whose read another component has overtaken."""
        try:
            self.ask("POST", "/api/v2/connections", body)
        except AssertionError as error:
            if "Database error" in str(error):
                return False
            raise
        return True

    def trigger(self, dag_id: str) -> str:
        """Starts a run, once the DAG is known; gives the run's id."""
        self.known(dag_id)
        started = self.ask("POST", f"/api/v2/dags/{dag_id}/dagRuns", {"logical_date": None})
        return str(started["dag_run_id"])

    def known(self, dag_id: str) -> None:
        """Waits until Airflow has read the DAG; fails the test where it cannot read one."""

        def is_known() -> bool:
            assert self.ask("GET", "/api/v2/importErrors")["import_errors"] == []
            return dag_id in [each["dag_id"] for each in self.ask("GET", "/api/v2/dags")["dags"]]

        until(is_known, f"a DAG {dag_id}")

    def tasks(self, dag_id: str, run_id: str) -> dict[str, Json]:
        """The task instances of a run, by their id and, if mapped, index."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances"
        return {
            each["task_id"] + (f"[{each['map_index']}]" if each["map_index"] >= 0 else ""): each
            for each in self.ask("GET", path)["task_instances"]
        }

    def success_of(self, dag_id: str, run_id: str) -> dict[str, Json]:
        """Waits for the end of a run, which must be a success; gives its task instances."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}"
        ends = ("success", "failed")
        until(lambda: self.ask("GET", path)["state"] in ends, f"an end of {dag_id} {run_id}")
        tasks = self.tasks(dag_id, run_id)
        if {each["state"] for each in tasks.values()} != {"success"}:
            raise AssertionError(f"{dag_id}: {tasks}\n{self.logs(dag_id)}")
        return tasks

    def value(self, dag_id: str, run_id: str, task_id: str) -> Json:
        """A task's XCom."""
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"
        return self.ask("GET", f"{path}/xcomEntries/return_value?deserialize=true")["value"]

    def events(self, dag_id: str) -> list[Json]:
        """The asset events of a DAG's tasks."""
        found = self.ask("GET", f"/api/v2/assets/events?source_dag_id={dag_id}")
        return list(found["asset_events"])

    def logs(self, dag_id: str) -> str:
        """All that the tasks of a DAG logged."""
        files = sorted((self.home / "logs" / f"dag_id={dag_id}").rglob("*.log*"))
        return "\n".join(file.read_text(encoding="utf-8") for file in files)

    def runs(self, dag_id: str) -> list[Json]:
        """The runs of a DAG."""
        return list(self.ask("GET", f"/api/v2/dags/{dag_id}/dagRuns")["dag_runs"])


@contextmanager
def running(home: Path, environment: Mapping[str, str]) -> Iterator[Airflow]:
    """All components, until the block ends."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {
        **environment,
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__API__BASE_URL": url,
    }
    started: list[subprocess.Popen[bytes]] = []
    try:
        for name, arguments in COMPONENTS.items():
            more = ["--port", str(port)] if name == "api-server" else []
            with (home / f"{name}.out").open("wb") as output:
                started.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "airflow", *arguments, *more],
                        env=settings,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
        airflow = Airflow(home, url)

        def is_up() -> bool:
            ended = [each.args for each in started if each.poll() is not None]
            assert not ended, f"{ended} ended; {home} has what they wrote"
            return airflow.is_up()

        until(is_up, "all components healthy")
        yield airflow
    finally:
        _end(started)


def _end(started: list[subprocess.Popen[bytes]]) -> None:
    """Ends the components, the last first, and what is left of their children."""
    children = [
        child
        for process in started
        if process.poll() is None
        for child in psutil.Process(process.pid).children(recursive=True)
    ]
    for process in reversed(started):
        process.send_signal(signal.SIGTERM)
    for process in started:
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for child in children:
        # It knows a later process with the same id from this one.
        with suppress(psutil.NoSuchProcess):
            child.kill()


# --- DAG files, and what they must have read ------------------------------------------------------

IMPORTS = """\
from datetime import timedelta
from airflow.sdk import DAG, Asset, AssetAlias, task
from backread.integrations.airflow import *
"""


@contextmanager
def dag_file(home: Path, name: str, body: str) -> Iterator[Path]:
    """A file in the folder of DAGs with the body in a DAG of this name, until the block ends."""
    path = home / "dags" / f"{name}.py"
    text = f"{IMPORTS}\nwith DAG({name!r}, schedule=None) as dag:\n"
    path.write_text(text + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n")
    try:
        yield path
    finally:
        path.unlink()


FIELDS = ("body", "read_by_user", "read_by_operator", "sender_type")


def messages_of(world: World) -> list[tuple[Any, ...]]:
    """Every message of a world: user, id and some fields, in order."""
    return sorted(
        (user_id, message_id, *(world.message(user_id, message_id)[name] for name in FIELDS))
        for user_id in world.user_ids()
        for message_id in world.message_ids(user_id)
    )


def mirror_holds(folder: Path, world: World) -> bool:
    """Whether a mirror has exactly the users and messages of a world, each once."""
    mirror = Mirror(folder)
    users = mirror.sql("SELECT id, name, email FROM users ORDER BY ALL").fetchall()
    messages = mirror.sql(f"SELECT user_id, id, {', '.join(FIELDS)} FROM messages").fetchall()
    expected = sorted(
        (user_id, world.user(user_id)["name"], world.user(user_id)["email"])
        for user_id in world.user_ids()
    )
    return users == expected and sorted(messages) == messages_of(world)


def messages_landed(folder: Path) -> list[tuple[Any, ...]]:
    """Every message of the only committed run of a landing folder, in order."""
    [committed] = landing.runs(folder)
    names = ["user_id", "id", *FIELDS]
    table = landing.dataset(folder, committed).to_table(columns=names)
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True))
