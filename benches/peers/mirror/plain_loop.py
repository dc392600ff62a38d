"""A plain loop over the pages of each list, as it is written in an afternoon: offset += limit.

Usage: ``python plain_loop.py sync|held FOLDER``, the service in the environment.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LIMIT = 99
HEADERS = {
    "Authorization": f"Bearer {os.environ.get('BACKREAD_API_SECRET')}",
    "Accept": f"application/vnd.{os.environ.get('BACKREAD_VENDOR')}.v1+json",
}


def rows(path: str, key: str) -> Iterator[dict[str, Any]]:
    """The rows of a list, page by page until its total."""
    offset, total = 0, 1
    while offset < total:
        url = f"{os.environ['BACKREAD_BASE_URL']}{path}?offset={offset}&limit={LIMIT}"
        with urllib.request.urlopen(urllib.request.Request(url, headers=HEADERS)) as answer:
            page = json.load(answer)
        yield from page[key]
        offset, total = offset + LIMIT, page["total"]


def sync(folder: Path) -> None:
    """Reads everything into a new file, which takes the place of the old one at the end."""
    unfinished = folder / "unfinished.jsonl"
    with unfinished.open("w", encoding="utf-8") as file:
        for user in list(rows("/external/users", "users")):
            messages: list[dict[str, Any]] = []
            try:
                messages += rows(f"/external/users/{user['id']}/messages", "messages")
            except urllib.error.HTTPError as error:
                if error.code != 404:
                    raise
            print(json.dumps({**user, "messages": messages}), file=file)
    unfinished.replace(folder / "rows.jsonl")
    print("{}")


def held(folder: Path) -> None:
    """Prints the ids of the users, and of the messages with their read flags."""
    users, messages = [], []
    with (folder / "rows.jsonl").open(encoding="utf-8") as file:
        for user in map(json.loads, file):
            users.append(user["id"])
            messages += [
                [user["id"], each["id"], each["read_by_user"], each["read_by_operator"]]
                for each in user["messages"]
            ]
    print(json.dumps({"users": users, "messages": messages}))


if __name__ == "__main__":
    {"sync": sync, "held": held}[sys.argv[1]](Path(sys.argv[2]))
