"""Reads landed runs, one or a stream of them, with a partition per file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow  # type: ignore[import-not-found, import-untyped, unused-ignore]
from pyspark.sql.datasource import (  # type: ignore[import-not-found, unused-ignore]
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from backread import landing
from backread.errors import BackreadError, ConfigurationError, LandingError
from backread.integrations.spark.columns import RUN, arrow_schema, conform
from backread.integrations.spark.executors import one_error
from backread.landing.storage import Storage, absolute_folder

if TYPE_CHECKING:
    from pyspark.sql.types import StructType  # type: ignore[import-not-found, unused-ignore]

    from backread.integrations.spark.options import LandedOptions, Resource
    from backread.landing import Committed

__all__ = ["LandedReader", "LandedStreamReader", "RefusedStreamReader", "require_folder"]


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
        self.options = _placed(options)
        self.target = arrow_schema(wanted)

    def partitions(self) -> list[InputPartition]:
        with one_error():
            return _partitions([self._run()])

    def _run(self) -> Committed:
        folder, resource, number = self.options.landing, self.options.resource, self.options.run
        runs = _runs(folder, resource)
        if not runs:
            raise LandingError(f"the landing folder {folder} has no committed run of {resource}")
        if number is None:
            return runs[-1]
        for run in runs:
            if run.number == number:
                return run
        latest = ", ".join(str(run.number) for run in runs[-10:])
        raise LandingError(
            f"the landing folder {folder} has no run {number} of {resource}; its latest: {latest}"
        )

    def read(self, partition: FilePartition) -> Iterator[pyarrow.RecordBatch]:
        return _read(self.options.landing, partition, self.target)


class _Runs(DataSourceStreamReader):  # type: ignore[misc, unused-ignore]
    """The offset is the number of the last run that was read; 0 before the first.

    Committed runs never change, so a batch that is read again after a crash has the same rows.
    """

    def __init__(self, options: LandedOptions, wanted: StructType) -> None:
        self.options = _placed(options)
        self.target = arrow_schema(wanted)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {RUN: 0}

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


try:
    from pyspark.sql.streaming.datasource import (  # type: ignore[import-not-found, unused-ignore]
        ReadLimit,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )
except ModuleNotFoundError:  # Before 4.2 Spark calls latestOffset without a limit.

    class LandedStreamReader(_Runs):
        """As `_Runs`, with all new runs in one trigger."""

        def __init__(self, options: LandedOptions, wanted: StructType) -> None:
            super().__init__(options, wanted)
            if options.max_runs_per_trigger is not None:
                raise ConfigurationError("option max_runs_per_trigger needs PySpark 4.2 or later")

        _highest = 0

        def latestOffset(self) -> dict[str, int]:  # noqa: N802
            # If the folder is temporarily missing, the offset must not go back and repeat rows.
            self._highest = _last(self._since(self._highest), self._highest)
            return {RUN: self._highest}

else:

    class LandedStreamReader(_Runs, SupportsTriggerAvailableNow):  # type: ignore[no-redef, misc, unused-ignore]
        """As `_Runs`, with a maximum of runs per trigger, and only current ones in availableNow."""

        _bounded = False
        _bound: int | None = None
        _highest = 0

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
            if self.options.max_runs_per_trigger is None:
                return super().getDefaultReadLimit()
            # Spark knows only its own limits, and passes this one back unchanged.
            return ReadMaxFiles(self.options.max_runs_per_trigger)

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            self._bounded, self._bound = True, None

        def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
            new = self._since(start[RUN])
            self._highest = max(self._highest, start[RUN])
            if self._bounded:
                if self._bound is None:
                    self._bound = _last(new, start[RUN])
                new = [run for run in new if run.number <= self._bound]
            if isinstance(limit, ReadMaxFiles):
                ours = [run for run in new if run.resource == self.options.resource]
                if len(ours) > limit.max_files:
                    new = ours[: limit.max_files]
            # partitions() detects a folder that was emptied.
            return {RUN: _last(new, start[RUN])}

        def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
            self._highest = _last(self._since(self._highest), self._highest)
            return {RUN: self._highest}


def require_folder(landing_folder: str) -> None:
    """Raises `LandingError` if the folder is missing; a query would wait forever silently."""
    if not Storage(landing_folder).is_there():
        raise LandingError(
            f"the landing folder {landing_folder} does not exist; check its name, or land "
            "a first run"
        )


class RefusedStreamReader(DataSourceStreamReader):  # type: ignore[misc, unused-ignore]
    """Raises one error as soon as a query uses it."""

    def __init__(self, error: BackreadError) -> None:
        self.error = error

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return self._refuse()

    def latestOffset(self) -> dict[str, int]:  # noqa: N802
        return self._refuse()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return self._refuse()

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        return self._refuse()

    def _refuse(self) -> NoReturn:
        with one_error():
            raise self.error


def _placed(options: LandedOptions) -> LandedOptions:
    """The options with an absolute folder, since executors have other working directories."""
    return replace(options, landing=absolute_folder(options.landing))


def _runs(folder: str, resource: Resource) -> list[Committed]:
    return [run for run in landing.runs(folder) if run.resource == resource]


def _last(runs: list[Committed], otherwise: int) -> int:
    return runs[-1].number if runs else otherwise


def _partitions(runs: list[Committed]) -> list[InputPartition]:
    return [FilePartition(run, file) for run in runs for file in run.files]


def _read(
    folder: str, partition: FilePartition, target: pyarrow.Schema
) -> Iterator[pyarrow.RecordBatch]:
    columns = [name for name in target.names if name != RUN]
    with one_error():
        batches = landing.dataset(folder, partition.run).to_batches(columns=columns)
        filled = (batch for batch in batches if batch.num_rows)
        yield from conform((_numbered(batch, partition.run.number) for batch in filled), target)


def _numbered(batch: Any, number: int) -> Any:
    numbers = pyarrow.repeat(pyarrow.scalar(number, pyarrow.int64()), batch.num_rows)
    return batch.append_column(RUN, numbers)
