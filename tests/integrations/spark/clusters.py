"""Spark on this machine, bound to loopback: sessions, standalone clusters, their executors."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

SECONDS = 180
"""What any one wait may take, on a machine that has much else to do."""

ATTEMPTS = 5
TOO_SLOW = "Python worker failed to connect back"

INSTALLED = Path(pyspark.__file__).parent


def home(folder: Path) -> Path:
    """A SPARK_HOME that is the installed one, but for what Spark writes there: logs and work."""
    made = folder / "spark-home"
    made.mkdir()
    for entry in INSTALLED.iterdir():
        if entry.name not in ("logs", "work", "python"):
            (made / entry.name).symlink_to(entry)
    # Workers import PySpark from here; from a zip they would compile it each time.
    lib = made / "python" / "lib"
    (lib / "pyspark.zip").mkdir(parents=True)
    (lib / "pyspark.zip" / "pyspark").symlink_to(INSTALLED)
    for archive in (INSTALLED / "python" / "lib").glob("py4j*.zip"):
        (lib / archive.name).symlink_to(archive)
    return made


def settings(spark_home: Path) -> dict[str, str]:
    """The environment of drivers, masters and workers."""
    return {
        # These sessions are too short for the second compiler to pay.
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_HOME": str(spark_home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONUTF8": "1",
    }


def start(master: str, folder: Path, **changes: str) -> SparkSession:
    """A session on that master; the one before it is stopped."""
    if (before := SparkSession.getActiveSession()) is not None:
        before.stop()
    events = folder / "events"
    events.mkdir(exist_ok=True)
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        **{name.replace("_", "."): value for name, value in changes.items()},
    }
    builder = SparkSession.builder.master(master).appName("backread")
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def patiently(run: Callable[[], object]) -> None:
    """Runs a stream again if Python took longer to start than the ten seconds that Spark waits."""
    for _ in range(ATTEMPTS - 1):
        try:
            run()
            return
        except StreamingQueryException as error:
            if TOO_SLOW not in str(error):
                raise
    run()


def until(done: Callable[[], object], what: str) -> None:
    """Waits until it is so; fails the test where it takes too long."""
    deadline = time.monotonic() + SECONDS
    while not done():
        assert time.monotonic() < deadline, f"{what}: not after {SECONDS} s"
        time.sleep(0.01)


@contextlib.contextmanager
def standalone(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """A master and two workers with a core each, in processes of their own; gives its address."""
    with contextlib.ExitStack() as stack:

        def begin(name: str, *arguments: str) -> Path:
            log = folder / f"{name}.log"
            command = [f"{environment['SPARK_HOME']}/bin/spark-class", *arguments]
            process = subprocess.Popen(
                command,
                env=environment,
                stdout=log.open("wb"),
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            stack.callback(end, process)
            return log

        here = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master_log = begin("master", "org.apache.spark.deploy.master.Master", *here)
        address = said(master_log, r"Starting Spark master at (spark://\S+)")
        said(master_log, r"(I have been elected leader)")
        size = ("--cores", "1", "--memory", "1g")
        logs = []
        for number in (1, 2):
            work = ("--work-dir", str(folder / f"work-{number}"))
            worker = ("org.apache.spark.deploy.worker.Worker", *here, *size, *work, address)
            logs.append(begin(f"worker-{number}", *worker))
        for log in logs:
            said(log, r"(Successfully registered with master)")
        yield address


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def said(log: Path, pattern: str) -> str:
    """Waits for a line of a log."""
    found: list[str] = []

    def look() -> bool:
        found[:] = re.findall(pattern, log.read_text(errors="replace"))
        return bool(found)

    until(look, f"{log.name} says {pattern}")
    return found[0]
