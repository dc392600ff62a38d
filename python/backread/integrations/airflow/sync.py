"""`BackreadSyncOperator`: syncs a mirror from a DAG."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from airflow.sdk.exceptions import (  # type: ignore[import-not-found, unused-ignore]
    AirflowFailException,
)

from backread._display.words import repaired_text, some_ids
from backread._progress.output import describe
from backread.integrations.airflow.arguments import (
    Parser,
    at_least_one,
    check_arguments,
    check_privacy,
    is_rendered,
    local,
    memory,
    one_of,
    positive_seconds,
    seconds,
    set_default,
    switch,
)
from backread.integrations.airflow.base_operators import (
    Context,
    LineInterval,
    MirrorReportLink,
    ResumingOperator,
    emit,
    folder_asset,
    read_arguments,
)
from backread.integrations.airflow.runs import Budget, why_full
from backread.mirror.sync.report import Mode

if TYPE_CHECKING:
    from backread import Client
    from backread.mirror import Mirror, SyncProgress, SyncReport

__all__ = ["BackreadSyncOperator"]


class BackreadSyncOperator(ResumingOperator):
    """Syncs a mirror; a retry resumes the run that was killed or failed.

    - ``mirror``: its folder, an absolute path that all workers see.
    - ``mode``: ``"incremental"``, ``"full"`` or ``"quick"``, see `Mirror.sync`.
    - ``full_every``: makes a run ``full`` if the last full one began this long ago (seconds or a
      timedelta), or there was none; of a DAG's regular runs, the nearest one. It uses the mirror's
      table ``runs``, so it does not matter what started the runs.
    - ``max_staleness``: how long a list may go without being read in full, in seconds or as a
      timedelta; 30 days. None for no limit.
    - ``max_requests``, ``max_seconds`` (seconds or a timedelta): end the reading, as in
      `Mirror.sync`. The task succeeds, and the next run continues. Each retry and
      each reschedule has the whole budget again.
    - ``memory_limit``: as for `Mirror`.
    - ``require_certificate``: fails the task after the sync, without a retry, if the users or any
      list of messages that it read earned no certificate: the mirror is kept, and no asset event
      is recorded.
    - ``report_url``: the URL of the mirror's report, if you serve one; the task links to it.
    - ``pseudonymise``, ``drop_bodies``, ``redact``: as for `Mirror`; the key file is on each one.
      Not templates, since those may come from a run's parameters.
    - All others are templates. All else as `ResumingOperator` and Airflow's BaseOperator. One
      sync of a mirror runs at a time, so ``max_active_tis_per_dag`` is 1 by default.

    ``outlets`` are `folder_asset` (mirror) by default, unless the path is a template. The XCom,
    which each outlet's event has as ``extra``, is that of `SyncReport.to_dict` for the last sync of
    the task, with the numbers of users (``uncertified_lists``, ``unread_lists``) in place of their
    ids, the folder as ``mirror``, and the rows that it holds, without deleted ones, as
    ``users_stored`` and ``messages_stored``.
    """

    _parsers: ClassVar[dict[str, Parser]] = {
        "mirror": local,
        "mode": one_of(*get_args(Mode)),
        "full_every": seconds,
        "max_staleness": seconds,
        "max_requests": at_least_one,
        "max_seconds": positive_seconds,
        "memory_limit": memory,
        "require_certificate": switch,
    }
    template_fields = (*_parsers, "report_url", "backread_conn_id")

    def __init__(
        self,
        *,
        mirror: str,
        mode: Mode = "incremental",
        full_every: float | timedelta | str | None = None,
        max_staleness: float | timedelta | str | None = timedelta(days=30),
        max_requests: int | str | None = None,
        max_seconds: float | timedelta | str | None = None,
        memory_limit: int | str | None = None,
        require_certificate: bool | str = False,
        report_url: str | None = None,
        pseudonymise: str | None = None,
        drop_bodies: bool = False,
        redact: bool = False,
        **arguments: Any,
    ) -> None:
        check_privacy(pseudonymise, drop_bodies, redact)
        if is_rendered(mirror):
            set_default(arguments, "outlets", [folder_asset(local("mirror", mirror))])
        set_default(arguments, "max_active_tis_per_dag", 1)
        super().__init__(**arguments)
        self.mirror = mirror
        self.mode: Mode = mode
        self.full_every = full_every
        self.max_staleness = max_staleness
        self.max_requests = max_requests
        self.max_seconds = max_seconds
        self.memory_limit = memory_limit
        self.require_certificate = require_certificate
        self.report_url = report_url
        self.pseudonymise = pseudonymise
        self.drop_bodies = drop_bodies
        self.redact = redact
        if report_url is not None:
            self.operator_extra_links = (MirrorReportLink(),)
        check_arguments(self._parsers, self)
        self._lines = LineInterval()
        self._most_lists = 0

    def execute(self, context: Context) -> Any:
        given = self._given = read_arguments(self._parsers, self)
        self._budget = Budget(given["max_requests"], given["max_seconds"])
        if given["mode"] != "full" and (reason := why_full(given["mirror"], given["full_every"])):
            self.log.info("This run is full: %s", reason)
            given["mode"] = "full"
        return super().execute(context)

    def read(self, context: Context, client: Client) -> dict[str, Any]:
        from backread.mirror import Mirror

        given, folder = self._given, self._given["mirror"]
        max_requests, max_seconds = self._budget.left()
        mirror = Mirror(
            folder,
            memory_limit=given["memory_limit"],
            pseudonymise=self.pseudonymise,
            drop_bodies=self.drop_bodies,
            redact=self.redact,
        )
        report = mirror.sync(
            client,
            mode=given["mode"],
            max_staleness=given["max_staleness"],
            max_requests=max_requests,
            max_seconds=max_seconds,
            on_progress=self._tell,
        )
        summary = _summary(mirror, report)
        self.log.info("Synced %s: %s", folder, summary)
        if report.partial:
            self.log.info("The budget is used up; %s lists are left", report.lists_left)
        if report.unread_users:
            self.log.warning(
                "The messages of %d users could not be read (%s); see the mirror's table "
                "lists; the next sync reads them first",
                len(report.unread_users),
                some_ids(report.unread_users),
            )
        if report.repaired_text:
            self.log.warning("%s", repaired_text(report.repaired_text))
        if given["require_certificate"]:
            _require_certificate(report, self.backread_conn_id)
        emit(context, self.outlets, folder, summary)
        return summary

    def _tell(self, now: SyncProgress) -> None:
        self._budget.observe(now)
        # Also called when a read begins, with the lists that earlier reads have done.
        if now.rows or now.lists > self._most_lists:
            self._progressed = True
        self._most_lists = max(self._most_lists, now.lists)
        if self._lines.is_over():
            self.log.info("%s: %s", now.phase, describe(now))


def _summary(mirror: Mirror, report: SyncReport) -> dict[str, Any]:
    summary = report.to_dict()
    # There may be many ids.
    for ids, count in (
        ("uncertified_users", "uncertified_lists"),
        ("unread_users", "unread_lists"),
    ):
        summary[count] = len(summary.pop(ids))
    summary["mirror"] = str(mirror.folder)
    for table in ("users", "messages"):
        query = f"SELECT count(*) FROM {table} WHERE deleted_at IS NULL"
        [(summary[f"{table}_stored"],)] = mirror.sql(query).fetchall()
    return summary


def _require_certificate(report: SyncReport, backread_conn_id: str) -> None:
    # A retry would read everything again, with the same result.
    kept = (
        f"the connection {backread_conn_id!r}, require_certificate: the mirror is synced, but no "
        "asset event is recorded, because"
    )
    # A partial run that has not read all users yet says nothing of them.
    users_are_read = report.users_swept_at is not None or not report.partial
    if users_are_read and report.certificate == "uncertified":
        raise AirflowFailException(
            f"{kept} the list of users is uncertified: {report.certificate_reason}"
        )
    if uncertified := report.uncertified_users:
        raise AirflowFailException(
            f"{kept} the messages of {len(uncertified)} users are uncertified: "
            f"{some_ids(uncertified)}; see the mirror's table lists"
        )
