"""Plan, shard and commit operators: one reading by many tasks, landed as Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, get_args

from airflow.sdk import BaseOperator  # type: ignore[import-not-found, unused-ignore]
from airflow.sdk.exceptions import (  # type: ignore[import-not-found, unused-ignore]
    AirflowFailException,
)

from backread.integrations.airflow.arguments import (
    Parser,
    absolute,
    at_least_one,
    check_arguments,
    check_privacy,
    is_rendered,
    one_of,
    set_default,
    switch,
)
from backread.integrations.airflow.base_operators import (
    Context,
    LineInterval,
    ReadingOperator,
    emit,
    folder_asset,
    read_arguments,
)
from backread.sharding.shard import Resource

if TYPE_CHECKING:
    from backread import Client, Shard
    from backread.landing import Committed, Landed

__all__ = [
    "BackreadCommitOperator",
    "BackreadPlanOperator",
    "BackreadShardOperator",
    "ShardToRead",
]


class ShardToRead(TypedDict):
    """One shard of a plan in a landing folder: an item of the plan's XCom."""

    folder: str
    run_id: str
    shard: int


class BackreadPlanOperator(ReadingOperator):
    """Plans a reading with `backread.plan`, and begins a run in a landing folder.

    - ``folder``: the landing folder, an absolute path that all workers see, or a URI that pyarrow
      knows.
    - ``resource``, ``shards``, ``workers``: as for `backread.plan`. Set ``workers``, and the mapped
      operator's ``max_active_tis_per_dagrun``, to the number of shards that run at once: the
      connection's rate limit and concurrency are divided by it.
    - All of these are templates. All else as `ReadingOperator` and Airflow's BaseOperator.

    If the service requests a wait (429), it waits in its worker, since a restart would read the
    list from the start. A retry makes a new plan. The XCom is a list of `ShardToRead`, to expand
    `BackreadShardOperator` with.
    """

    _parsers: ClassVar[dict[str, Parser]] = {
        "folder": absolute,
        "resource": one_of(*get_args(Resource)),
        "shards": at_least_one,
        "workers": at_least_one,
    }
    template_fields = (*_parsers, "backread_conn_id")

    def __init__(
        self,
        *,
        folder: str,
        resource: Resource = "messages",
        shards: int | str | None = None,
        workers: int | str | None = None,
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self.folder = folder
        self.resource: Resource = resource
        self.shards = shards
        self.workers = workers
        check_arguments(self._parsers, self)

    def read(self, context: Context, client: Client) -> list[ShardToRead]:
        from backread import landing, plan

        given = read_arguments(self._parsers, self)
        folder = given.pop("folder")
        planned = plan(client, **given)
        run_id = landing.begin(folder, planned)
        self.log.info("Planned: %r, in %s", planned, folder)
        return [ShardToRead(folder=folder, run_id=run_id, shard=shard.index) for shard in planned]


class BackreadShardOperator(ReadingOperator):
    """Reads one shard of a plan into a Parquet file; to be mapped over the plan's XCom.

    - ``shard``: an item of that XCom, by ``expand(shard=plan.output)``.
    - ``pseudonymise``, ``drop_bodies``, ``redact``: as for `landing.land`, the same for all
      shards; the key file is on each worker. Not templates.
    - All else as `ReadingOperator` and Airflow's BaseOperator.

    The shard must be signed with the connection's secret; one that was changed, or planned before
    that secret was set, fails the task at once.

    It uses its share of the connection's rate limit. If the service requests a wait (429), it waits
    in its worker, since a restart would read the shard from the start. A retry does so, into
    another file, and the earlier file is ignored. The XCom is the dict of a `Landed`, for
    `BackreadCommitOperator`.
    """

    template_fields = ("shard", "backread_conn_id")

    def __init__(
        self,
        *,
        shard: ShardToRead,
        pseudonymise: str | None = None,
        drop_bodies: bool = False,
        redact: bool = False,
        **arguments: Any,
    ) -> None:
        check_privacy(pseudonymise, drop_bodies, redact)
        super().__init__(**arguments)
        self.shard = shard
        self.pseudonymise = pseudonymise
        self.drop_bodies = drop_bodies
        self.redact = redact

    def read(self, context: Context, client: Client) -> dict[str, Any]:
        from backread import landing

        folder, run_id, index = _place(self.shard)
        shard = landing.load_shard(folder, run_id, index)
        lines = LineInterval()

        def tell(rows: int) -> None:
            if lines.is_over():
                self.log.info("shard %d: %d rows so far", index, rows)

        landed = landing.land(
            folder,
            shard,
            client=_at_its_pace(client, shard),
            on_progress=tell,
            pseudonymise=self.pseudonymise,
            drop_bodies=self.drop_bodies,
            redact=self.redact,
        )
        self.log.info(
            "Landed shard %d of %d: %d rows, %s",
            shard.index, shard.count, landed.rows, landed.report.certificate,
        )  # fmt: skip
        return landed.to_dict()


class BackreadCommitOperator(BaseOperator):  # type: ignore[misc, unused-ignore]
    """Commits a landed run: writes the manifest that names one file per shard.

    - ``landed``: the XComs of the mapped `BackreadShardOperator`, its ``output``.
    - ``folder``: that of the plan.
    - ``require_certificate``: commits nothing and fails, without a retry, if the shards together
      earned no certificate.
    - All of these are templates. All else as Airflow's BaseOperator.

    ``outlets`` are `folder_asset` (folder) by default, unless the path is a template. The XCom,
    which each outlet's event has as ``extra``, is a dict of what `Committed` and its report say,
    with the numbers of files and uncertified lists in place of their names, and as ``rows_read``
    the rows that the service sent. A retry does not change a committed run. It sends no requests
    to the service.
    """

    _parsers: ClassVar[dict[str, Parser]] = {"folder": absolute, "require_certificate": switch}
    template_fields = (*_parsers, "landed")
    ui_color = "#dcebe6"

    def __init__(
        self,
        *,
        folder: str,
        landed: Iterable[dict[str, Any]],
        require_certificate: bool | str = False,
        **arguments: Any,
    ) -> None:
        if is_rendered(folder):
            set_default(arguments, "outlets", [folder_asset(folder)])
        super().__init__(**arguments)
        self.folder = folder
        self.landed = landed
        self.require_certificate = require_certificate
        check_arguments(self._parsers, self)

    def execute(self, context: Context) -> dict[str, Any]:
        from backread import landing

        given = read_arguments(self._parsers, self)
        folder = given["folder"]
        read = _landed(self.landed)
        if given["require_certificate"]:
            _require_certificate(folder, read)
        summary = _summary(folder, landing.commit(folder, read[0].run_id, read))
        self.log.info("Committed in %s: %s", folder, summary)
        emit(context, self.outlets, folder, summary)
        return summary


def _place(shard: Mapping[str, Any]) -> tuple[str, str, int]:
    try:
        return str(shard["folder"]), str(shard["run_id"]), int(shard["shard"])
    except (KeyError, TypeError, ValueError):
        raise AirflowFailException(
            "shard must be an item of the output of BackreadPlanOperator; map it with "
            "BackreadShardOperator.partial(...).expand(shard=plan.output)"
        ) from None


def _landed(values: Iterable[Mapping[str, Any]]) -> list[Landed]:
    from backread.landing import Landed

    try:
        read = [Landed.from_dict(value) for value in values]
    except (TypeError, ValueError):
        read = []
    if not read:
        raise AirflowFailException("landed must be the output of a mapped BackreadShardOperator")
    return read


def _at_its_pace(client: Client, shard: Shard[Any]) -> Client:
    # The folder, the file and the XCom that names them are untrusted.
    shard._require_signature(client)
    share = shard.to_dict()["settings"]["options"]
    return client.with_options(
        max_concurrency=share["max_concurrency"], rate_limit=share["rate_limit"]
    )


def _require_certificate(folder: str, read: list[Landed]) -> None:
    from backread import landing
    from backread.sharding.joining import join_shard_reports

    # The first of each shard, as in the commit.
    chosen = {each.shard: each.report for each in reversed(read)}
    plan = landing.load_plan(folder, read[0].run_id)
    if any(shard.index not in chosen for shard in plan):
        # The commit will report the missing shards, and commit nothing.
        return
    report = join_shard_reports(plan, [chosen[shard.index] for shard in plan])
    if report.certificate == "uncertified":
        raise AirflowFailException(
            f"nothing was committed: require_certificate is set, and the rows are uncertified: "
            f"{report.reason}; clear the plan's task to read again"
        )


def _summary(folder: str, committed: Committed) -> dict[str, Any]:
    report = committed.report
    return {
        "folder": folder,
        "number": committed.number,
        "run_id": committed.run_id,
        "resource": committed.resource,
        "files": len(committed.files),
        "rows": committed.rows,
        "rows_read": report.rows,
        "requests": report.requests,
        "certificate": report.certificate,
        "lists_by_certificate": report.lists_by_certificate,
        "uncertified_lists": len(report.uncertified_users),
        "repaired_text": report.repaired_text,
    }
