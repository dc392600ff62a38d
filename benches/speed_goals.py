"""What `speed.py` is to show: the goals, and the kinds of rows side by side."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter

from speed_figures import (
    NOTHING,
    Figure,
    Measured,
    cpu_a_million,
    figure_of,
    growth,
    p50,
    peak,
    rate,
    rows,
    seconds,
    shown,
)
from speed_programs import GROWING, KINDS

SIGNS = {">=": "≥", "<=": "≤"}


@dataclass(frozen=True)
class Reached:
    """How far a goal is reached."""

    value: float
    met: bool
    by: str
    """The hardest of the programs that it is compared with, if they are several."""

    @property
    def figure(self) -> str:
        """The value in words; small differences may be below zero, where `shown` has no digits."""
        return shown(self.value) if self.value >= 0 else f"{self.value:.2f}"


@dataclass(frozen=True)
class Goal:
    """What a figure should reach, in itself or by other programs: then by the hardest of them."""

    name: str
    key: str
    figure: Figure
    others: tuple[str, ...]
    sense: str
    bound: float
    combined: Callable[[float, float], float] = operator.truediv

    def reached(self, measured: Measured) -> Reached | None:
        """What is reached, or None if it was not measured."""
        values = [
            figure_of(measured, self.key, self.figure, other, self.combined)
            for other in self.others or (None,)
        ]
        reached = [value for value in values if value is not None]
        if len(reached) < len(values):
            return None
        at_least = self.sense == ">="
        value = min(reached) if at_least else max(reached)
        met = (operator.ge if at_least else operator.le)(value, self.bound)
        hardest = f" by {self.others[values.index(value)]}" if len(self.others) > 1 else ""
        return Reached(value, met, hardest)

    def line(self, measured: Measured) -> str | None:
        """What is reached, in a line of text."""
        reached = self.reached(measured)
        if reached is None:
            return None
        verdict = "met" if reached.met else "missed"
        return (
            f"goal: {self.name} {self.sense} {self.bound:g}: "
            f"reached {reached.figure}{reached.by} ({verdict})"
        )


def goal_lines(measured: Measured) -> list[list[str]]:
    """The table of goals. Those of all kinds of rows are one line, from the worst to the best."""
    groups: dict[str, list[tuple[Goal, Reached]]] = {}
    for goal in GOALS:
        reached = goal.reached(measured)
        if reached is not None:
            groups.setdefault(goal.name.rpartition(": ")[2], []).append((goal, reached))
    found = []
    for name, goals in groups.items():
        goal, _ = goals[0]
        of_all = sorted(
            (each for _, each in goals),
            key=lambda each: each.value,
            reverse=goal.sense == "<=",
        )
        span = of_all if len(of_all) == 1 else [of_all[0], of_all[-1]]
        met = sum(each.met for each in of_all)
        found.append(
            [
                name,
                f"{SIGNS[goal.sense]} {goal.bound:g}",
                " to ".join(each.figure for each in span) + of_all[0].by * (len(of_all) == 1),
                f"{met} of {len(goals)}" if len(goals) > 1 else "yes" if met else "no",
            ]
        )
    return [["goal", "bound", "reached", "met"], *found]


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

    def goal(self, where: str, prefix: str) -> Goal:
        """What is to be reached by readers whose keys begin so."""
        others = () if self.other is None else (prefix + self.other,)
        key = prefix + self.reader
        return Goal(f"{where}: {self.name}", key, self.figure, others, self.sense, self.bound)


STRUCTS, DICTS = "wreq-untracked", "wreq-dicts"
KIND_COLUMNS = (
    KindColumn("rows", "discard", rows),
    KindColumn("rows/s, fetch and discard", "discard", rate),
    KindColumn("batches × wreq + msgspec, `gc=False`", "batches", rate, STRUCTS, ">=", 2.2),
    KindColumn("`pa.table` ×", "arrow", rate, STRUCTS, ">=", 1.8),
    KindColumn("its CPU ×", "arrow", cpu_a_million, STRUCTS, "<=", 0.5),
    KindColumn("`pa.table` × arrow-json", "arrow", rate, "arrow-json"),
    KindColumn("dataclasses × wreq + msgspec, `gc=False`", "dataclasses", rate, STRUCTS, ">=", 1),
    KindColumn("dicts × wreq + orjson", "dicts", rate, DICTS, ">=", 1.5),
    KindColumn("dicts × the same, `gc.freeze()`", "dicts", rate, "wreq-dicts-frozen"),
)


def kind_lines(measured: Measured) -> list[list[str]]:
    """The table of the kinds of rows: its header, a line for each kind, and the goals."""

    def cell(kind: str, column: KindColumn) -> str:
        other = column.other and f"{kind}/{column.other}"
        return shown(figure_of(measured, f"{kind}/{column.reader}", column.figure, other))

    return [
        ["kind", *(column.name for column in KIND_COLUMNS)],
        *([f"`{kind}`", *(cell(kind, column) for column in KIND_COLUMNS)] for kind in KINDS),
        ["*goal*", *map(goal_words, KIND_COLUMNS)],
    ]


def goal_words(column: KindColumn) -> str:
    """A goal in a cell."""
    return f"{SIGNS[column.sense]} {column.bound:g}" if column.sense else NOTHING


SMALLEST, MIDDLE, LARGEST = (f"rows-{service.rows}" for service in GROWING)
GOALS = (
    *(column.goal("read", "") for column in KIND_COLUMNS if column.sense),
    *(column.goal(kind, f"{kind}/") for kind in KINDS for column in KIND_COLUMNS if column.sense),
    Goal(
        "users.get, p50 by the best",
        "get-backread",
        p50,
        ("get-wreq", "get-primp", "get-pyreqwest", "get-http_client"),
        "<=",
        1.1,
    ),
    Goal("5,000,000 rows streamed, peak MB", LARGEST, peak, (), "<=", 120),
    Goal("the same, MB in the last tenth by the first", LARGEST, growth, (), "<=", 1.1),
    Goal("the same, peak MB by 500,000 rows", LARGEST, peak, (MIDDLE,), "<=", 1.1),
    Goal("500,000 rows by 50,000, seconds", MIDDLE, seconds, (SMALLEST,), "<=", 10.5),
    Goal("5,000,000 rows by 500,000, seconds", LARGEST, seconds, (MIDDLE,), "<=", 10.5),
    Goal(
        "first sync of 500,000 messages, rows/s by dlt",
        "mirror-backread-whole",
        rate,
        ("mirror-dlt",),
        ">=",
        120,
    ),
    Goal(
        "first sync, CPU s a million messages of 200 B",
        "mirror-backread-200",
        cpu_a_million,
        (),
        "<=",
        4,
    ),
    Goal(
        "first sync, CPU s a million messages of 2 KB",
        "mirror-backread-2000",
        cpu_a_million,
        (),
        "<=",
        12,
    ),
    Goal(
        "unchanged sync, CPU s a million messages beyond the requests",
        "mirror-backread-again",
        cpu_a_million,
        ("mirror-requests",),
        "<=",
        1,
        operator.sub,
    ),
    Goal("import of backread and its Client, ms", "import", itemgetter("ms"), (), "<=", 20),
    Goal("wheel, MB", "wheel", itemgetter("mb"), (), "<=", 6),
)


def before_lines(measured: Measured) -> Iterator[str]:
    """What each program measured, by what it did with an earlier backread."""
    for key in measured:
        if earlier := measured.get(f"{key}-before"):
            names = [name for name in earlier[0] if name != "rows"]
            ratios = {
                name: figure_of(measured, key, itemgetter(name), f"{key}-before") for name in names
            }
            yield f"{key} by the one before: " + ", ".join(
                f"{name} × {shown(ratio)}" for name, ratio in ratios.items()
            )
