"""Progress in words, and where it is shown: below a notebook's cell, on a terminal, or nowhere."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from backread._display.words import amount, duration, size

if TYPE_CHECKING:
    from backread.models import WalkReport

WIDEST_BAR = 24

NARROWEST_LINE = 60
"""Terminal cells: a bar's maximum width, and the narrowest line that has one."""


def describe(now: Any) -> str:
    """A `SyncProgress` in one line, without what is unknown."""
    reading = now.phase == "reading"
    return ", ".join(
        part
        for part in (
            f"{_of(now.users, now.users_total)} users",
            f"{_of(now.lists, now.lists_total)} lists" if now.lists_total is not None else "",
            f"{now.messages:,} messages",
            amount(now.requests, "request"),
            f"{now.rate:,.0f} rows/s" if reading and now.rate else "",
            f"{now.pace:,.1f} requests/s" if reading and now.pace else "",
            f"{timedelta(seconds=round(now.seconds_left))} left"
            if now.seconds_left is not None
            else "",
        )
        if part
    )


def sync_parts(now: Any) -> list[str]:
    """A `SyncProgress` in short parts, for a terminal or a notebook."""
    reading = now.phase == "reading"
    done, total, kind = (
        (now.users, now.users_total, "users")
        if now.lists_total is None
        else (now.lists, now.lists_total, "lists")
    )
    parts = [
        f"{done:,} {kind}" if total is None else f"{done:,}/{total:,} {kind}",
        f"{now.messages:,} msgs",
        f"{now.requests:,} req",
    ]
    if reading and now.pace:
        parts.append(f"{now.pace:,.{0 if now.pace >= 10 else 1}f} req/s")
    if now.seconds_left is not None:
        left = str(timedelta(seconds=round(now.seconds_left)))
        parts.append(f"{left.removeprefix('0:').removeprefix('0')} left")
    return parts


def export_parts(now: Any) -> list[str]:
    """An `ExportProgress` in short parts."""
    return [
        f"{now.rows:,}/{amount(now.rows_total, 'row')}",
        size(now.bytes),
        duration(now.seconds),
    ]


def files_parts(now: Any) -> list[str]:
    """A `FilesProgress` in short parts."""
    failed = [f"{now.failed:,} failed"] if now.failed else []
    return [
        f"{now.files:,}/{amount(now.files_total, 'file')}",
        size(now.bytes),
        *failed,
        duration(now.seconds),
    ]


def walk_parts(report: WalkReport, total: int | None) -> list[str]:
    """The progress of a walk, in parts; ``total`` is the size of the list, if known."""
    rows = amount(report.distinct, "row")
    if total is not None:
        rows = f"{report.distinct:,}/{amount(total, 'row')}"
    parts = [rows, amount(report.requests, "request")]
    if report.lists_by_certificate:
        parts.insert(1, amount(sum(report.lists_by_certificate.values()), "list"))
    return parts


def fitting(parts: list[str], room: int, separator: str) -> str:
    """Joins the parts in at most ``room`` characters; drops the first and the last part last."""
    parts = list(parts)
    while parts and len(separator.join(parts)) > room:
        del parts[min(1, len(parts) - 1)]
    return separator.join(parts)


def _of(count: int, total: int | None) -> str:
    # A resumed run may read the users twice.
    return f"{count:,}" if total is None or count > total else f"{count:,} of {total:,}"


@dataclass(frozen=True, slots=True)
class State:
    """What is shown; ``fraction`` is from 0 to 1, None if the end is unknown."""

    label: str
    parts: tuple[str, ...] = ()
    fraction: float | None = None


class ProgressOutput(Protocol):
    """Shows progress; each call replaces the previous output."""

    def show(self, now: State) -> None: ...
    def end(self, now: State) -> None: ...
    def clear(self) -> None: ...


def find_output() -> ProgressOutput | None:
    """The notebook if this runs in one, else the terminal if stderr is one, else None."""
    if _in_notebook():
        return _Notebook()
    try:
        terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # stderr is None or closed
        return None
    return _Terminal() if terminal else None


def above_progress(text: str) -> str:
    """Whole lines, ready for stderr, above the line of progress if there is one.

    In one piece, because another thread may draw that line.
    """
    line = _Terminal.line
    return f"\r{' ' * len(line)}\r{text}{line}" if line else text


def _in_notebook() -> bool:
    # A notebook has imported IPython already; importing it elsewhere would cost half a second.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # IPython in a terminal has a shell, but no kernel.
    return getattr(shell, "kernel", None) is not None


class _Notebook:
    """One output of the cell, replaced in place."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, now: State) -> None:
        self._draw(now, live=True)

    def end(self, now: State) -> None:
        self._draw(now, live=False)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)

    def _draw(self, now: State, *, live: bool) -> None:
        bundle = {
            "text/html": notebook_line(now, live=live),
            "text/plain": ": ".join(filter(None, (now.label, ", ".join(now.parts)))),
        }
        if self._handle is None:
            shown: Any = import_module("IPython.display")
            self._handle = shown.display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def notebook_line(now: State, *, live: bool) -> str:
    """A label, a bar while it is ``live`` (without a ``fraction`` one of no length), numbers."""
    from backread._display.html import output, safe
    from backread._display.style import BAR

    bar = ""
    if live:
        value = "" if now.fraction is None else f' value="{now.fraction:.4f}"'
        bar = f'<progress max="1"{value} aria-label="{safe(now.label)}"></progress>'
    parts = f"<b>{safe(now.label)}</b> {bar}<span>{safe(' · '.join(now.parts))}</span>"
    return output(f"{BAR}{parts}", " br-progress")


class _Terminal:
    """One line of stderr, overwritten in place; the last one stays."""

    line: ClassVar[str] = ""
    """What is on that line now, by whichever instance: there is one stderr."""

    def show(self, now: State) -> None:
        self._write(_terminal_line(now), "")

    def end(self, now: State) -> None:
        self._write(_terminal_line(now), "\n")

    def clear(self) -> None:
        self._write("", "\r")

    def _write(self, line: str, end: str) -> None:
        # A terminal that was closed does not stop the work.
        with suppress(OSError):
            # Pads with blanks, since not every terminal supports the sequence that clears a line.
            sys.stderr.write(f"\r{line.ljust(len(_Terminal.line))}{end}")
            sys.stderr.flush()
        _Terminal.line = "" if end else line


def _terminal_line(now: State) -> str:
    # Leaves the last column free, because some terminals wrap after writing to it.
    room = shutil.get_terminal_size().columns - 1
    unicode = _encodes("█░·")
    head = now.label
    if now.fraction is not None:
        if room >= NARROWEST_LINE:
            full = round(now.fraction * WIDEST_BAR)
            filled, empty = "█░" if unicode else "#."
            head += f" {filled * full}{empty * (WIDEST_BAR - full)}"
        head += f" {now.fraction:.0%}"
    details = fitting(list(now.parts), room - len(head) - 2, " · " if unicode else ", ")
    return f"{head}  {details}".rstrip()[:room]


def _encodes(text: str) -> bool:
    try:
        text.encode(sys.stderr.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True
