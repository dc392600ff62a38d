"""How reads end on bad days of services that are not the mock: nginx, HAProxy, PostgreSQL.

Usage: ``python benches/bad_days.py [--repeat N] [--only NAME,NAME] [--quick]``, in an environment
with the dependency group test-services and any backread. Prints a table in Markdown: a row for each
scenario, with the figures of each repetition divided by "/". Takes some ten minutes a repetition;
``--quick`` makes it two, with fewer walks and shorter limits.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/integrations/services"))

import lists  # noqa: E402
import scenarios  # noqa: E402
from database import Table  # noqa: E402
from origin import Memory, newest_first  # noqa: E402
from postgres import postgresql  # noqa: E402
from reading import Read, given  # noqa: E402
from scenarios import Paced  # noqa: E402

from tables import table  # noqa: E402

Figures = dict[str, object]
Row = tuple[str, Callable[[], Figures]]
USERS = 3_000


def ending(read: Read) -> str:
    """How a call ended."""
    if read.error is None:
        return "all"
    return f"{type(read.error).__name__} after {read.seconds:.1f} s"


class Bench:
    """The scenarios, each in a separate folder."""

    def __init__(self, folder: Path, database: Path, *, quick: bool) -> None:
        self._folder, self.database, self.quick = folder, database, quick
        self._numbers = itertools.count()

    def folder(self) -> Path:
        made = self._folder / str(next(self._numbers))
        made.mkdir()
        return made

    def imports(self) -> Iterator[Row]:
        stores = {
            "memory": lambda: Memory(newest_first(USERS)),
            "PostgreSQL": lambda: Table(self.database, newest_first(USERS), "created_at desc"),
        }
        for name, store in stores.items():
            for after, rows in ((5, 600), (5, 900), (10, 1_500)):
                yield (
                    f"{rows} rows at the front after page {after}, {name}",
                    lambda s=store, a=after, r=rows: self._import(s, a, r),
                )
        yield "15 imports at the front, PostgreSQL", self._imports

    def _import(self, store: Callable[[], Any], after: int, rows: int) -> Figures:
        read, loop = (
            lists.import_at_front(store(), USERS, after, rows, plain=plain)
            for plain in (False, True)
        )
        assert read.report is not None
        there = range(1, USERS + 1)
        return {
            f"missed of {USERS:,}": read.missed(there),
            "certificate": read.report.certificate,
            "requests": read.requests,
            "plain loop missed": loop.missed(there),
            "its requests": loop.requests,
        }

    def _imports(self) -> Figures:
        lost = [
            lists.import_at_front(
                Table(self.database, newest_first(1_000), "created_at desc"),
                1_000,
                after,
                rows,
                plain=False,
            ).missed(range(1, 1_001))
            for after, rows in itertools.product((1, 3, 5, 7, 9), (300, 700, 1_500))
        ]
        return {"walks that missed rows": sum(map(bool, lost)), "rows missed": sum(lost)}

    def limits(self) -> Iterator[Row]:
        seconds = 3.0 if self.quick else 8.0
        for rate, status, retry_after in itertools.product(
            (10, 50, 500), (429, 503), (False, True)
        ):
            yield (
                f"{rate}/s as {status}{' with Retry-After: 1' if retry_after else ''}",
                lambda r=rate, s=status, a=retry_after: self._limit(
                    scenarios.limited(self.folder(), r, s, retry_after=a, seconds=seconds)
                ),
            )
        for status in (429, 503):
            yield (
                f"50/s as {status}, without burst",
                lambda s=status: self._limit(
                    scenarios.limited(
                        self.folder(), 50, s, retry_after=False, seconds=seconds, burst=0
                    )
                ),
            )

    def _limit(self, paced: Paced) -> Figures:
        return {
            "read": ending(paced.read),
            "used": f"{paced.used:.0%}",
            "rejected": f"{paced.rejected_share:.1%}",
        }

    def pools(self) -> Iterator[Row]:
        for unhealthy in (False, True):
            yield (
                f"pool of three, {'one answers 503 always' if unhealthy else 'all healthy'}",
                lambda u=unhealthy: self._pool(u),
            )

    def _pool(self, unhealthy: bool) -> Figures:
        paced = scenarios.unhealthy_pool(self.folder(), 1_500, unhealthy=unhealthy)
        return {
            "read": ending(paced.read),
            "answers a second": round(paced.served / paced.seconds),
            "rejected": f"{paced.rejected_share:.1%}",
        }

    def outages(self) -> Iterator[Row]:
        for name, proxy in (
            ("HAProxy", scenarios.behind_haproxy),
            ("nginx", scenarios.behind_nginx),
        ):
            for seconds in (0.5, 2.0, 10.0):
                yield (
                    f"{seconds:g} s outage behind {name}",
                    lambda p=proxy, s=seconds: self._outage(p, s),
                )
        for option in ({"outage_patience": 0}, {"max_retries": 0}):
            [(key, value)] = option.items()
            yield (
                f"2 s outage behind HAProxy, {key}={value}",
                lambda o=option: self._outage(scenarios.behind_haproxy, 2.0, **o),
            )

    def _outage(self, proxy: scenarios.Proxy, seconds: float, **options: Any) -> Figures:
        count = (1 if self.quick else 3) if seconds > 5 else (3 if self.quick else 10)
        outages = [
            scenarios.outage(self.folder(), proxy, seconds, **given(**options))
            for _ in range(count)
        ]
        well = [one for one in outages if one.read.error is None]
        figures: Figures = {"ended well": f"{len(well)} of {count}"}
        if well:
            figures["sent during it"] = span([one.sent for one in well])
            figures["resumed after"] = span([one.resumed or 0.0 for one in well]) + " s"
            known = [getattr(one.read.report, "outage_seconds", None) for one in well]
            if None not in known:
                figures["outage_seconds"] = span([float(one or 0.0) for one in known])
        if len(well) < count:
            failed = [one.read.seconds for one in outages if one.read.error is not None]
            figures["failed after"] = span(failed) + " s"
        return figures

    def connections(self) -> Iterator[Row]:
        hundred = "keepalive_requests 100;"

        def closed(one: scenarios.Closed) -> Figures:
            return {
                "answered": one.answered,
                "retries": one.retries,
                "failed calls": one.failed,
            }

        for retries in (5, 0):
            yield (
                f"HTTP/2, keepalive_requests 100, max_retries={retries}",
                lambda r=retries: closed(
                    scenarios.closing(self.folder(), 2_000, hundred, tls=True, max_retries=r)
                ),
            )
        yield (
            "the same by curl --http2 --parallel",
            lambda: closed(scenarios.closing_curl(self.folder(), 2_000, hundred)),
        )
        yield (
            "HTTP/1.1, keepalive_requests 100, max_retries=0",
            lambda: closed(
                scenarios.closing(self.folder(), 2_000, hundred, tls=False, max_retries=0)
            ),
        )
        yield (
            "HTTP/1.1, 500 gets at a keepalive_timeout of 5 ms, max_retries=0",
            lambda: closed(scenarios.idle(self.folder(), 500, 5, max_retries=0)),
        )

    def counts(self) -> Iterator[Row]:
        for seconds in (5.0, 0.0):
            name = f"count(*) cached for {seconds:g} s" if seconds else "no total"
            yield name, lambda s=seconds: self._counts(s)

    def _counts(self, seconds: float) -> Figures:
        count = 10 if self.quick else 60
        users = Table(self.database, newest_first(1_000), "created_at desc")
        return self._walks(lists.counted_late(users, 1_000, seconds, count, 1))

    def _walks(self, walks: lists.Walks) -> Figures:
        return {
            "certified": f"{walks.certified} of {walks.walks}",
            "falsely": walks.false,
            "held": f"{1 - walks.missed / walks.rows:.2%}",
            "plain loop holds": f"{1 - walks.plain_missed / walks.rows:.2%}",
            "requests, times the loop's": f"{walks.requests / walks.plain_requests:.2f}",
        }

    def orders(self) -> Iterator[Row]:
        for order in ("created_at desc", "updated_at", "updated_at desc", None):
            name = f"a row updated after each page, {f'by {order}' if order else 'in no order'}"
            yield name, lambda o=order: self._orders(o)

    def _orders(self, order: str | None) -> Figures:
        count = 10 if self.quick else 60
        return self._walks(lists.moving(self.database, order, 1_000, count, 1))

    def reasons(self) -> Iterator[Row]:
        yield "a user updated inside an overlap, by updated_at", self._reasons

    def _reasons(self) -> Figures:
        reads = [lists.updated_in_overlap(self.database, one) for one in range(90, 99)]
        reports = [one.report for one in reads if one.report is not None]
        return {
            "walks": len(reports),
            "false reasons": sum(
                "moved with unchanged content" in (r.reason or "") for r in reports
            ),
            "certified": sum(r.certificate != "uncertified" for r in reports),
            "missed": sum(one.missed(range(1, 201)) for one in reads),
        }

    def ties(self) -> Iterator[Row]:
        for updates in (0, 1, 20):
            name = f"2,000 rows by 5 values, {updates or 'no'} updates a page"
            yield name, lambda u=updates: self._ties(u)

    def _ties(self, updates: int) -> Figures:
        count = 1 if self.quick else 5
        return self._walks(lists.tied(self.database, 2_000, count, 1, updates=updates))

    def proxies(self) -> Iterator[Row]:
        yield "a proxy refuses CONNECT with 407", self._proxy

    def _proxy(self) -> Figures:
        refused = scenarios.refused_by_proxy(self.folder())
        return {"sent": refused.sent, "hint": "hint" if refused.hinted else "none"}

    GROUPS = (imports, limits, pools, outages, connections, counts, orders, reasons, ties, proxies)


def span(values: list[Any]) -> str:
    """From the least to the most."""
    low, high = min(values), max(values)
    texts = [f"{one:.2f}" if isinstance(one, float) else str(one) for one in (low, high)]
    return texts[0] if texts[0] == texts[1] else f"{texts[0]}-{texts[1]}"


def row(name: str, measure: Callable[[], Figures], repeat: int) -> tuple[str, str]:
    """One row of the table."""
    runs = [measure() for _ in range(repeat)]
    keys = list(dict.fromkeys(itertools.chain.from_iterable(runs)))
    cells = []
    for key in keys:
        values = [str(run.get(key, "-")) for run in runs]
        cells.append(f"{key} {values[0] if len(set(values)) == 1 else ' / '.join(values)}")
    return name, "; ".join(cells)


def main() -> int:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = {group.__name__: group for group in Bench.GROUPS}
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--only", default=",".join(names), help=f"of {', '.join(names)}")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="backread-bad-") as folder, postgresql() as database:
        bench = Bench(Path(folder), database, quick=arguments.quick)
        for group in arguments.only.split(","):
            for name, measure in names[group](bench):
                started = time.monotonic()
                rows.append(row(name, measure, arguments.repeat))
                took = time.monotonic() - started
                print(f"{took:4.0f} s  {rows[-1][0]}: {rows[-1][1]}", file=sys.stderr, flush=True)
    print(table([f"backread {version('backread')}", f"{arguments.repeat} times"], rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
