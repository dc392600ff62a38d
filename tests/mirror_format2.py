"""A mirror as backread published it in format 2, from one that was published today.

All files were in ``published``; rows that changed later were in a file beside the parts, and
another had the positions of the rows that they replaced.
"""

import json
import shutil
from pathlib import Path

import duckdb

TABLES = ("users", "messages", "lists", "rejects", "runs")


def make_format2(folder: Path, *, sequence: int = 5) -> set[str]:
    """Replaces what is published; returns the names of the files."""
    published = folder / "published"
    snapshot = (published / "current").resolve()
    document = json.loads((snapshot / "snapshot.json").read_bytes())
    files = {name: [f"{name}.{sequence:08}.parquet"] for name in TABLES}
    for name in ("users", "messages"):
        files[name] = [f"{name}-{part:04}-of-0002.{sequence:08}.parquet" for part in range(2)]
    files["messages_changed"] = [f"messages_changed.{sequence:08}.parquet"]
    files["messages_replaced"] = [f"messages_replaced.{sequence:08}.parquet"]

    def write(query: str, name: str) -> None:
        path = str(published / name).replace("'", "''")
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)").fetchall()

    with duckdb.connect() as connection:
        for name in TABLES:
            path = str(snapshot / name / "*.parquet").replace("'", "''")
            connection.execute(f"CREATE TABLE {name} AS FROM read_parquet('{path}')").fetchall()
            for part, file in enumerate(files[name]):
                # The body of each message is an old one, except in the file beside the parts.
                old = "* REPLACE ('before' AS body)" if name == "messages" else "*"
                key = {"users": "id", "messages": "user_id"}.get(name, "0")
                order = "ORDER BY user_id, id" if name == "messages" else ""
                write(
                    f"SELECT {old} FROM {name} WHERE {key} % {len(files[name])} = {part} {order}",
                    file,
                )
        write("FROM messages", files["messages_changed"][0])
        # The part in the upper half of the number, the row in the lower one.
        write(
            "SELECT (user_id % 2) * 4294967296 + row_number() OVER "
            "(PARTITION BY user_id % 2 ORDER BY user_id, id) - 1 AS position FROM messages",
            files["messages_replaced"][0],
        )
    names = {name for each in files.values() for name in each}
    manifest = {
        "format": 2,
        "mirror_id": document["mirror_id"],
        "sequence": sequence,
        "run_id": document["run_id"],
        "seen_at": document["seen_at"],
        "published_at": document["published_at"],
        "files": files,
        "retired": {"messages-0001-of-0002.00000001.parquet": document["published_at"]},
    }
    (published / "current").unlink()
    shutil.rmtree(snapshot)
    (published / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (folder / "chats.duckdb").unlink()
    return names
