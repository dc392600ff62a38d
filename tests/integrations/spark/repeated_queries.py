"""Queries that are run more than once on one frame, in any session, while the service changes."""

from __future__ import annotations

from collections.abc import Callable, Collection

from pyspark.sql import DataFrame, SparkSession

from backread.testing import World

Count = Callable[[], int]

VIEW = """
CREATE OR REPLACE TEMPORARY VIEW chats USING backread OPTIONS (resource 'messages', shards '3')
"""


def queries(spark: SparkSession) -> dict[str, tuple[str, Count]]:
    """What each query counts, ``users`` or ``messages``, and the query; its frame is made now."""

    def load(**options: object) -> DataFrame:
        return spark.read.format("backread").options(**options).load()

    def sql(text: str) -> Count:
        return lambda: int(spark.sql(text).collect()[0][0])

    users = load(resource="users")
    strict_users = load(resource="users", strict=True)
    messages = load(shards=3)
    strict = load(shards=3, strict=True)
    joined = messages.join(users, messages.user_id == users.id)
    users.createOrReplaceTempView("people")
    spark.sql(VIEW)
    return {
        "users": ("users", users.count),
        "strict users": ("users", strict_users.count),
        "collected users": ("users", lambda: len(users.collect())),
        "a view of users": ("users", sql("SELECT count(*) FROM people")),
        "messages": ("messages", messages.count),
        "strict messages": ("messages", strict.count),
        "collected messages": ("messages", lambda: len(messages.select("id").collect())),
        "users of messages": ("users", messages.select("user_id").distinct().count),
        "a view in SQL": ("messages", sql("SELECT count(*) FROM chats")),
        "a join": ("messages", joined.count),
        "a join in SQL": (
            "messages",
            sql("SELECT count(*) FROM chats JOIN people ON chats.user_id = people.id"),
        ),
    }


SOME = ("strict users", "strict messages", "a join in SQL")


def mistakes(spark: SparkSession, world: World, names: Collection[str] = ()) -> list[str]:
    """The queries that give anything but what is there: at first, and after each change.

    ``names`` are those to run; all without it.
    """
    made = {name: each for name, each in queries(spark).items() if name in (names or {name})}
    found = []

    def count(when: str) -> None:
        there = {"users": world.total_users, "messages": world.total_messages}
        for name, (what, query) in made.items():
            if (got := query()) != there[what]:
                found.append(f"{name}, {when}: {got} of {there[what]} {what}")

    count("at first")
    world.add_users(20)
    world.add_messages(world.user_ids()[0], 3)
    count("after some came")
    for user_id in world.user_ids()[1:60:2]:
        world.remove_user(user_id)
    count("after some went")
    return found
