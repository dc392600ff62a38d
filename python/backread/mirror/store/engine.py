"""Imports DuckDB lazily, and turns its errors into `MirrorError`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from backread._files.access import NO_MORE_FILES, RefusedFileError
from backread._files.paths import is_utf8, shown
from backread._files.unfinished import scratch_folder
from backread._frames import release
from backread._interruptible import run_interruptibly, run_to_its_end
from backread.errors import MirrorError
from backread.mirror.store.folder import PUBLISHED

if TYPE_CHECKING:
    from types import ModuleType

    from duckdb import DuckDBPyConnection

Rows = Callable[[str], list[tuple[Any, ...]]]
"""Runs a query and returns its rows."""

# The last is the size of the spill folder, for which DuckDB takes what the disk has free.
FULL_DISK = (
    "no space left", "enospc", "file too large", "disk is full", "disk full", "quota exceeded",
    "max_temp_directory_size",
)  # fmt: skip

MOST_ROLLBACKS = 10
"""Tries of a rollback that is interrupted."""

LEAST_DUCKDB = "2.0.1"
"""As in pyproject.toml."""

# Names of files, which are anyone's words.
_QUOTED_PATH = re.compile(r"""(?<!\w)(["'])(?:(?!\1).)*[/\\](?:(?!\1).)*\1""")

DATABASE_IS_DAMAGED = (
    "its mirror.duckdb is damaged; what was published can be read, and a sync needs a new folder"
)
LOG_IS_DAMAGED = (
    "the end of its mirror.duckdb.wal is damaged, as by a power cut; move that file away and sync "
    "again: rows since the last checkpoint are read again, and users forgotten since then must be "
    "forgotten again"
)
DAMAGED_FILE = (
    "a published file is damaged; delete it (if none is named, all of them), and sync again to "
    "publish it anew"
)
OUT_OF_MEMORY = (
    "the memory limit is too small; raise memory_limit (on the command line: --memory-limit), for "
    "a query free some memory, and try again"
)
# Whatever else DuckDB says of what is in a snapshot's file, some of it without a kind of error. An
# IO Error may pass.
_ODD_SNAPSHOT = re.compile(
    rf"(Invalid (Input )?Error: |(?![\w ]+ Error: |\[Errno)).*"
    rf"([/\\]{PUBLISHED}[/\\].*\.parquet|FROM read_parquet\()",
    re.DOTALL,
)

# The first whose words are in an error decides, without the names of files.
ADVICE: tuple[tuple[tuple[str, ...], str], ...] = (
    (("corrupt wal",), LOG_IS_DAMAGED),
    (("not a valid duckdb database", "corrupt"), DATABASE_IS_DAMAGED),
    (("lock on file",), "another program has mirror.duckdb open; close it and try again"),
    (("too many open files",), NO_MORE_FILES),
    (FULL_DISK, "the disk is full; free some space and try again"),
    (("out of memory", "increasing the memory limit"), OUT_OF_MEMORY),
    (
        # Of Parquet, then of Thrift and of Python, without the name of a file.
        (
            "could not read enough bytes", "no magic bytes", "too small to be a parquet file",
            "tprotocolexception", "don't know what type", "invalid ttype", "out of buffer",
            "codec can't decode byte", "variable-length int",
        ),
        DAMAGED_FILE,
    ),
    (
        ("permission denied", "operation not permitted", "read-only file system"),
        "it may not be read or written; change its permissions or choose another folder",
    ),
)  # fmt: skip

# How arrow-rs names an error of a stream that it passes on.
_OF_STREAM = "C Data interface error: "


def load_duckdb() -> ModuleType:
    """The module ``duckdb``; if it is missing or too old, `MirrorError` says how to install it."""
    try:
        if "duckdb" not in sys.modules:
            # What a signal's handler raises in an extension's import may be lost.
            run_to_its_end(lambda: import_module("duckdb"))
        import duckdb
    except ModuleNotFoundError as error:
        if error.name != "duckdb":
            raise
        raise MirrorError(
            'a mirror needs DuckDB, which is not installed; run: pip install "backread[mirror]"'
        ) from None
    if release(duckdb.__version__) < release(LEAST_DUCKDB):
        raise MirrorError(
            f"a mirror needs DuckDB {LEAST_DUCKDB} or later, but {duckdb.__version__} is "
            "installed; run: pip install -U duckdb"
        )
    return duckdb


def connect(path: Path | None, options: dict[str, str] | None = None) -> DuckDBPyConnection:
    """A connection to the file, or to an empty database in memory; its time zone is UTC."""
    duckdb = load_duckdb()
    target = ":memory:" if path is None else str(path)
    if options is None:
        # DuckDB's default is below the working directory, readable by everyone.
        options = {"temp_directory": _spill_folder()}
    connection: DuckDBPyConnection = duckdb.connect(target, config=options)
    # Global, because each cursor is a separate session.
    rows_of(connection, "SET GLOBAL TimeZone = 'UTC'")
    return connection


def check_path(folder: Path, unusable: str = "") -> None:
    """Raises `MirrorError` for a path that DuckDB cannot use: that is not UTF-8, or has one of the
    ``unusable`` characters."""
    odd = [f"with {each}" for each in unusable if each in str(folder)]
    if odd or not is_utf8(folder):
        what = odd[0] if odd else "that is not UTF-8"
        raise MirrorError(
            f"the mirror in {shown(folder)}: DuckDB cannot use a path {what}; rename the folder"
        )


def _spill_folder() -> str:
    """The spill folder for queries; none if no temporary folder is writable."""
    try:
        return str(scratch_folder())
    except OSError:
        return ""


@contextmanager
def named_errors(folder: Path) -> Iterator[None]:
    """Turns errors of DuckDB and of the file system into `MirrorError`, and names the folder."""
    duckdb = load_duckdb()
    try:
        yield
    except RefusedFileError as error:
        raise MirrorError(f"the mirror in {folder}: {error}") from None
    except (duckdb.Error, OSError, UnicodeDecodeError) as error:
        # That of a signal handler: the file system gives one a number.
        if isinstance(error, TimeoutError) and error.errno is None:
            raise
        raise MirrorError(_advice(folder, str(error))) from error


@contextmanager
def stream_errors(folder: Path) -> Iterator[None]:
    """The same for an error of DuckDB's Arrow stream, of which a consumer passes on the text."""
    try:
        yield
    except Exception as error:
        _, is_of_stream, text = str(error).partition(_OF_STREAM)
        if not is_of_stream:
            raise
        raise MirrorError(_advice(folder, text)) from error


def disk_is_full(text: str) -> bool:
    """Whether the text of an error says that there is no space, on the disk or in a quota."""
    said = _QUOTED_PATH.sub("", text).lower()
    return any(sign in said for sign in FULL_DISK)


def _advice(folder: Path, text: str) -> str:
    line = " ".join(text.split())
    said = _QUOTED_PATH.sub("", line).lower()
    otherwise = "try again, and report this error if it persists"
    if _ODD_SNAPSHOT.match(text):
        otherwise = DAMAGED_FILE
    found = (advice for signs, advice in ADVICE if any(sign in said for sign in signs))
    advice = next(found, otherwise)
    if advice is DAMAGED_FILE and "mirror.duckdb" in line:
        advice = DATABASE_IS_DAMAGED
    return f"the mirror in {folder}: {advice} ({line})"


def rows_of(
    connection: DuckDBPyConnection,
    statement: str,
    values: list[Any] | dict[str, Any] | None = None,
) -> list[tuple[Any, ...]]:
    """Runs one statement and returns all of its rows."""

    def fetch() -> list[tuple[Any, ...]]:
        # In DuckDB 2.0 an unfinished execute() blocks its connection, so always fetch everything.
        return connection.execute(statement, values or []).fetchall()

    return run_interruptibly(fetch, connection.interrupt)


def stream_of(
    connection: DuckDBPyConnection, query: str, requested_schema: object | None = None
) -> object:
    """The rows of a query as an Arrow stream."""

    def begin() -> object:
        return connection.sql(query).__arrow_c_stream__(requested_schema)

    return run_interruptibly(begin, connection.interrupt)


def attach_portable(connection: DuckDBPyConnection, path: Path, name: str) -> None:
    """Attaches a new database that DuckDB 1.0 and later open, not only 2.0 and later."""
    rows_of(connection, f"ATTACH {quoted(str(path))} AS {name} (STORAGE_VERSION 'v1.0.0')")


@contextmanager
def transaction(connection: DuckDBPyConnection) -> Iterator[None]:
    """Runs the block as a transaction; rolls back on any exception, including Ctrl-C."""
    rows_of(connection, "BEGIN TRANSACTION")
    try:
        yield
        rows_of(connection, "COMMIT")
    except BaseException:
        _roll_back(connection)
        raise


def _roll_back(connection: DuckDBPyConnection) -> None:
    """Rolls back a failed transaction; again if a signal interrupts that.

    A commit runs while another thread interrupts its connection every 20 ms after Ctrl-C; a
    rollback takes less.
    """
    interrupted = load_duckdb().InterruptException
    for _ in range(MOST_ROLLBACKS):
        try:
            rows_of(connection, "ROLLBACK")
        except interrupted:
            continue
        except Exception:
            # A failed COMMIT has already rolled back.
            return
        return


def quoted(text: str) -> str:
    """The text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def file_list(paths: Iterable[Path]) -> str:
    """The files as a literal for ``read_parquet``, which treats names as patterns."""
    return f"[{', '.join(map(pattern, paths))}]"


def scan(paths: Iterable[Path]) -> str:
    """The rows of Parquet files, as an SQL table expression."""
    # Otherwise a folder called day=1 would add a column `day`.
    return f"read_parquet({file_list(paths)}, hive_partitioning = false)"


def pattern(path: Path) -> str:
    """The path as an SQL literal, escaped for where patterns are accepted."""
    # Brackets around a special character escape it.
    plain = str(path.absolute())
    for special in "[*?":
        plain = plain.replace(special, f"\0{special}\1")
    return quoted(plain.replace("\0", "[").replace("\1", "]"))


def timestamp(moment: datetime) -> str:
    """An aware datetime as an SQL literal."""
    return f"TIMESTAMPTZ {quoted(moment.astimezone(UTC).isoformat())}"


@overload
def from_microseconds(value: int) -> datetime: ...
@overload
def from_microseconds(value: int | None) -> datetime | None: ...
def from_microseconds(value: int | None) -> datetime | None:
    """Microseconds since 1970 as an aware datetime in UTC.

    DuckDB needs a time zone database to return aware datetimes; ``epoch_us`` does not.
    """
    if value is None:
        return None
    # Not a constant: imported while a test freezes time, it would stay an instance of a fake class.
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
