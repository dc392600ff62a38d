"""`BackreadSyncOperator`: a mirror that a DAG keeps."""

from __future__ import annotations

from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, TypedDict, get_args

from backread.integrations.airflow.assets import absolute, emit, folder_asset, is_template
from backread.integrations.airflow.names import AirflowFailException
from backread.integrations.airflow.reading import Context, ResumingOperator, one_of, seconds
from backread.mirror.report import Mode

if TYPE_CHECKING:
    from backread import Client
    from backread.mirror import SyncProgress, SyncReport

__all__ = ["BackreadSyncOperator", "SyncSummary"]

SECONDS_BETWEEN_LINES = 30.0


class SyncSummary(TypedDict):
    """The operator's XCom, and what its asset events have as ``extra``; see `SyncReport`.

    ``uncertified_lists`` is the number of users whose messages earned no certificate.
    """

    mirror: str
    run_id: int
    mode: str
    resumed: bool
    requests: int
    users: int
    messages: int
    users_added: int
    users_updated: int
    messages_added: int
    messages_updated: int
    deleted: int
    rejects: int
    certificate: str
    lists_by_certificate: dict[str, int]
    uncertified_lists: int
    seconds: float


class BackreadSyncOperator(ResumingOperator):
    """Syncs a mirror; a retry resumes the run that was killed or failed.

    - ``mirror``: its folder, an absolute path that all workers see; templated.
    - ``mode``: ``"incremental"`` or ``"full"``, see `Mirror.sync`; templated, so that one DAG may
      do both.
    - ``max_staleness``: how long a list may go without being read whole, in seconds or as a
      timedelta; 30 days.
    - ``require_certificate``: fails the task after the sync, without a retry, if the users or any
      list of messages that it read earned no certificate: the mirror is kept, and no asset event
      is recorded.
    - All else as `ResumingOperator` and Airflow's BaseOperator. One sync of a mirror runs at a
      time, so ``max_active_tis_per_dag`` is 1 by default.

    ``outlets`` are `folder_asset` (mirror) by default, unless the path is a template. The XCom is a
    `SyncSummary`; each outlet's event has it as ``extra``.
    """

    template_fields = ("mirror", "mode", "backread_conn_id")

    def __init__(
        self,
        *,
        mirror: str,
        mode: Mode = "incremental",
        max_staleness: float | timedelta | None = timedelta(days=30),
        require_certificate: bool = False,
        **arguments: Any,
    ) -> None:
        one_of("mode", mode, get_args(Mode))
        if not is_template(mirror):
            _local("mirror", mirror)
            arguments.setdefault("outlets", [folder_asset(mirror)])
        arguments.setdefault("max_active_tis_per_dag", 1)
        super().__init__(**arguments)
        self.mirror = mirror
        self.mode: Mode = mode
        self.max_staleness = (
            None if max_staleness is None else seconds("max_staleness", max_staleness)
        )
        self.require_certificate = require_certificate
        self._said = 0.0
        self._most_read = 0

    def read(self, context: Context, client: Client) -> SyncSummary:
        from backread.mirror import Mirror

        try:
            folder = _local("mirror", self.mirror)
            one_of("mode", self.mode, get_args(Mode))
        except ValueError as error:
            raise AirflowFailException(str(error)) from None
        report = Mirror(folder).sync(
            client,
            mode=self.mode,
            max_staleness=self.max_staleness,
            on_progress=self._tell,
        )
        summary = _summary(folder, report)
        self.log.info("Synced %s: %s", folder, summary)
        if report.unread_users:
            self.log.warning(
                "The messages of %d users could not be read (%s); the table lists of the mirror "
                "says why, and the next sync reads them first",
                len(report.unread_users),
                _shown(report.unread_users),
            )
        if self.require_certificate:
            _require_certificate(report)
        emit(context, self.outlets, folder, summary)
        return summary

    def _tell(self, now: SyncProgress) -> None:
        # It is told too where a read begins; only counts above those of all reads before are new.
        read = now.rows + now.lists
        if read > self._most_read:
            self._most_read = read
            self._progressed = True
        if monotonic() - self._said < SECONDS_BETWEEN_LINES:
            return
        self._said = monotonic()
        self.log.info(
            "%s: %d users, %d messages, %d requests", now.phase, now.users, now.messages,
            now.requests,
        )  # fmt: skip


def _local(name: str, folder: str) -> str:
    folder = absolute(name, folder)
    if "://" in folder:
        raise ValueError(f"{name} must be a path that DuckDB can write to, not {folder!r}")
    return folder


def _summary(folder: str, report: SyncReport) -> SyncSummary:
    return SyncSummary(
        mirror=folder,
        run_id=report.run_id,
        mode=report.mode,
        resumed=report.resumed,
        requests=report.requests,
        users=report.users,
        messages=report.messages,
        users_added=report.users_added,
        users_updated=report.users_updated,
        messages_added=report.messages_added,
        messages_updated=report.messages_updated,
        deleted=report.deleted,
        rejects=report.rejects,
        certificate=report.certificate,
        lists_by_certificate=report.lists_by_certificate,
        uncertified_lists=len(report.uncertified_users),
        seconds=round(report.seconds, 3),
    )


def _require_certificate(report: SyncReport) -> None:
    # A retry would read everything again, and find the same.
    kept = "require_certificate: the mirror is synced, and no asset event is recorded, because"
    if report.certificate == "uncertified":
        raise AirflowFailException(
            f"{kept} the list of users is uncertified: {report.certificate_reason}"
        )
    if uncertified := report.uncertified_users:
        raise AirflowFailException(
            f"{kept} the messages of {len(uncertified)} users are uncertified: "
            f"{_shown(uncertified)}; the table lists of the mirror says why"
        )


def _shown(users: tuple[int, ...]) -> str:
    more = f" and {len(users) - 10} more" if len(users) > 10 else ""
    return ", ".join(map(str, users[:10])) + more
