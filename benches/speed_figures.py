"""What `speed.py` makes of its measurements: the columns of its tables, and the goals."""

from __future__ import annotations

import operator
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from speed_programs import GROWING, KINDS, Program
from speed_runs import Measurement

Measured = dict[str, list[Measurement]]
Figure = Callable[[Measurement], float]
Other = Callable[[Program], str | None]

NOTHING = "–"


def rate(one: Measurement) -> float:
    """Rows a second."""
    return one["rows"] / one["seconds"]


def cpu_a_million(one: Measurement) -> float:
    """CPU seconds for a million rows."""
    return one["cpu"] / one["rows"] * 1e6


def growth(one: Measurement) -> float:
    """What is held in the last tenth of a stream, by what is held in the first."""
    return one["last_mb"] / one["first_mb"]


rows, seconds, cpu, peak, p50, calls, first, last = map(
    itemgetter,
    ("rows", "seconds", "cpu", "peak_mb", "p50", "calls_a_second", "first_mb", "last_mb"),
)


def figure_of(measured: Measured, key: str, figure: Figure, other: str | None) -> float | None:
    """The median over the rounds; by another program, of the ratios in each round.

    None where one of them was not measured.
    """
    if not measured.get(key) or (other is not None and not measured.get(other)):
        return None
    if other is None:
        return statistics.median(map(figure, measured[key]))
    pairs = zip(measured[key], measured[other], strict=True)
    return statistics.median(figure(one) / figure(base) for one, base in pairs)


def shown(value: float | None) -> str:
    """A number with three digits that mean something."""
    if value is None:
        return NOTHING
    if value >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def nobody(_: Program) -> None:
    """A figure that is compared with no other's."""


def always(key: str) -> Other:
    """A figure that is compared with that of one program."""
    return lambda _: key


def of_its_kind(key: str) -> Other:
    """A figure that is compared with that of one program with rows of the same kind."""
    return lambda program: f"{program.key.partition('/')[0]}/{key}"


def smaller(program: Program) -> str | None:
    """The same program with a tenth of the rows."""
    smaller_rows = program.service.rows // 10
    return f"rows-{smaller_rows}" if any(s.rows == smaller_rows for s in GROWING) else None


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    figure: Figure
    other: Other = nobody
    """Whose figure it is divided by; no key where there is none."""

    def cell(self, measured: Measured, program: Program) -> str:
        """The cell of a program."""
        other = self.other(program)
        if other is None and self.other is not nobody:
            return NOTHING
        return shown(figure_of(measured, program.key, self.figure, other))


CPU_A_MILLION = Column("CPU s a million rows", cpu_a_million)
CPU_A_CALL = Column("CPU µs a call", cpu)
PEAK = Column("peak MB", peak)

TABLES: dict[str, tuple[str, Sequence[Column]]] = {
    "read": (
        "what reads",
        (
            Column("rows", rows),
            Column("rows/s", rate),
            Column("× wreq + msgspec", rate, always("wreq")),
            Column("× fetch and discard", rate, always("discard")),
            CPU_A_MILLION,
            PEAK,
        ),
    ),
    "kinds": (
        "what reads",
        (
            Column("rows/s", rate),
            Column("× wreq + msgspec, `gc=False`", rate, of_its_kind("wreq-untracked")),
            Column("× wreq + orjson", rate, of_its_kind("wreq-dicts")),
            Column("× fetch and discard", rate, of_its_kind("discard")),
            CPU_A_MILLION,
            PEAK,
        ),
    ),
    "get": (
        "what calls",
        (Column("p50 µs", p50), Column("× backread", p50, always("get-backread")), CPU_A_CALL),
    ),
    "gather": (
        "what calls",
        (Column("calls/s", calls), Column("× wreq", calls, always("gather-wreq")), CPU_A_CALL),
    ),
    "rows": (
        "rows",
        (
            Column("seconds", seconds),
            Column("× a tenth of the rows", seconds, smaller),
            CPU_A_MILLION,
            Column("MB in the first tenth", first),
            Column("MB in the last tenth", last),
            PEAK,
        ),
    ),
    "mirror": (
        "what lands them",
        (
            Column("rows", rows),
            Column("rows/s", rate),
            Column("× dlt", rate, always("mirror-dlt")),
            CPU_A_MILLION,
            PEAK,
        ),
    ),
}


def lines(name: str, measured: Measured, programs: Sequence[Program]) -> list[list[str]]:
    """A table: its header, and a line for each program."""
    first_column, columns = TABLES[name]
    return [
        [first_column, *(column.name for column in columns)],
        *(
            [program.name, *(column.cell(measured, program) for column in columns)]
            for program in programs
        ),
    ]


@dataclass(frozen=True)
class KindColumn:
    """A column of the table that has a line for each kind of rows."""

    name: str
    reader: str
    figure: Figure
    other: str | None = None
    sense: str = ""
    bound: float = 0
    """What is to be reached with each kind; no sense where nothing is."""


