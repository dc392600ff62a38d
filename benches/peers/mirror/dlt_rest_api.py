"""dlt's rest_api source into DuckDB.

Usage: ``python dlt_rest_api.py sync|held FOLDER [updated]``, the service in the environment. With
``updated``, users are taken incrementally by ``updated_at``, and messages of those users alone.
"""

import json
import os
import sys
from pathlib import Path

import dlt
import duckdb  # noqa: F401  dlt imports it in its first run, and imports are not timed
from dlt.sources.rest_api import rest_api_source
from dlt.sources.rest_api.typing import RESTAPIConfig

LIMIT = 99


def configuration(updated: bool) -> RESTAPIConfig:
    """The lists of the service, as the documentation of dlt declares such."""
    config: RESTAPIConfig = {
        "client": {
            "base_url": os.environ["BACKREAD_BASE_URL"],
            "auth": {"type": "bearer", "token": os.environ["BACKREAD_API_SECRET"]},
            "headers": {"Accept": f"application/vnd.{os.environ['BACKREAD_VENDOR']}.v1+json"},
            "paginator": {"type": "offset", "limit": LIMIT, "total_path": "total"},
        },
        "resource_defaults": {"write_disposition": "merge"},
        "resources": [
            {
                "name": "users",
                "primary_key": "id",
                "endpoint": {"path": "external/users", "data_selector": "users"},
            },
            {
                "name": "messages",
                "primary_key": ["_users_id", "id"],
                "include_from_parent": ["id"],
                "parallelized": True,
                "endpoint": {
                    "path": "external/users/{resources.users.id}/messages",
                    "data_selector": "messages",
                    # A user may be gone before the messages are asked for.
                    "response_actions": [{"status_code": 404, "action": "ignore"}],
                },
            },
        ],
    }
    if updated:
        config["resources"][0]["endpoint"]["incremental"] = {  # type: ignore[index]
            "cursor_path": "updated_at",
            "initial_value": "1970-01-01T00:00:00.000Z",
        }
    return config


def pipeline(folder: Path) -> dlt.Pipeline:
    """The pipeline with all that it keeps in one folder."""
    return dlt.pipeline(
        "chats",
        pipelines_dir=str(folder / "pipelines"),
        destination=dlt.destinations.duckdb(str(folder / "mirror.duckdb")),
        dataset_name="chats",
    )


def sync(folder: Path, updated: bool) -> None:
    """One run."""
    done = pipeline(folder).run(rest_api_source(configuration(updated)))
    done.raise_on_failed_jobs()
    print("{}")


def held(folder: Path) -> None:
    """Prints the ids of the users, and of the messages with their read flags."""
    with pipeline(folder).sql_client() as client:
        users = client.execute_sql("SELECT id FROM users") or []
        messages = client.execute_sql(
            "SELECT _users_id, id, read_by_user, read_by_operator FROM messages"
        )
    print(json.dumps({"users": [each for (each,) in users], "messages": messages}))


if __name__ == "__main__":
    if sys.argv[1] == "sync":
        sync(Path(sys.argv[2]), updated=sys.argv[3:] == ["updated"])
    else:
        held(Path(sys.argv[2]))
