"""Reads landed runs, one or a stream of them, with a partition per file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]
from pyspark.sql.datasource import (  # type: ignore[import-not-found, unused-ignore]
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from backread import landing
from backread.errors import ConfigurationError, LandingError
from backread.integrations.spark.columns import RUN, arrow_schema, conform, wanted_schema
from backread.integrations.spark.executors import one_error
from backread.integrations.spark.options import LandedOptions, parse_options
from backread.landing.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql.types import StructType  # type: ignore[import-not-found, unused-ignore]

    from backread.landing import Committed

__all__ = ["LandedReader", "LandedStreamReader"]


try:
    from pyspark.sql.streaming.datasource import (  # type: ignore[import-not-found, unused-ignore]
        ReadLimit,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )
except ModuleNotFoundError:  # Before 4.2 Spark calls latestOffset without a limit.
    STREAM_TRAITS: tuple[type, ...] = ()
    ReadMaxFiles: Any = ()  # type: ignore[no-redef, unused-ignore]
else:
    STREAM_TRAITS = (SupportsTriggerAvailableNow,)


class FilePartition(InputPartition):  # type: ignore[misc, unused-ignore]
    """One file of a committed run."""

    def __init__(self, run: Committed, file: str) -> None:
        super().__init__(file)
        # Only what the file needs, since lists of users may be long.
        report = replace(run.report, uncertified_users=(), lists_by_certificate={})
        self.run = replace(run, files=(file,), report=report)


class LandedReader(DataSourceReader):  # type: ignore[misc, unused-ignore]
    """Reads one committed run: that of option ``run``, or the newest of the resource."""

    def __init__(self, options: LandedOptions, wanted: StructType) -> None:
        self.options = options
        self.target = arrow_schema(wanted)

    def partitions(self) -> list[InputPartition]:
        with one_error():
            options = self.options
            runs = [
                run
                for run in landing.runs(options.landing)
                if run.resource == options.resource and options.run in (None, run.number)
            ]
            if not runs:
                which = "committed run" if options.run is None else f"run {options.run}"
                raise LandingError(
                    f"the landing folder {options.landing} has no {which} of {options.resource}"
                )
            return _partitions(runs[-1:])

    def read(self, partition: FilePartition) -> Iterator[pyarrow.RecordBatch]:
        return _read(self.options.landing, partition, self.target)


class LandedStreamReader(DataSourceStreamReader, *STREAM_TRAITS):  # type: ignore[misc, unused-ignore]
    """The offset is the number of the last run that was read; 0 before the first.

    Committed runs never change, so a batch that is read again after a crash has the same rows.
    Before PySpark 4.2 a batch takes all new runs.
    """

    _bounded = False
    _bound: int | None = None
    _highest = 0

    def __init__(
        self, given: Mapping[str, str], defaults: Mapping[str, str], schema: StructType
    ) -> None:
        self._given = given, defaults, schema

    @cached_property
    def options(self) -> LandedOptions:
        """The options; on first use, because Spark 4.3 loses an error of `streamReader`."""
        given, defaults, _ = self._given
        with one_error():
            options = parse_options(given, defaults)
            if not isinstance(options, LandedOptions):
                raise ConfigurationError(
                    "a stream reads landed runs, because the service's lists change while they are "
                    "read: land() them into a folder, and set option landing to it"
                )
            if options.run is not None:
                raise ConfigurationError("option run is for batch reads; a stream reads every run")
            if options.max_runs_per_trigger is not None and not STREAM_TRAITS:
                raise ConfigurationError("option max_runs_per_trigger needs PySpark 4.2 or later")
            # A query would wait forever silently.
            if not Storage(options.landing).is_there():
                raise LandingError(
                    f"the landing folder {options.landing} does not exist; check its name, or land "
                    "a first run"
                )
            return options

    @cached_property
    def target(self) -> pyarrow.Schema:
        """The columns of each batch."""
        with one_error():
            return arrow_schema(wanted_schema(self._given[2], self.options.resource, landed=True))

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {RUN: 0} if self.target else {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self.options.max_runs_per_trigger is None:
            return super().getDefaultReadLimit()
        # Spark knows only its own limits, and passes this one back unchanged.
        return ReadMaxFiles(self.options.max_runs_per_trigger)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._bounded, self._bound = True, None

    def latestOffset(  # noqa: N802
        self, start: dict[str, int] | None = None, limit: Any = None
    ) -> dict[str, int]:
        before = self._highest if start is None else start[RUN]
        new = self._since(before)
        if self._bounded:
            if self._bound is None:
                self._bound = _last(new, before)
            new = [run for run in new if run.number <= self._bound]
        if isinstance(limit, ReadMaxFiles):
            ours = [run for run in new if run.resource == self.options.resource]
            if len(ours) > limit.max_files:
                new = ours[: limit.max_files]
        # The offset never goes back, also if the folder is missing for a while.
        self._highest = _last(new, before)
        return {RUN: self._highest}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        with one_error():
            return _partitions(self._between(start[RUN], end[RUN]))

    def _between(self, first: int, last: int) -> list[Committed]:
        """The runs after ``first``, up to ``last``."""
        if last < first:
            raise LandingError(
                f"the landing folder {self.options.landing} has no run after number {last}, but "
                f"this query has read up to number {first}; restore the folder, or start again "
                "with a new checkpoint"
            )
        committed = landing.runs(self.options.landing, after=first)
        known = {run.number for run in committed}
        lost = [number for number in range(first + 1, last + 1) if number not in known]
        # A new query starts with the existing runs.
        if lost and first > 0:
            raise LandingError(
                f"the landing folder {self.options.landing} no longer has the runs "
                f"{', '.join(map(str, lost[:10]))}, which this query has not read; restore "
                "their manifests, or start again with a new checkpoint"
            )
        wanted = [run for run in committed if run.number <= last]
        return [run for run in wanted if run.resource == self.options.resource]

    def read(self, partition: FilePartition) -> Iterator[pyarrow.RecordBatch]:
        return _read(self.options.landing, partition, self.target)

    def _since(self, number: int) -> list[Committed]:
        """The runs of all resources after that one; earlier manifests are not read."""
        with one_error():
            return landing.runs(self.options.landing, after=number)


def _last(runs: list[Committed], otherwise: int) -> int:
    return runs[-1].number if runs else otherwise


def _partitions(runs: list[Committed]) -> list[InputPartition]:
    return [FilePartition(run, file) for run in runs for file in run.files]


def _read(
    folder: str, partition: FilePartition, target: pyarrow.Schema
) -> Iterator[pyarrow.RecordBatch]:
    columns = [name for name in target.names if name != RUN]
    with one_error():
        for batch in landing.dataset(folder, partition.run).to_batches(columns=columns):
            if batch.num_rows:
                number = pyarrow.scalar(partition.run.number, pyarrow.int64())
                numbers = pyarrow.repeat(number, batch.num_rows)
                yield conform(batch.append_column(RUN, numbers), target)
