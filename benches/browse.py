"""What the page of `backread browse` costs: times of its requests, first paint, and memory.

Runs the command on a mirror, and asks for what its page asks for. Without ``--mirror`` it makes one
with 50 messages a user and one conversation of 50,000. ``--chromium`` also opens the page in a
headless Chromium (``/usr/bin/chromium`` with selenium) and measures its first contentful paint, and
when the first people are in the list.

Usage: ``python benches/browse.py [--mirror FOLDER] [--messages 5000000] [--rounds 5]
[--word invoice] [--chromium]``
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

from backread.mirror.database import open_database
from backread.mirror.engine import quoted
from backread.mirror.publish import publish
from backread.mirror.store import Store
from tables import table

WORDS = """
the order came late and nobody answered my question about delivery please send invoice to office
thanks regards customer payment failed again yesterday website shows error login password заказ
пришёл поздно и никто не ответил на мой вопрос о доставке отправьте счёт größer schön für Straße
"""
BODY_WORDS = 10
LONG = 50_000
"""The messages of user 7."""
OPERATORS = 40

PAINTED = """
const [paint] = performance.getEntriesByName("first-contentful-paint");
const items = document.querySelectorAll("#items .item").length;
return paint && items ? paint.startTime : null;
"""


def fill(store: Store, messages: int) -> None:
    """Users, their messages and a finished run that read them."""
    users = messages // 50
    words = WORDS.split()
    chosen = f"[{', '.join(map(quoted, words))}]"

    def pick(of: str) -> str:
        return f"({chosen})[1 + (hash({of}) % {len(words)})::INT]"

    body = " || ' ' || ".join(pick(f"id * 31 + {place}") for place in range(BODY_WORDS))
    store.rows(
        "INSERT INTO users (id, name, email, reference, created_at, first_seen_at) SELECT id, "
        f"{pick('id')} || ' ' || {pick('id + 1')}, 'user' || id || '@example.com', 'crm:' || id, "
        f"TIMESTAMPTZ '2024-01-01', now() FROM range({users}) AS ids(id)"
    )
    owner = f"CASE WHEN id < {LONG} THEN 7 ELSE (hash(id // 7) % {users})::BIGINT END"
    by_user = "hash(id) % 2 = 0"
    store.rows(
        f"""
        INSERT INTO messages (user_id, id, body, created_at, sender_type, sender_id,
            sender_forename, read_by_user, read_by_operator, auto_invitation, file_url,
            first_seen_at)
        SELECT {owner}, id, {body}, TIMESTAMPTZ '2024-01-01' + to_seconds(id * 12),
            CASE WHEN {by_user} THEN 'user' ELSE 'operator' END,
            CASE WHEN {by_user} THEN {owner} ELSE 1 + hash(id + 5) % {OPERATORS} END,
            CASE WHEN {by_user} THEN NULL ELSE 'Operator ' || (1 + hash(id + 5) % {OPERATORS}) END,
            hash(id + 9) % 10 <> 0, hash(id + 11) % 10 <> 0,
            NOT {by_user} AND hash(id + 3) % 9 = 0,
            CASE WHEN hash(id + 4) % 50 = 0 THEN 'https://files.example.com/' || id END, now()
        FROM range({messages}) AS ids(id)
        """
    )
    store.rows(
        "INSERT INTO lists (user_id, run_id, rows, requests, certificate, kind, started_at, "
        f"ended_at) SELECT id, 1, 1, 1, 'snapshot', 'whole', now(), now() FROM range({users}) "
        "AS ids(id)"
    )
    store.rows(
        "INSERT INTO runs (run_id, mode, state, started_at, ended_at, certificate) "
        "VALUES (1, 'full', 'finished', now(), now(), 'linked')"
    )


class Page:
    """The running command, seen by what asks it."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address
        found = re.fullmatch(r"http://(127\.0\.0\.1:\d+)(/.*)", address)
        assert found
        self.host = found[1]
        answer = self._get(found[2])
        self.path = answer.headers["Location"]
        self.cookie = answer.headers["Set-Cookie"].split(";")[0]

    def _get(self, target: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(self.host, timeout=120)
        connection.request("GET", target, headers={"Cookie": getattr(self, "cookie", "")})
        return connection.getresponse()

    def seconds(self, name: str, **parameters: object) -> tuple[float, Any]:
        """The seconds of a request, and its reply."""
        start = time.perf_counter()
        body = self._get(f"{self.path}{name}?{urlencode(parameters)}").read()
        seconds = time.perf_counter() - start
        return seconds, json.loads(body) if name.startswith("api/") else body

    def memory(self) -> tuple[int, int]:
        """The resident memory now and at its peak, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        found = {each[0]: int(each[1]) // 1000 for each in re.findall(r"(\w+):\s+(\d+) kB", status)}
        return found["VmRSS"], found["VmHWM"]


@contextmanager
def browsed(mirror: Path) -> Iterator[tuple[Page, float]]:
    """The command with a mirror, and the seconds until it printed the address."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "backread", "browse", str(mirror), "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        started = time.perf_counter() - start
        try:
            yield Page(process, address), started
        finally:
            process.terminate()


def measure(mirror: Path, rounds: int, word: str) -> list[tuple[str, float]]:
    """The seconds of everything, by name."""
    found: list[tuple[str, float]] = []
    with browsed(mirror) as (page, started):
        begin = time.perf_counter()
        found.append(("the command prints the address after", started))
        files = sum(
            page.seconds(name)[0] for name in ("", "browse.css", "bubbles.css", "browse.js")
        )
        found.append(("the page and its files", files))
        found.append(("the header, first time", page.seconds("api/state")[0]))
        found.append(("people, first time", page.seconds("api/people")[0]))
        while not page.seconds("api/state")[1]["counted"]:
            time.sleep(0.05)
        found.append(("all figures are counted after", time.perf_counter() - begin))
        _, people = page.seconds("api/people", order="longest")
        longest = re.findall(r'data-user="(\d+)"', people["html"])[0]
        _, last = page.seconds("api/window", user=longest)
        _, first = page.seconds("api/window", user=longest, at="first")
        print(f"the longest conversation has {last['total']:,} messages", flush=True)
        asked: dict[str, tuple[str, dict[str, object]]] = {
            "people, newest first": ("people", {}),
            "people by a word": ("people", {"words": word}),
            "people with unread messages": ("people", {"unread": "operator", "order": "unread"}),
            "people by operator": ("people", {"operator": 1}),
            "people by date": ("people", {"since": "2024-03-01", "until": "2024-04-01"}),
            "the end of the longest conversation": ("window", {"user": longest}),
            "the messages before": ("window", {"user": longest, "before": last["first"]}),
            "a message in it": ("window", {"user": longest, "around": first["last"]}),
            f"search for {word!r}": ("search", {"words": word}),
            "search for what is not there": ("search", {"words": "qqqzzz"}),
        }
        for name, (call, parameters) in asked.items():
            times = [page.seconds(f"api/{call}", **parameters)[0] for _ in range(rounds)]
            found.append((name, median(times)))
        now, peak = page.memory()
        print(f"memory: {now} MB, at its peak {peak} MB\n", flush=True)
    return found


def paint(mirror: Path) -> list[tuple[str, float]]:
    """Chromium's first contentful paint, right after the command has started, and later."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-proxy-server"):
        options.add_argument(flag)
    found = []
    service = Service(executable_path="/usr/bin/chromedriver")
    with webdriver.Chrome(options=options, service=service) as driver:
        driver.get("about:blank")
        with browsed(mirror) as (page, _):
            for name in ("first", "second", "third"):
                start = time.perf_counter()
                driver.get(page.address)
                while (painted := driver.execute_script(PAINTED)) is None:
                    time.sleep(0.01)
                found.append((f"{name} opening: first contentful paint", painted / 1000))
                found.append((f"{name} opening: people are shown", time.perf_counter() - start))
    return found


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirror", type=Path, help="a mirror to show; it is only read")
    parser.add_argument("--messages", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--word", default="invoice")
    parser.add_argument("--chromium", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        mirror = options.mirror or Path(scratch)
        if options.mirror is None:
            with open_database(mirror) as connection:
                store = Store(mirror, connection)
                fill(store, options.messages)
                publish(store)
        found = measure(mirror, options.rounds, options.word)
        if options.chromium:
            found += paint(mirror)
    print(table(("what", "ms"), [(name, f"{seconds * 1000:,.0f}") for name, seconds in found]))


if __name__ == "__main__":
    main()
