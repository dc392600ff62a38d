"""Spark reads the snapshot of a mirror by path."""

from backread import Mirror
from backread.testing import World

TABLES = ("users", "messages", "lists", "rejects", "runs", "forgotten")


def test_each_table_has_the_rows_of_the_mirror(spark, serve, tmp_path):
    server = serve(World(seed=12, users=40, messages_per_user=(1, 30)))
    mirror = Mirror(tmp_path / "chats")
    with server.client() as client:
        mirror.sync(client)
    current = mirror.folder / "published" / "current"
    for table in TABLES:
        [(expected,)] = mirror.sql(f"SELECT count(*) FROM {table}").fetchall()
        assert spark.read.parquet(str(current / table)).count() == expected, table
    messages = spark.read.parquet(str(current / "messages"))
    assert messages.select("user_id", "id").distinct().count() == messages.count()
    user = server.world.user_ids()[7]
    assert messages.filter(f"user_id = {user}").count() == len(mirror.conversation(user)) > 0
