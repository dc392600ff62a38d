"""What `speed.py` makes of its measurements: figures, and the columns of its tables."""

from __future__ import annotations

import operator
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from speed_programs import GROWING, Program
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


rows, seconds, cpu, peak, p50, first, last = map(
    itemgetter, ("rows", "seconds", "cpu", "peak_mb", "p50", "first_mb", "last_mb")
)


def figure_of(
    measured: Measured,
    key: str,
    figure: Figure,
    other: str | None,
    combined: Callable[[float, float], float] = operator.truediv,
) -> float | None:
    """The median over the rounds; by another program, of the ratios in each round.

    None where one of them was not measured. Other than ratios may be combined too.
    """
    if not measured.get(key) or (other is not None and not measured.get(other)):
        return None
    if other is None:
        return statistics.median(map(figure, measured[key]))
    pairs = zip(measured[key], measured[other], strict=True)
    return statistics.median(combined(figure(one), figure(base)) for one, base in pairs)


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
            Column("rows/s", rate),
            Column("× wreq + msgspec, `gc=False`", rate, always("wreq-untracked")),
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
