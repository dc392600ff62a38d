"""requests, one request at a time, with dictionaries."""

from collections.abc import Iterator
from typing import Any

import pages
import requests
from measured import measure


def main() -> list[dict[str, Any]]:
    """Reads all."""
    url, most = pages.arguments()
    with requests.Session() as session:
        session.headers.update(pages.HEADERS)

        def rows(path: str, key: str) -> Iterator[list[dict[str, Any]]]:
            offset, total = 0, 1
            while offset < total:
                response = session.get(
                    url + path, params={"offset": offset, "limit": pages.LIMIT}, timeout=30
                )
                response.raise_for_status()
                page = response.json()
                yield page[key]
                offset, total = offset + len(page[key]), page["total"]

        ids: list[int] = []
        for users in rows("/external/users", "users"):
            ids += (user["id"] for user in users)
            if len(ids) >= most:
                break
        kept: list[dict[str, Any]] = []
        for user in ids[:most]:
            for messages in rows(f"/external/users/{user}/messages", "messages"):
                kept += messages
        return kept


measure(main)
