"""When a process of an executor reads the list of users again, looked at without a session."""

from typing import Any

from pyspark import TaskContext

from backread import Client
from backread.integrations.spark import source
from backread.integrations.spark.source import read_once_per_stage


class Task:
    """A task as Spark tells a process of it."""

    def __init__(self, stage: int, attempt: int = 0) -> None:
        self.stage, self.attempt = stage, attempt

    def stageId(self) -> int:  # noqa: N802
        return self.stage

    def attemptNumber(self) -> int:  # noqa: N802
        return self.attempt


def test_the_list_is_that_of_the_stage_and_a_second_attempt_reads_it_again(monkeypatch):
    times: list[int] = []

    def listed_ids(client: Client, strict: bool) -> list[int]:
        times.append(len(times))
        return [times[-1]]

    monkeypatch.setattr(source, "listed_ids", listed_ids)
    client: Any = None
    seen = []
    for plan_id, task in (
        ("one", Task(3)),
        ("one", Task(3)),
        # The next query on the same frame.
        ("one", Task(4)),
        # Another frame, in the same stage.
        ("two", Task(4)),
        ("two", Task(4, attempt=1)),
        ("two", Task(4)),
        ("two", None),
    ):
        monkeypatch.setattr(TaskContext, "get", lambda task=task: task)
        seen += read_once_per_stage(plan_id)(client, False)
    assert seen == [0, 0, 1, 2, 3, 3, 4]
