"""Without a package that the command needs, its tests are left out."""

from importlib.util import find_spec

NEEDED = ("duckdb", "rich", "typer")

collect_ignore_glob = [] if all(map(find_spec, NEEDED)) else ["test_*.py"]
