"""The inputs the fuzz targets start from: ``fuzz/seeds/<target>.json``.

``python fuzz/seeds.py write FOLDER`` writes each seed to a file in ``FOLDER/<target>``.
``python fuzz/seeds.py pages`` replaces the seeds that are pages of the mock, one for each dialect;
it needs backread installed.

A seed is a string, or an array of bytes if it is not UTF-8.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path

Seed = str | list[int]

SEEDS = Path(__file__).parent / "seeds"
DIALECTS = {
    "documented": "documented",
    "hostile": "hostile order=id",
    "nulls": "nulls=both",
    "gaps": "nulls=missing total=null",
    "others": "sender_type=others extra_fields=some",
    "large": "ids=large",
    "text": "ids=text",
}


def write(folder: Path) -> None:
    for file in sorted(SEEDS.glob("*.json")):
        target = folder / file.stem
        target.mkdir(parents=True, exist_ok=True)
        seeds: dict[str, Seed] = json.loads(file.read_text("utf-8"))
        for name, seed in seeds.items():
            (target / name).write_bytes(seed.encode() if isinstance(seed, str) else bytes(seed))


def replace_pages() -> None:
    from backread.testing import Lane, MockServer, World

    def page(lane: Lane, target: str) -> str:
        headers = {
            "Authorization": f"Bearer {lane.secret}",
            "Accept": f"application/vnd.{lane.vendor}.v1+json",
        }
        with urllib.request.urlopen(
            urllib.request.Request(lane.url + target, headers=headers)
        ) as response:
            body: bytes = response.read()
        return body.decode()

    file = SEEDS / "page.json"
    seeds: dict[str, Seed] = json.loads(file.read_text("utf-8"))
    with MockServer(World(seed=5, users=40, messages_per_user=(4, 9))) as server:
        for name, dialect in DIALECTS.items():
            with server.lane(dialect=dialect) as lane:
                users = page(lane, "/external/users?offset=9&limit=3")
                first = json.loads(users)["users"][0]["id"]
                seeds[f"users-{name}"] = users
                seeds[f"messages-{name}"] = page(lane, f"/external/users/{first}/messages?limit=4")
    rows = [f"  {json.dumps(name)}: {json.dumps(seeds[name])}" for name in sorted(seeds)]
    file.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


def main() -> None:
    match sys.argv[1:]:
        case ["write", folder]:
            write(Path(folder))
        case ["pages"]:
            replace_pages()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
