"""One frame, several queries: each one reads the service as it is then."""

import clusters
from again import mistakes
from pyspark.sql.functions import broadcast

from backread.integrations.spark import register
from backread.testing import World

# Each user has messages, so that messages tell how many users they are of.
WORLD = World(seed=17, users=230, messages_per_user=(1, 3))
PAGES = 3
"""Requests that one reading of the list of users takes, which may be one more."""


def test_each_query_on_one_frame_reads_the_users_there_are(environment, serve, tmp_path):
    """Here in local mode; those of Connect and of a standalone master do the same."""
    spark = clusters.start("local[2]", tmp_path)
    server = serve(WORLD.copy())
    register(spark, base_url=server.url)
    assert mistakes(spark, server.world) == []


def test_each_process_reads_the_list_of_users_once_for_its_tasks(spark, serve):
    server = serve(WORLD.copy())
    register(spark, base_url=server.url)
    frame = spark.read.format("backread").option("shards", 12).load()
    for _ in range(2):
        server.forget()
        assert frame.count() == server.world.total_messages
        # Twelve tasks on two executors with a core each; the first query is planned by one request.
        assert PAGES <= server.calls("users").count <= 1 + 2 * (PAGES + 1)
        server.world.add_users(1)


def test_a_cached_frame_stays_as_it_was_read(spark, serve):
    server = serve(WORLD.copy())
    register(spark, base_url=server.url)
    frame = spark.read.format("backread").option("resource", "users").load().cache()
    try:
        assert frame.count() == WORLD.total_users
        server.world.add_users(3)
        assert frame.count() == WORLD.total_users
    finally:
        frame.unpersist()
    assert frame.count() == server.world.total_users


def test_what_spark_keeps_of_a_collected_frame_is_read_anew_by_a_frame_made_of_it(spark, serve):
    """As with every source: the broadcast side of a join belongs to the frame that was run."""
    server = serve(WORLD.copy())
    register(spark, base_url=server.url)
    users = spark.read.format("backread").option("resource", "users").load()
    messages = spark.read.format("backread").option("shards", 2).load()
    joined = messages.join(broadcast(users), messages.user_id == users.id)
    assert len(joined.collect()) == server.world.total_messages
    server.world.add_users(20)
    assert len(joined.select("*").collect()) == server.world.total_messages
