"""`BackreadSyncOperator`: syncs a mirror from a DAG."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, cast, get_args

from airflow.sdk.exceptions import (  # type: ignore[import-not-found, unused-ignore]
    AirflowFailException,
)

from backread._display.words import repaired_text
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
from backread.integrations.airflow.assets import MirrorReportLink, emit, folder_asset
from backread.integrations.airflow.base_operators import (
    Context,
    LineInterval,
    ResumingOperator,
    read_arguments,
)
from backread.integrations.airflow.runs import Budget, why_full
from backread.mirror.sync.report import Mode

if TYPE_CHECKING:
    from backread import Client
    from backread.mirror import Mirror, SyncProgress, SyncReport

__all__ = ["BackreadSyncOperator", "SyncSummary"]


class SyncSummary(TypedDict):
    """The operator's XCom, and what its asset events have as ``extra``; see `SyncReport`.

    ``users`` and ``messages`` are the rows that the last sync of the task read, after its last
    wait, and ``run`` has the figures of all syncs of the run; ``users_stored`` and
    ``messages_stored`` are the rows in the mirror, without deleted ones. ``uncertified_lists`` is
    the number of users whose messages earned no certificate, ``unread_lists`` the number of those
    whose messages could not be read. ``state`` is ``"partial"`` if the budget ended the run.
    """

    mirror: str
    run_id: int
    mode: str
    resumed: bool
    state: str
    lists_done: int | None
    lists_left: int | None
    requests: int
    users: int
    messages: int
    users_stored: int
    messages_stored: int
    users_added: int
    users_updated: int
    messages_added: int
    messages_updated: int
    deleted: int
    rejects: int
    certificate: str
    lists_by_certificate: dict[str, int]
    uncertified_lists: int
    unread_lists: int
    repaired_text: int
    outage_seconds: float
    seconds: float
    run: dict[str, Any]


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

    ``outlets`` are `folder_asset` (mirror) by default, unless the path is a template. The XCom is a
    `SyncSummary`; each outlet's event has it as ``extra``.
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

    def read(self, context: Context, client: Client) -> SyncSummary:
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
            self.log.info("The budget is used up: %s; the next run continues", _left(report))
        if report.unread_users:
            self.log.warning(
                "The messages of %d users could not be read (%s); see the mirror's table "
                "lists; the next sync reads them first",
                len(report.unread_users),
                _shown(report.unread_users),
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
            self.log.info("%s", _progress(now))


def _progress(now: SyncProgress) -> str:
    parts = [
        f"{now.users:,} users",
        f"{now.messages:,} messages",
        f"{now.requests:,} requests ({now.pace:.0f} a second)",
    ]
    if now.lists_total is not None:
        parts.append(f"{now.lists:,} of {now.lists_total:,} lists")
    if now.seconds_left is not None:
        parts.append(f"about {now.seconds_left / 60:.0f} min left")
    return f"{now.phase}: {', '.join(parts)}"


def _left(report: SyncReport) -> str:
    if report.lists_left is None:
        return "the list of users is not read to its end"
    return f"{report.lists_done or 0:,} message lists are read, {report.lists_left:,} left"


def _summary(mirror: Mirror, report: SyncReport) -> SyncSummary:
    stored = "SELECT count(*) FROM {} WHERE deleted_at IS NULL"
    [(users_stored,)] = mirror.sql(stored.format("users")).fetchall()
    [(messages_stored,)] = mirror.sql(stored.format("messages")).fetchall()
    reported: Any = {
        name: getattr(report, name) for name in SyncSummary.__annotations__ if hasattr(report, name)
    }
    return cast(
        "SyncSummary",
        reported
        | {
            "mirror": str(mirror.folder),
            "users_stored": users_stored,
            "messages_stored": messages_stored,
            "uncertified_lists": len(report.uncertified_users),
            "unread_lists": len(report.unread_users),
            "outage_seconds": round(report.outage_seconds, 3),
            "seconds": round(report.seconds, 3),
            "run": report.to_dict()["run"],
        },
    )


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
            f"{_shown(uncertified)}; see the mirror's table lists"
        )


def _shown(users: tuple[int, ...]) -> str:
    more = f" and {len(users) - 10} more" if len(users) > 10 else ""
    return ", ".join(map(str, users[:10])) + more