STRUCTS, DICTS = "wreq-untracked", "wreq-dicts"
KIND_COLUMNS = (
    KindColumn("rows", "discard", rows),
    KindColumn("rows/s, fetch and discard", "discard", rate),
    KindColumn("batches × fetch and discard", "batches", rate, "discard", ">=", 0.5),
    KindColumn("`pa.table` × wreq + msgspec, `gc=False`", "arrow", rate, STRUCTS, ">=", 2),
    KindColumn("its CPU ×", "arrow", cpu_a_million, STRUCTS, "<=", 0.5),
    KindColumn("dataclasses × wreq + msgspec, `gc=False`", "dataclasses", rate, STRUCTS, ">=", 1.4),
    KindColumn("dicts × wreq + orjson", "dicts", rate, DICTS, ">=", 2),
)


def kind_lines(measured: Measured) -> list[list[str]]:
    """The table of the kinds of rows: its header, a line for each kind, and the goals."""

    def cell(kind: str, column: KindColumn) -> str:
        other = column.other and f"{kind}/{column.other}"
        return shown(figure_of(measured, f"{kind}/{column.reader}", column.figure, other))

    return [
        ["kind", *(column.name for column in KIND_COLUMNS)],
        *([f"`{kind}`", *(cell(kind, column) for column in KIND_COLUMNS)] for kind in KINDS),
        ["*goal*", *(goal_words(column.sense, column.bound) for column in KIND_COLUMNS)],
    ]


def goal_words(sense: str, bound: float) -> str:
    """A goal in a cell."""
    return f"{'≥' if sense == '>=' else '≤'} {bound:g}" if sense else NOTHING


@dataclass(frozen=True)
class Goal:
    """What a figure should reach."""

    name: str
    key: str
    figure: Figure
    other: str | None
    sense: str
    bound: float

    def line(self, measured: Measured) -> str | None:
        """What is reached, or None if it was not measured."""
        value = figure_of(measured, self.key, self.figure, self.other)
        if value is None:
            return None
        met = (operator.ge if self.sense == ">=" else operator.le)(value, self.bound)
        wish = f"{self.sense} {self.bound:g}"
        return f"goal: {self.name} {wish}: reached {shown(value)} ({'met' if met else 'missed'})"


SMALLEST, MIDDLE, LARGEST = (f"rows-{service.rows}" for service in GROWING)
GOALS = (
    Goal("arrow, rows/s by wreq + msgspec", "arrow", rate, "wreq", ">=", 4),
    Goal("arrow, CPU by wreq + msgspec", "arrow", cpu_a_million, "wreq", "<=", 0.3),
    Goal("arrow, rows/s by aiohttp + pyarrow", "arrow", rate, "aiohttp-table", ">=", 14),
    Goal("arrow, rows/s by fetch and discard", "arrow", rate, "discard", ">=", 0.35),
    Goal("dataclasses, rows/s by wreq + msgspec", "dataclasses", rate, "wreq", ">=", 1.5),
    Goal("dicts, rows/s by aiohttp + orjson", "dicts", rate, "aiohttp-dicts", ">=", 2),
    *(
        Goal(f"get, p50 by {peer}", "get-backread", p50, f"get-{peer}", "<=", 1)
        for peer in ("wreq", "primp", "pyreqwest")
    ),
    Goal("64 gets at once, calls/s by wreq", "gather-backread", calls, "gather-wreq", ">=", 1),
    Goal("5,000,000 rows streamed, peak MB", LARGEST, peak, None, "<=", 120),
    Goal("the same, MB in the last tenth by the first", LARGEST, growth, None, "<=", 1.1),
    Goal("500,000 rows by 50,000, seconds", MIDDLE, seconds, SMALLEST, "<=", 10.5),
    Goal("5,000,000 rows by 500,000, seconds", LARGEST, seconds, MIDDLE, "<=", 10.5),
    Goal("the same, peak MB", LARGEST, peak, MIDDLE, "<=", 1.1),
    Goal("mirror, rows/s by dlt", "mirror-backread", rate, "mirror-dlt", ">=", 60),
    Goal(
        "mirror of 500,000 rows, rows/s by dlt",
        "mirror-backread-whole",
        rate,
        "mirror-dlt",
        ">=",
        60,
    ),
    *(
        Goal(
            f"{kind}: {column.name}",
            f"{kind}/{column.reader}",
            column.figure,
            column.other and f"{kind}/{column.other}",
            column.sense,
            column.bound,
        )
        for kind in KINDS
        for column in KIND_COLUMNS
        if column.sense
    ),
    Goal("import of backread and its Client, ms", "import", itemgetter("ms"), None, "<=", 20),
    Goal("wheel, MB", "wheel", itemgetter("mb"), None, "<=", 6),
)
