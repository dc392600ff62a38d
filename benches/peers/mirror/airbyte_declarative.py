"""A source of Airbyte's declarative CDK, with a destination that appends and drops duplicates.

Usage: ``python airbyte_declarative.py sync|held FOLDER [updated]``, the service in the environment.
Records go to a file of JSON lines for each stream; a state is kept once the records before it are
written, as the platform keeps it. ``held`` takes the last record of each key. With ``updated``,
both streams are incremental, and messages are read only of users whose ``updated_at`` moved.
"""

import copy
import json
import os
import sys
from pathlib import Path
from typing import Any

import orjson
import yaml
from airbyte_cdk.entrypoint import AirbyteEntrypoint
from airbyte_cdk.sources.declarative.concurrent_declarative_source import (
    ConcurrentDeclarativeSource,
)

MANIFEST = Path(__file__).with_name("airbyte_manifest.yaml")
STREAMS = ("users", "messages")


def cursor(field: str) -> dict[str, Any]:
    """An incremental read of a list that has no filter: what is older is dropped on arrival."""
    return {
        "type": "DatetimeBasedCursor",
        "cursor_field": field,
        "is_client_side_incremental": True,
        "start_datetime": "1970-01-01T00:00:00.000Z",
        "datetime_format": "%Y-%m-%dT%H:%M:%S.%_msZ",
        "cursor_datetime_formats": ["%Y-%m-%dT%H:%M:%S.%_msZ"],
    }


def manifest(updated: bool) -> dict[str, Any]:
    """The manifest; its streams are incremental if wished."""
    read: dict[str, Any] = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    if updated:
        users, messages = (read["definitions"][stream] for stream in STREAMS)
        users["incremental_sync"] = cursor("updated_at")
        messages["incremental_sync"] = cursor("created_at")
        [parent] = messages["retriever"]["partition_router"]["parent_stream_configs"]
        parent["incremental_dependency"] = True
    return read


def write(path: Path, content: object) -> str:
    """Writes JSON so that a kill leaves the old file or the new one; gives the path."""
    path.with_suffix(".new").write_text(json.dumps(content), encoding="utf-8")
    path.with_suffix(".new").replace(path)
    return str(path)


def sync(folder: Path, updated: bool) -> None:
    """One attempt of a sync, from the state that the last one left."""
    mode = "incremental" if updated else "full_refresh"
    settings = ("base_url", "api_secret", "vendor")
    config = {name: os.environ[f"BACKREAD_{name.upper()}"] for name in settings}
    key = {"users": [["id"]], "messages": [["user_id"], ["id"]]}
    catalog = {
        "streams": [
            {
                "stream": {
                    "name": name,
                    "json_schema": {},
                    "supported_sync_modes": ["full_refresh", "incremental"],
                },
                "sync_mode": mode,
                "destination_sync_mode": "append_dedup",
                "primary_key": key[name],
            }
            for name in STREAMS
        ]
    }
    kept = folder / "state.json"
    states: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    arguments = ["read", "--config", write(folder / "config.json", config)]
    arguments += ["--catalog", write(folder / "catalog.json", catalog)]
    if states:
        arguments += ["--state", write(folder / "given.json", list(states.values()))]
    parsed = AirbyteEntrypoint.parse_args(arguments)
    source = ConcurrentDeclarativeSource(
        catalog=ConcurrentDeclarativeSource.read_catalog(parsed.catalog),
        config=config,
        state=ConcurrentDeclarativeSource.read_state(parsed.state) if states else None,
        source_config=copy.deepcopy(manifest(updated)),
    )
    files = {name: (folder / f"{name}.jsonl").open("ab") for name in STREAMS}
    for line in AirbyteEntrypoint(source).run(parsed):
        message = orjson.loads(line)
        if message["type"] == "RECORD":
            record = message["record"]
            files[record["stream"]].write(orjson.dumps(record["data"]) + b"\n")
        elif message["type"] == "STATE":
            for file in files.values():
                file.flush()
            name = message["state"]["stream"]["stream_descriptor"]["name"]
            states[name] = message["state"]
            write(kept, states)
    for file in files.values():
        file.close()
    if mode == "full_refresh":
        # The next sync begins anew; only another attempt of this one is given its state.
        kept.unlink(missing_ok=True)
    print("{}")


def held(folder: Path) -> None:
    """Prints the ids of the users, and of the messages with their read flags."""
    users: dict[int, None] = {}
    messages: dict[tuple[int, int], list[Any]] = {}
    for line in (folder / "users.jsonl").open("rb"):
        users[orjson.loads(line)["id"]] = None
    for line in (folder / "messages.jsonl").open("rb"):
        each = orjson.loads(line)
        key = each["user_id"], each["id"]
        messages[key] = [*key, each["read_by_user"], each["read_by_operator"]]
    print(json.dumps({"users": list(users), "messages": list(messages.values())}))


if __name__ == "__main__":
    if sys.argv[1] == "sync":
        sync(Path(sys.argv[2]), updated=sys.argv[3:] == ["updated"])
    else:
        held(Path(sys.argv[2]))
